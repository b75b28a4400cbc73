// The quotient filter, in its rank-and-select form (Pandey, Bender, Johnson, Patro: A General-Purpose Counting Filter,
// 2017; the idea is Cleary's and Knuth's). It stores the fingerprints themselves, sorted: so it can erase, count, list
// what it holds, be merged with another in one sequential pass, and grow without the keys.
//
//   fingerprint F = floor(mixed * buckets * 2^width / 2^64), mixed = (h ^ h >> 32) * 0x9fb21c651e98df25 mod 2^64
//                 = quotient (0..buckets-1) . remainder (remainder_bits) . guard (guard_bits)
//                   width = remainder_bits + guard_bits; any number of buckets, F is monotone in `mixed`
//
// A fingerprint wants to sit in the slot of its quotient. Slots are kept as by linear probing that never wraps: all
// fingerprints in ascending order, each at its own slot or, where that is taken, as little to the right as possible.
// Those of one quotient stand side by side: a run. Two bits for each slot number say which run is whose:
//   occupied[q]   some fingerprint has quotient q
//   run_end[s]    slot s holds the last fingerprint of a run
// The i-th set bit of `occupied` and the i-th set bit of `run_end` belong to the same run. To count from the start of
// the table would take forever, so each block of 64 also says how far the runs before it spill into it:
//   spill[b]      slots at and after 64 b that hold quotients below 64 b; 255: that many or more, ask the block before
//
//     quotient      0  1  2  3  4  5  6  7                 remainders of quotient 1: a b c, 2: d, 4: e, 6: f
//     occupied      0  1  1  0  1  0  1  0
//     slot          0  1  2  3  4  5  6  7
//     remainder     .  a  b  c  d  e  f  .
//     run_end       0  0  0  1  1  1  1  0
//
// To find the run of an occupied q in block b: let d be the number of occupied quotients from 64 b to q. The run ends
// at the d-th run end at or after slot 64 b + spill[b], and begins behind the run end before that, but not before q.
//
//   table  = head (64 bytes) . blocks of 8 * width + 17 bytes;  all numbers little-endian
//   head   = | fingerprints stored, u64 | 56 bytes 0 |
//   block  = | 64 slots of `width` bits, slot i from bit i * width | occupied u64 | run_end u64 | spill u8 |
//   blocks = ceil((buckets + spare) / 64): the last runs spill into spare slots. spare = 64 for each of the first 1, 4,
//            16, 64, 256 times 64 buckets, 320 at most, `buckets` at most. At 95 % load the backlog at the end exceeds
//            k slots with probability e^(-k / 10), in small tables it is a matter of 8 standard deviations.
//
// Unused slots are 0, and runs are sorted by remainder and guard, so the bytes are a function of the multiset of
// fingerprints alone: in whatever order keys came and went, equal contents are equal bytes.
//
// False positives: a key that was not inserted answers *perhaps* if quotient and remainder are those of one that was:
//   fpr(n) = 1 - (1 - 1 / (buckets * 2^remainder_bits))^n, about load * 2^-remainder_bits
// That is exact and holds at every load. Space: remainder_bits + 2.125 bits a slot; at 95 % load 1.05 times that a key.
//
// A multiset: every insert stores one fingerprint more, also if the key looked present (`Inserted::present`), and every
// erase takes one away. count(h) is how often quotient and remainder of h are there. Counts are repetitions, not the
// compressed counters of the paper: a key inserted a thousand times takes a thousand slots and makes its neighbours
// slow.
//
// Erase removes one fingerprint that equals the key's, guard included. A key that was inserted is always found. A key
// that was *not* inserted finds one by accident, and then takes away another's, with probability
//   wrong_erase(n) = 1 - (1 - 1 / (buckets * 2^width))^n <= fpr(n) * 2^-guard_bits + (digests that are equal, 2^-64)
// Queries do not look at the guard: it makes erase safer, not fpr lower. There are no tombstones: after an erase the
// bytes are those of a filter that never had the key, so needs_rebuild() is false, always.
//
// Full: insert answers `full` at capacity() = 95 % of the buckets, and if there is no slot left before the end (only
// with a multiset that piles up there). Past 95 % clusters grow like 1 / (1 - load)^2 and so does the time.
//
// Growing: F has the same bits in every shape with the same buckets * 2^width. Twice the buckets with one remainder bit
// less is such a shape: resize() enumerates and writes, no key is needed. Each doubling at full load doubles the FPR,
// because fpr counts keys against buckets * 2^remainder_bits, which has not changed. Fewer bits are possible as well:
// F >> k is the fingerprint in any shape with buckets * 2^width smaller by 2^k exactly.
#pragma once
#include <algorithm>
#include <array>
#include <vector>

#include "perhaps/detail/bits.h"
#include "perhaps/flat.h"

namespace perhaps {

struct QuotientShape {
  static constexpr std::uint32_t kMaxRemainderBits = 48;
  static constexpr std::uint32_t kMaxSlotBits = 56;  // a slot, wherever it begins in a byte, is in one 8-byte load
  static constexpr std::uint64_t kHeadBytes = 64;

  std::uint64_t buckets = 1;         // 1 or more, any number, as long as fingerprints() <= 2^63
  std::uint32_t remainder_bits = 8;  // 1 to kMaxRemainderBits
  std::uint32_t guard_bits = 0;      // with the remainder at most kMaxSlotBits

  // Room for `keys` keys at 95 % load (but for max_bytes, which is kept). What is left of a budget that is not a whole
  // number of bits a slot goes into more buckets. Rates are met while keys / fpr < 2^(63 - guard_bits).
  PERHAPS_API static QuotientShape for_keys(const Request& request);
  PERHAPS_API double fpr(double keys) const;
  PERHAPS_API double wrong_erase(double keys) const;
  // May be more than capacity().
  PERHAPS_API double keys_for(double fpr) const;

  // The same fingerprints in 2^k times the buckets, for the smallest k that holds `keys`; refused if no remainder bit
  // would be left.
  PERHAPS_API Result<QuotientShape> grown_for(std::uint64_t keys) const;

  constexpr std::uint64_t capacity() const noexcept {
    return std::max<std::uint64_t>(buckets / 20 * 19 + buckets % 20 * 19 / 20, 1);
  }
  constexpr std::uint32_t width() const noexcept { return remainder_bits + guard_bits; }
  constexpr std::uint64_t fingerprints() const noexcept { return buckets << width(); }
  constexpr std::uint64_t block_bytes() const noexcept { return 8 * std::uint64_t{width()} + 17; }
  constexpr std::uint64_t spare() const noexcept {
    const auto steps = static_cast<std::uint64_t>(std::bit_width((buckets + 63) / 64) + 1) / 2;
    return std::min(buckets, 64 * std::min<std::uint64_t>(steps, 5));
  }
  constexpr std::uint64_t blocks() const noexcept { return (buckets + spare() + 63) / 64; }
  constexpr std::uint64_t slots() const noexcept { return blocks() * 64; }
  constexpr std::uint64_t bytes() const noexcept { return kHeadBytes + blocks() * block_bytes(); }
  constexpr bool valid() const noexcept {
    return remainder_bits >= 1 && remainder_bits <= kMaxRemainderBits && guard_bits <= kMaxSlotBits - remainder_bits &&
           buckets >= 1 && buckets <= (std::uint64_t{1} << 63) >> width();
  }
  std::vector<std::uint64_t> numbers() const { return {buckets, remainder_bits, guard_bits}; }
  PERHAPS_API static Result<QuotientShape> from(std::span<const std::uint64_t> numbers);
  friend bool operator==(const QuotientShape&, const QuotientShape&) = default;
};

namespace detail {

// Slots are compared several at a time: as many lanes of `width` bits as an 8-byte load holds, wherever it begins in a
// byte. ones(width) has the lowest bit of each lane set.
struct QuotientLanes {
  std::array<std::uint64_t, QuotientShape::kMaxSlotBits + 1> ones{};
  std::array<std::uint8_t, QuotientShape::kMaxSlotBits + 1> count{};
  constexpr QuotientLanes() {
    for (std::uint32_t width = 1; width <= QuotientShape::kMaxSlotBits; ++width) {
      count[width] = static_cast<std::uint8_t>(57 / width);
      for (std::uint32_t i = 0; i < count[width]; ++i) ones[width] |= std::uint64_t{1} << i * width;
    }
  }
};
inline constexpr QuotientLanes kQuotientLanes;

// Where things are in a table, and how to find a run. Const, and true to any bytes: whatever they say, no function
// leaves the table or loops for ever, and kNowhere means that the bytes contradict themselves (or, in a sound table,
// that its end was reached). Inlined always, so that they are compiled for the instructions that Bits stands for.
template <class Bits>
class QuotientTable {
 public:
  static constexpr std::uint64_t kNowhere = ~std::uint64_t{0};
  static constexpr std::uint64_t kFarSpill = 255;

  struct Run {
    std::uint64_t first;
    std::uint64_t last;
    bool found() const noexcept { return last != kNowhere; }
  };

  QuotientTable(const QuotientShape& shape, const std::byte* table) noexcept
      : blocks_at_(table + QuotientShape::kHeadBytes),
        width_(shape.width()),
        stride_(shape.block_bytes()),
        blocks_(shape.blocks()) {}

  PERHAPS_INLINE std::uint32_t width() const noexcept { return width_; }
  PERHAPS_INLINE std::uint64_t blocks() const noexcept { return blocks_; }
  PERHAPS_INLINE std::uint64_t slots() const noexcept { return blocks_ * 64; }
  PERHAPS_INLINE std::uint64_t slot_mask() const noexcept { return (std::uint64_t{1} << width_) - 1; }

  // REQUIRES here and below: b < blocks(), slot < slots()
  PERHAPS_INLINE const std::byte* block(std::uint64_t b) const noexcept { return blocks_at_ + b * stride_; }
  PERHAPS_INLINE std::uint64_t occupied(std::uint64_t b) const noexcept {
    return load<std::uint64_t>(block(b) + 8 * width_);
  }
  PERHAPS_INLINE std::uint64_t run_ends(std::uint64_t b) const noexcept {
    return load<std::uint64_t>(block(b) + 8 * width_ + 8);
  }
  PERHAPS_INLINE std::uint64_t stored_spill(std::uint64_t b) const noexcept {
    return std::to_integer<std::uint64_t>(block(b)[8 * width_ + 16]);
  }
  PERHAPS_INLINE std::uint64_t slot(std::uint64_t s) const noexcept { return slot_in(block(s / 64), s % 64); }
  PERHAPS_INLINE std::uint64_t slot_in(const std::byte* in_block, std::uint64_t i) const noexcept {
    const std::uint64_t bit = i * width_;
    return load<std::uint64_t>(in_block + bit / 8) >> bit % 8 & slot_mask();
  }

  // The d-th run end at or after slot `from`.  REQUIRES: d >= 1
  PERHAPS_INLINE std::uint64_t run_end(std::uint64_t from, std::uint64_t d) const noexcept {
    std::uint64_t b = from / 64;
    if (b >= blocks_) return kNowhere;
    std::uint64_t word = run_ends(b) & ~std::uint64_t{0} << from % 64;
    for (;;) {
      const std::uint64_t i = Bits::find(word, d - 1);
      if (i < 64) return b * 64 + i;
      d -= Bits::popcount(word);
      if (++b == blocks_) return kNowhere;
      word = run_ends(b);
    }
  }

  PERHAPS_INLINE std::uint64_t spill(std::uint64_t b) const noexcept {
    const std::uint64_t stored = stored_spill(b);
    return stored < kFarSpill ? stored : far_spill(b);
  }

  // The spill of block b + 1, given that of b.
  PERHAPS_INLINE std::uint64_t spill_after(std::uint64_t b, std::uint64_t spill_of_b) const noexcept {
    const std::uint64_t runs = Bits::popcount(occupied(b));
    if (runs == 0) return spill_of_b > 64 ? spill_of_b - 64 : 0;
    const std::uint64_t end = run_end(b * 64 + spill_of_b, runs);
    if (end == kNowhere) return kNowhere;
    return end + 1 > (b + 1) * 64 ? end + 1 - (b + 1) * 64 : 0;
  }

  // The run of quotient q.  REQUIRES: q is occupied
  PERHAPS_INLINE Run run_of(std::uint64_t q) const noexcept {
    const std::uint64_t b = q / 64;
    const std::uint64_t spilled = spill(b);
    if (spilled >= slots()) return {0, kNowhere};
    const std::uint64_t least = std::max(q, b * 64 + spilled);
    const std::uint64_t last = run_end(b * 64 + spilled, Bits::popcount(occupied(b) << (63 - q % 64)));
    if (last == kNowhere || last < least) return {0, kNowhere};
    return {behind_run_before(last, least), last};
  }

  // Where the run of quotient q would begin.  REQUIRES: q is not occupied
  PERHAPS_INLINE std::uint64_t place_of(std::uint64_t q) const noexcept {
    const std::uint64_t b = q / 64;
    const std::uint64_t spilled = spill(b);
    if (spilled >= slots()) return kNowhere;
    const std::uint64_t runs_before = Bits::popcount(occupied(b) & ((std::uint64_t{1} << q % 64) - 1));
    if (runs_before == 0) return std::max(q, b * 64 + spilled);
    const std::uint64_t end = run_end(b * 64 + spilled, runs_before);
    return end == kNowhere ? kNowhere : std::max(q, end + 1);
  }

  // The first slot at or after `from` behind which nothing is displaced: every run of a quotient below it has ended
  // before it. With kUnused it must be empty too, that is, its own quotient has no run.
  template <bool kUnused>
  PERHAPS_INLINE std::uint64_t first_settled(std::uint64_t from) const noexcept {
    for (std::uint64_t b = from / 64; b < blocks_; ++b) {
      const std::uint64_t spilled = spill(b);
      if (spilled >= slots()) return kNowhere;
      std::uint64_t i = b == from / 64 ? std::max(from % 64, spilled) : spilled;
      if (i >= 64) continue;
      const std::uint64_t starts = occupied(b);
      const std::uint64_t ends = run_ends(b) & ~std::uint64_t{0} << spilled;
      while (i < 64) {
        const std::uint64_t below = (std::uint64_t{1} << i) - 1;
        const std::uint64_t begun = Bits::popcount(starts & (kUnused ? below << 1 | 1 : below));
        const std::uint64_t ended = Bits::popcount(ends & below);
        if (begun == ended) return b * 64 + i;
        if (begun < ended) return kNowhere;
        // Behind the end of the last run that has begun is the next slot that can be it.
        const std::uint64_t coming = ends & ~below;
        const std::uint64_t needed = begun - ended;
        i = Bits::find(coming, needed - 1) + 1;
      }
    }
    return kNowhere;
  }

  // Is one of the slots first..last of a block, without its guard, equal to `value`, whose guard is 0?
  PERHAPS_INLINE bool any_equal(const std::byte* in_block, std::uint64_t first, std::uint64_t last, std::uint64_t value,
                                std::uint32_t guard_bits) const noexcept {
    const std::uint64_t ones = kQuotientLanes.ones[width_];
    const std::uint64_t lanes = kQuotientLanes.count[width_];
    const std::uint64_t compared = (slot_mask() >> guard_bits << guard_bits) * ones;
    for (;;) {
      const std::uint64_t bit = first * width_;
      const std::uint64_t differ = (load<std::uint64_t>(in_block + bit / 8) >> bit % 8 ^ value * ones) & compared;
      // A lane that is 0 borrows from its highest bit. Lanes above it may seem to, so the lowest counts: any is enough.
      const std::uint64_t equal = (differ - ones) & ~differ & ones << (width_ - 1);
      const std::uint64_t left = last - first + 1;
      if (left <= lanes) return (equal & ((std::uint64_t{1} << left * width_) - 1)) != 0;
      if (equal != 0) return true;
      first += lanes;
    }
  }

 private:
  [[gnu::noinline]] std::uint64_t far_spill(std::uint64_t b) const noexcept {
    std::uint64_t known = b;
    while (known > 0 && stored_spill(known) >= kFarSpill) --known;
    std::uint64_t spilled = known == 0 ? 0 : stored_spill(known);
    for (; known < b && spilled != kNowhere; ++known) spilled = spill_after(known, spilled);
    return spilled;
  }

  // One more than the last run end below `last`, if that is more than `least`.
  PERHAPS_INLINE std::uint64_t behind_run_before(std::uint64_t last, std::uint64_t least) const noexcept {
    std::uint64_t b = last / 64;
    std::uint64_t word = run_ends(b) & ((std::uint64_t{1} << last % 64) - 1);
    while (word == 0 && b > least / 64) word = run_ends(--b);
    return word == 0 ? least : std::max(least, b * 64 + static_cast<std::uint64_t>(std::bit_width(word)));
  }

  const std::byte* blocks_at_;
  std::uint32_t width_;
  std::uint64_t stride_;
  std::uint64_t blocks_;
};

PERHAPS_API void quotient_query(QuotientShape shape, const std::byte* table, const std::uint64_t* digests,
                                std::size_t count, std::uint64_t* answers, bool ahead) noexcept;
PERHAPS_API Inserted quotient_insert(QuotientShape shape, std::byte* table, std::uint64_t fingerprint) noexcept;
PERHAPS_API std::size_t quotient_insert_many(QuotientShape shape, std::byte* table, const std::uint64_t* digests,
                                             std::size_t count, bool ahead) noexcept;
PERHAPS_API Erased quotient_erase(QuotientShape shape, std::byte* table, std::uint64_t fingerprint) noexcept;
PERHAPS_API std::uint64_t quotient_count(QuotientShape shape, const std::byte* table,
                                         std::uint64_t fingerprint) noexcept;
PERHAPS_API Result<void> quotient_check(QuotientShape shape, Bytes table);
PERHAPS_API Result<void> quotient_verify(QuotientShape shape, Bytes table);
// into: zeroed
PERHAPS_API Result<void> quotient_merge(QuotientShape a, const std::byte* table_a, QuotientShape b,
                                        const std::byte* table_b, QuotientShape shape, std::byte* into);
PERHAPS_API Result<void> quotient_resize(QuotientShape from, const std::byte* table, QuotientShape shape,
                                         std::byte* into);
PERHAPS_API Result<QuotientShape> quotient_union_shape(QuotientShape a, std::uint64_t keys_a, QuotientShape b,
                                                       std::uint64_t keys_b);
PERHAPS_API Result<void> quotient_build(QuotientShape shape, std::byte* into, std::vector<std::uint64_t> fingerprints);

}  // namespace detail

struct QuotientLayout {
  using Shape = QuotientShape;
  using word = std::uint64_t;
  static constexpr std::string_view family = "quotient";
  static constexpr Kind kind = Kind::quotient;
  static constexpr bool fills_up = true;

  // Digests of integers are weakest in their low bits and fingerprints may take 63: fold the high half in and multiply.
  // A bijection, so that different digests stay different.
  static constexpr std::uint64_t mixed(std::uint64_t h) noexcept { return (h ^ h >> 32) * 0x9fb21c651e98df25u; }
  static constexpr std::uint64_t fingerprint_of(const Shape& shape, std::uint64_t h) noexcept {
    return detail::scale(mixed(h), shape.fingerprints());
  }

  template <class Isa>
  static bool may_contain(const Shape& shape, const std::byte* table, std::uint64_t h) noexcept {
    return has<detail::isa::WordBits<Isa>>(shape, table, fingerprint_of(shape, h));
  }

  // Is there a slot with the fingerprint's quotient and remainder? Bytes that contradict themselves answer *perhaps*.
  template <class Bits>
  PERHAPS_INLINE static bool has(const Shape& shape, const std::byte* table, std::uint64_t fingerprint) noexcept {
    const detail::QuotientTable<Bits> t(shape, table);
    const std::uint64_t q = fingerprint >> shape.width();
    const std::byte* block = t.block(q / 64);
    const std::uint64_t starts = t.occupied(q / 64);
    const std::uint64_t i = q % 64;
    if ((starts >> i & 1) == 0) return false;
    const std::uint64_t value = (fingerprint & t.slot_mask()) >> shape.guard_bits << shape.guard_bits;
    const std::uint64_t spilled = t.stored_spill(q / 64);
    if (spilled < 64) [[likely]] {
      // Most runs end in the block of their quotient: run_of() in one word.
      const std::uint64_t ends = t.run_ends(q / 64) & ~std::uint64_t{0} << spilled;
      const std::uint64_t last = Bits::find(ends, Bits::popcount(starts << (63 - i)) - 1);
      if (last < 64) [[likely]] {
        const std::uint64_t before = ends & ((std::uint64_t{1} << last) - 1);
        const std::uint64_t first = std::max(std::max(i, spilled), static_cast<std::uint64_t>(std::bit_width(before)));
        return first > last || t.any_equal(block, first, last, value, shape.guard_bits);
      }
    }
    return has_far<Bits>(shape, table, q, value);
  }
  template <class Bits>
  PERHAPS_INLINE static bool has_far(const Shape& shape, const std::byte* table, std::uint64_t q,
                                     std::uint64_t value) noexcept {
    const detail::QuotientTable<Bits> t(shape, table);
    const auto run = t.run_of(q);
    if (!run.found()) return true;
    for (std::uint64_t b = run.first / 64; b <= run.last / 64; ++b) {
      const std::uint64_t first = b == run.first / 64 ? run.first % 64 : 0;
      const std::uint64_t last = b == run.last / 64 ? run.last % 64 : 63;
      if (t.any_equal(t.block(b), first, last, value, shape.guard_bits)) return true;
    }
    return false;
  }

  static void prefetch(const Shape& shape, const std::byte* table, std::uint64_t h) noexcept {
    const std::uint64_t q = fingerprint_of(shape, h) >> shape.width();
    const std::byte* block = table + Shape::kHeadBytes + q / 64 * shape.block_bytes();
    detail::prefetch_read(block + 8 * shape.width());
    detail::prefetch_read(block + q % 64 * shape.width() / 8);
  }
  static void query(const Shape& shape, const std::byte* table, const std::uint64_t* digests, std::size_t count,
                    std::uint64_t* answers, bool ahead) noexcept {
    detail::quotient_query(shape, table, digests, count, answers, ahead);
  }

  static Inserted insert(const Shape& shape, std::byte* table, std::uint64_t h) noexcept {
    return detail::quotient_insert(shape, table, fingerprint_of(shape, h));
  }
  static std::size_t insert_many(const Shape& shape, std::byte* table, const std::uint64_t* digests, std::size_t count,
                                 bool ahead) noexcept {
    return detail::quotient_insert_many(shape, table, digests, count, ahead);
  }
  static Erased erase(const Shape& shape, std::byte* table, std::uint64_t h) noexcept {
    return detail::quotient_erase(shape, table, fingerprint_of(shape, h));
  }
  static std::uint64_t count(const Shape& shape, const std::byte* table, std::uint64_t h) noexcept {
    return detail::quotient_count(shape, table, fingerprint_of(shape, h));
  }
  static std::uint64_t keys(const Shape&, const std::byte* table) noexcept {
    return detail::load<std::uint64_t>(table);
  }
  static bool needs_rebuild(const Shape&, const std::byte*) noexcept { return false; }

  // Of the head only. Blocks may hold anything: the probes are bounded, not trusting.
  static Result<void> check(const Shape& shape, Bytes table) { return detail::quotient_check(shape, table); }
  // A pass over the table: is it one that inserts could have made?
  static Result<void> verify(const Shape& shape, Bytes table) { return detail::quotient_verify(shape, table); }
};

namespace detail {

struct QuotientCursor {
  QuotientShape shape;
  const std::byte* table = nullptr;
  // Quotients not read yet: those set in `starts`, of block `start_block`, and all of the blocks behind. Run ends
  // likewise.
  std::uint64_t start_block = 0;
  std::uint64_t starts = 0;
  std::uint64_t end_block = 0;
  std::uint64_t ends = 0;
  std::uint64_t next_slot = 0;  // behind the last run
  // What is left of a run that did not fit: slots from next_slot to run_last.
  bool in_run = false;
  std::uint64_t run_base = 0;
  std::uint64_t run_last = 0;
};

struct QuotientPen {
  QuotientShape shape;
  std::byte* table = nullptr;
  std::uint64_t written = 0;
  std::uint64_t next_slot = 0;
  std::uint64_t start_block = 0;  // the block of the last quotient, and those of it so far
  std::uint64_t starts = 0;
  // Slots from this block on are not written yet. Slot s is in values[s % 256], and ends[s % 256] is 1 if its run ends.
  std::uint64_t slot_block = 0;
  std::array<std::uint64_t, 256> values{};
  std::array<std::byte, 256> ends{};
};

}  // namespace detail

// Lists the fingerprints of a table in ascending order, as many at a time as the caller has room for.
//   for (std::array<std::uint64_t, 512> some; const std::size_t n = reader.read(some);) ..
class QuotientReader {
 public:
  PERHAPS_API QuotientReader(QuotientShape shape, const std::byte* table) noexcept;
  // 0 at the end. A table that contradicts itself ends early or comes out of order.
  PERHAPS_API std::size_t read(std::span<std::uint64_t> out) noexcept;

 private:
  detail::QuotientCursor at_;
};

// Writes a table from fingerprints in ascending order, in one pass and without moving anything.
class QuotientWriter {
 public:
  // REQUIRES: the table is zeroed
  PERHAPS_API QuotientWriter(QuotientShape shape, std::byte* table) noexcept;
  // False if they are not ascending, not fingerprints of this shape, or too many; the table is useless then.
  PERHAPS_API bool append(std::span<const std::uint64_t> ascending) noexcept;
  PERHAPS_API bool finish() noexcept;

 private:
  detail::QuotientPen pen_;
  std::uint64_t waiting_ = 0;  // the last one appended: whether it ends its run, the next one says
  bool has_waiting_ = false;
  bool good_ = true;
};

template <Hasher H>
using BasicQuotient = Flat<QuotientLayout, H>;
using Quotient = BasicQuotient<Hash>;
using QuotientView = Quotient::View;
using QuotientSpan = Quotient::Span;

// How often the key's fingerprint, without its guard, is stored.
template <Hasher H>
std::uint64_t count(const FlatView<QuotientLayout, H>& filter, std::type_identity_t<Digest<H>> d) noexcept {
  d.check(filter.hasher());
  return QuotientLayout::count(filter.shape(), filter.bytes().data(), d.value);
}
template <Hasher H>
std::uint64_t count(const BasicQuotient<H>& filter, std::type_identity_t<Digest<H>> d) noexcept {
  return count(filter.view(), d);
}

// Calls use(fingerprint) for all of them, in ascending order.
template <Hasher H, class Use>
void for_each_fingerprint(FlatView<QuotientLayout, H> filter, Use use) {
  QuotientReader reader(filter.shape(), filter.bytes().data());
  std::array<std::uint64_t, 512> some;
  for (std::size_t n = reader.read(some); n != 0; n = reader.read(some)) {
    for (std::size_t i = 0; i < n; ++i) use(some[i]);
  }
}

// All that is in either; what is in both is in twice. Linear and sequential: two readers, one writer. The shapes may
// differ as long as buckets * 2^width does not. Into `shape`, or the smallest of that kind that holds both.
template <Hasher H>
Result<BasicQuotient<H>> merge(FlatView<QuotientLayout, H> a, std::type_identity_t<FlatView<QuotientLayout, H>> b,
                               QuotientShape shape) {
  if (!(a.hasher() == b.hasher())) return Error{Errc::mismatch, "quotient: the filters hash with different seeds"};
  if (!shape.valid()) return Error{Errc::bad_parameter, "quotient: a shape outside its range"};
  BasicQuotient<H> both(shape, a.hasher());
  auto done = detail::quotient_merge(a.shape(), a.bytes().data(), b.shape(), b.bytes().data(), shape,
                                     both.writable_bytes().data());
  if (!done) return std::move(done).error();
  return both;
}
template <Hasher H>
Result<BasicQuotient<H>> merge(FlatView<QuotientLayout, H> a, std::type_identity_t<FlatView<QuotientLayout, H>> b) {
  auto shape = detail::quotient_union_shape(a.shape(), a.keys(), b.shape(), b.keys());
  if (!shape) return std::move(shape).error();
  return merge(a, b, *shape);
}

// The same fingerprints, or their upper bits, in another shape: larger or smaller.
template <Hasher H>
Result<BasicQuotient<H>> resize(FlatView<QuotientLayout, H> filter, QuotientShape shape) {
  if (!shape.valid()) return Error{Errc::bad_parameter, "quotient: a shape outside its range"};
  BasicQuotient<H> other(shape, filter.hasher());
  auto done = detail::quotient_resize(filter.shape(), filter.bytes().data(), shape, other.writable_bytes().data());
  if (!done) return std::move(done).error();
  return other;
}

// A filter of many digests at once: they are sorted and written. It takes as long as the sort, and 8 bytes a key.
template <Hasher H>
Result<BasicQuotient<H>> build_quotient(QuotientShape shape, std::span<const Digest<H>> digests, H hasher) {
  if (!shape.valid()) return Error{Errc::bad_parameter, "quotient: a shape outside its range"};
  std::vector<std::uint64_t> fingerprints(digests.size());
  for (std::size_t i = 0; i < digests.size(); ++i) {
    digests[i].check(hasher);
    fingerprints[i] = QuotientLayout::fingerprint_of(shape, digests[i].value);
  }
  BasicQuotient<H> filter(shape, hasher);
  auto done = detail::quotient_build(shape, filter.writable_bytes().data(), std::move(fingerprints));
  if (!done) return std::move(done).error();
  return filter;
}

}  // namespace perhaps
