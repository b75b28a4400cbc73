// Which seeds of a dense filter (perhaps/engine/dense.h) have a solution: most of the time of building goes into those
// that have none.
#include "perhaps/engine/dense.h"

#define PERHAPS_KERNELS "kernel/dense.inc"
#define PERHAPS_KERNELS_ON PERHAPS_ON_CPU
#include "kernel/each_target.inc"

namespace perhaps::kernel {
namespace {

#include "kernel/dense_query.inc"

// Without vectors it is faster to try each seed on the way to its solution.
void portable_kernels(InstructionSet& set) {
  set.dense_query = query_of<Dense>();
  set.dense_groups_query = query_of<DenseGroups>();
  set.dense_regular = nullptr;
}

}  // namespace

PERHAPS_CHOOSE_KERNELS(dense)

}  // namespace perhaps::kernel
