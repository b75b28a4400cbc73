// The kernels that solve ribbon filters, in portable form and for BMI2.
#include "build/ribbon_steps.h"

namespace perhaps::kernel {
namespace {

template <class Loops>
void add_loops(InstructionSet& set) {
  set.ribbon_walk_wide = Loops::walk_wide;
  Loops::add(set.ribbon_solver);
}

}  // namespace
}  // namespace perhaps::kernel

#define PERHAPS_KERNELS "build/ribbon_bmi2.inc"
#define PERHAPS_KERNELS_ON PERHAPS_ON_BMI2
#include "kernel/each_target.inc"

namespace perhaps::kernel {
namespace {

#include "build/ribbon_portable.inc"

void portable_kernels(InstructionSet& set) { add_loops<Loops>(set); }

}  // namespace

PERHAPS_CHOOSE_KERNELS(ribbon_build)

}  // namespace perhaps::kernel
