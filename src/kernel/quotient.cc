// The kernels of the quotient filter (perhaps/quotient.h), in portable form and for BMI2.
#include "kernel/quotient_steps.h"

#define PERHAPS_KERNELS "kernel/quotient_bmi2.inc"
#define PERHAPS_KERNELS_ON PERHAPS_ON_BMI2
#include "kernel/each_target.inc"

namespace perhaps::kernel {
namespace {

using Bits = quotient::PortableBits;

#include "kernel/quotient.inc"

void portable_kernels(InstructionSet& set) { add_kernels(set); }

}  // namespace

PERHAPS_CHOOSE_KERNELS(quotient)

}  // namespace perhaps::kernel
