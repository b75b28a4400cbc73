// The batch kernels of the split-block filter (perhaps/block_bloom.h).
#include "perhaps/block_bloom.h"

#define PERHAPS_KERNELS "kernel/block.inc"
#define PERHAPS_KERNELS_ON PERHAPS_ON_TARGET
#include "kernel/each_target.inc"

namespace perhaps::kernel {
namespace {

// A module of WebAssembly that has vectors runs only where there are vectors.
void portable_kernels([[maybe_unused]] InstructionSet& set) {
#if !defined(__wasm_simd128__)
  set.block_query = detail::query_by_key<BlockLayout, 64>;
  set.block_insert = detail::insert_by_key<BlockLayout, 64>;
#endif
}

}  // namespace

PERHAPS_CHOOSE_KERNELS(block)

}  // namespace perhaps::kernel
