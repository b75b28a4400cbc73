// The kernel of the range filter (perhaps/range.h), in portable form and for BMI2.
#include <bit>

#include "perhaps/detail/isa.h"

#define PERHAPS_KERNELS "kernel/range_bmi2.inc"
#define PERHAPS_KERNELS_ON PERHAPS_ON_BMI2
#include "kernel/each_target.inc"

namespace perhaps::kernel {
namespace {

using Bits = detail::isa::WordBits<detail::isa::Portable>;

#include "kernel/range.inc"

void portable_kernels(InstructionSet& set) { set.range_skip_zeros = skip_zeros; }

}  // namespace

PERHAPS_CHOOSE_KERNELS(range)

}  // namespace perhaps::kernel
