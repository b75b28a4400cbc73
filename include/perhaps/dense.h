// A filter for a handful of keys, up to 64, in any number of bytes: the windows and blocks of a sorted table. It
// reaches the limit, 2^-(bits a key), but for the two bytes of its head; a Bloom filter of 36 keys at 10 bits a key
// answers 1 % of absent keys wrongly, this one 0.14 %.
//
// It is the dense part of a ribbon (ribbon.h) alone. Each key has one equation over GF(2) for each column, and there
// are as many unknowns in a column as keys:
//
//   bytes   | columns, extra column: a run of bits, lowest first | seed 1 | slots 1 |
//   slots   n, the number of distinct keys, 1 to 64. Longer filters of other families end in a larger byte (packed.h).
//   columns r = min(bits / n, 32) columns of n bits each, bits = 8 * (size - 2)
//   extra   e = min(bits - r * n, n - 1) bits more; nothing if r = 32
//
//   a = mix(h + 0x9e3779b97f4a7c15 * (seed + 1)), mix = SplitMix64's finaliser         h = the digest
//   b = a * 0xd6e8feb86659fd93, then b ^= b >> 32
//   g = a * 0xa0761d6478bd642f                                                         is the key subject to extra?
//   f = high32(h * 0xc2b2ae3d27d4eb4f)                                                 the fingerprint
//
// A key is perhaps in the set if for every column j the parity of (column j AND the lowest n bits of a) is bit j of f
// and, for the keys with (g >> 48) * n < e * 2^16, the parity of (extra AND the lowest e bits of b) is bit r of f. So
// fpr = 2^-r * (1 - e / n / 2): any number of bytes is used, and rates lie between the powers of two.
//
// A random square system over GF(2) has a solution with probability 0.29. Seeds are tried in turn: 3.5 on average, 6
// with an extra column, 60 at most in 3000 sets (packed_test). Should all 256 fail, the last byte is 0, and whoever
// reads that answers *perhaps*: building never fails.
//
// More keys than that are dealt out to groups by the leading bits of their digests, some 44 in each:
//
//   bytes   | columns of group 0 | of group 1 | .. | seed, slots of group 0 | of group 1 | .. |
//           | bits a slot 2 | groups 1 |
//
// The columns of a group with n slots take floor(n * bits a slot / 128) bytes (bits a slot is counted in sixteenths),
// so a lookup adds up the slots before its group. Slots 0: no key fell into the group. 255: it had no solution, and
// answers *perhaps*.
//
// Why no slot to spare: with one, 1.7 seeds instead of 3.5 would do for the columns, and it would cost r bits, that is,
// 2^(r / n) times the rate: 1.2 at 36 keys and 10 bits.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <vector>

#include "perhaps/detail/bits.h"
#include "perhaps/hash.h"

namespace perhaps {

struct Dense {
  static constexpr std::size_t kMaxKeys = 64;
  static constexpr std::size_t kHeadBytes = 2;
  static constexpr std::uint32_t kMaxColumns = 32;

  // What a filter of `keys` keys in `bytes` bytes looks like.
  struct Shape {
    std::uint32_t slots;
    std::uint32_t columns;
    std::uint32_t extra;

    // REQUIRES: 1 <= keys <= kMaxKeys, bytes >= kHeadBytes
    static Shape of(std::size_t keys, std::size_t bytes) noexcept {
      const auto n = static_cast<std::uint32_t>(keys);
      const auto bits = static_cast<std::uint32_t>(std::min<std::size_t>(bytes - kHeadBytes, 4 * kMaxKeys)) * 8;
      const std::uint32_t r = std::min(bits * kReciprocal[n] >> 20, kMaxColumns);
      return {n, r, r == kMaxColumns ? 0 : std::min(bits - r * n, n - 1)};
    }
    double fpr() const noexcept {
      const double share = static_cast<double>(extra) / slots;
      return (1 - share / 2) / static_cast<double>(std::uint64_t{1} << columns);
    }
  };

  // A filter of `digests`, distinct and at most kMaxKeys, into all of `out`.
  // REQUIRES: digests.size() >= 1, out.size() >= kHeadBytes. See above for a last byte of 0.
  PERHAPS_API static void build(std::span<const std::uint64_t> digests, std::span<std::byte> out) noexcept;
  // The same without the head: returns the seed, or kNoSeed.
  static constexpr std::uint32_t kNoSeed = 256;
  PERHAPS_API static std::uint32_t solve(std::span<const std::uint64_t> digests, Shape shape,
                                         std::span<std::byte> out) noexcept;

  // REQUIRES: the last byte is 1 to kMaxKeys and there are kHeadBytes or more. Any such bytes can be asked.
  static bool may_contain(Bytes filter, std::uint64_t h) noexcept {
    const auto n = std::to_integer<std::uint32_t>(filter[filter.size() - 1]);
    const auto seed = std::to_integer<std::uint32_t>(filter[filter.size() - 2]);
    return ask(filter, 0, Shape::of(n, filter.size()), seed, h);
  }
  // Of columns that begin at `bit` of `bytes`.
  static bool ask(Bytes bytes, std::uint64_t bit, Shape shape, std::uint32_t seed, std::uint64_t h) noexcept {
    // With up to 57 slots a column is in the eight bytes from where it begins.
    if (bytes.size() >= 8 && shape.slots <= 57) [[likely]]
      return ask<near_bits>(bytes, bit, shape, seed, h);
    return ask<far_bits>(bytes, bit, shape, seed, h);
  }

 private:
  struct Equation {
    std::uint64_t coefficients;
    std::uint64_t extra_coefficients;
    std::uint32_t fingerprint;
    std::uint32_t extra_bit;
    bool is_extra;

    Equation(std::uint64_t h, std::uint32_t seed, Shape shape) noexcept {
      std::uint64_t a = h + 0x9e3779b97f4a7c15u * (seed + 1);
      a = (a ^ a >> 30) * 0xbf58476d1ce4e5b9u;
      a = (a ^ a >> 27) * 0x94d049bb133111ebu;
      a ^= a >> 31;
      std::uint64_t b = a * 0xd6e8feb86659fd93u;
      b ^= b >> 32;
      coefficients = a & ~std::uint64_t{0} >> (64 - shape.slots);
      fingerprint = static_cast<std::uint32_t>(h * 0xc2b2ae3d27d4eb4fu >> 32);
      is_extra = (a * 0xa0761d6478bd642fu >> 48) * shape.slots < std::uint64_t{shape.extra} << 16;
      extra_coefficients = b & ((std::uint64_t{1} << shape.extra) - 1);  // extra < slots <= 64
      extra_bit = static_cast<std::uint32_t>(std::uint64_t{fingerprint} >> shape.columns & 1);
    }
  };

  // ceil(2^20 / n): the quotient of up to 2^14 bits without a division.
  static constexpr std::array<std::uint32_t, kMaxKeys + 1> kReciprocal = [] {
    std::array<std::uint32_t, kMaxKeys + 1> r{};
    for (std::uint32_t n = 1; n <= kMaxKeys; ++n) r[n] = ((1u << 20) + n - 1) / n;
    return r;
  }();

  static std::uint32_t parity(std::uint64_t word) noexcept {
    return static_cast<std::uint32_t>(__builtin_parityll(word));
  }
  // At least 57 bits from `bit` on, or all up to the end.  REQUIRES: bit < 8 * bytes.size(), bytes.size() >= 8
  static std::uint64_t near_bits(Bytes bytes, std::uint64_t bit) noexcept {
    const std::uint64_t from = std::min<std::uint64_t>(bit / 8, bytes.size() - 8);
    return detail::load<std::uint64_t>(bytes.data() + from) >> (bit - from * 8);
  }
  // 64 bits from `bit` on; past the end, zeros.  REQUIRES: bit < 8 * bytes.size(), bytes.size() >= 2
  static std::uint64_t far_bits(Bytes bytes, std::uint64_t bit) noexcept {
    if (bytes.size() >= 8) {
      const std::uint64_t ninth = bit / 8 + 8;
      const auto shift = static_cast<unsigned>(bit % 8);
      const auto last = ninth < bytes.size() ? std::to_integer<std::uint64_t>(bytes[ninth]) : 0;
      return near_bits(bytes, bit) | last << 1 << (63 - shift);
    }
    // Two loads that overlap: a copy of unknown length is a call.
    const std::byte* const at = bytes.data();
    const std::uint64_t word =
        bytes.size() >= 4
            ? detail::load<std::uint32_t>(at) | std::uint64_t{detail::load<std::uint32_t>(at + bytes.size() - 4)}
                                                    << 8 * (bytes.size() - 4)
            : detail::load<std::uint16_t>(at) | std::to_integer<std::uint64_t>(at[bytes.size() - 1])
                                                    << 8 * (bytes.size() - 1);
    return word >> bit;
  }

  template <std::uint64_t (*bits_at)(Bytes, std::uint64_t) noexcept>
  static bool ask(Bytes bytes, std::uint64_t bit, Shape shape, std::uint32_t seed, std::uint64_t h) noexcept {
    const Equation key(h, seed, shape);
    // Most absent keys end with the first four columns; single steps would be guessed wrongly half of the time.
    for (std::uint32_t j = 0; j < shape.columns;) {
      std::uint32_t wrong = 0;
      for (const std::uint32_t end = std::min(shape.columns, j + 4); j < end; ++j, bit += shape.slots) {
        wrong |= parity(bits_at(bytes, bit) & key.coefficients) ^ (key.fingerprint >> j & 1);
      }
      if (wrong != 0) return false;
    }
    if (shape.extra == 0) return true;
    // Nor is it guessed whether the key is subject to the extra column.
    const std::uint32_t right = parity(bits_at(bytes, bit) & key.extra_coefficients) ^ key.extra_bit ^ 1;
    return ((key.is_extra ? 0u : 1u) | right) != 0;
  }
};

// Up to some 2800 keys.
struct DenseGroups {
  static constexpr std::size_t kMaxGroups = 64;
  static constexpr std::size_t kTailBytes = 3;

  // A filter of ascending, distinct digests in at most `bytes` bytes, appended to `out`. False: too many keys, or too
  // few bytes; `out` is as it was.  Throws std::bad_alloc.
  PERHAPS_API static bool build(std::span<const std::uint64_t> digests, std::size_t bytes, std::vector<std::byte>& out);

  // Any bytes can be asked: heads that do not fit them answer *perhaps*.
  static bool may_contain(Bytes filter, std::uint64_t h) noexcept {
    if (filter.size() < kTailBytes) return true;
    const std::byte* const tail = filter.data() + filter.size() - kTailBytes;
    const auto groups = std::to_integer<std::size_t>(tail[2]);
    const std::uint32_t density = detail::load<std::uint16_t>(tail);
    if (groups == 0 || groups > kMaxGroups || filter.size() < kTailBytes + 2 * groups) return true;
    const std::byte* const heads = tail - groups * 2;
    const std::uint64_t mine = detail::scale(h, groups);
    std::uint64_t begin = 0;
    for (std::uint64_t i = 0; i < mine; ++i) begin += column_bytes(heads[2 * i + 1], density);
    const auto slots = std::to_integer<std::uint32_t>(heads[2 * mine + 1]);
    const std::size_t size = column_bytes(heads[2 * mine + 1], density);
    if (begin + size > filter.size() - kTailBytes - 2 * groups) return true;
    if (slots == 0) return false;
    if (slots > Dense::kMaxKeys) return true;
    const auto shape = Dense::Shape::of(slots, size + Dense::kHeadBytes);
    return Dense::ask(filter, begin * 8, shape, std::to_integer<std::uint32_t>(heads[2 * mine]), h);
  }
  // Are they whole? Looks at every head.
  PERHAPS_API static bool valid(Bytes filter) noexcept;

 private:
  static constexpr std::uint8_t kEvery = 255;
  static std::size_t column_bytes(std::byte slots, std::uint32_t density) noexcept {
    const auto n = std::to_integer<std::size_t>(slots);
    return n > Dense::kMaxKeys ? 0 : n * density / 128;
  }
};

}  // namespace perhaps
