// The binary fuse filter (Graf and Lemire, "Binary Fuse Filters: Fast and Smaller Than Xor Filters", 2022), built once
// from all keys: 1.13 (arity 3) or 1.07 (arity 4) times the bits that any filter needs, at one to 32 bits per slot.
//
//   table  = directory, shards (static.h)
//   shard  = | head, 8 bytes | (segments + arity - 1) * length slots of `bits` bits | zeros up to whole words |
//   head   = length (32 bits), segments (16 bits), seed (16 bits), from the lowest bit up
//   slot i = bits [i * bits, (i + 1) * bits) of the slots, counted from the lowest bit of the first byte
//
// A key has one slot in each of `arity` consecutive segments, and a fingerprint. It is perhaps there if its slots,
// XORed together, are its fingerprint. With h the digest, high and low the halves of a 128-bit product, x.hi and x.lo
// the halves of a 64-bit number, everything else modulo 2^64:
//
//   p = seed * 0x9e3779b97f4a7c15;  from seed 16 on, first: h = murmur's finaliser of (h + p)
//   w = (h << shard_bits) * segments, a product of 128 bits                 s = high(w): the first of its segments
//   y = high(v) XOR low(v), v = (h XOR p) * 0xa0761d6478bd642f
//   z = y * 0xe7037ed1a0b428db                                              fingerprint = the top `bits` bits of z
//   slot in segment s:      low(w).hi * length >> 32
//   slot in segment s + 1:       y.hi * length >> 32
//   slot in segment s + 2:       y.lo * length >> 32
//   slot in segment s + 3:       z.lo * length >> 32                        arity 4 only
//
// Why it can be built. The slots have to solve one equation per key: XOR of its slots = its fingerprint. If some slot
// belongs to one key only, that key can wait: whatever values the other slots get, this one can make its equation true.
// Once the key is taken away, other slots may be left with a single key. If all keys can be taken away like this (the
// hypergraph of keys over slots "peels"), the slots are filled in reverse order, each once. Random keys with three
// slots anywhere peel if there are 1.222 slots per key, with four at 1.295, and nearly never below. Consecutive
// segments do better: the first and the last segment are in the reach of fewer keys, peel first, and the peeling moves
// inwards from both ends like a zip. In the limit of many long segments it ends at 1.0894 and 1.0238 slots per key,
// where the equations stop being solvable at all. Two things keep a real shard above that: the arity - 1 extra segments
// at the end, which favours many segments, and the random number of keys in each segment, whose bulges stop the zip,
// which favours long ones. The best number of segments and the slots it needs were measured for every size
// (src/sizing/fuse.cc holds the table, test/soak/fuse_soak.cc measures it again); a try fails for fewer than one set in
// 20 at any size, and then the next seed is tried. Small shards are one segment wide: 1.23 slots per key at 10,000
// keys, 1.6 at 100, 3 at 10.
//
// A shard is sized by its number of keys alone, before a seed is known, so a build that fails cannot request more room.
// It does not have to: there are 65,536 seeds, the slots of the keys are practically independent from seed to seed, and
// at one failure in 20 the 16th is reached once in 10^20 shards. The first 16 seeds leave the first slot to the
// leading bits of the digest, so that ascending digests walk through the shard from left to right and the builder works
// in cache; if digests are not spread evenly (a foreign hash), later seeds mix the digest first. If every seed
// failed, the head would say `segments` = 0, and the shard would answer *perhaps* to everything: no key is ever lost.
//
// The rate of false positives is 2^-bits: the slots of an absent key XOR to a value independent of its fingerprint. So
// for_keys takes the fewest bits that reach the rate; between powers of two that is the next lower rate. A lookup
// touches `arity` lines, all known from the digest at once: a batch prefetches them. Building takes 15 bytes of scratch
// per key of a shard, of which there are at most 2^20 on average.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "perhaps/detail/bits.h"
#include "perhaps/static.h"

namespace perhaps {

// A request for a fuse filter, which also chooses the arity.
struct FuseRequest {
  std::uint64_t keys = 0;
  double fpr = 0.01;
  double bits_per_key = 0;
  std::uint64_t max_bytes = 0;
  std::uint32_t arity = 3;  // slots per key, 3 or 4
};

struct FuseShape {
  using request_type = FuseRequest;              // what for_keys() takes
  static constexpr std::uint32_t kMaxBits = 32;  // of a slot
  std::uint32_t arity = 3;                       // 3, or 4: 5 % smaller, a third more memory accesses
  std::uint32_t bits = 8;                        // of a slot, 1 to kMaxBits
  std::uint32_t shard_bits = 0;                  // 0 to kMaxShardBits
  std::uint64_t keys = 0;                        // distinct ones
  std::uint64_t table_bytes = 40;                // what the keys of each shard came to; from for_keys, an estimate

  // REQUIRES: request.arity is 3 or 4
  PERHAPS_API static FuseShape for_keys(const FuseRequest& request);
  // 2^-bits, whatever the keys.
  PERHAPS_API double fpr(double keys) const;

  std::uint64_t bytes() const noexcept { return table_bytes; }
  // Every number is in its range, and the table has room for its directory.
  bool valid() const noexcept {
    return (arity == 3 || arity == 4) && bits >= 1 && bits <= kMaxBits && shard_bits <= kMaxShardBits &&
           table_bytes % 8 == 0 && table_bytes <= UINT64_MAX / 16 &&
           table_bytes >= detail::directory_bytes(shard_bits) + (std::uint64_t{1} << shard_bits) * 16;
  }
  // What a file stores; from() reads it.
  PERHAPS_API std::vector<std::uint64_t> numbers() const;
  // Arity, bits per slot and shards.
  PERHAPS_API Facts facts() const;
  PERHAPS_API static Result<FuseShape> from(std::span<const std::uint64_t> numbers);
  friend bool operator==(const FuseShape&, const FuseShape&) = default;
};

namespace detail {

// How the slots of a shard are laid out.
struct FuseGeometry {
  std::uint32_t segments = 1;  // 0: answers *perhaps* to everything
  std::uint32_t length = 1;
  std::uint32_t seed = 0;

  static FuseGeometry at(const std::byte* shard) noexcept {
    return {load<std::uint16_t>(shard + 4), load<std::uint32_t>(shard), load<std::uint16_t>(shard + 6)};
  }
  // True of nearly every shard: its seed is 0, it is not open, and places in it are products of 64 bits.
  static bool is_plain(std::uint64_t head) noexcept {
    return (head >> 32) - 1 < 0xffff && static_cast<std::uint32_t>(head) < kPlainLength;
  }
  static constexpr std::uint32_t kPlainLength = 1 << 15;  // of shards with 5 million keys
  std::uint64_t head() const noexcept {
    return std::uint64_t{seed} << 48 | std::uint64_t{segments} << 32 | std::uint64_t{length};
  }
  constexpr std::uint64_t slots(std::uint32_t arity) const noexcept {
    return segments == 0 ? 0 : std::uint64_t{segments + arity - 1} * length;
  }
  // With the head. A slot of an odd width is read as a word of 8 bytes that begins at its first byte.
  constexpr std::uint64_t bytes(std::uint32_t arity, std::uint32_t bits) const noexcept {
    const std::uint64_t last = slots(arity) == 0 ? 0 : slots(arity) - 1;
    return 8 + (last * bits / 8 + 8 + 7) / 8 * 8;
  }
};

// The slots of a digest, and the number whose top bits are its fingerprint.
template <unsigned kArity>
struct FuseProbe {
  static constexpr std::uint32_t kPlainSeeds = 16;
  std::uint64_t slot[kArity];
  std::uint64_t mixed;

  // In a shard whose head is plain: one product for each slot, since (s * 2^32 + x) * length >> 32 is s * length +
  // (x * length >> 32). Compiled for BMI2, a lookup takes 0.86 of the time at 1e5 keys, 0.90 at 1e6.
  [[gnu::always_inline]] static FuseProbe plain(std::uint64_t head, std::uint32_t shard_bits,
                                                std::uint64_t h) noexcept {
    const std::uint64_t length = head & 0xffffffffu;
    const Wide w = static_cast<Wide>(h << shard_bits) * (head >> 32);
    const std::uint64_t y = folded_product(h, kMix);
    FuseProbe probe;
    probe.mixed = y * kSpread;
    const std::uint64_t segment = static_cast<std::uint64_t>(w >> 64) << 32;
    constexpr std::uint64_t kNext = std::uint64_t{1} << 32;
    probe.slot[0] = (segment + (static_cast<std::uint64_t>(w) >> 32)) * length >> 32;
    probe.slot[1] = (segment + kNext + (y >> 32)) * length >> 32;
    probe.slot[2] = (segment + 2 * kNext + (y & 0xffffffffu)) * length >> 32;
    if constexpr (kArity == 4) probe.slot[3] = (segment + 3 * kNext + (probe.mixed & 0xffffffffu)) * length >> 32;
    return probe;
  }

  [[gnu::always_inline]] FuseProbe(FuseGeometry g, std::uint32_t shard_bits, std::uint64_t h) noexcept {
    std::uint64_t salted = h;
    if (g.seed != 0) [[unlikely]] {
      const std::uint64_t salt = g.seed * 0x9e3779b97f4a7c15u;
      if (g.seed >= kPlainSeeds) h = mix(h + salt);
      salted = h ^ salt;
    }
    const Wide w = static_cast<Wide>(h << shard_bits) * g.segments;
    const std::uint64_t y = folded_product(salted, kMix);
    mixed = y * kSpread;
    const std::uint64_t length = g.length;
    std::uint64_t segment = static_cast<std::uint64_t>(w >> 64) * length;
    slot[0] = segment + ((static_cast<std::uint64_t>(w) >> 32) * length >> 32);
    slot[1] = (segment += length) + ((y >> 32) * length >> 32);
    slot[2] = (segment += length) + ((y & 0xffffffffu) * length >> 32);
    if constexpr (kArity == 4) slot[3] = (segment + length) + ((mixed & 0xffffffffu) * length >> 32);
  }

 private:
  static constexpr std::uint64_t kMix = 0xa0761d6478bd642fu;
  static constexpr std::uint64_t kSpread = 0xe7037ed1a0b428dbu;
  FuseProbe() = default;
  static std::uint64_t mix(std::uint64_t h) noexcept {
    h = (h ^ h >> 33) * 0xff51afd7ed558ccdu;
    h = (h ^ h >> 33) * 0xc4ceb9fe1a85ec53u;
    return h ^ h >> 33;
  }
};

// How slots are read: as numbers of 8 or 16 bits, which lie in one line each, or as `bits` bits anywhere.
//   place(from, slot, bits)      of a slot, if slot 0 is at byte `from` of the table
//   at(table, place)             its value, perhaps with more above it
//   fingerprint(mixed, bits)     the top `bits` bits
//   none(x, bits)                the low `bits` bits are 0
template <class Word>
struct FuseWords {
  static constexpr unsigned kBits = 8 * sizeof(Word);
  static std::uint64_t place(std::uint64_t from, std::uint64_t slot, std::uint32_t) noexcept {
    return from + slot * sizeof(Word);
  }
  static std::uint64_t at(const std::byte* table, std::uint64_t place) noexcept { return load<Word>(table + place); }
  static std::uint64_t fingerprint(std::uint64_t mixed, std::uint32_t) noexcept { return mixed >> (64 - kBits); }
  static bool none(std::uint64_t x, std::uint32_t) noexcept { return static_cast<Word>(x) == 0; }
  static void ask_ahead(const std::byte* table, std::uint64_t place) noexcept { prefetch_read(table + place); }
};
struct FuseBits {
  static std::uint64_t place(std::uint64_t from, std::uint64_t slot, std::uint32_t bits) noexcept {
    return from * 8 + slot * bits;
  }
  static std::uint64_t at(const std::byte* table, std::uint64_t place) noexcept {
    return load<std::uint64_t>(table + place / 8) >> place % 8;
  }
  static std::uint64_t fingerprint(std::uint64_t mixed, std::uint32_t bits) noexcept { return mixed >> (64 - bits); }
  static bool none(std::uint64_t x, std::uint32_t bits) noexcept { return x << (64 - bits) == 0; }
  static void ask_ahead(const std::byte* table, std::uint64_t place) noexcept {
    prefetch_read(table + place / 8);
    prefetch_read(table + place / 8 + 7);
  }
};
// Calls use(FuseWords or FuseBits) for slots of that width.
template <class Use>
[[gnu::always_inline]] inline auto fuse_slots_of(std::uint32_t bits, Use use) noexcept {
  if (bits == 8) return use(FuseWords<std::uint8_t>());
  if (bits == 16) return use(FuseWords<std::uint16_t>());
  return use(FuseBits());
}

// Where the slots of a digest are in the table, and what their XOR has to be.
template <unsigned kArity, class Slots>
struct FuseLookup {
  std::uint64_t place[kArity];
  std::uint64_t fingerprint;

  FuseLookup() = default;
  [[gnu::always_inline]] FuseLookup(const FuseShape& shape, const std::byte* table, std::uint64_t h) noexcept {
    const std::uint64_t from = shard_offset(shape.shard_bits, table, h);
    const auto head = load<std::uint64_t>(table + from);
    if (FuseGeometry::is_plain(head)) {
      find(shape, from, FuseProbe<kArity>::plain(head, shape.shard_bits, h));
    } else {
      *this = odd(shape, table, h);
    }
  }
  // In a shard that is not plain.
  [[gnu::noinline, gnu::cold]] static FuseLookup odd(const FuseShape& shape, const std::byte* table,
                                                     std::uint64_t h) noexcept {
    const std::uint64_t from = shard_offset(shape.shard_bits, table, h);
    const auto g = FuseGeometry::at(table + from);
    FuseLookup lookup;
    lookup.find(shape, from, FuseProbe<kArity>(g, shape.shard_bits, h));
    if (g.segments == 0) {  // open: any slots match the fingerprint
      lookup.fingerprint = 0;
      for (const std::uint64_t each : lookup.place) lookup.fingerprint ^= Slots::at(table, each);
    }
    return lookup;
  }
  [[gnu::always_inline]] void ask_ahead(const std::byte* table) const noexcept {
    for (const std::uint64_t each : place) Slots::ask_ahead(table, each);
  }
  [[gnu::always_inline]] bool answer(const std::byte* table, std::uint32_t bits) const noexcept {
    std::uint64_t difference = fingerprint;
    for (const std::uint64_t each : place) difference ^= Slots::at(table, each);
    return Slots::none(difference, bits);
  }

 private:
  [[gnu::always_inline]] void find(const FuseShape& shape, std::uint64_t from,
                                   const FuseProbe<kArity>& probe) noexcept {
    for (unsigned i = 0; i < kArity; ++i) place[i] = Slots::place(from + 8, probe.slot[i], shape.bits);
    fingerprint = Slots::fingerprint(probe.mixed, shape.bits);
  }
};

// One key. Not a FuseLookup for each arity: as one piece of code for both, with the shards that are not plain behind a
// call, it keeps its numbers in registers (0.85 of the time at 1e6 keys).
template <class Slots>
[[gnu::noinline, gnu::cold]] bool fuse_answer_odd(const FuseShape& shape, const std::byte* table,
                                                  std::uint64_t h) noexcept {
  return shape.arity == 3 ? FuseLookup<3, Slots>::odd(shape, table, h).answer(table, shape.bits)
                          : FuseLookup<4, Slots>::odd(shape, table, h).answer(table, shape.bits);
}
template <class Slots>
[[gnu::always_inline]] inline bool fuse_answer(const FuseShape& shape, const std::byte* table,
                                               std::uint64_t h) noexcept {
  const std::uint64_t from = shard_offset(shape.shard_bits, table, h);
  const auto head = load<std::uint64_t>(table + from);
  if (!FuseGeometry::is_plain(head)) [[unlikely]]
    return fuse_answer_odd<Slots>(shape, table, h);
  const auto probe = FuseProbe<4>::plain(head, shape.shard_bits, h);
  const auto value = [&](unsigned i) __attribute__((always_inline)) {
    return Slots::at(table, Slots::place(from + 8, probe.slot[i], shape.bits));
  };
  std::uint64_t difference = Slots::fingerprint(probe.mixed, shape.bits) ^ value(0) ^ value(1) ^ value(2);
  if (shape.arity == 4) difference ^= value(3);
  return Slots::none(difference, shape.bits);
}

}  // namespace detail

struct FuseLayout {
  using Shape = FuseShape;
  using word = std::uint64_t;
  static constexpr std::string_view family = "fuse";
  // The number in a file, and the batch kernels.
  static constexpr Kind kind = Kind::fuse;
  static constexpr auto query_kernel = &detail::Kernels::fuse_query;

  template <class Isa>
  [[gnu::always_inline]] static bool may_contain(const FuseShape& shape, const std::byte* table,
                                                 std::uint64_t h) noexcept {
    return detail::fuse_slots_of(
        shape.bits, [&]<class Slots>(Slots)
                        __attribute__((always_inline)) { return detail::fuse_answer<Slots>(shape, table, h); });
  }
  static void prefetch(const FuseShape& shape, const std::byte* table, std::uint64_t h) noexcept {
    detail::fuse_slots_of(shape.bits, [&]<class Slots>(Slots) {
      shape.arity == 3 ? detail::FuseLookup<3, Slots>(shape, table, h).ask_ahead(table)
                       : detail::FuseLookup<4, Slots>(shape, table, h).ask_ahead(table);
    });
  }
  static std::uint64_t keys(const FuseShape& shape, const std::byte*) noexcept { return shape.keys; }
  // A directory, and a shard without segments.
  static detail::Everything<Shape> everything() noexcept {
    static constexpr std::array<std::byte, 40> kTable = {std::byte{16}, {}, {}, {}, {}, {}, {}, {}, std::byte{40}};
    return {Shape{}, kTable.data()};
  }

  // A pass over the directory and the heads of the shards: then every probe stays within its shard.
  PERHAPS_API static Result<void> check(const FuseShape& shape, Bytes table);

  PERHAPS_API static std::uint64_t shard_bytes(const FuseShape& shape, std::uint64_t keys) noexcept;
  PERHAPS_API static void build_shard(const FuseShape& shape, std::span<const std::uint64_t> digests,
                                      std::span<std::byte> out, StaticScratch& scratch);
};

template <Hasher H>
using BasicFuse = StaticFilter<FuseLayout, H>;
using Fuse = BasicFuse<Hash>;
using FuseView = Fuse::View;

}  // namespace perhaps
