// The maths: how many bits for how many keys at which false-positive rate (FPR), and back.
//
// A shape is the numbers that fix a layout. Those of the three Bloom filters are here, each with its model; every other
// family has its shape in its own header, with the same functions:
//
//   for_keys(request)     keys x FPR (or bits per key, or a memory budget) -> the shape
//   fpr(keys)             the rate after `keys` distinct keys, by the exact model of the layout
//   fill(keys)            the expected share of bits that are set; keys_at(fill) is its inverse
//   keys_for(fpr)         how many keys fit until the rate reaches `fpr`
//   numbers() / from()    what a file stores of it: integers, never recomputed; from() refuses what is not valid()
//   facts()               what `perhaps info` prints of it beyond bits and probes
//
// The textbook formula (1 - e^(-kn/m))^k holds for the classic filter only. Blocked filters lose accuracy because keys
// fall on blocks unevenly: some blocks are overfull, and the rate is dominated by them. The models here sum over the
// binomial number of keys in a block, in closed form; doc/maths.md derives them and shows them beside measurements.
#pragma once
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "perhaps/detail/config.h"
#include "perhaps/result.h"

namespace perhaps {

// A request with the four numbers of `Request`, and perhaps others that only some families have.
template <class R>
concept SizeRequest = requires(R r) {
  { r.keys } -> std::same_as<std::uint64_t&>;
  { r.fpr } -> std::same_as<double&>;
  { r.bits_per_key } -> std::same_as<double&>;
  { r.max_bytes } -> std::same_as<std::uint64_t&>;
};

// The lowest rate that a filter can be sized for: below it the sums of the models end. Some families end earlier
// (fingerprints of 32 bits cannot do better than 2^-32), and none does better than keys / 2^64, the probability that
// two of the 64-bit digests are equal.
inline constexpr double kLeastFpr = 1e-12;

// What is wanted of a filter. `keys` is how many will be inserted; the first of `max_bytes`, `bits_per_key` and `fpr`
// that is not zero decides the size. A filter is never smaller than one line, block or byte.
// REQUIRES: kLeastFpr <= fpr < 1 where it decides, bits_per_key >= 0. A rate below the lowest that the family has is
// raised to it; Shape::fpr(keys) says what it is. (AnyRequest and the command line refuse it instead.)
//
// What only some families can honour is not a field here but in a request of their own (GuardedRequest, FuseRequest),
// so that asking another family for it does not compile. A plain request becomes any of these.
struct Request {
  std::uint64_t keys = 0;
  double fpr = 0.01;
  double bits_per_key = 0;
  std::uint64_t max_bytes = 0;

  // The same numbers in a request that has others as well, which keep their defaults.
  template <SizeRequest R>
  constexpr operator R() const noexcept {
    return {.keys = keys, .fpr = fpr, .bits_per_key = bits_per_key, .max_bytes = max_bytes};
  }
};

// For families that erase. Guard bits are stored beside each key, and only erase() compares them: erasing an absent key
// then removes another one 2^guard_bits times less often.  REQUIRES: guard_bits <= kMaxGuardBits
struct GuardedRequest {
  static constexpr std::uint32_t kMaxGuardBits = 16;  // that all of these families can store
  std::uint64_t keys = 0;
  double fpr = 0.01;
  double bits_per_key = 0;
  std::uint64_t max_bytes = 0;
  std::uint32_t guard_bits = 0;
};

namespace detail {
template <class Shape>
struct RequestTypeOf {
  using type = Request;
};
template <class Shape>
requires requires { typename Shape::request_type; }
struct RequestTypeOf<Shape> {
  using type = typename Shape::request_type;
};
}  // namespace detail
// What Shape::for_keys takes: Shape::request_type, or Request if it has none.
template <class Shape>
using RequestOf = typename detail::RequestTypeOf<Shape>::type;

// Name and value of whatever is particular to a family.
using Facts = std::vector<std::pair<std::string, std::string>>;

// No filter of any kind can do with fewer bits per key: log2(1 / fpr).
PERHAPS_API double bits_per_key_limit(double fpr) noexcept;
// Nor has any a lower rate than this: the probability that one of `keys` keys has the 64-bit digest of an absent one.
constexpr double equal_digests(double keys) noexcept { return keys * 0x1p-64; }

// Classic Bloom filter: `probes` bits anywhere in an array of `bits` bits.
//   fpr = E[fill^probes], E[fill] = 1 - (1 - 1/bits)^(probes * keys); 1.44 * log2(1/fpr) bits per key at the best
//   `probes`
struct BloomShape {
  static constexpr std::uint32_t kMaxProbes = 30;  // as in LevelDB and RocksDB
  std::uint64_t bits = 8;                          // 1 or more
  std::uint32_t probes = 1;                        // 1 to kMaxProbes

  // As the introduction says of all shapes.
  PERHAPS_API static BloomShape for_keys(const Request& request);
  PERHAPS_API double fpr(double keys) const;
  PERHAPS_API double fill(double keys) const;
  PERHAPS_API double keys_at(double fill) const;
  PERHAPS_API double keys_for(double fpr) const;

  constexpr std::uint64_t bytes() const noexcept { return bits / 8 + (bits % 8 != 0); }
  // Every number is in its range.
  constexpr bool valid() const noexcept { return bits >= 1 && probes >= 1 && probes <= kMaxProbes; }
  // What a file stores; from() reads it.
  std::vector<std::uint64_t> numbers() const { return {bits, probes}; }
  Facts facts() const { return {}; }  // none: bits and probes say all
  // Refuses what is not valid().
  PERHAPS_API static Result<BloomShape> from(std::span<const std::uint64_t> numbers);
  friend bool operator==(const BloomShape&, const BloomShape&) = default;
};

// Line Bloom filter: all probes of a key in one 512-bit line of 8 lanes, dealt out to the lanes in turn.
//   fpr = sum over the ways to leave probed bits unset (inclusion-exclusion), and keys / lines / 2^32 for the pattern
//   of eight probes, which comes from 32 bits of a word; 5 % more bits than classic at 1 %, 9 % at 0.1 %, 15 % at 1e-4
struct LineShape {
  static constexpr std::uint32_t kMaxProbes = 16;  // two rounds of the lanes
  std::uint64_t lines = 1;                         // 1 or more, any number
  std::uint32_t probes = 8;                        // 1 to kMaxProbes

  // Chooses `probes` by the model; a whole round of the lanes (8 or 16) is preferred while it costs at most 2 % more
  // bits, because it needs no lane to be masked out.
  PERHAPS_API static LineShape for_keys(const Request& request);
  PERHAPS_API double fpr(double keys) const;
  PERHAPS_API double fill(double keys) const;
  PERHAPS_API double keys_at(double fill) const;
  PERHAPS_API double keys_for(double fpr) const;
  // The part of fpr() that the fill does not show: keys whose patterns come from the same bits of their words.
  PERHAPS_API double equal_patterns(double keys) const;

  constexpr std::uint64_t bytes() const noexcept { return lines * kLineBytes; }
  constexpr std::uint64_t bits() const noexcept { return lines * 512; }  // in all lines
  // Every number is in its range.
  constexpr bool valid() const noexcept {
    return lines >= 1 && lines <= UINT64_MAX / 512 && probes >= 1 && probes <= kMaxProbes;
  }
  // What a file stores; from() reads it.
  std::vector<std::uint64_t> numbers() const { return {lines, probes}; }
  // The number of lines.
  Facts facts() const { return {{"lines", std::to_string(lines)}}; }
  PERHAPS_API static Result<LineShape> from(std::span<const std::uint64_t> numbers);
  friend bool operator==(const LineShape&, const LineShape&) = default;
};

// Split-block Bloom filter: eight probes, one in each 32-bit word of a 256-bit block.
//   fpr = sum_i C(8,i) (-1)^i (1 - (1 - (31/32)^i) / blocks)^keys + keys / blocks / 2^32, as a pattern has 32 bits
// Good around 1 %; expensive at both ends (0.01 % needs 26 bits per key) because the probe count is fixed.
struct BlockShape {
  static constexpr std::uint32_t kProbes = 8;                          // one in each word
  static constexpr std::uint64_t kMaxBlocks = std::uint64_t{1} << 32;  // a block is chosen by 32 bits of the digest
  std::uint64_t blocks = 1;                                            // 1 to kMaxBlocks, any number

  // As the introduction says of all shapes.
  PERHAPS_API static BlockShape for_keys(const Request& request);
  PERHAPS_API double fpr(double keys) const;
  PERHAPS_API double fill(double keys) const;
  PERHAPS_API double keys_at(double fill) const;
  PERHAPS_API double keys_for(double fpr) const;
  // As LineShape's.
  PERHAPS_API double equal_patterns(double keys) const;

  constexpr std::uint64_t bytes() const noexcept { return blocks * 32; }
  constexpr std::uint64_t bits() const noexcept { return blocks * 256; }  // in all blocks
  // Every number is in its range.
  constexpr bool valid() const noexcept { return blocks >= 1 && blocks <= kMaxBlocks; }
  // What a file stores; from() reads it.
  std::vector<std::uint64_t> numbers() const { return {blocks}; }
  // The number of blocks.
  Facts facts() const { return {{"blocks", std::to_string(blocks)}}; }
  PERHAPS_API static Result<BlockShape> from(std::span<const std::uint64_t> numbers);
  friend bool operator==(const BlockShape&, const BlockShape&) = default;
};

}  // namespace perhaps
