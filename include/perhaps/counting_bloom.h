// The counting Bloom filter (Fan, Cao, Almeida, Broder 1998), all counters of a key in one 64-byte line: keys can be
// erased again, and what remains can be frozen into a plain Bloom filter of a quarter of the size.
//
//   table   = `lines` lines of 64 bytes; line = 8 lanes of 64 bits, little-endian; lane = 16 counters of 4 bits,
//             counter 0 in the lowest bits
//   line    = floor(h * lines / 2^64)                         any number of lines
//   probe i = lane j = (start + i) mod 8, start = low32(h) * 0x9e3779b1 mod 2^32 >> 29
//             i < 8:  counter c = low32(h) * kSalt[j] mod 2^32 >> 28
//             i >= 8: counter c + 1 + (x * 15 >> 16) mod 16, with x = (r * kSalt[j] mod 2^32) >> 16 and
//                     r = high32(h * 0xe7037ed1a0b428db)
//
//             byte  0        8        16       24       32       40       48       56      63
//                 | lane 0 | lane 1 | lane 2 | lane 3 | lane 4 | lane 5 | lane 6 | lane 7 |
//                  `- 16 counters: c0 c1 .. c15, two in a byte, the even one low
//
// Insert adds one to `probes + guards` counters, no two of which are the same: a second probe in a lane steps away from
// the first by 1 to 15. A query answers *perhaps* if the first `probes` of them are not zero.
//
// **Erase** subtracts one from each. If any of them is zero, the key is `absent` and nothing changes: there is no
// underflow. A counter that has reached 15 has lost count and stays at 15 for ever. The others are still decremented,
// and the answer is `kept`: the key was erased and may not be erased again, but the saturated counter may still answer
// *perhaps*. No inserted key can be lost, for two reasons: a counter below 15 is exactly the number of copies of keys
// on it, and one at 15 is never zero again. Leaving the other counters of such a key alone would be no safer: over many
// inserts and erases, every key that meets a stuck counter would leave its other counters set, until the whole line is
// stuck.
//
// **Erasing absent keys.** A key that was never inserted (or is erased twice) and looks present cannot be told apart,
// and erasing it takes counts away from other keys, which may then answer *no*. Without guards that happens with
// probability fpr(keys). `guards` are further counters of a key in the same line that only erase looks at: with them
// the probability is wrong_erase(keys), that all `probes + guards` counters are not zero. for_keys with guard_bits = g
// chooses as many guards, and as many lines, as make wrong_erase <= the requested rate / 2^g. A guard costs as much
// space as a probe, which is a lot here (1 % with g = 8: 150 bits per key, a cuckoo filter 19): guards keep queries
// cheap, not the table small.
//
// **Rate.** fpr(keys) by inclusion and exclusion over the probed counters, exactly, as for the line filter (sizing.h,
// doc/maths.md), with lines of 128 instead of 512 positions, which fill more unevenly. Bits per key at 1e7 keys:
//
//             rate     counting   frozen   LineBloom   Cuckoo
//             10 %       20.0       5.0       4.9        7.2
//              1 %       43.7      10.9      10.1       10.4
//            0.1 %       77.4      19.3      15.7       13.5
//           0.01 %      124.4      31.1      22.1       17.7
//
// A cuckoo filter (cuckoo.h) erases in a quarter of the space. The advantages of counters: they are never full, take
// any number of copies (beyond 14 they stick), can be added, and can be frozen.
//
// **A plain filter is one whose counters have one bit**: counter_bits = 1 makes lanes of 16 bits and lines of 16 bytes,
// in the same order, with the same positions. One is then the highest count, so every erase is `kept` and sums are ORs.
// frozen() makes one out of counters: bit = counter > 0, so it answers every query as the counters do, from a
// quarter of the bytes. (Counters cannot be frozen into a LineBloom: its keys set bits in all four quarters of a line,
// so each key would need four lines of counters.)
//
// merge() adds counters, and is the filter of both multisets. keys() is the sum of all counters over probes + guards:
// exact until one is stuck, which then misses later inserts and keeps what was erased. needs_rebuild(): so many
// counters are stuck that the rate may be a tenth above that of a fresh filter. A filter sized for its keys does not
// get there by chance (at 1 % a counter reaches 15 with probability 6e-17), only by copies of one key.
#pragma once
#include <array>
#include <vector>

#include "perhaps/detail/bits.h"
#include "perhaps/flat.h"

namespace perhaps {

// How many counters a filter has, of how many bits, and how many of them belong to a key.
struct CountingShape {
  using request_type = GuardedRequest;             // what for_keys() takes
  static constexpr std::uint32_t kMaxProbes = 16;  // together with guards
  std::uint64_t lines = 1;                         // 1 or more, any number
  std::uint32_t probes = 6;
  std::uint32_t guards = 0;        // counters that only erase looks at
  std::uint32_t counter_bits = 4;  // or 1: a plain filter

  // Counters of 4 bits.
  PERHAPS_API static CountingShape for_keys(const GuardedRequest& request);
  PERHAPS_API double fpr(double keys) const;
  // The probability that erasing an absent key takes counts away from others.
  PERHAPS_API double wrong_erase(double keys) const;
  // The expected share of counters that are not zero.
  PERHAPS_API double fill(double keys) const;
  PERHAPS_API double keys_for(double fpr) const;

  constexpr std::uint64_t line_bytes() const noexcept { return 16 * counter_bits; }  // 128 counters
  constexpr std::uint64_t bytes() const noexcept { return lines * line_bytes(); }
  constexpr std::uint32_t counters() const noexcept { return probes + guards; }  // of a key
  // Every number is in its range.
  constexpr bool valid() const noexcept {
    return lines >= 1 && lines <= UINT64_MAX / 512 && probes >= 1 && probes <= kMaxProbes &&
           guards <= kMaxProbes - probes && (counter_bits == 4 || counter_bits == 1);
  }
  // What a file stores; from() reads it.
  std::vector<std::uint64_t> numbers() const { return {lines, probes, guards, counter_bits}; }
  // Lines, bits per counter and guards.
  PERHAPS_API Facts facts() const;
  PERHAPS_API static Result<CountingShape> from(std::span<const std::uint64_t> numbers);
  friend bool operator==(const CountingShape&, const CountingShape&) = default;
};

// All counters of a key in one line: see the top of this file.
struct CountingLayout {
  using Shape = CountingShape;
  using word = std::uint64_t;
  static constexpr std::string_view family = "counting";
  // The number in a file, and the batch kernels.
  static constexpr Kind kind = Kind::counting;
  static constexpr auto query_kernel = &detail::Kernels::counting_query;
  static constexpr auto insert_kernel = &detail::Kernels::counting_insert;

  // The multipliers of the formulas above.
  static constexpr std::array<std::uint32_t, 8> kSalt = detail::kBlockSalt;
  static constexpr std::uint32_t kStart = 0x9e3779b1u;
  static constexpr std::uint64_t kSecondRound = 0xe7037ed1a0b428dbu;

  // Which line has all counters of a key.
  static std::uint64_t line_of(CountingShape shape, std::uint64_t h) noexcept { return detail::scale(h, shape.lines); }
  // Keys of different lines touch different memory.
  static std::uint64_t places(CountingShape shape) noexcept { return shape.lines; }
  static std::uint64_t place_of(CountingShape shape, std::uint64_t h) noexcept { return line_of(shape, h); }

  // The counters of a key one after the other: 0 to 127.
  class Probes {
   public:
    // Of digest h.
    explicit Probes(std::uint64_t h) noexcept
        : first_(static_cast<std::uint32_t>(h)),
          second_(static_cast<std::uint32_t>(h * kSecondRound >> 32)),
          start_(static_cast<std::uint32_t>(h) * kStart >> 29) {}

    // The i-th counter; from the probes-th on they are guards.
    std::uint32_t operator[](std::uint32_t i) const noexcept {
      const std::uint32_t lane = (start_ + i) % 8;
      std::uint32_t counter = first_ * kSalt[lane] >> 28;
      if (i >= 8) counter = (counter + 1 + ((second_ * kSalt[lane] >> 16) * 15 >> 16)) % 16;
      return lane * 16 + counter;
    }

   private:
    std::uint32_t first_;
    std::uint32_t second_;
    std::uint32_t start_;
  };

  template <class Isa>
  static bool may_contain(CountingShape shape, const std::byte* table, std::uint64_t h) noexcept {
    return shape.counter_bits == 4 ? covers<4>(shape, table, h, shape.probes)
                                   : covers<1>(shape, table, h, shape.probes);
  }

  static Inserted insert(CountingShape shape, std::byte* table, std::uint64_t h) noexcept {
    return shape.counter_bits == 4 ? insert_as<4>(shape, table, h) : insert_as<1>(shape, table, h);
  }
  static Erased erase(CountingShape shape, std::byte* table, std::uint64_t h) noexcept {
    return shape.counter_bits == 4 ? erase_as<4>(shape, table, h) : erase_as<1>(shape, table, h);
  }
  // Each of these is a pass over the table.
  PERHAPS_API static std::uint64_t keys(CountingShape shape, const std::byte* table) noexcept;
  PERHAPS_API static bool needs_rebuild(CountingShape shape, const std::byte* table) noexcept;

  static void prefetch(CountingShape shape, const std::byte* table, std::uint64_t h) noexcept {
    detail::prefetch_read(table + line_of(shape, h) * shape.line_bytes());
  }

  // into += other, counter by counter.
  PERHAPS_API static void add(const CountingShape& shape, std::byte* into, const std::byte* other) noexcept;
  // `plain`: a table of the same lines with counters of one bit.
  PERHAPS_API static void freeze(const CountingShape& shape, const std::byte* table, std::byte* plain) noexcept;

  // Counters of `Bits` bits, `at` of a line: a byte holds two, or eight.
  template <unsigned Bits>
  static unsigned get(const std::byte* line, std::uint32_t at) noexcept {
    return std::to_integer<unsigned>(line[at * Bits / 8]) >> at * Bits % 8 & ((1u << Bits) - 1);
  }

 private:
  // REQUIRES: the counter does not overflow, or go below zero.
  template <unsigned Bits>
  static void count(std::byte* line, std::uint32_t at, int by) noexcept {
    std::byte& byte = line[at * Bits / 8];
    byte = static_cast<std::byte>(std::to_integer<int>(byte) + by * (1 << at * Bits % 8));
  }

  template <unsigned Bits>
  static bool covers(CountingShape shape, const std::byte* table, std::uint64_t h, std::uint32_t probes) noexcept {
    const std::byte* line = table + line_of(shape, h) * (16 * Bits);
    const Probes probe(h);
    bool all = true;
    for (std::uint32_t i = 0; i < probes; ++i) all &= get<Bits>(line, probe[i]) != 0;
    return all;
  }

  template <unsigned Bits>
  static Inserted insert_as(CountingShape shape, std::byte* table, std::uint64_t h) noexcept {
    constexpr unsigned kMax = (1u << Bits) - 1;
    std::byte* line = table + line_of(shape, h) * (16 * Bits);
    const Probes probe(h);
    bool all = true;
    for (std::uint32_t i = 0; i < shape.counters(); ++i) {
      const std::uint32_t at = probe[i];
      const unsigned before = get<Bits>(line, at);
      all &= before != 0 || i >= shape.probes;
      count<Bits>(line, at, before < kMax ? 1 : 0);
    }
    return all ? Inserted::present : Inserted::added;
  }

  template <unsigned Bits>
  static Erased erase_as(CountingShape shape, std::byte* table, std::uint64_t h) noexcept {
    constexpr unsigned kMax = (1u << Bits) - 1;
    if (!covers<Bits>(shape, table, h, shape.counters())) return Erased::absent;
    std::byte* line = table + line_of(shape, h) * (16 * Bits);
    const Probes probe(h);
    bool stuck = false;
    for (std::uint32_t i = 0; i < shape.counters(); ++i) {
      const std::uint32_t at = probe[i];
      const bool stays = get<Bits>(line, at) == kMax;
      stuck |= stays;
      count<Bits>(line, at, stays ? 0 : -1);
    }
    return stuck ? Erased::kept : Erased::removed;
  }
};

template <Hasher H>
using BasicCountingBloom = Flat<CountingLayout, H>;
using CountingBloom = BasicCountingBloom<Hash>;
using CountingBloomView = CountingBloom::View;
using CountingBloomSpan = CountingBloom::Span;

// into += other: the filter of both multisets. Refused unless shape and hasher are the same.
template <Hasher H>
Result<void> merge(FlatSpan<CountingLayout, H> into, std::type_identity_t<FlatView<CountingLayout, H>> other) {
  if (!(into.shape() == other.shape())) return Error{Errc::mismatch, "counting: the filters differ in shape"};
  if (!(into.hasher() == other.hasher())) {
    return Error{Errc::mismatch, "counting: the filters hash with different seeds or keys"};
  }
  CountingLayout::add(into.shape(), into.writable_bytes().data(), other.bytes().data());
  return {};
}
template <Hasher H>
Result<void> merge(Flat<CountingLayout, H>& into, std::type_identity_t<FlatView<CountingLayout, H>> other) {
  return merge(into.span(), other);
}

// The plain filter of the stored keys: a quarter of the bytes, the same answer to every query.
template <Hasher H>
BasicCountingBloom<H> frozen(FlatView<CountingLayout, H> filter) {
  CountingShape shape = filter.shape();
  shape.counter_bits = 1;
  BasicCountingBloom<H> plain(shape, filter.hasher());
  CountingLayout::freeze(filter.shape(), filter.bytes().data(), plain.writable_bytes().data());
  return plain;
}
template <Hasher H>
BasicCountingBloom<H> frozen(const Flat<CountingLayout, H>& filter) {
  return frozen(filter.view());
}

// By one pass over the counters. fill: the share that is not zero. fpr: of these very counters. keys: as keys().
PERHAPS_API Condition condition_of(CountingShape shape, Bytes table);

}  // namespace perhaps
