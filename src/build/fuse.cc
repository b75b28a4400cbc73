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

template <unsigned kArity>
bool peel(const FuseShape& shape, FuseGeometry g, std::span<const std::uint64_t> digests, FusePeeling& p) {
  const auto probe = [&](std::uint64_t h) { return FuseProbe<kArity>(g, shape.shard_bits, h); };
  std::uint64_t* const sums = p.sums.data();
  std::uint8_t* const counts = p.counts.data();
  std::fill(p.sums.begin(), p.sums.end(), 0);
  std::fill(p.counts.begin(), p.counts.end(), 0);
  bool overflow = false;  // of a slot with 256 keys, which random keys never make
  for (const std::uint64_t h : digests) {
    const auto own = probe(h);
    for (const std::uint64_t slot : own.slot) {
      sums[slot] ^= h;
      overflow |= ++counts[slot] == 0;
    }
  }
  if (overflow) return false;

  // Segment after segment: its slots with one key, then those that they set free, and so on until none is left. What
  // is set free lies nearby, so it is still in cache, and neighbours in the queue do not wait for each other. (All
  // segments at once were slower, and one slot after the other, with all it sets free, slower still.) The queue is the
  // end of the order so far: an entry whose key went another way is overwritten.
  std::uint32_t* const order_slots = p.order_slots.data();
  std::size_t done = 0;
  for (std::size_t begin = 0; begin < p.sums.size(); begin += g.length) {
    std::size_t queued = done;
    for (std::size_t slot = begin; slot < begin + g.length; ++slot) {
      order_slots[queued] = static_cast<std::uint32_t>(slot);
      queued += counts[slot] == 1;
    }
    for (std::size_t next = done; next < queued; ++next) {
      const std::uint32_t at = order_slots[next];
      if (counts[at] != 1) continue;
      const std::uint64_t h = sums[at];
      order_slots[done++] = at;
      const auto own = probe(h);
      for (const std::uint64_t slot : own.slot) {
        sums[slot] ^= h;
        order_slots[queued] = static_cast<std::uint32_t>(slot);
        queued += --counts[slot] == 1;
      }
      sums[at] = h;  // stays there until the slots are filled: no key is left to change it
    }
  }
  return done == digests.size();
}

// Fills the slots in the reverse order of the peeling: of a key's slots, the one that it was peeled from is still 0.
template <unsigned kArity>
void fill(const FuseShape& shape, FuseGeometry g, const FusePeeling& p, std::byte* table) {
  const auto slot_at = [&](std::uint64_t slot) {
    return detail::FuseBits::at(table, detail::FuseBits::place(0, slot, shape.bits));
  };
  for (std::size_t i = p.keys; i-- > 0;) {
    const FuseProbe<kArity> own(g, shape.shard_bits, p.sums[p.order_slots[i]]);
    std::uint64_t value = detail::FuseBits::fingerprint(own.mixed, shape.bits);
    for (const std::uint64_t slot : own.slot) value ^= slot_at(slot);
    value &= (std::uint64_t{1} << shape.bits) - 1;
    const std::uint64_t at = std::uint64_t{p.order_slots[i]} * shape.bits;
    detail::store(table + at / 8, detail::load<std::uint64_t>(table + at / 8) | value << at % 8);
  }
}

}  // namespace

// Every slot is queued at most once: its count passes 1 only on the way down.
FusePeeling::FusePeeling(StaticScratch& scratch, std::uint32_t arity, FuseGeometry g, std::size_t count)
    : keys(count),
      sums(scratch.room<std::uint64_t>(0, static_cast<std::size_t>(g.slots(arity)))),
      counts(scratch.room<std::uint8_t>(1, sums.size())),
      order_slots(scratch.room<std::uint32_t>(2, sums.size() + 1)) {}

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
    build::fill<3>(shape, g, peeling, out.data() + 8);
  } else {
    build::fill<4>(shape, g, peeling, out.data() + 8);
  }
  detail::store(out.data(), g.head());
}

}  // namespace perhaps
