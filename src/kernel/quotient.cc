// The kernels of the quotient filter (perhaps/quotient.h), in portable form and for BMI2.
#include "kernel/instruction_set.h"
#include "kernel/quotient_steps.h"
#include "kernel/targets.h"

#if PERHAPS_SIMD
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/quotient.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#if PERHAPS_ON_BMI2
#include <immintrin.h>

HWY_BEFORE_NAMESPACE();
namespace perhaps::kernel::HWY_NAMESPACE {
namespace {

struct Bits {
  static inline std::uint64_t popcount(std::uint64_t word) noexcept {
    return static_cast<std::uint64_t>(__builtin_popcountll(word));
  }
  static inline std::uint64_t find(std::uint64_t word, std::uint64_t rank) noexcept {
    return rank < 64 ? _tzcnt_u64(_pdep_u64(std::uint64_t{1} << rank, word)) : 64;
  }
};

#include "kernel/quotient.inc"

// Zen 1 and 2 have PDEP in microcode, at up to 250 cycles.
bool has_fast_pdep() {
  __builtin_cpu_init();
  return !__builtin_cpu_is("znver1") && !__builtin_cpu_is("znver2");
}

void simd_kernels(InstructionSet& set) {
  if (has_fast_pdep()) add_kernels(set);
}

}  // namespace
}  // namespace perhaps::kernel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
#endif

#if !PERHAPS_SIMD || HWY_ONCE
namespace perhaps::kernel {
namespace {

using Bits = quotient::PortableBits;

#include "kernel/quotient.inc"

void portable_kernels(InstructionSet& set) { add_kernels(set); }

}  // namespace

void quotient_kernels(Target target, InstructionSet& set) { PERHAPS_FOR_BMI2(target, set) }

}  // namespace perhaps::kernel
#endif
