// Which kernels run: those of the best instruction set that this CPU has, or of the one that PERHAPS_ISA names.
#include <unistd.h>

#include <atomic>
#include <cstdlib>
#include <string_view>
#include <vector>

#include "kernel/instruction_set.h"
#include "kernel/targets.h"
#if PERHAPS_SIMD
#include <hwy/highway.h>
#endif

namespace perhaps {
namespace kernel {
namespace {

void add_kernels(Target target, InstructionSet& set) {
  for (const auto family : {classic_kernels, line_kernels, block_kernels, counting_kernels, cuckoo_kernels,
                            quotient_kernels, growing_kernels, window_kernels, fuse_kernels, ribbon_kernels,
                            ribbon_build_kernels, ribbon_map_build_kernels, range_kernels, dense_kernels}) {
    family(target, set);
  }
}

#if PERHAPS_SIMD
// WebAssembly has no run-time check: a module with vectors runs where they exist, or is not loaded.
std::int64_t targets_here() {
#if defined(__wasm__)
  return HWY_TARGETS;
#else
  return hwy::SupportedTargets();
#endif
}
#endif

class AllSets {
 public:
  AllSets() {
    add(Target::portable, "portable");
#if PERHAPS_SIMD
    const auto add_if = [&, here = targets_here()](std::int64_t bit, Target target, const char* name) {
      if ((HWY_TARGETS & here & bit) != 0) add(target, name);
    };
    add_if(HWY_SSE4, Target::sse4, "sse4");
    add_if(HWY_AVX2, Target::avx2, "avx2");
    add_if(HWY_AVX3, Target::avx512, "avx512");
    add_if(HWY_NEON, Target::neon, "neon");
    add_if(HWY_WASM, Target::simd128, "simd128");
#endif
    for (const InstructionSet& set : sets_) pointers_.push_back(&set);
  }
  std::span<const InstructionSet* const> get() const noexcept { return pointers_; }

 private:
  // Each begins as the one before.
  void add(Target target, const char* name) {
    InstructionSet set = sets_.empty() ? InstructionSet{} : sets_.back();
    set.name = name;
    add_kernels(target, set);
    sets_.push_back(set);
  }

  std::vector<InstructionSet> sets_;
  std::vector<const InstructionSet*> pointers_;
};

// An unknown name falls back to the reference: slow is easier to notice, and safer, than a wrong guess.
const InstructionSet& choose() {
  const auto all = instruction_sets();
  const char* wanted = std::getenv("PERHAPS_ISA");
  if (wanted == nullptr) return *all.back();
  for (const InstructionSet* set : all) {
    if (std::string_view(set->name) == wanted) return *set;
  }
  return *all.front();
}

std::atomic<const InstructionSet*> in_use = nullptr;

}  // namespace

std::span<const InstructionSet* const> instruction_sets() noexcept {
  static const AllSets all;
  return all.get();
}

const InstructionSet& active() noexcept {
  const InstructionSet* set = in_use.load(std::memory_order_acquire);
  if (set == nullptr) {
    set = &choose();
    in_use.store(set, std::memory_order_release);
  }
  return *set;
}

void use(const InstructionSet& set) noexcept { in_use.store(&set, std::memory_order_release); }

}  // namespace kernel

namespace detail {

const Kernels& kernels() noexcept { return kernel::active(); }

bool far_away(std::uint64_t table_bytes) noexcept {
  static const std::uint64_t l2 = [] {
#if defined(__GLIBC__)
    const long size = sysconf(_SC_LEVEL2_CACHE_SIZE);
#else
    const long size = 0;
#endif
    return size > 0 ? static_cast<std::uint64_t>(size) : std::uint64_t{512} << 10;
  }();
  return table_bytes > l2;
}

}  // namespace detail
}  // namespace perhaps
