#include "build/fuse.h"

#include <algorithm>
#include <cassert>

#include "sizing/fuse.h"

namespace perhaps {
namespace build {
namespace {

using detail::FuseGeometry;
using detail::FuseProbe;

constexpr std::uint32_t kSeeds = 65536;
constexpr std::uint64_t kOne = std::uint64_t{1} << 32;  // key, in a word of a slot

template <unsigned kArity>
bool peel(const FuseShape& shape, FuseGeometry g, std::span<const std::uint64_t> digests, FusePeeling& p) {
  const auto probe = [&](std::uint64_t h) { return FuseProbe<kArity>(g, shape.bits, shape.shard_bits, h); };
  std::uint64_t* const slots = p.slots.data();
  std::fill(p.slots.begin(), p.slots.end(), 0);
  for (std::uint32_t key = 0; key < digests.size(); ++key) {
    const auto own = probe(digests[key]);
    for (const std::uint64_t slot : own.slot) slots[slot] = (slots[slot] + kOne) ^ key;
  }
  // From left to right; whatever a slot sets free is taken at once, because it lies nearby. The queue is the end of
  // order_slots: entries whose key went another way are overwritten.
  std::uint32_t* const order_slots = p.order_slots.data();
  std::uint32_t* const order_keys = p.order_keys.data();
  std::size_t done = 0;
  for (std::size_t first = 0; first < p.slots.size(); ++first) {
    if (slots[first] >> 32 != 1) continue;
    std::size_t queued = done;
    order_slots[queued++] = static_cast<std::uint32_t>(first);
    for (std::size_t next = done; next < queued; ++next) {
      const std::uint32_t at = order_slots[next];
      if (slots[at] >> 32 != 1) continue;
      const auto key = static_cast<std::uint32_t>(slots[at]);
      order_slots[done] = at;
      order_keys[done++] = key;
      const auto own = probe(digests[key]);
      for (const std::uint64_t slot : own.slot) {
        slots[slot] = (slots[slot] - kOne) ^ key;
        order_slots[queued] = static_cast<std::uint32_t>(slot);
        queued += slots[slot] >> 32 == 1;
      }
    }
  }
  return done == digests.size();
}

// Fills the slots in the reverse order of the peeling: of a key's slots, the one it was taken away by is still 0.
template <unsigned kArity>
void fill(const FuseShape& shape, FuseGeometry g, std::span<const std::uint64_t> digests, const FusePeeling& p,
          std::byte* table) {
  for (std::size_t i = digests.size(); i-- > 0;) {
    const FuseProbe<kArity> own(g, shape.bits, shape.shard_bits, digests[p.order_keys[i]]);
    std::uint64_t value = own.fingerprint;
    for (const std::uint64_t slot : own.slot) value ^= detail::fuse_slot(table, slot, shape.bits);
    value &= (std::uint64_t{1} << shape.bits) - 1;
    const std::uint64_t at = std::uint64_t{p.order_slots[i]} * shape.bits;
    detail::store(table + at / 8, detail::load<std::uint64_t>(table + at / 8) | value << at % 8);
  }
}

}  // namespace

// A queue may hold a slot more than once for each of its keys' other slots, but never more than all slots.
FusePeeling::FusePeeling(StaticScratch& scratch, std::uint32_t arity, FuseGeometry g, std::size_t keys)
    : slots(scratch.room<std::uint64_t>(0, static_cast<std::size_t>(g.slots(arity)))),
      order_slots(scratch.room<std::uint32_t>(1, slots.size() + arity)),
      order_keys(scratch.room<std::uint32_t>(2, keys)) {}

bool fuse_peel(const FuseShape& shape, FuseGeometry g, std::span<const std::uint64_t> digests, FusePeeling& peeling) {
  return shape.arity == 3 ? peel<3>(shape, g, digests, peeling) : peel<4>(shape, g, digests, peeling);
}

}  // namespace build

std::uint64_t FuseLayout::shard_bytes(const FuseShape& shape, std::uint64_t keys) noexcept {
  return sizing::fuse_geometry(shape.arity, keys).bytes(shape.arity, shape.bits);
}

void FuseLayout::build_shard(const FuseShape& shape, std::span<const std::uint64_t> digests, std::span<std::byte> out,
                             StaticScratch& scratch) {
  assert(digests.size() < std::size_t{1} << 31);
  detail::FuseGeometry g = sizing::fuse_geometry(shape.arity, digests.size());
  build::FusePeeling peeling(scratch, shape.arity, g, digests.size());
  while (g.seed < build::kSeeds && !build::fuse_peel(shape, g, digests, peeling)) ++g.seed;
  if (g.seed == build::kSeeds) {
    g = {0, 0, 0};  // answers *perhaps* to everything
  } else if (shape.arity == 3) {
    build::fill<3>(shape, g, digests, peeling, out.data() + 8);
  } else {
    build::fill<4>(shape, g, digests, peeling, out.data() + 8);
  }
  detail::store(out.data(), g.head());
}

}  // namespace perhaps
