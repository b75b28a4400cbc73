// The kernels that solve ribbon maps, in portable form and for BMI2. A file of their own: the WebAssembly modules build
// no maps and leave it out (web/module.cc).
#include "build/ribbon_steps.h"

namespace perhaps::kernel {
namespace {

template <class Loops>
void add_loops(InstructionSet& set) {
  Loops::add(set.ribbon_map_solver);
}

}  // namespace
}  // namespace perhaps::kernel

#define PERHAPS_KERNELS "build/ribbon_bmi2.inc"
#define PERHAPS_KERNELS_ON PERHAPS_ON_BMI2
#include "kernel/each_target.inc"

namespace perhaps::kernel {
namespace {

#include "build/ribbon_portable.inc"

void portable_kernels(InstructionSet& set) {
  add_loops<Loops>(set);
  // Few maps are this wide: one form is enough.
  Loops::add(set.ribbon_wide_map_solver);
}

}  // namespace

PERHAPS_CHOOSE_KERNELS(ribbon_map_build)

}  // namespace perhaps::kernel
