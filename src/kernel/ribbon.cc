// The batch kernel of the ribbon filter (perhaps/ribbon.h).
#include "perhaps/ribbon.h"

#include <utility>

#define PERHAPS_KERNELS "kernel/ribbon.inc"
#define PERHAPS_KERNELS_ON PERHAPS_ON_CPU
#include "kernel/each_target.inc"

namespace perhaps::kernel {
namespace {

void portable_kernels(InstructionSet& set) { set.ribbon_query = detail::query_by_key<RibbonLayout, 64>; }

}  // namespace

PERHAPS_CHOOSE_KERNELS(ribbon)

}  // namespace perhaps::kernel
