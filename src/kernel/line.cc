// The batch kernels of the line filter (perhaps/line_bloom.h).
#include "perhaps/line_bloom.h"

#define PERHAPS_KERNELS "kernel/line.inc"
#define PERHAPS_KERNELS_ON PERHAPS_ON_TARGET
#include "kernel/each_target.inc"

namespace perhaps::kernel {
namespace {

// A module of WebAssembly that has vectors runs only where there are vectors.
void portable_kernels([[maybe_unused]] InstructionSet& set) {
#if !defined(__wasm_simd128__)
  set.line_query = detail::query_by_key<LineLayout, 64>;
  set.line_insert = detail::insert_by_key<LineLayout, 64>;
#endif
}

}  // namespace

PERHAPS_CHOOSE_KERNELS(line)

}  // namespace perhaps::kernel
