// The batch kernels of the line filter (perhaps/line_bloom.h).
#include "perhaps/line_bloom.h"

#define PERHAPS_KERNELS "kernel/line.inc"
#define PERHAPS_KERNELS_ON PERHAPS_ON_TARGET
#include "kernel/each_target.inc"

namespace perhaps::kernel {
namespace {

void portable_kernels(InstructionSet& set) {
  set.line_query = detail::query_by_key<LineLayout, 64>;
  set.line_insert = detail::insert_by_key<LineLayout, 64>;
}

}  // namespace

PERHAPS_CHOOSE_KERNELS(line)

}  // namespace perhaps::kernel
