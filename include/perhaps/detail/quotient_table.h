// The shape of a quotient filter (quotient.h), and where things are in its table.
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
#include "perhaps/detail/run_table.h"
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

// How blocks lie in the table: a slot for each bucket.
struct QuotientGrid {
  static constexpr std::uint32_t slots = 64;  // per block

  std::uint32_t width;  // of a slot
  std::uint64_t block_bytes;
  std::uint64_t blocks;

  constexpr explicit QuotientGrid(const QuotientShape& shape) noexcept
      : width(shape.width()), block_bytes(shape.block_bytes()), blocks(shape.blocks()) {}

  constexpr std::uint64_t all_blocks() const noexcept { return blocks; }
  static constexpr std::uint64_t block_of(std::uint64_t slot) noexcept { return slot / 64; }
  static constexpr std::uint64_t in_block(std::uint64_t slot, std::uint64_t) noexcept { return slot % 64; }
  static constexpr std::uint64_t home_of(std::uint64_t bucket) noexcept { return bucket; }
  constexpr std::uint64_t occupied_at() const noexcept { return std::uint64_t{8} * width; }
  constexpr std::uint64_t run_ends_at() const noexcept { return std::uint64_t{8} * width + 8; }
};

// The runs of a table, and where they leave room.
template <class Bits>
class QuotientTable : public RunTable<QuotientGrid, Bits> {
  using Base = RunTable<QuotientGrid, Bits>;

 public:
  using Base::blocks;
  using Base::kNowhere;
  using Base::occupied;
  using Base::run_ends;
  using Base::slot_mask;
  using Base::slots;
  using Base::spill;
  using Base::width;

  QuotientTable(const QuotientShape& shape, const std::byte* table) noexcept
      : Base(QuotientGrid(shape), table + QuotientShape::kHeadBytes) {}

  // The first slot at or after `from` behind which nothing is displaced: every run of a quotient below it has ended
  // before it. With kUnused it must be empty too, that is, its own quotient has no run.
  template <bool kUnused>
  PERHAPS_INLINE std::uint64_t first_settled(std::uint64_t from) const noexcept {
    for (std::uint64_t b = from / 64; b < blocks(); ++b) {
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
    const std::uint64_t ones = kQuotientLanes.ones[width()];
    const std::uint64_t lanes = kQuotientLanes.count[width()];
    const std::uint64_t compared = (slot_mask() >> guard_bits << guard_bits) * ones;
    for (;;) {
      const std::uint64_t bit = first * width();
      const std::uint64_t differ = (load<std::uint64_t>(in_block + bit / 8) >> bit % 8 ^ value * ones) & compared;
      // A lane that is 0 borrows from its highest bit. Lanes above it may seem to, so the lowest counts: any is enough.
      const std::uint64_t equal = (differ - ones) & ~differ & ones << (width() - 1);
      const std::uint64_t left = last - first + 1;
      if (left <= lanes) return (equal & ((std::uint64_t{1} << left * width()) - 1)) != 0;
      if (equal != 0) return true;
      first += lanes;
    }
  }
};

}  // namespace detail

}  // namespace perhaps
