// The kernels that solve ribbons, in portable form and for BMI2.
#include "build/ribbon_steps.h"

#define PERHAPS_KERNELS "build/ribbon_bmi2.inc"
#define PERHAPS_KERNELS_ON PERHAPS_ON_BMI2
#include "kernel/each_target.inc"

namespace perhaps::kernel {
namespace {

struct Bits {
  static bool odd_or_zero(std::uint64_t word, std::uint64_t& first) noexcept {
    first = static_cast<std::uint64_t>(std::countr_zero(word));
    return first - 1 >= 63;
  }
};

#include "build/ribbon_kernels.inc"

void portable_kernels(InstructionSet& set) {
  add_kernels(set);
  // Few maps are this wide: one form is enough.
  add_loops(set.ribbon_wide_map_solver);
}

}  // namespace

PERHAPS_CHOOSE_KERNELS(ribbon_build)

}  // namespace perhaps::kernel
