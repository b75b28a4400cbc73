// The shape of a quotient filter (quotient.h), where things are in its table, and how to find a run.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "perhaps/detail/bits.h"
#include "perhaps/result.h"
#include "perhaps/sizing.h"

namespace perhaps {

struct QuotientShape {
  using request_type = GuardedRequest;                    // what for_keys() takes
  static constexpr std::uint32_t kMaxRemainderBits = 48;  // of a slot, beside the guard
  static constexpr std::uint32_t kMaxSlotBits = 56;       // a slot, wherever it begins in a byte, is in one 8-byte load
  static constexpr std::uint64_t kHeadBytes = 64;         // before the blocks
  static constexpr std::uint64_t kMaxSpare = 320;         // slots behind the last bucket

  std::uint64_t buckets = 1;         // 1 or more, any number, as long as fingerprints() <= 2^63
  std::uint32_t remainder_bits = 8;  // 1 to kMaxRemainderBits
  std::uint32_t guard_bits = 0;      // with the remainder at most kMaxSlotBits

  // Room for `keys` keys at 95 % load (but for max_bytes, which is kept). What is left of a budget that is not a whole
  // number of bits per slot goes into more buckets. Rates are met while keys / fpr < 2^(63 - guard_bits).
  PERHAPS_API static QuotientShape for_keys(const GuardedRequest& request);
  PERHAPS_API double fpr(double keys) const;
  PERHAPS_API double wrong_erase(double keys) const;
  // May be more than capacity().
  PERHAPS_API double keys_for(double fpr) const;

  // The same fingerprints in 2^k times the buckets, for the smallest k that holds `keys`; refused if no remainder bit
  // would be left.
  PERHAPS_API Result<QuotientShape> grown_for(std::uint64_t keys) const;
  // The same with more spare slots at the end; nothing if there are no more to be had.
  constexpr std::optional<QuotientShape> with_more_spare() const noexcept {
    QuotientShape shape = *this;
    while (shape.spare() <= spare()) {
      if (shape.remainder_bits == 1 || spare() == kMaxSpare) return std::nullopt;
      shape.buckets *= 2;
      --shape.remainder_bits;
    }
    return shape;
  }

  // 95 % of the buckets: then insert answers `full`.
  constexpr std::uint64_t capacity() const noexcept {
    return std::max<std::uint64_t>(buckets / 20 * 19 + buckets % 20 * 19 / 20, 1);
  }
  constexpr std::uint32_t width() const noexcept { return remainder_bits + guard_bits; }  // of a slot, in bits
  constexpr std::uint64_t fingerprints() const noexcept { return buckets << width(); }    // different ones
  // 64 slots, two bits for each, and one byte.
  constexpr std::uint64_t block_bytes() const noexcept { return 8 * std::uint64_t{width()} + 17; }
  // Slots behind the last bucket, into which the last runs spill.
  constexpr std::uint64_t spare() const noexcept {
    const auto steps = static_cast<std::uint64_t>(std::bit_width((buckets + 63) / 64) + 1) / 2;
    return std::min(buckets, std::min(64 * steps, kMaxSpare));
  }
  constexpr std::uint64_t blocks() const noexcept { return (buckets + spare() + 63) / 64; }  // of 64 slots
  constexpr std::uint64_t slots() const noexcept { return blocks() * 64; }                   // with the spare ones
  constexpr std::uint64_t bytes() const noexcept { return kHeadBytes + blocks() * block_bytes(); }
  // Every number is in its range.
  constexpr bool valid() const noexcept {
    return remainder_bits >= 1 && remainder_bits <= kMaxRemainderBits && guard_bits <= kMaxSlotBits - remainder_bits &&
           buckets >= 1 && buckets <= (std::uint64_t{1} << 63) >> width();
  }
  // What a file stores; from() reads it.
  std::vector<std::uint64_t> numbers() const { return {buckets, remainder_bits, guard_bits}; }
  // Buckets, bits per remainder and guard bits.
  PERHAPS_API Facts facts() const;
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

// Where things are in a table, and how to find a run. Const, and safe for any bytes: whatever they say, no function
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

}  // namespace detail

}  // namespace perhaps
