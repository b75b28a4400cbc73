// The ribbon filter, bumped (BuRR: Dillinger, Hübschle-Schneider, Sanders, Walzer 2021): the smallest filter here,
// built once. A lookup reads two neighbouring blocks: two cache lines at 8 columns, more with more columns.
//
// The idea. A key asks for `columns` bits that are all linear functions over GF(2) of the table, and is in the filter
// if they equal its fingerprint. Building is solving a linear system: one equation a key, one unknown a slot. The
// coefficients of a key are 64 random bits that begin at slot `start` (the ribbon), and keys come in order of their
// start, so elimination touches 64 neighbouring slots and the whole solve is one walk over memory.
//
//   slot              start                 start + 63
//   equation  0 0 0 0 [1 0 1 1 0 .. 64 bits .. 1 0 1] 0 0 0 0      . solution column j  =  bit j of the fingerprint
//
// A plain ribbon has to leave some 8 % of the slots empty so that the system can be solved. This one is overloaded: it
// has 3 % fewer slots than keys. Where the system has no room left, the keys of one end of a bucket are *bumped* to the
// next, 30 times smaller layer; the bucket says so in two bits. So slots are full (0.2 % are empty) and no build fails.
//
//   layer    `starts` start positions, starts + 63 slots in blocks of 64.  start = floor(x * starts / 2^64)
//   block    64 slots, column by column: 64-bit words, one a column, bit i = slot i of the block
//   bucket   128 neighbouring starts. Its code c (two bits) bumps the keys that start in the first {0, 24, 48, 128}[c]
//            of them: the left end, where the bucket before has taken slots already. A layer of fewer than 4096 starts
//            has buckets of 64 and {0, 16, 32, 64}, one of fewer than 512 has 32 and {0, 8, 16, 32}.
//   dense    the last, at most 255 keys: an equation of theirs covers all slots of this part, so not one is wasted.
//
// Any rate. Blocks from number `narrow` on have one column more, and a key checks as many columns as the block that it
// starts in has: fpr = 2^-columns * (1 - wide / 2), where `wide` is the share of starts in such blocks.
//
// From a digest h, in a shard with seed s:
//   a           = v * 0x9e3779b97f4a7c15, v = u ^ u >> 32, u = h ^ s;  then a ^= a >> 29            a bijection
//   x           in layer 0 of a shard with s = 0: h << shard_bits, so that keys sorted by digest are sorted by start;
//               else a * kLayer[layer]
//   coefficient = bits of t ^ t >> 32, t = a * 0xd6e8feb86659fd93; bit 0, of slot `start`, is always 1
//   fingerprint = high32(a * 0xc2b2ae3d27d4eb4f), bit j for column j
//
// The bytes. A table is a directory of shards (static.h) and their tables; numbers are little-endian, places count
// words of 8 bytes from the beginning of the shard:
//
//   shard  | head 16 | layer 0: 16 | .. | codes of layer 0 | of layer 1 | .. | pad | blocks of layer 0 | of layer 1 |
//          | .. | dense | pad |
//   head   | every 1 | layers 1 | dense seed 1 | extra seed 1 | dense slots 2 | extra slots 2 |
//          | place of dense 4 | seed 4 |
//   layer  | starts 4 | narrow 4 | place of its blocks 4 | place of its codes 4 |
//   `every` = 1: the shard answers *perhaps* to everything.  The first pad puts layer 0 on a cache line of the table.
//   Codes are next to the head because every lookup reads both: one page a shard instead of two (a batch at 1e8 keys:
//   median 32 ns, not 37; best rounds alike). One shard of up to 8192 keys: no pads, codes behind their blocks.
//
//   dense  | chunk 0 | chunk 1 | .. | extra column |     a run of bits, lowest first; chunk q has min(64, slots - 64 q)
//          slots, and holds column 0, column 1, .. of them one after the other. A key has coefficient words c_0 .. c_3
//          and is subject to the extra column if high32(g) < wide, with the bits of c_i that fit its slots;
//          c_i = mix(a + 0x9e3779b97f4a7c15 * (4 * seed + i + 1)), g = mix(a + 0x9e3779b97f4a7c15 * (1025 + extra
//          seed)), the extra column's own coefficients are those with (seed = 512 + extra seed), mix(z) = SplitMix64's
//          finalizer
//
// One shard of at most 255 keys has neither head nor layers: | dense seed 1 | extra seed 1 | dense |, seed 0, slots =
// keys and extra = ceil(keys * wide), or for more than 64 keys keys + 1 and min(ceil(keys * wide) + 4, slots). A set of
// 36 keys at 1 % takes 40 bytes behind a directory of 16. No keys: every answer is *no*.
//
// Building: band (eliminate) bucket by bucket from left to right, in each from the right end to the left; the first key
// that finds its equation contradicted says from where on the bucket is bumped, and what was put in beyond the next
// threshold is taken out again. Bumped keys go through the next layer, the rest into the dense part, whose seeds are
// tried until its system has a solution (3.5 on average without a spare slot). Should more keys be left than that holds
// -- digests that are no digests, or chance: 9 % of sets of 1000 keys, 2 % of 1e4, 1 % of 1e5 -- the shard starts over
// with a seed drawn from all of its digests; after 64 of those it becomes `every`. A thread bands layer 0 of four
// shards in turns, which changes nothing but the time: 24 bytes a key of four shards are its scratch.
//
// Tried: buckets of 64 with four thresholds (0.2 % more space at 1 %), of 256 (as small only with 3 bits a code);
// overloads of 1, 2, 4, 6 % (0.94, 0.64, 0.35, 0.25 % over the limit at 1 %; from 3 % on more keys are bumped than
// slots are saved); thresholds from 16 to 40. What is left over the limit at 1 %: 1.1 % for mixing 6 and 7 columns (0.1
// % at 0.1 %, where 10 columns are nearly exact), 0.24 % codes, 0.2 % empty slots.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "perhaps/detail/bits.h"
#include "perhaps/static.h"

namespace perhaps {

struct RibbonShape {
  static constexpr std::uint32_t kMaxColumns = 32;
  static constexpr std::uint64_t kDenseKeys = 255;

  std::uint64_t keys = 0;         // distinct
  std::uint32_t columns = 7;      // that every key checks, 1 to kMaxColumns
  std::uint32_t wide = 0;         // so many in 2^32 check one more
  std::uint32_t shard_bits = 0;   // 2^shard_bits shards, by the top bits of a digest
  std::uint64_t table_bytes = 8;  // known once the shards are counted; for one shard at once

  // The smallest table for the rate (rates from 2^-32 to 1/2), or the lowest rate in so many bytes.
  PERHAPS_API static RibbonShape for_keys(const Request& request);
  PERHAPS_API double fpr(double keys) const;  // does not depend on them, except that 0 keys answer *no*

  constexpr std::uint64_t bytes() const noexcept { return table_bytes; }
  constexpr bool valid() const noexcept {
    return columns >= 1 && columns <= kMaxColumns - (wide != 0) && shard_bits <= kMaxShardBits && table_bytes >= 8 &&
           table_bytes % 8 == 0 && table_bytes <= (std::uint64_t{1} << 55) &&
           (!tiny() || table_bytes == detail::directory_bytes(0) + tiny_bytes());
  }
  friend bool operator==(const RibbonShape&, const RibbonShape&) = default;

  PERHAPS_API std::vector<std::uint64_t> numbers() const;
  PERHAPS_API static Result<RibbonShape> from(std::span<const std::uint64_t> numbers);

  // One shard that is all dense, without a head.
  constexpr bool tiny() const noexcept { return keys <= kDenseKeys && shard_bits == 0; }
  constexpr std::uint64_t tiny_bytes() const noexcept {
    return std::max<std::uint64_t>((16 + dense_slots(keys) * columns + extra_slots(keys) + 63) / 64 * 8, 8);
  }
  // Slots for so many keys in a dense part. Up to 64 there is none to spare and some 3.5 seeds are tried; elimination
  // takes the cube of their number, so more keys get one more slot (1.7 tries), and a few bits.
  static constexpr std::uint64_t dense_slots(std::uint64_t dense) noexcept { return dense + (dense > 64); }
  constexpr std::uint64_t extra_slots(std::uint64_t dense) const noexcept {
    if (wide == 0) return 0;
    return std::min(((dense * wide + 0xffffffff) >> 32) + (dense > 64 ? 4 : 0), dense_slots(dense));
  }
};

struct RibbonLayout {
  using Shape = RibbonShape;
  using word = std::uint64_t;
  static constexpr std::string_view family = "ribbon";
  static constexpr Kind kind = Kind::ribbon;

  static constexpr std::uint32_t kMaxLayers = 8;
  static constexpr std::uint32_t kMaxSeeds = 255;  // of a dense part
  static constexpr std::uint64_t kHeadBytes = 16;
  static constexpr std::uint64_t kLayerBytes = 16;
  static constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15u;
  static constexpr std::uint64_t kCoefficients = 0xd6e8feb86659fd93u;
  static constexpr std::uint64_t kFingerprint = 0xc2b2ae3d27d4eb4fu;
  // Of layers with kLarge starts and more.
  static constexpr std::uint32_t kLarge = 4096;
  static constexpr std::uint32_t kLargeThresholds = 0x80301800;
  static constexpr std::array<std::uint64_t, kMaxLayers> kLayer = {
      0xa0761d6478bd642fu, 0xe7037ed1a0b428dbu, 0x8ebc6af09c88c6e3u, 0x589965cc75374cc3u,
      0x1d8e4e27c47d124fu, 0xeb44accab455d165u, 0xbf58476d1ce4e5b9u, 0x94d049bb133111ebu};

  static constexpr std::uint64_t mixed(std::uint64_t h, std::uint32_t seed) noexcept {
    std::uint64_t a = h ^ seed;
    a = (a ^ a >> 32) * kGolden;
    return a ^ a >> 29;
  }
  static constexpr std::uint64_t coefficients_of(std::uint64_t a) noexcept {
    const std::uint64_t t = a * kCoefficients;
    return (t ^ t >> 32) | 1;
  }
  static constexpr std::uint32_t fingerprint_of(std::uint64_t a) noexcept {
    return static_cast<std::uint32_t>(a * kFingerprint >> 32);
  }
  static constexpr std::uint64_t dense_coefficients(std::uint64_t a, std::uint32_t seed, std::uint32_t i) noexcept {
    std::uint64_t z = a + kGolden * (std::uint64_t{4} * seed + i + 1);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
  }
  static constexpr bool is_extra(std::uint64_t a, std::uint32_t seed, std::uint32_t wide) noexcept {
    return dense_coefficients(a, 256, seed) >> 32 < wide;
  }
  static constexpr std::uint32_t extra_seed(std::uint32_t seed) noexcept { return 512 + seed; }

  struct Layer {
    std::uint32_t starts, narrow, blocks_at, codes_at;

    constexpr std::uint64_t blocks() const noexcept { return (std::uint64_t{starts} + 126) / 64; }
    // Words of the blocks before block k.
    constexpr std::uint64_t words(std::uint64_t k, std::uint32_t columns) const noexcept {
      return k * (columns + 1) - std::min<std::uint64_t>(k, narrow);
    }
    constexpr unsigned bucket_bits() const noexcept { return 5 + (starts >= 512) + (starts >= kLarge); }
    constexpr std::uint32_t thresholds() const noexcept {
      return starts < 512 ? 0x20100800 : starts < kLarge ? 0x40201000 : kLargeThresholds;
    }
    constexpr std::uint64_t buckets() const noexcept {
      return (std::uint64_t{starts} + (std::uint64_t{1} << bucket_bits()) - 1) >> bucket_bits();
    }
    constexpr std::uint64_t code_words() const noexcept { return (buckets() + 31) / 32; }
    // Does the key go on to the next layer?
    bool bumps(const std::byte* shard, std::uint64_t start) const noexcept {
      const std::uint64_t bucket = start >> bucket_bits();
      const auto four = static_cast<unsigned>(shard[std::uint64_t{codes_at} * 8 + bucket / 4]);
      const unsigned code = four >> (bucket % 4 * 2) & 3;
      return (start & ((1u << bucket_bits()) - 1)) < (thresholds() >> (8 * code) & 0xff);
    }
  };
  static Layer layer_at(const std::byte* shard, std::uint32_t layer) noexcept {
    const std::byte* at = shard + kHeadBytes + kLayerBytes * layer;
    return {detail::load<std::uint32_t>(at), detail::load<std::uint32_t>(at + 4), detail::load<std::uint32_t>(at + 8),
            detail::load<std::uint32_t>(at + 12)};
  }

  static std::uint32_t seed_of(const std::byte* shard) noexcept { return detail::load<std::uint32_t>(shard + 12); }
  // Layer 0 of nearly every shard: large, without a seed. The rest is left to place_in_shard.
  static bool is_usual(const std::byte* shard) noexcept {
    return shard[1] != std::byte{0} && seed_of(shard) == 0 && detail::load<std::uint32_t>(shard + kHeadBytes) >= kLarge;
  }
  // The word with the code of a start in a large layer, from bit `start` / 128 % 32 * 2 on.
  static const std::byte* large_codes(const std::byte* shard, const Layer& layer, std::uint64_t start) noexcept {
    return shard + 8 * (layer.codes_at + start / kLarge);
  }

  // In which block a key is looked for: packed for a kernel's queue. No block: ask `dense`.
  struct Place {
    static constexpr std::uint64_t kDense = UINT64_MAX;
    std::uint64_t packed;  // byte of the table * 256 + shard has a seed * 128 + slot in the block * 2 + one column more
    std::uint64_t byte() const noexcept { return packed >> 8; }
    bool seeded() const noexcept { return (packed & 128) != 0; }
    unsigned slot() const noexcept { return packed >> 1 & 63; }
    std::uint32_t width(const Shape& shape) const noexcept { return shape.columns + (packed & 1); }
  };

  static std::uint64_t shard_offset(const Shape& shape, const std::byte* table, std::uint64_t h) noexcept {
    if (shape.shard_bits == 0) return detail::directory_bytes(0);
    return detail::load<std::uint64_t>(table + detail::shard_of(shape.shard_bits, h) * 8);
  }
  // REQUIRES: !shape.tiny()
  [[gnu::always_inline]] static Place place_in_shard(const Shape& shape, const std::byte* table,
                                                     std::uint64_t h) noexcept {
    const std::uint64_t offset = shard_offset(shape, table, h);
    const std::byte* shard = table + offset;
    if (shard[1] == std::byte{0}) [[unlikely]]
      return {Place::kDense};
    const Layer layer = layer_at(shard, 0);
    const std::uint32_t seed = seed_of(shard);
    const std::uint64_t x = seed == 0 ? h << shape.shard_bits : mixed(h, seed) * kLayer[0];
    const std::uint64_t start = detail::scale(x, layer.starts);
    if (layer.bumps(shard, start)) [[unlikely]]
      return bumped_place(shape, table, h);
    return place_in(shape, offset, seed, layer, start);
  }
  // From layer 1 on.  REQUIRES: !shape.tiny()
  [[gnu::noinline]] static Place bumped_place(const Shape& shape, const std::byte* table, std::uint64_t h) noexcept {
    const std::uint64_t offset = shard_offset(shape, table, h);
    const std::byte* shard = table + offset;
    const std::uint32_t seed = seed_of(shard);
    const auto layers = static_cast<std::uint32_t>(shard[1]);
    for (std::uint32_t i = 1; i < layers; ++i) {
      const Layer layer = layer_at(shard, i);
      const std::uint64_t start = detail::scale(mixed(h, seed) * kLayer[i], layer.starts);
      if (!layer.bumps(shard, start)) return place_in(shape, offset, seed, layer, start);
    }
    return {Place::kDense};
  }
  static Place place_of(const Shape& shape, const std::byte* table, std::uint64_t h) noexcept {
    return shape.tiny() ? Place{Place::kDense} : place_in_shard(shape, table, h);
  }
  static std::uint64_t mixed_at(const Shape& shape, const std::byte* table, Place place, std::uint64_t h) noexcept {
    if (place.seeded()) [[unlikely]]
      return mixed(h, seed_of(table + shard_offset(shape, table, h)));
    return mixed(h, 0);
  }

  // Inlined by order: as a call it passes the shape through memory.
  template <class Isa>
  [[gnu::always_inline]] static bool may_contain(const Shape& shape, const std::byte* table, std::uint64_t h) noexcept {
    if (shape.tiny()) [[unlikely]]
      return may_contain_elsewhere<Isa>(shape, table, h);
    const std::byte* const shard = detail::shard_at(shape.shard_bits, table, h);
    if (!is_usual(shard)) [[unlikely]]
      return may_contain_elsewhere<Isa>(shape, table, h);
    const Layer layer = layer_at(shard, 0);
    const std::uint64_t start = detail::scale(h << shape.shard_bits, layer.starts);
    const std::uint64_t codes = detail::load<std::uint64_t>(large_codes(shard, layer, start));
    const std::uint64_t code = codes >> (start >> 6 & 62) & 3;
    if ((start & 127) < (kLargeThresholds >> 8 * code & 0xff)) [[unlikely]]
      return may_contain_elsewhere<Isa>(shape, table, h);
    const std::uint64_t k = start / 64;
    const std::uint64_t a = mixed(h, 0);
    if (shape.wide == 0) {
      return equals<Isa>(shard + 8 * (layer.blocks_at + k * shape.columns), shape.columns, start % 64, a);
    }
    return equals<Isa>(shard + 8 * (layer.blocks_at + layer.words(k, shape.columns)),
                       shape.columns + (k >= layer.narrow), start % 64, a);
  }

  // Are the dot products of the coefficients with `width` columns the bits of the fingerprint?
  template <class Isa>
  [[gnu::always_inline]] static bool equals(const std::byte* block, std::uint32_t width, unsigned slot,
                                            std::uint64_t a) noexcept {
    const std::uint64_t low = coefficients_of(a) << slot;
    const std::uint64_t high = coefficients_of(a) >> 1 >> (63 - slot);
    // A key that starts in slot 0 needs nothing of the next block, which may not be there.
    const std::byte* next = slot == 0 ? block : block + 8 * width;
    if constexpr (requires { Isa::ribbon_equals(block, next, 8, low, high, 0); }) {
      if (width >= 4) return Isa::ribbon_equals(block, next, width, low, high, fingerprint_of(a));
    }
    std::uint32_t wrong = 0;
    for (std::uint32_t j = 0; j < width; ++j) {
      const std::uint64_t both =
          (detail::load<std::uint64_t>(block + 8 * j) & low) ^ (detail::load<std::uint64_t>(next + 8 * j) & high);
      wrong |= static_cast<std::uint32_t>(__builtin_parityll(both)) ^ (fingerprint_of(a) >> j & 1);
    }
    return wrong == 0;
  }

  // The last part of the shard of h, for a key that is in no layer.
  PERHAPS_API static bool dense(const Shape& shape, const std::byte* table, std::uint64_t h) noexcept;

  static void prefetch(const Shape& shape, const std::byte* table, std::uint64_t h) noexcept {
    const Place place = place_of(shape, table, h);
    if (place.packed != Place::kDense) prefetch_place(shape, table, place);
  }
  static void prefetch_place(const Shape& shape, const std::byte* table, Place place) noexcept {
    const std::byte* from = table + place.byte();
    const std::byte* last = from + 16 * place.width(shape) - 1;
    detail::prefetch_read(from);
    // Eight columns on a line of their own are two lines: no third request for them.
    for (from += kLineBytes; from < last; from += kLineBytes) detail::prefetch_read(from);
    const auto line = [table](const std::byte* at) { return static_cast<std::uint64_t>(at - table) / kLineBytes; };
    if (line(from - kLineBytes) != line(last)) detail::prefetch_read(last);
  }

  static void query(const Shape& shape, const std::byte* table, const std::uint64_t* digests, std::size_t count,
                    std::uint64_t* answers, bool ahead) noexcept {
    detail::ribbon_query(shape, table, digests, count, answers, ahead);
  }
  static void query_integers(const Shape& shape, const std::byte* table, const std::uint64_t* keys, Hash hash,
                             std::size_t count, std::uint64_t* answers, bool ahead) noexcept {
    detail::ribbon_query_integers(shape, table, keys, hash, count, answers, ahead);
  }

  // Whatever the bytes say, a probe of a table that passes stays inside it.
  PERHAPS_API static Result<void> check(const Shape& shape, Bytes table);

  // The table of a shard (static.h).
  PERHAPS_API static std::uint64_t shard_bytes(const Shape& shape, std::uint64_t keys) noexcept;
  static constexpr std::size_t kShardsTogether = 4;
  PERHAPS_API static void build_shards(const Shape& shape, std::span<const StaticShard> shards, StaticScratch& scratch);
  static void build_shard(const Shape& shape, std::span<const std::uint64_t> digests, std::span<std::byte> out,
                          StaticScratch& scratch) {
    const StaticShard shard{digests, out};
    build_shards(shape, {&shard, 1}, scratch);
  }

 private:
  // By value: a caller whose shape has an address keeps it in memory.
  template <class Isa>
  [[gnu::noinline]] static bool may_contain_elsewhere(Shape shape, const std::byte* table, std::uint64_t h) noexcept {
    const Place place = place_of(shape, table, h);
    if (place.packed == Place::kDense) return dense(shape, table, h);
    return equals<Isa>(table + place.byte(), place.width(shape), place.slot(), mixed_at(shape, table, place, h));
  }
  static Place place_in(const Shape& shape, std::uint64_t offset, std::uint32_t seed, const Layer& layer,
                        std::uint64_t start) noexcept {
    const std::uint64_t k = start / 64;
    const std::uint64_t byte = offset + 8 * (layer.blocks_at + layer.words(k, shape.columns));
    return {byte << 8 | std::uint64_t{seed != 0} << 7 | start % 64 << 1 | (k >= layer.narrow)};
  }
};

template <Hasher H>
using BasicRibbon = Frozen<RibbonLayout, H>;
using Ribbon = BasicRibbon<Hash>;
using RibbonView = Ribbon::View;

}  // namespace perhaps
