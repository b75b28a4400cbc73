// Peeling a shard of a fuse filter, apart so that tests can count the tries.
#pragma once
#include "perhaps/fuse.h"

namespace perhaps::build {

// Arrays for one shard: the keys of each slot, and the order in which keys were taken away.
struct FusePeeling {
  std::span<std::uint64_t> sums;   // XOR of the digests of a slot's keys: of one key, its digest
  std::span<std::uint8_t> counts;  // and how many they are
  std::span<std::uint32_t> order_slots;
  std::span<std::uint64_t> order_digests;

  FusePeeling(StaticScratch& scratch, std::uint32_t arity, detail::FuseGeometry g, std::size_t keys);
};

// Takes away one key after the other; true if all went, in the order given by the arrays.
// REQUIRES: digests.size() < 2^31
bool fuse_peel(const FuseShape& shape, detail::FuseGeometry g, std::span<const std::uint64_t> digests,
               FusePeeling& peeling);

}  // namespace perhaps::build
