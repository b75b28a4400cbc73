// A filter for a handful of keys, up to 64, in any number of bytes: the windows and blocks of a sorted table. Apart
// from the two bytes of its head it reaches the limit, 2^-(bits per key): for 36 keys at 10 bits per key a Bloom filter
// has a rate of 1 %, this one of 0.14 %.
//
// It is the dense part of a ribbon (ribbon.h) on its own. Each key has one equation over GF(2) for each column, and
// there are as many unknowns in a column as keys:
//
//   bytes   | columns, extra column: a run of bits, lowest first | seed 1 | 191 + slots 1 |
//   slots   n, the number of distinct keys, 1 to 64. Filters of other families end in a smaller byte (packed.h).
//   columns r = min(bits / n, 32) columns of n bits each, bits = 8 * (size - 2)
//   extra   e = min(bits - r * n, n - 1) bits more; nothing if r = 32
//
//   a = the upper XOR the lower half of (h XOR 0x9e3779b97f4a7c15 * (seed + 1)) * 0xa0761d6478bd642f, h = the word
//   b = a * 0xd6e8feb86659fd93, then b ^= b >> 32
//   g = a * 0xbf58476d1ce4e5b9                                                         does the extra column apply?
//   f = high32(h * 0xc2b2ae3d27d4eb4f)                                                 the fingerprint
//
// A key is perhaps in the set if for every column j the parity of (column j AND the lowest n bits of a) is bit j of f
// and, for the keys with (g >> 48) * n < e * 2^16, the parity of (extra AND the lowest e bits of b) is bit r of f. So
// fpr = 2^-r * (1 - e / n / 2): any number of bytes is used, and rates lie between the powers of two.
//
// A random square system over GF(2) has a solution with probability 0.29. Seeds are tried in turn: 3.5 on average, 6
// with an extra column, 60 at most in 3000 sets (packed_test). If all 256 fail, the last byte is 0, which readers
// answer with *perhaps*: building never fails. Where there are vectors, eight seeds are tried at once (src/kernel).
//
// More keys than that are divided into groups by the leading bits of their words, some 44 in each:
//
//   bytes   | columns of group 0 | of group 1 | .. | slots of group 0 | .. | seed of group 0 | .. |
//           | bits per slot 2 | groups 1, 2 to 64 | 190 |
//
// The columns of a group begin at byte floor(slots of the groups before it * bits per slot / 128) and end where those
// of the next begin; bits per slot is counted in sixteenths. Slots 0: no key fell into the group, and it answers *no*;
// with seed 255 it had no solution, and answers *perhaps*.
//
// Why there is no spare slot: with one, 1.7 seeds instead of 3.5 would do for the columns, but it would cost r bits,
// which raises the rate 2^(r / n) times: 1.2 times at 36 keys and 10 bits.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <vector>

#include "perhaps/detail/bits.h"
#include "perhaps/hash.h"

namespace perhaps {

struct Dense {
  static constexpr std::size_t kMaxKeys = 64;       // in one filter
  static constexpr std::size_t kHeadBytes = 2;      // seed and slots, at its end
  static constexpr std::uint32_t kMaxColumns = 32;  // more do not lower the rate
  static constexpr std::uint8_t kTag = 191;         // the last byte less the number of keys

  static_assert(kTag + kMaxKeys == 255);

  // The shape of a filter of `keys` keys in `bytes` bytes.
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

  // A filter of `words` (hash.h), distinct and at most kMaxKeys, into all of `out`.
  // REQUIRES: words.size() >= 1, out.size() >= kHeadBytes. See above for a last byte of 0.
  PERHAPS_API static void build(std::span<const std::uint64_t> words, std::span<std::byte> out) noexcept;
  // The same without the head: returns the seed, or kNoSeed.
  static constexpr std::uint32_t kNoSeed = 256;
  PERHAPS_API static std::uint32_t solve(std::span<const std::uint64_t> words, Shape shape,
                                         std::span<std::byte> out) noexcept;

  // Whether `tag` is the last byte of such a filter.
  static constexpr bool ends_in(std::byte tag) noexcept { return tag > std::byte{kTag}; }
  // REQUIRES: ends_in(filter.back()), and there are kHeadBytes or more. Any such bytes can be queried.
  // kWhole: the short lookups without a call, for kernels that are compiled for more than the baseline: parities are
  // faster where an instruction counts bits.
  template <bool kWhole = false>
  PERHAPS_INLINE static bool may_contain(Bytes filter, std::uint64_t h) noexcept {
    const auto n = std::to_integer<std::uint32_t>(filter[filter.size() - 1]) - kTag;
    const auto seed = std::to_integer<std::uint32_t>(filter[filter.size() - 2]);
    return query<kWhole>(filter, {0, filter.size() - kHeadBytes}, {n, seed}, h);
  }
  // Of columns that lie somewhere in `bytes`.
  struct Columns {
    std::uint64_t from;  // byte
    std::uint64_t size;  // in bytes
  };
  // What the last two bytes of a filter say.
  struct Head {
    std::uint32_t slots;
    std::uint32_t seed;
  };
  // may_contain for columns and a head that stand apart.  REQUIRES: the columns lie within `bytes`
  template <bool kWhole = false>
  PERHAPS_INLINE static bool query(Bytes bytes, Columns columns, Head head, std::uint64_t h) noexcept {
    // Fifteen of sixteen absent keys fail in the first four columns, whose parities are computed together: a branch
    // after each would be mispredicted half of the time.
    const std::uint32_t n = head.slots;
    if (8 * columns.size < 4 * n || columns.from + 3 * n / 8 + 9 > bytes.size()) [[unlikely]]
      return query_each(bytes, columns, head, h);
    const std::byte* const at = bytes.data() + columns.from;
    return (n <= kNear ? first_four<false>(at, head, h) : first_four_far(at, head, h)) &&
           (kWhole ? rest(bytes, columns, head, h) : query_rest(bytes, columns, head, h));
  }

 private:
  struct Equation {
    std::uint64_t coefficients;
    std::uint64_t extra_coefficients;
    std::uint32_t fingerprint;
    std::uint32_t extra_bit;
    bool is_extra;

    Equation(std::uint64_t h, std::uint32_t seed, Shape shape) noexcept {
      const std::uint64_t a = mixed(h, seed);
      std::uint64_t b = a * 0xd6e8feb86659fd93u;
      b ^= b >> 32;
      coefficients = coefficients_of(h, {shape.slots, seed});
      fingerprint = fingerprint_of(h);
      is_extra = (a * 0xbf58476d1ce4e5b9u >> 48) * shape.slots < std::uint64_t{shape.extra} << 16;
      extra_coefficients = b & ((std::uint64_t{1} << shape.extra) - 1);  // extra < slots <= 64
      extra_bit = static_cast<std::uint32_t>(std::uint64_t{fingerprint} >> shape.columns & 1);
    }
  };
  static std::uint64_t mixed(std::uint64_t h, std::uint32_t seed) noexcept {
    return detail::folded_product(h ^ 0x9e3779b97f4a7c15u * (seed + 1), 0xa0761d6478bd642fu);
  }
  static std::uint64_t coefficients_of(std::uint64_t h, Head head) noexcept {
    return mixed(h, head.seed) & ~std::uint64_t{0} >> (64 - head.slots);
  }
  static std::uint32_t fingerprint_of(std::uint64_t h) noexcept {
    return static_cast<std::uint32_t>(h * 0xc2b2ae3d27d4eb4fu >> 32);
  }

  // ceil(2^20 / n): the quotient of up to 2^14 bits without a division.
  static constexpr std::array<std::uint32_t, kMaxKeys + 1> kReciprocal = [] {
    std::array<std::uint32_t, kMaxKeys + 1> r{};
    for (std::uint32_t n = 1; n <= kMaxKeys; ++n) r[n] = ((1u << 20) + n - 1) / n;
    return r;
  }();

  static std::uint32_t parity(std::uint64_t word) noexcept {
    return static_cast<std::uint32_t>(__builtin_parityll(word));
  }
  // 64 bits from `bit` on; past the end, zeros.  REQUIRES: bit < 8 * bytes.size(), bytes.size() >= 2
  static std::uint64_t bits_at(Bytes bytes, std::uint64_t bit) noexcept;
  // Up to so many slots, a column lies within eight bytes from its first; beyond, within nine.
  static constexpr std::uint32_t kNear = 57;
  template <bool kFar>
  PERHAPS_INLINE static bool first_four(const std::byte* at, Head head, std::uint64_t h) noexcept {
    const std::uint64_t coefficients = coefficients_of(h, head);
    const auto column = [=](std::uint32_t bit) __attribute__((always_inline)) {
      std::uint64_t word = detail::load<std::uint64_t>(at + bit / 8) >> bit % 8;
      if constexpr (kFar) word |= std::to_integer<std::uint64_t>(at[bit / 8 + 8]) << 1 << (63 - bit % 8);
      return parity(word & coefficients);
    };
    const std::uint32_t n = head.slots;
    const std::uint32_t f = fingerprint_of(h);
    const std::uint32_t wrong =
        (column(0) ^ f) | (column(n) ^ f >> 1) | (column(2 * n) ^ f >> 2) | (column(3 * n) ^ f >> 3);
    return (wrong & 1) == 0;
  }
  [[gnu::noinline]] static bool first_four_far(const std::byte* at, Head head, std::uint64_t h) noexcept {
    return first_four<true>(at, head, h);
  }
  // The columns after the first four, and the extra one. Keys that come this far are mostly in the set, so it has no
  // branch for each column.
  PERHAPS_INLINE static bool rest(Bytes bytes, Columns columns, Head head, std::uint64_t h) noexcept {
    const std::uint32_t n = head.slots;
    if (n > kNear || bytes.size() < 8) return query_each(bytes, columns, head, h);
    const Shape shape = Shape::of(n, columns.size + kHeadBytes);
    const Equation key(h, head.seed, shape);
    const std::byte* const data = bytes.data();
    // The last columns end behind the last eight bytes: those are shifted further.
    const std::uint64_t last = bytes.size() - 8;
    const auto column = [=](std::uint64_t bit) __attribute__((always_inline)) {
      const std::uint64_t from = std::min(bit / 8, last);
      return detail::load<std::uint64_t>(data + from) >> (bit - 8 * from);
    };
    std::uint64_t bit = 8 * columns.from + std::uint64_t{4} * n;
    std::uint32_t wrong = 0;
    for (std::uint32_t j = 4; j < shape.columns; ++j, bit += n) {
      wrong |= parity(column(bit) & key.coefficients) ^ key.fingerprint >> j;
    }
    if (shape.extra != 0) {
      const std::uint32_t extra = parity(column(bit) & key.extra_coefficients) ^ key.extra_bit;
      wrong |= key.is_extra ? extra : 0;
    }
    return (wrong & 1) == 0;
  }
  PERHAPS_API static bool query_rest(Bytes bytes, Columns columns, Head head, std::uint64_t h) noexcept;
  // Column by column, and the extra one.
  PERHAPS_API static bool query_each(Bytes bytes, Columns columns, Head head, std::uint64_t h) noexcept;
};

// Up to some 2800 keys.
struct DenseGroups {
  static constexpr std::size_t kMaxGroups = 64;  // dense filters in one
  static constexpr std::size_t kMean = 44;       // keys in a group
  static constexpr std::size_t kTailBytes = 4;   // behind the heads of the groups
  static constexpr std::uint8_t kTag = 190;      // the last byte: groups, and not one dense filter

  // A filter of distinct words, in any order, in at most `bytes` bytes, appended to `out`. False: too many keys, or too
  // few bytes; `out` is as it was.  Throws std::bad_alloc.
  PERHAPS_API static bool build(std::span<const std::uint64_t> words, std::size_t bytes, std::vector<std::byte>& out);

  // Any bytes can be queried: heads that do not fit them answer *perhaps*.
  template <bool kWhole = false>
  PERHAPS_INLINE static bool may_contain(Bytes filter, std::uint64_t h) noexcept {
    const auto parts = Parts::of(filter);
    if (!parts) return true;
    const std::uint64_t mine = detail::scale(h, parts->groups);
    const std::uint64_t before = slots_before(*parts, mine);
    const auto slots = std::to_integer<std::uint32_t>(parts->slots[mine]);
    const auto seed = std::to_integer<std::uint32_t>(parts->seeds[mine]);
    if (slots == 0) return seed == kNoSolution;
    const std::uint64_t begin = before * parts->density / 128;
    const std::uint64_t end = (before + slots) * parts->density / 128;
    if (slots > Dense::kMaxKeys || end > parts->column_bytes) return true;
    return Dense::query<kWhole>(filter, {begin, end - begin}, {slots, seed}, h);
  }
  // Whether the heads fit the bytes; reads every head.
  PERHAPS_API static bool valid(Bytes filter) noexcept;
  // What a valid filter holds, and the rate to expect of it.
  struct Summary {
    std::uint64_t keys;
    double fpr;
  };
  // REQUIRES: valid(filter)
  PERHAPS_API static Summary summary(Bytes filter) noexcept;

 private:
  static constexpr std::uint8_t kNoSolution = 255;

  struct Parts {
    std::uint64_t column_bytes;
    const std::byte* slots;
    const std::byte* seeds;
    std::uint64_t density;
    std::uint64_t groups;

    // Nothing: they do not fit.
    static std::optional<Parts> of(Bytes filter) noexcept {
      if (filter.size() < kTailBytes) return std::nullopt;
      const std::byte* const tail = filter.data() + filter.size() - kTailBytes;
      const auto groups = std::to_integer<std::uint64_t>(tail[2]);
      if (groups < 2 || groups > kMaxGroups || filter.size() < kTailBytes + 2 * groups) return std::nullopt;
      return Parts{filter.size() - kTailBytes - 2 * groups, tail - 2 * groups, tail - groups,
                   detail::load<std::uint16_t>(tail), groups};
    }
  };

  // The sum over the groups before `mine`, eight at a time. The number of iterations does not depend on the key.
  PERHAPS_INLINE static std::uint64_t slots_before(const Parts& parts, std::uint64_t mine) noexcept {
    const auto sum_of = [](std::uint64_t word) __attribute__((always_inline)) {
      constexpr std::uint64_t kPairs = 0x00ff00ff00ff00ffu;
      return ((word & kPairs) + (word >> 8 & kPairs)) * 0x0001000100010001u >> 48;
    };
    // With seeds and tail behind them there are always eight bytes.
    const std::uint64_t last = detail::load<std::uint64_t>(parts.slots + mine / 8 * 8);
    std::uint64_t sum = sum_of(last & ((std::uint64_t{1} << mine % 8 * 8) - 1));
    for (std::uint64_t i = 0; i < parts.groups / 8; ++i) {
      sum += i < mine / 8 ? sum_of(detail::load<std::uint64_t>(parts.slots + 8 * i)) : 0;
    }
    return sum;
  }
};

}  // namespace perhaps
