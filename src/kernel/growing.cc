// The kernels of the growing filter (perhaps/growing.h), in portable form and for BMI2.
#include "kernel/growing_steps.h"

#define PERHAPS_KERNELS "kernel/growing_bmi2.inc"
#define PERHAPS_KERNELS_ON PERHAPS_ON_BMI2
#include "kernel/each_target.inc"

namespace perhaps::kernel {
namespace {

using Bits = growing::PortableBits;

#include "kernel/growing.inc"

void portable_kernels(InstructionSet& set) { add_kernels(set); }

}  // namespace

PERHAPS_CHOOSE_KERNELS(growing)

}  // namespace perhaps::kernel
