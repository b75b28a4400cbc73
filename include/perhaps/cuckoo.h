// The cuckoo filter (Fan, Andersen, Kaminsky, Mitzenmacher 2014): fingerprints in buckets of four; keys can be erased.
//
//   table       = head | fingerprints | guards | zeros up to a multiple of 8 bytes
//   head        = 64 bytes: keys u64, stashed u64 (0..6), six digests u64
//   bucket i    = 4 slots of `fingerprint_bits` bits, from bit i * 4 * fingerprint_bits on; slot 0 in the lowest bits
//   guards      = 4 slots of `guard_bits` bits per bucket, packed the same way; slot j belongs to slot j
//
//               |  keys  | stashed | digest 0 .. digest 5 |   slot 3   slot 2   slot 1   slot 0 | slot 3 ..
//                 8 bytes  8 bytes    48 bytes              <-------- bucket 0, 48 bits -------> (12-bit fingerprints)
//
//   fingerprint = 1 + (x * (2^fingerprint_bits - 1) >> 32), x = low32(h ^ h >> 32) * 0xcc9e2d51 mod 2^32; 0 is empty
//   guard       = the top `guard_bits` bits of (y ^ y >> 29) * 0xd6e8feb86659fd93, with
//                 y = (h ^ h >> 32) * 0x9e6c63d0876a9a47
//   i1          = floor(h * buckets / 2^64)                                    any number of buckets
//   i2          = s - i1 mod buckets, s = floor(mix(fingerprint) * buckets / 2^32)
//   mix(f)      = (z ^ z >> 15) * 0x85ebca6b mod 2^32, z = f * 0x9e3779b1 mod 2^32
//
// A key lies in one of the eight slots of buckets i1 and i2. From either bucket and the fingerprint alone the other one
// follows (s - (s - i) = i, for any number of buckets; the usual i xor hash(f) needs a power of two), so a fingerprint
// can move without its key. `mix` must not be linear: with s = f * c, r moves would reach only r * 2^fingerprint_bits
// buckets instead of (2^fingerprint_bits)^r, too few for their load to be even.
//
// **Insert** takes the lowest empty slot of the emptier of the two buckets, of i1 if they are equal. If both are full,
// it searches breadth first for the nearest bucket with an empty slot, through the other buckets of the eight
// fingerprints, i1 before i2 and slot 0 first, then through theirs, 2048 buckets at most, and never back to the bucket
// it came from. Fingerprints move only after an empty slot was found, the last one first. The search prefetches a level
// while it looks at the one before. If there is no empty slot, the digest itself goes into the stash of the head; if
// the stash is full or holds the digest already, the answer is `full` and no byte has changed. Everything is determined
// by the digests: replicas stay equal. (The builder of any_filter.h inserts in ascending order.)
//
// **Capacity.** capacity() = 96 % of the slots less 9 (half of them, in the smallest tables) distinct keys fit, in
// practice always: 100,000 tables of 1 to 2.7 million buckets took theirs (test/erase_slow_test.cc). Random keys stash
// the first digest at 97 % load, the first `full` comes a little later.
//
// **A multiset.** Insert always adds, and says `present` if the key looked present before; to keep a set, call
// may_contain first. Erase removes one copy. A key has at most nine copies (eight slots and one place in the stash),
// then insert answers `full`, even if the table is nearly empty.
//
// **False positives.** An absent key looks present if one of the n keys has its fingerprint and pair of buckets: with
// F = 2^fingerprint_bits - 1, m buckets and i1 = i2 for one key in m,
//   fpr(n) = 1 - (1 - 1/m) (1 - 2/(F m))^n - 1/m (1 - 1/(F m))^n,   about 8 load / 2^fingerprint_bits
// exactly, wherever the keys lie. It depends only on the number of distinct keys that are in: it falls with erases. The
// stash compares whole digests and adds nothing.
//
// **Erasing absent keys.** A key that was never inserted and looks present (probability fpr(n)) cannot be told apart:
// erasing it removes the fingerprint of another key, which then answers *no*: a false negative. With guard_bits = g
// every slot also keeps g further bits of the digest, which only erase compares: erasing an absent key removes another
// one with probability E / 2^g, where E, the expected number of stored keys with the same fingerprint and buckets, is
// fpr(n) to within fpr(n)^2 / 2. An inserted key is always found by its fingerprint and guard, since both move
// together. A key that is erased twice is absent the second time. Guards lie apart, so a query never reads them.
//
// Erasing does not degrade the table: the freed slot is as good as new. While there are digests in the stash, an erase
// tries to move one into the table. needs_rebuild(): digests wait in the stash although the keys are within capacity().
//
// Why four slots: with two the load ends at 84 % (so 12-bit fingerprints cost 14.3 bits per key, not 12.6); with eight
// it reaches 99 %, at twice the false positives.
#pragma once
#include <array>
#include <bit>
#include <limits>
#include <vector>

#include "perhaps/detail/bits.h"
#include "perhaps/flat.h"

namespace perhaps {

struct CuckooShape {
  using request_type = GuardedRequest;                                  // what for_keys() takes
  static constexpr std::uint32_t kSlots = 4;                            // in a bucket
  static constexpr std::uint32_t kMinFingerprint = 6;                   // bits
  static constexpr std::uint32_t kMaxFingerprint = 32;                  // bits
  static constexpr std::uint32_t kMaxGuard = 16;                        // bits
  static constexpr std::uint64_t kMaxBuckets = std::uint64_t{1} << 48;  // so that a sum of two has a sign to spare
  static constexpr std::uint64_t kStash = 6;                            // keys that found no place, in the head

  std::uint64_t buckets = 1;            // 1 to kMaxBuckets, any number
  std::uint32_t fingerprint_bits = 12;  // kMinFingerprint to kMaxFingerprint
  std::uint32_t guard_bits = 0;         // 0 to kMaxGuard

  // The smallest table that holds `request.keys` at the rate, or the lowest rate in the given size. The rate is met
  // with wider fingerprints or, where that is cheaper, with more buckets.
  PERHAPS_API static CuckooShape for_keys(const GuardedRequest& request);
  // After `keys` distinct keys.
  PERHAPS_API double fpr(double keys) const;
  // The probability that erasing an absent key removes another one.
  PERHAPS_API double wrong_erase(double keys) const;
  PERHAPS_API double keys_for(double fpr) const;
  // How many distinct keys fit.
  PERHAPS_API std::uint64_t capacity() const;

  constexpr std::uint64_t slots() const noexcept { return buckets * kSlots; }  // in all buckets
  // Where guards begin.
  constexpr std::uint64_t guards_at() const noexcept { return kLineBytes + packed(fingerprint_bits); }
  // A bucket is read as one word, so the last one needs bytes behind it.
  constexpr std::uint64_t bytes() const noexcept {
    return (guards_at() + packed(guard_bits) + (fingerprint_bits > 16 ? 16 : 8) + 7) / 8 * 8;
  }
  constexpr bool valid() const noexcept {
    return buckets >= 1 && buckets <= kMaxBuckets && fingerprint_bits >= kMinFingerprint &&
           fingerprint_bits <= kMaxFingerprint && guard_bits <= kMaxGuard;
  }
  std::vector<std::uint64_t> numbers() const { return {buckets, fingerprint_bits, guard_bits}; }
  // Buckets, bits per fingerprint and guard bits.
  PERHAPS_API Facts facts() const;
  PERHAPS_API static Result<CuckooShape> from(std::span<const std::uint64_t> numbers);
  friend bool operator==(const CuckooShape&, const CuckooShape&) = default;

 private:
  constexpr std::uint64_t packed(std::uint64_t slot_bits) const noexcept { return (buckets * slot_bits + 1) / 2; }
};

namespace detail {

// Four lanes of `bits` bits in a word, looked at all at once.
template <class Word>
struct Lanes {
  unsigned bits;
  Word ones;  // the lowest bit of each lane
  Word tops;  // the highest
  Word all;

  explicit constexpr Lanes(unsigned lane_bits) noexcept
      : bits(lane_bits),
        ones(Word{1} | Word{1} << lane_bits | Word{1} << 2 * lane_bits | Word{1} << 3 * lane_bits),
        tops(ones << (lane_bits - 1)),
        all(tops | (tops - ones)) {}

  // The highest bit of every lane that is zero: adding 2^(bits-1) - 1 to the rest of a lane carries into it otherwise.
  constexpr Word zeros(Word word) const noexcept { return ~(((word & ~tops) + (all ^ tops)) | word) & tops; }
  // Not zero if there is a zero lane: a borrow can only come out of one. Fewer steps than zeros(), and does not say
  // which.
  constexpr Word any_zero(Word word) const noexcept { return (word - ones) & ~word & tops; }
  constexpr Word spread(std::uint64_t value) const noexcept { return ones * value; }
  constexpr std::uint64_t lane(Word word, unsigned i) const noexcept {
    return static_cast<std::uint64_t>(word >> i * bits & ((Word{1} << bits) - 1));
  }
  // Which lane the lowest of some highest bits belongs to.
  constexpr unsigned first(Word found) const noexcept {
    if constexpr (sizeof(Word) == 8) {
      return static_cast<unsigned>(std::countr_zero(found)) / bits;
    } else {
      const auto low = static_cast<std::uint64_t>(found);
      return static_cast<unsigned>(low != 0 ? std::countr_zero(low)
                                            : 64 + std::countr_zero(static_cast<std::uint64_t>(found >> 64))) /
             bits;
    }
  }
  static constexpr unsigned count(Word found) noexcept {
    return static_cast<unsigned>(std::popcount(static_cast<std::uint64_t>(found))) +
           static_cast<unsigned>(
               sizeof(Word) == 8 ? 0 : std::popcount(static_cast<std::uint64_t>(found >> (sizeof(Word) * 4))));
  }
};

// Buckets of four lanes, one behind the other. Two of them are a whole number of bytes, so a bucket begins at a byte or
// in its middle.
template <class Word>
struct Buckets : Lanes<Word> {
  using Lanes<Word>::Lanes;

  std::uint64_t at(std::uint64_t i) const noexcept { return i * this->bits / 2; }
  unsigned shift(std::uint64_t i) const noexcept { return static_cast<unsigned>(i * this->bits % 2) * 4; }
  // With whatever lies behind the bucket above its lanes.
  Word get_unmasked(const std::byte* from, std::uint64_t i) const noexcept {
    const std::uint64_t half_bytes = i * this->bits;  // once: gcc 12 would multiply for at() and again for shift()
    return load<Word>(from + half_bytes / 2) >> (half_bytes % 2 * 4);
  }
  Word get(const std::byte* from, std::uint64_t i) const noexcept { return get_unmasked(from, i) & this->all; }
  void set(std::byte* in, std::uint64_t i, unsigned slot, std::uint64_t value) const noexcept {
    const unsigned by = shift(i) + slot * this->bits;
    const Word word = load<Word>(in + at(i)) & ~(((Word{1} << this->bits) - 1) << by);
    store<Word>(in + at(i), word | Word{value} << by);
  }
};

}  // namespace detail

struct CuckooLayout {
  using Shape = CuckooShape;
  using word = std::uint64_t;
  static constexpr std::string_view family = "cuckoo";
  // The number in a file, and the batch kernels.
  static constexpr Kind kind = Kind::cuckoo;
  static constexpr auto query_kernel = &detail::Kernels::cuckoo_query;
  static constexpr auto insert_kernel = &detail::Kernels::cuckoo_insert;
  static constexpr bool fills_up = true;

  // Where the head has the number of keys, the number of those in the stash, and the stash.
  static constexpr std::size_t kKeysAt = 0;
  static constexpr std::size_t kStashedAt = 8;
  static constexpr std::size_t kStashAt = 16;

  // Where a digest belongs, and as what.
  struct Place {
    std::uint64_t first;
    std::uint64_t second;
    std::uint64_t fingerprint;
  };

  // The multipliers of the fingerprint, the guard and the second bucket.
  static constexpr std::uint32_t kFingerprint = 0xcc9e2d51u;
  static constexpr std::uint64_t kGuard[2] = {0x9e6c63d0876a9a47u, 0xd6e8feb86659fd93u};
  static constexpr std::uint32_t kMix[2] = {0x9e3779b1u, 0x85ebca6bu};

  // 1 to 2^fingerprint_bits - 1: 0 is an empty slot.
  static std::uint64_t fingerprint_of(CuckooShape shape, std::uint64_t h) noexcept {
    const std::uint64_t x = static_cast<std::uint32_t>(h ^ h >> 32) * kFingerprint;
    return 1 + (((x << shape.fingerprint_bits) - x) >> 32);  // x * (2^bits - 1)
  }
  // Only erase and insert need it, so it is mixed in full: bits that go with the fingerprint's would guard nothing.
  static std::uint64_t guard_of(CuckooShape shape, std::uint64_t h) noexcept {
    if (shape.guard_bits == 0) return 0;
    h = (h ^ h >> 32) * kGuard[0];
    h = (h ^ h >> 29) * kGuard[1];
    return h >> (64 - shape.guard_bits);
  }
  static std::uint64_t other_bucket(CuckooShape shape, std::uint64_t bucket, std::uint64_t fingerprint) noexcept {
    std::uint32_t z = static_cast<std::uint32_t>(fingerprint) * kMix[0];
    z = (z ^ z >> 15) * kMix[1];
    const std::uint64_t other = detail::scale(std::uint64_t{z} << 32, shape.buckets) - bucket;
    return other + (shape.buckets & (0 - (other >> 63)));  // negative: below 2^48 otherwise
  }
  static Place place_of(CuckooShape shape, std::uint64_t h) noexcept {
    const std::uint64_t fingerprint = fingerprint_of(shape, h);
    const std::uint64_t first = detail::scale(h, shape.buckets);
    return {first, other_bucket(shape, first, fingerprint), fingerprint};
  }

  // Calls body(Buckets<Word>) with the word that a bucket fits into.
  template <class Body>
  static auto with_words(CuckooShape shape, Body body) noexcept {
    return shape.fingerprint_bits > 16 ? body(detail::Buckets<detail::Wide>(shape.fingerprint_bits))
                                       : body(detail::Buckets<std::uint64_t>(shape.fingerprint_bits));
  }

  template <class Isa>
  static bool may_contain(CuckooShape shape, const std::byte* table, std::uint64_t h) noexcept {
    if (shape.fingerprint_bits > 16) return finds<detail::Wide>(shape, table, h);
    return finds<std::uint64_t>(shape, table, h);
  }

  // How many copies of a key there seem to be.
  static std::uint64_t count(CuckooShape shape, const std::byte* table, std::uint64_t h) noexcept {
    std::uint64_t copies = 0;
    for (std::uint64_t i = 0; i < stashed(table); ++i) copies += stash(table, i) == h;
    return copies + with_words(shape, [&](auto buckets) {
             const Place p = place_of(shape, h);
             const auto wanted = buckets.spread(p.fingerprint);
             const std::byte* from = table + kLineBytes;
             const unsigned in_first = buckets.count(buckets.zeros(buckets.get(from, p.first) ^ wanted));
             if (p.first == p.second) return in_first;
             return in_first + buckets.count(buckets.zeros(buckets.get(from, p.second) ^ wanted));
           });
  }

  static Inserted insert(CuckooShape shape, std::byte* table, std::uint64_t h) noexcept {
    return insert_at(shape, table, h, place_of(shape, h));
  }
  // REQUIRES: p == place_of(shape, h)
  static Inserted insert_at(CuckooShape shape, std::byte* table, std::uint64_t h, const Place& p) noexcept {
    if (shape.fingerprint_bits > 16) return insert_as<detail::Wide>(shape, table, h, p);
    return insert_as<std::uint64_t>(shape, table, h, p);
  }

  static Erased erase(CuckooShape shape, std::byte* table, std::uint64_t h) noexcept {
    // The stash first: a digest there is that very key, while an equal fingerprint in the table may be another one.
    const std::uint64_t waiting = stashed(table);
    for (std::uint64_t i = 0; i < waiting; ++i) {
      if (stash(table, i) != h) continue;
      unstash(table, i);
      count_keys(table, -1);
      return Erased::removed;
    }
    if (!with_words(shape, [&](auto buckets) { return take_out(shape, table, h, buckets); })) return Erased::absent;
    count_keys(table, -1);
    if (waiting != 0) bring_home(shape, table);
    return Erased::removed;
  }

  static std::uint64_t keys(CuckooShape, const std::byte* table) noexcept {
    return detail::load<std::uint64_t>(table + kKeysAt);
  }
  static bool needs_rebuild(CuckooShape shape, const std::byte* table) noexcept {
    return stashed(table) != 0 && keys(shape, table) <= shape.capacity();
  }

  static void prefetch(CuckooShape shape, const std::byte* table, std::uint64_t h) noexcept {
    const Place p = place_of(shape, h);
    detail::prefetch_read(table + kLineBytes + p.first * shape.fingerprint_bits / 2);
    detail::prefetch_read(table + kLineBytes + p.second * shape.fingerprint_bits / 2);
  }

  // Probes do not trust the head, but readers of `keys` should be able to.
  PERHAPS_API static Result<void> check(CuckooShape shape, Bytes table);

  // A stash with this count answers *perhaps* to every digest; check() refuses such a table.
  static constexpr std::uint64_t kEverything = UINT64_MAX;
  static detail::Everything<Shape> everything() noexcept {
    static constexpr auto kTable = [] {
      std::array<std::byte, Shape{}.bytes()> table{};
      std::fill_n(table.begin() + kStashedAt, 8, std::byte{0xff});
      return table;
    }();
    return {Shape{}, kTable.data()};
  }

  // The stash.
  static std::uint64_t stashed(const std::byte* table) noexcept {
    return std::min(detail::load<std::uint64_t>(table + kStashedAt), CuckooShape::kStash);
  }
  static std::uint64_t stash(const std::byte* table, std::uint64_t i) noexcept {
    return detail::load<std::uint64_t>(table + kStashAt + 8 * i);
  }
  static bool in_stash(const std::byte* table, std::uint64_t h) noexcept {
    bool found = detail::load<std::uint64_t>(table + kStashedAt) == kEverything;
    for (std::uint64_t i = 0; i < stashed(table); ++i) found |= stash(table, i) == h;
    return found;
  }
  static void unstash(std::byte* table, std::uint64_t i) noexcept {
    const std::uint64_t last = stashed(table) - 1;
    detail::store(table + kStashAt + 8 * i, stash(table, last));
    detail::store(table + kStashAt + 8 * last, std::uint64_t{0});
    detail::store(table + kStashedAt, last);
  }
  static void count_keys(std::byte* table, int by) noexcept {
    const std::uint64_t before = detail::load<std::uint64_t>(table + kKeysAt);
    if (by < 0 && before == 0) return;  // only in damaged bytes
    detail::store(table + kKeysAt, before + static_cast<std::uint64_t>(by));
  }

  template <class Word>
  static void put(CuckooShape shape, std::byte* table, const detail::Buckets<Word>& buckets, std::uint64_t bucket,
                  unsigned slot, std::uint64_t fingerprint, std::uint64_t guard) noexcept {
    buckets.set(table + kLineBytes, bucket, slot, fingerprint);
    if (shape.guard_bits == 0) return;
    detail::Buckets<std::uint64_t>(shape.guard_bits).set(table + shape.guards_at(), bucket, slot, guard);
  }

 private:
  // Both buckets are full: makes room by moving fingerprints, or uses the stash. False: neither is possible.
  PERHAPS_API static bool crowd_in(CuckooShape shape, std::byte* table, std::uint64_t h) noexcept;
  // Moves one digest of the stash to where it belongs, if there is a way.
  PERHAPS_API static void bring_home(CuckooShape shape, std::byte* table) noexcept;

  template <class Word>
  static bool finds(CuckooShape shape, const std::byte* table, std::uint64_t h) noexcept {
    const detail::Buckets<Word> buckets(shape.fingerprint_bits);
    const Place p = place_of(shape, h);
    const Word wanted = buckets.spread(p.fingerprint);
    const std::byte* from = table + kLineBytes;
    // What is above the lanes of a bucket cannot make one of them zero: borrows only go up.
    const Word found = buckets.any_zero(buckets.get_unmasked(from, p.first) ^ wanted) |
                       buckets.any_zero(buckets.get_unmasked(from, p.second) ^ wanted);
    if (detail::load<std::uint64_t>(table + kStashedAt) != 0) [[unlikely]]
      return found != 0 || in_stash(table, h);
    return found != 0;
  }

  template <class Word>
  static Inserted insert_as(CuckooShape shape, std::byte* table, std::uint64_t h, const Place& p) noexcept {
    const detail::Buckets<Word> buckets(shape.fingerprint_bits);
    const Word wanted = buckets.spread(p.fingerprint);
    const Word first = buckets.get(table + kLineBytes, p.first);
    const Word second = buckets.get(table + kLineBytes, p.second);
    const bool present = (buckets.any_zero(first ^ wanted) | buckets.any_zero(second ^ wanted)) != 0 ||
                         (stashed(table) != 0 && in_stash(table, h));
    const Word room_first = buckets.zeros(first);
    const Word room_second = buckets.zeros(second);
    if ((room_first | room_second) != 0) [[likely]] {
      const bool to_second = buckets.count(room_second) > buckets.count(room_first);
      put(shape, table, buckets, to_second ? p.second : p.first, buckets.first(to_second ? room_second : room_first),
          p.fingerprint, guard_of(shape, h));
    } else if (!crowd_in(shape, table, h)) {
      return Inserted::full;
    }
    count_keys(table, 1);
    return present ? Inserted::present : Inserted::added;
  }

  // Empties a slot with the key's fingerprint and guard.
  template <class Word>
  static bool take_out(CuckooShape shape, std::byte* table, std::uint64_t h,
                       const detail::Buckets<Word>& buckets) noexcept {
    const Place p = place_of(shape, h);
    const std::uint64_t guard = guard_of(shape, h);
    for (const std::uint64_t bucket : {p.first, p.second}) {
      Word found = buckets.zeros(buckets.get(table + kLineBytes, bucket) ^ buckets.spread(p.fingerprint));
      for (; found != 0; found &= found - 1) {
        const unsigned slot = buckets.first(found);
        if (shape.guard_bits != 0) {
          const detail::Buckets<std::uint64_t> guards(shape.guard_bits);
          if (guards.lane(guards.get(table + shape.guards_at(), bucket), slot) != guard) continue;
        }
        put(shape, table, buckets, bucket, slot, 0, 0);
        return true;
      }
    }
    return false;
  }
};

template <Hasher H>
using BasicCuckoo = Flat<CuckooLayout, H>;
using Cuckoo = BasicCuckoo<Hash>;
using CuckooView = Cuckoo::View;
using CuckooSpan = Cuckoo::Span;

// How many copies of a key there seem to be; too many only if another key has its fingerprint and buckets.
template <FlatFilter F>
requires std::same_as<typename F::layout, CuckooLayout> std::uint64_t count(const F& filter,
                                                                            Digest<typename F::hasher_type> d)
noexcept {
  d.check(filter.hasher());
  return CuckooLayout::count(filter.shape(), filter.bytes().data(), d.word());
}

}  // namespace perhaps
