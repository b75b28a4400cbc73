// The kernels that solve ribbons, in portable form and for BMI2.
#include "build/ribbon_steps.h"
#include "kernel/targets.h"

#if PERHAPS_SIMD
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "build/ribbon_kernels.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#if PERHAPS_ON_BMI2
#include <immintrin.h>

HWY_BEFORE_NAMESPACE();
namespace perhaps::ribbon::HWY_NAMESPACE {
namespace {

struct Bits {
  // `first` becomes the place of the first one in the word.
  static inline bool odd_or_zero(std::uint64_t word, std::uint64_t& first) noexcept {
    first = _tzcnt_u64(word);
    return first - 1 >= 63;
  }
};

#include "build/ribbon_kernels.inc"

void simd_kernels(kernel::InstructionSet& set) { add_kernels(set); }

}  // namespace
}  // namespace perhaps::ribbon::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
#endif

#if !PERHAPS_SIMD || HWY_ONCE
namespace perhaps::ribbon {
namespace {

struct Bits {
  static bool odd_or_zero(std::uint64_t word, std::uint64_t& first) noexcept {
    first = static_cast<std::uint64_t>(std::countr_zero(word));
    return first - 1 >= 63;
  }
};

#include "build/ribbon_kernels.inc"

void portable_kernels(kernel::InstructionSet& set) { add_kernels(set); }

void choose(kernel::Target target, kernel::InstructionSet& set) {
  using kernel::Target;
  PERHAPS_FOR_BMI2(target, set)
}

}  // namespace
}  // namespace perhaps::ribbon

void perhaps::kernel::ribbon_build_kernels(Target target, InstructionSet& set) { ribbon::choose(target, set); }
#endif
