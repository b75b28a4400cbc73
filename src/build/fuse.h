// Peeling a shard of a fuse filter, apart so that tests can count the tries.
#pragma once
#include "perhaps/fuse.h"

namespace perhaps::build {

// Arrays for one shard: the keys of each slot, and the slots by which keys were taken away, in their order.
struct FusePeeling {
  std::size_t keys;
  std::span<std::uint64_t> sums;         // XOR of the digests of a slot's keys; in the end, of the key it took away
  std::span<std::uint8_t> counts;        // how many keys a slot has
  std::span<std::uint32_t> order_slots;  // the first `keys`

  FusePeeling(StaticScratch& scratch, std::uint32_t arity, detail::FuseGeometry g, std::size_t count);
};

// Takes away one key after the other; true if all went, in the order given by the arrays.
// REQUIRES: digests.size() < 2^31
bool fuse_peel(const FuseShape& shape, detail::FuseGeometry g, std::span<const std::uint64_t> digests,
               FusePeeling& peeling);

}  // namespace perhaps::build
