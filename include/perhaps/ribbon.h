// The ribbon filter, bumped (BuRR: Dillinger, Hübschle-Schneider, Sanders, Walzer 2021): the smallest filter here,
// built once. A lookup reads two neighbouring blocks: two cache lines at 8 columns, more with more columns.
//
// The idea. A key has `columns` bits that are all linear functions over GF(2) of the table, and is in the filter
// if they equal its fingerprint. Building is solving a linear system: one equation per key, one unknown per slot. The
// coefficients of a key are 64 random bits that begin at slot `start` (the ribbon), and keys come in order of their
// start, so elimination touches 64 neighbouring slots and the whole solve is one walk over memory.
//
//   slot              start                 start + 63
//   equation  0 0 0 0 [1 0 1 1 0 .. 64 bits .. 1 0 1] 0 0 0 0      . solution column j  =  bit j of the fingerprint
//
// A plain ribbon has to leave some 8 % of the slots empty so that the system can be solved. This one is overloaded: it
// has 3 % fewer slots than keys. Where the system has no room left, the keys of one end of a bucket are *bumped*: they
// go into another, 30 times smaller ribbon. The bucket says so in two bits. So slots are full (0.3 % are empty) and no
// build fails.
//
//   front    a ribbon of all keys, or of those that the front before it bumps: `starts` start positions, a multiple of
//            128, and starts + 64 slots. Everything about it follows from that number, so a lookup computes the places
//            of its code and of its blocks at once, without reading one to find the other.
//   block    64 slots, column by column: 64-bit words, one per column, bit i = slot i of the block
//   bucket   128 neighbouring starts. Its code c (two bits) bumps the keys that start in the first {0, 24, 48, 128}[c]
//            of them: the left end, where the bucket before has taken slots already.
//   rest     what the fronts leave, at most 32768 keys as a rule: one shard of layers. A layer is a ribbon as a front
//            is; one of fewer than 4096 starts has buckets of 64 and {0, 16, 32, 64}, one of fewer than 512 has 32 and
//            {0, 8, 16, 32}.
//   dense    the last, at most 255 keys: an equation of theirs covers all slots of this part, so not one is wasted.
//
// Any rate. Blocks from number `narrow` on have one column more, and a key checks as many columns as the block that it
// starts in has: fpr = 2^-columns * (1 - wide / 2), where `wide` is the share of starts in such blocks, in steps of
// 2^-32: narrow = floor(starts * (2^32 - wide) / 2^38), or all blocks if wide = 0.
//
// From a digest h, in a front (p = h * 0xd6e8feb86659fd93, 128 bits):
//   start       = floor(h * starts / 2^64), so that keys sorted by digest are sorted by start
//   coefficient = (low64(p) ^ high64(p)) | 1; bit 0 belongs to slot `start`
//   fingerprint = low32(high64(p)), bit j for column j
//   behind it   h becomes m(h) * kLayer[0], m(u) = v ^ v >> 29, v = (u ^ u >> 32) * 0x9e3779b97f4a7c15: a bijection. A
//               key is spread anew, whatever its digest was.
// In the shard, which has a seed s (a = m(h ^ s)):
//   start       = floor(x * starts / 2^64), x = h in layer 0 if s = 0, else x = a * kLayer[layer]
//   coefficient = (t ^ t >> 32) | 1, t = a * 0xd6e8feb86659fd93
//   fingerprint = high32(a * 0xc2b2ae3d27d4eb4f)
//
// The bytes; numbers are little-endian.
//
//   table  | front 0 | front 1 | .. | directory of one shard, 16 bytes (static.h) | shard |
//   front  | codes, four per byte, lowest first | pad | blocks 0 .. starts / 64 | pad |     pads to a line of 64 bytes.
//          A front of no starts bumps every key and has no bytes.
//   shard  | head 16 | layer 0: 16 | .. | blocks of layer 0 | codes of layer 0 | blocks of layer 1 | .. | dense |
//          in words of 8 bytes, from the beginning of the shard
//   head   | every 1 | layers 1 | dense seed 1 | extra seed 1 | dense slots 2 | extra slots 2 |
//          | place of dense 4 | seed 4 |           `every` = 1: the shard answers *perhaps* to everything
//   layer  | starts 4 | narrow 4 | place of its blocks 4 | place of its codes 4 |     starts + 63 slots
//   dense  | chunk 0 | chunk 1 | .. | extra column |     a run of bits, lowest first; chunk q has min(64, slots - 64 q)
//          slots, and holds column 0, column 1, .. of them one after the other. A key has coefficient words c_0 .. c_3
//          and is subject to the extra column if high32(g) < wide, with the bits of c_i that fit its slots;
//          c_i = mix(a + 0x9e3779b97f4a7c15 * (4 * seed + i + 1)), g = mix(a + 0x9e3779b97f4a7c15 * (1025 + extra
//          seed)), the extra column's own coefficients are those with (seed = 512 + extra seed), mix(z) = SplitMix64's
//          finalizer
//
// A rest of at most 255 keys has neither head nor layers: | dense seed 1 | extra seed 1 | dense |, seed 0, slots = rest
// and extra = ceil(rest * wide), or for more than 64 keys rest + 1 and min(ceil(rest * wide) + 4, slots). A set of 36
// keys at 1 % takes 40 bytes behind a directory of 16. No keys: every answer is *no*.
//
// Building: band (eliminate) bucket by bucket from left to right, in each from the right end to the left; the first key
// that finds its equation contradicted says from where on the bucket is bumped, and what was put in beyond the next
// threshold is taken out again. A front is cut into runs of 2^17 to 2^18 keys by the top bits of their digests, which
// are built at once: so that no ribbon reaches into the next run, the last bucket of a run is bumped (0.05 % of space).
// A thread bands four runs in turns, which changes nothing but the time: 24 bytes per key of four runs are its scratch.
// What a front leaves is counted before the next one is sized. One that leaves more than a quarter, because the digests
// are not spread evenly, is skipped. The dense part tries seeds until its system has a solution (3.5 on average without
// a spare slot). If more keys are left than that holds (9 % of sets of 1000 keys, 2 % of 1e4), the shard starts over
// with a seed drawn from all of its digests; after 64 of those it becomes `every`.
//
// Tried: buckets of 64 with four thresholds (0.2 % more space at 1 %), of 256 (as small only with 3 bits per code), of
// 32 that are bumped whole, a code of one bit (5 steps fewer per lookup, 0.3 % more space); overloads of 1, 2, 4, 6 %
// (0.94, 0.64, 0.35, 0.25 % over the limit at 1 %; from 3 % on more keys are bumped than slots are saved); a table of
// its own for what each run leaves, behind a directory (a bumped key waits for directory, head, code and blocks one
// after the other). What is left over the limit at 1 %: 1.1 % for mixing 6 and 7 columns (0.1 % at 0.1 %, where 10
// columns are nearly exact), 0.24 % codes, 0.3 % empty slots.
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

// Where everything in a front is, from its number of starts.
struct RibbonFront {
  static constexpr std::uint64_t kBucket = 128;  // starts

  std::uint64_t starts;  // a multiple of 128; 0: bumps every key and takes no room
  std::uint64_t narrow;  // blocks from here on have one column more
  std::uint64_t codes_at, blocks_at, end;

  // Begins at byte `at`; columns and wide are the shape's.
  constexpr RibbonFront(std::uint64_t at, std::uint64_t starts_, std::uint32_t columns, std::uint32_t wide) noexcept
      : starts(starts_),
        narrow(narrow_blocks(starts, wide, blocks())),
        codes_at(at),
        blocks_at(line_after(at + (starts / kBucket + 3) / 4)),
        end(line_after(blocks_at + 8 * words(blocks(), columns))) {}

  constexpr std::uint64_t blocks() const noexcept { return starts == 0 ? 0 : starts / 64 + 1; }  // of 64 slots
  // Words of the blocks before block k.
  constexpr std::uint64_t words(std::uint64_t k, std::uint32_t columns) const noexcept {
    return k * (columns + 1) - std::min<std::uint64_t>(k, narrow);
  }
  // As many without the additional column as keep the rate at or below the one that is wanted.
  static constexpr std::uint64_t narrow_blocks(std::uint64_t starts, std::uint32_t wide,
                                               std::uint64_t blocks) noexcept {
    if (wide == 0) return blocks;
    return static_cast<std::uint64_t>(static_cast<detail::Wide>(starts) * ((std::uint64_t{1} << 32) - wide) >> 38);
  }
  static constexpr std::uint64_t line_after(std::uint64_t byte) noexcept {
    return (byte + kLineBytes - 1) / kLineBytes * kLineBytes;
  }
};

struct RibbonShape {
  static constexpr std::uint32_t kMaxColumns = 32;                     // bits of a fingerprint
  static constexpr std::uint64_t kDenseKeys = 255;                     // that a dense part takes
  static constexpr std::uint32_t kMaxFronts = 4;                       // one behind the other
  static constexpr std::uint64_t kMaxStarts = std::uint64_t{1} << 44;  // of a front
  static constexpr unsigned shard_bits = 0;

  std::uint64_t keys = 0;         // distinct
  std::uint32_t columns = 7;      // that every key checks, 1 to kMaxColumns
  std::uint32_t wide = 0;         // so many in 2^32 check one more
  std::uint64_t table_bytes = 8;  // known once the keys are counted that the fronts leave; without fronts at once
  std::uint64_t rest = 0;         // keys behind the fronts
  std::uint32_t fronts = 0;
  std::array<std::uint64_t, kMaxFronts> starts = {};  // of each front

  // The smallest table for the rate (rates from 2^-32 to 1/2), or the lowest rate in so many bytes.
  PERHAPS_API static RibbonShape for_keys(const Request& request);
  PERHAPS_API double fpr(double keys) const;  // does not depend on them, except that 0 keys answer *no*

  constexpr std::uint64_t bytes() const noexcept { return table_bytes; }
  // Every number is in its range, and the table has room for what the others say is in it.
  constexpr bool valid() const noexcept { return valid(kMaxColumns); }
  constexpr bool valid(std::uint32_t max_columns) const noexcept {
    if (columns < 1 || columns > max_columns - (wide != 0) || fronts > kMaxFronts) return false;
    if (fronts == 0 && rest != keys) return false;
    for (std::uint32_t i = 0; i < kMaxFronts; ++i) {
      if (starts[i] > (i < fronts ? kMaxStarts : 0) || starts[i] % RibbonFront::kBucket != 0) return false;
    }
    if (table_bytes % 8 != 0 || table_bytes > std::uint64_t{1} << 55) return false;
    const std::uint64_t begin = front_bytes() + detail::directory_bytes(0);
    return tiny() ? table_bytes == begin + tiny_bytes() : table_bytes >= begin;
  }
  friend bool operator==(const RibbonShape&, const RibbonShape&) = default;

  // What a file stores; from() reads it.
  PERHAPS_API std::vector<std::uint64_t> numbers() const;
  // Columns and fronts.
  PERHAPS_API Facts facts() const;
  PERHAPS_API static Result<RibbonShape> from(std::span<const std::uint64_t> numbers);

  // Number i, which begins at byte `at`.
  constexpr RibbonFront front(std::uint32_t i, std::uint64_t at) const noexcept {
    return {at, starts[i], columns, wide};
  }
  constexpr std::uint64_t front_bytes() const noexcept {
    std::uint64_t end = 0;
    for (std::uint32_t i = 0; i < fronts; ++i) end = front(i, end).end;
    return end;
  }
  // For the builder (static.h).
  constexpr RibbonShape behind() const noexcept {
    RibbonShape other = *this;
    other.table_bytes -= std::min(table_bytes, front_bytes());
    other.keys = rest;
    other.drop_fronts();
    return other;
  }
  constexpr void drop_fronts() noexcept {
    fronts = 0;
    starts = {};
    rest = keys;
  }
  PERHAPS_API unsigned add_front(std::uint64_t keys) noexcept;
  constexpr void skip_front() noexcept { starts[fronts - 1] = 0; }

  // One shard that is all dense, without a head.
  constexpr bool tiny() const noexcept { return rest <= kDenseKeys; }
  constexpr std::uint64_t tiny_bytes() const noexcept {
    return std::max<std::uint64_t>((16 + dense_slots(rest) * columns + extra_slots(rest) + 63) / 64 * 8, 8);
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
  // The number in a file, and the batch kernels.
  static constexpr Kind kind = Kind::ribbon;
  static constexpr auto query_kernel = &detail::Kernels::ribbon_query;

  static constexpr std::uint32_t kMaxLayers = 8;   // behind the fronts
  static constexpr std::uint32_t kMaxSeeds = 255;  // of a dense part
  // The head of a shard, and in it the entry of each layer.
  static constexpr std::uint64_t kHeadBytes = 16;
  static constexpr std::uint64_t kLayerBytes = 16;
  // The multipliers of the equations.
  static constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15u;
  static constexpr std::uint64_t kCoefficients = 0xd6e8feb86659fd93u;
  static constexpr std::uint64_t kFingerprint = 0xc2b2ae3d27d4eb4fu;
  // Of the front, and of layers with kLarge starts and more.
  static constexpr std::uint32_t kLarge = 4096;
  static constexpr std::uint32_t kLargeThresholds = 0x80301800;
  static constexpr std::array<std::uint8_t, 4> kFrontThresholds = {0, 24, 48, 128};
  static constexpr std::array<std::uint64_t, kMaxLayers> kLayer = {
      0xa0761d6478bd642fu, 0xe7037ed1a0b428dbu, 0x8ebc6af09c88c6e3u, 0x589965cc75374cc3u,
      0x1d8e4e27c47d124fu, 0xeb44accab455d165u, 0xbf58476d1ce4e5b9u, 0x94d049bb133111ebu};

  // Does a front bump the keys that start here?
  static bool front_bumps(const std::byte* codes, std::uint64_t start) noexcept {
    const unsigned code = static_cast<unsigned>(codes[start >> 9]) >> (start >> 6 & 6) & 3;
    return (start & 127) < kFrontThresholds[code];
  }
  // The condition that a key puts on its slots.
  struct Equation {
    std::uint64_t coefficients;
    std::uint32_t fingerprint;
  };
  // In a front, from the digest.
  static constexpr Equation front_equation(std::uint64_t h) noexcept {
    const auto product = static_cast<detail::Wide>(h) * kCoefficients;
    const auto high = static_cast<std::uint64_t>(product >> 64);
    return {(static_cast<std::uint64_t>(product) ^ high) | 1, static_cast<std::uint32_t>(high)};
  }
  // In a layer, from the mixed digest.
  static constexpr Equation layer_equation(std::uint64_t a) noexcept {
    const std::uint64_t t = a * kCoefficients;
    return {(t ^ t >> 32) | 1, static_cast<std::uint32_t>(a * kFingerprint >> 32)};
  }
  // The digest under the seed of a shard.
  static constexpr std::uint64_t mixed(std::uint64_t h, std::uint32_t seed) noexcept {
    std::uint64_t a = h ^ seed;
    a = (a ^ a >> 32) * kGolden;
    return a ^ a >> 29;
  }
  // The digest behind a front.
  static constexpr std::uint64_t remixed(std::uint64_t h) noexcept { return mixed(h, 0) * kLayer[0]; }
  static constexpr std::uint32_t fingerprint_of(std::uint64_t a) noexcept { return layer_equation(a).fingerprint; }
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

  // A ribbon behind the fronts, in a shard: its number of starts, how many of its blocks are narrow, and where blocks
  // and codes begin, in words.
  struct Layer {
    std::uint32_t starts, narrow, blocks_at, codes_at;

    constexpr std::uint64_t blocks() const noexcept { return (std::uint64_t{starts} + 126) / 64; }  // of 64 slots
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
  // Layer number `layer` of a shard, from its head.
  static Layer layer_at(const std::byte* shard, std::uint32_t layer) noexcept {
    const std::byte* at = shard + kHeadBytes + kLayerBytes * layer;
    return {detail::load<std::uint32_t>(at), detail::load<std::uint32_t>(at + 4), detail::load<std::uint32_t>(at + 8),
            detail::load<std::uint32_t>(at + 12)};
  }

  // The seed that the shard could be solved under.
  static std::uint32_t seed_of(const std::byte* shard) noexcept { return detail::load<std::uint32_t>(shard + 12); }
  // Where a key is looked for, in a front or a layer of the shard. No block: see `dense`.
  struct Place {
    const std::byte* block;
    Equation equation;
    std::uint32_t width;
    unsigned slot;

    // A key that starts in slot 0 needs nothing of the next block, which may not be there.
    const std::byte* next() const noexcept { return slot == 0 ? block : block + std::uint64_t{8} * width; }
  };
  // From front number `i` on, with the digest of that front.
  [[gnu::noinline, gnu::pure]] static Place place_from(const Shape& shape, const std::byte* table, std::uint32_t i,
                                                       std::uint64_t h) noexcept {
    std::uint64_t end = 0;
    for (std::uint32_t before = 0; before < i; ++before) end = shape.front(before, end).end;
    for (; i < shape.fronts; ++i, h = remixed(h)) {
      const RibbonFront front = shape.front(i, end);
      end = front.end;
      const std::uint64_t start = detail::scale(h, front.starts);
      if (front.starts == 0 || front_bumps(table + front.codes_at, start)) continue;
      const std::uint64_t k = start / 64;
      return {table + front.blocks_at + 8 * front.words(k, shape.columns), front_equation(h),
              shape.columns + (k >= front.narrow), static_cast<unsigned>(start % 64)};
    }
    if (shape.tiny()) return {};
    const std::byte* const shard = table + end + detail::directory_bytes(0);
    const auto layers = static_cast<std::uint32_t>(shard[1]);
    const std::uint32_t seed = seed_of(shard);
    const std::uint64_t a = mixed(h, seed);
    for (std::uint32_t l = 0; l < layers; ++l) {
      const Layer layer = layer_at(shard, l);
      const std::uint64_t start = detail::scale(l == 0 && seed == 0 ? h : a * kLayer[l], layer.starts);
      if (layer.bumps(shard, start)) continue;
      const std::uint64_t k = start / 64;
      return {shard + 8 * (layer.blocks_at + layer.words(k, shape.columns)), layer_equation(a),
              shape.columns + (k >= layer.narrow), static_cast<unsigned>(start % 64)};
    }
    return {};
  }

  // Always inlined: a call would pass the shape through memory.
  template <class Isa>
  [[gnu::always_inline]] static bool may_contain(const Shape& shape, const std::byte* table, std::uint64_t h) noexcept {
    if (shape.starts[0] == 0) [[unlikely]]
      return may_contain_from<Isa>(shape, table, 0, h);
    const RibbonFront front = shape.front(0, 0);
    const std::uint64_t start = detail::scale(h, front.starts);
    if (front_bumps(table, start)) [[unlikely]]
      return may_contain_from<Isa>(shape, table, 1, remixed(h));
    // There is always a next block.
    if (shape.columns == 8 && shape.wide == 0) {
      const std::byte* const block = table + front.blocks_at + (start & ~std::uint64_t{63});
      return equals<Isa>(block, block + 64, 8, start, front_equation(h));
    }
    const std::uint64_t k = start / 64;
    const std::uint32_t width = shape.columns + (k >= front.narrow);
    return equals_in_front<Isa>(table + front.blocks_at + 8 * front.words(k, shape.columns), width, start, h);
  }

  // Are the dot products of the coefficients with `width` columns, from slot `start` % 64 of the block on, the bits of
  // the fingerprint?
  template <class Isa>
  [[gnu::always_inline]] static bool equals(const std::byte* block, const std::byte* next, std::uint32_t width,
                                            std::uint64_t start, const Equation& equation) noexcept {
    const auto [coefficients, fingerprint] = equation;
    const std::uint64_t low = coefficients << (start & 63);
    const std::uint64_t high = coefficients >> 1 >> (~start & 63);
    if constexpr (requires { Isa::ribbon_equals(block, next, 8, low, high, 0); }) {
      if (width >= 4) return Isa::ribbon_equals(block, next, width, low, high, fingerprint);
    }
    std::uint32_t wrong = 0;
    for (std::uint32_t j = 0; j < width; ++j) {
      const std::uint64_t both =
          (detail::load<std::uint64_t>(block + 8 * j) & low) ^ (detail::load<std::uint64_t>(next + 8 * j) & high);
      wrong |= static_cast<std::uint32_t>(__builtin_parityll(both)) ^ (fingerprint >> j & 1);
    }
    return wrong == 0;
  }

  // The last part of the table, for a key that is in no front and no layer; `h` is its digest at front `i`.
  PERHAPS_API static bool dense(const Shape& shape, const std::byte* table, std::uint32_t i, std::uint64_t h) noexcept;

  static void prefetch(const Shape& shape, const std::byte* table, std::uint64_t h) noexcept {
    if (const Place place = place_from(shape, table, 0, h); place.block != nullptr) {
      prefetch_blocks(place.block, place.width);
    }
  }
  // A block of `width` columns and the next one.
  static void prefetch_blocks(const std::byte* block, std::uint32_t width) noexcept {
    const std::byte* const last = block + 16 * width - 1;
    for (const std::byte* at = block; at < last; at += kLineBytes) detail::prefetch_read(at);
    // Blocks on lines of their own end with a line.
    if (reinterpret_cast<std::uintptr_t>(block) % kLineBytes != 0) detail::prefetch_read(last);
  }

  // A directory, and a shard that says `every`.
  static detail::Everything<Shape> everything() noexcept {
    static constexpr std::array<std::byte, 32> kTable = {
        std::byte{16}, {}, {}, {}, {}, {}, {}, {}, std::byte{32}, {}, {}, {}, {}, {}, {}, {}, std::byte{1}};
    Shape shape;
    shape.keys = shape.rest = Shape::kDenseKeys + 1;
    shape.table_bytes = kTable.size();
    return {shape, kTable.data()};
  }

  // Whatever the bytes say, a probe of a table that passes stays inside it.
  PERHAPS_API static Result<void> check(const Shape& shape, Bytes table);

  // Fronts and the shard (static.h).
  static constexpr std::size_t kRunsTogether = 4;
  PERHAPS_API static void build_front(const Shape& shape, std::byte* table, unsigned run_bits,
                                      std::span<const StaticRun> runs, StaticScratch& scratch);
  PERHAPS_API static std::uint64_t shard_bytes(const Shape& shape, std::uint64_t keys) noexcept;
  PERHAPS_API static void build_shard(const Shape& shape, std::span<const std::uint64_t> digests,
                                      std::span<std::byte> out, StaticScratch& scratch);

 private:
  // Not inlined, so that lookups with 8 columns, the usual ones, are.
  template <class Isa>
  [[gnu::noinline, gnu::pure]] static bool equals_in_front(const std::byte* block, std::uint32_t width,
                                                           std::uint64_t start, std::uint64_t h) noexcept {
    return equals<Isa>(block, block + std::uint64_t{8} * width, width, start, front_equation(h));
  }
  template <class Isa>
  [[gnu::noinline, gnu::pure]] static bool may_contain_from(const Shape& shape, const std::byte* table, std::uint32_t i,
                                                            std::uint64_t h) noexcept {
    const Place place = place_from(shape, table, i, h);
    if (place.block == nullptr) return dense(shape, table, i, h);
    return equals<Isa>(place.block, place.next(), place.width, place.slot, place.equation);
  }
};

template <Hasher H>
using BasicRibbon = StaticFilter<RibbonLayout, H>;
using Ribbon = BasicRibbon<Hash>;
using RibbonView = Ribbon::View;

}  // namespace perhaps
