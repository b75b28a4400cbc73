// Tables of the quotient filter that are written: what kernel/quotient.cc and quotient.cc share.
#pragma once
#include <algorithm>
#include <cstdint>

#include "perhaps/quotient.h"

namespace perhaps::quotient {

using PortableBits = detail::isa::WordBits<detail::isa::Portable>;
using Table = detail::QuotientTable<PortableBits>;

constexpr std::uint64_t from_bit(std::uint64_t i) noexcept { return ~std::uint64_t{0} << i; }
constexpr std::uint64_t below_bit(std::uint64_t i) noexcept { return (std::uint64_t{1} << i) - 1; }

// A table that can be written. Slots of a block are `width` whole words, so moving a range of slots by one is a shift
// of words; the last slot of a block and the first of the next are carried over by hand.
template <class Bits>
class Editor : public detail::QuotientTable<Bits> {
  using Base = detail::QuotientTable<Bits>;

 public:
  using Base::block;
  using Base::run_ends;
  using Base::slot_in;
  using Base::slot_mask;
  using Base::width;

  Editor(const QuotientShape& shape, std::byte* table) noexcept : Base(shape, table), table_(table) {}

  PERHAPS_INLINE std::uint64_t keys() const noexcept { return detail::load<std::uint64_t>(table_); }
  PERHAPS_INLINE void set_keys(std::uint64_t keys) noexcept { detail::store(table_, keys); }

  PERHAPS_INLINE void set_occupied(std::uint64_t b, std::uint64_t word) noexcept {
    detail::store(at(b) + 8 * width(), word);
  }
  PERHAPS_INLINE void set_run_ends(std::uint64_t b, std::uint64_t word) noexcept {
    detail::store(at(b) + 8 * width() + 8, word);
  }
  PERHAPS_INLINE void set_spill(std::uint64_t b, std::uint64_t spilled) noexcept {
    at(b)[8 * width() + 16] = static_cast<std::byte>(std::min(spilled, Base::kFarSpill));
  }
  PERHAPS_INLINE void set_slot_in(std::byte* in_block, std::uint64_t i, std::uint64_t value) noexcept {
    const std::uint64_t bit = i * width();
    const std::uint64_t old = detail::load<std::uint64_t>(in_block + bit / 8);
    detail::store(in_block + bit / 8, (old & ~(slot_mask() << bit % 8)) | value << bit % 8);
  }

  // Makes room at `slot` by moving the slots from there up to `unused` by one, and fills it.
  PERHAPS_INLINE void insert_at(std::uint64_t slot, std::uint64_t unused, std::uint64_t value, bool ends_run) noexcept {
    for (std::uint64_t b = unused / 64;; --b) {
      const bool lowest = b == slot / 64;
      const std::uint64_t low = lowest ? slot % 64 : 0;
      const std::uint64_t high = b == unused / 64 ? unused % 64 : 63;
      slots_up(at(b), low, high);
      set_slot_in(at(b), low, lowest ? value : slot_in(block(b - 1), 63));
      const std::uint64_t ends = run_ends(b);
      const std::uint64_t carry = lowest ? std::uint64_t{ends_run} : run_ends(b - 1) >> 63;
      const std::uint64_t moves = from_bit(low) & (below_bit(high) << 1 | 1);
      set_run_ends(b, (ends & ~moves) | (((ends & from_bit(low)) << 1) & moves) | carry << low);
      if (lowest) return;
    }
  }

  // Closes the gap at `slot` by moving down the slots behind it, up to `settled`, which does not move.
  PERHAPS_INLINE void erase_at(std::uint64_t slot, std::uint64_t settled) noexcept {
    const std::uint64_t last = settled - 1;
    for (std::uint64_t b = slot / 64;; ++b) {
      const bool highest = b == last / 64;
      const std::uint64_t low = b == slot / 64 ? slot % 64 : 0;
      const std::uint64_t high = highest ? last % 64 : 63;
      slots_down(at(b), low, high);
      set_slot_in(at(b), high, highest ? 0 : slot_in(block(b + 1), 0));
      const std::uint64_t ends = run_ends(b);
      const std::uint64_t carry = highest ? 0 : run_ends(b + 1) & 1;
      const std::uint64_t moves = from_bit(low) & below_bit(high);
      set_run_ends(b, (ends & ~(moves | std::uint64_t{1} << high)) | (ends >> 1 & moves) | carry << high);
      if (highest) return;
    }
  }

 private:
  PERHAPS_INLINE std::byte* at(std::uint64_t b) noexcept { return const_cast<std::byte*>(block(b)); }

  // Slots low..high-1 become low+1..high. What slot `low` then holds is undefined.
  PERHAPS_INLINE void slots_up(std::byte* words, std::uint64_t low, std::uint64_t high) noexcept {
    if (low == high) return;
    const std::uint64_t first = low * width();
    const std::uint64_t last = (high + 1) * width() - 1;
    const std::uint64_t bottom = first / 64;
    std::uint64_t k = last / 64;
    std::uint64_t word = word_at(words, k);
    std::uint64_t keep = ~(below_bit(last % 64) << 1 | 1);
    for (; k > bottom; --k) {
      const std::uint64_t lower = word_at(words, k - 1);
      set_word(words, k, (word & keep) | ((word << width() | lower >> (64 - width())) & ~keep));
      word = lower;
      keep = 0;
    }
    keep |= below_bit(first % 64);
    set_word(words, k, (word & keep) | (word << width() & ~keep));
  }

  // Slots low+1..high become low..high-1. What slot `high` then holds is undefined.
  PERHAPS_INLINE void slots_down(std::byte* words, std::uint64_t low, std::uint64_t high) noexcept {
    if (low == high) return;
    const std::uint64_t first = low * width();
    const std::uint64_t last = (high + 1) * width() - 1;
    const std::uint64_t top = last / 64;
    std::uint64_t k = first / 64;
    std::uint64_t word = word_at(words, k);
    std::uint64_t keep = below_bit(first % 64);
    for (; k < top; ++k) {
      const std::uint64_t upper = word_at(words, k + 1);
      set_word(words, k, (word & keep) | ((word >> width() | upper << (64 - width())) & ~keep));
      word = upper;
      keep = 0;
    }
    keep |= ~(below_bit(last % 64) << 1 | 1);
    set_word(words, k, (word & keep) | (word >> width() & ~keep));
  }

  PERHAPS_INLINE static std::uint64_t word_at(const std::byte* words, std::uint64_t k) noexcept {
    return detail::load<std::uint64_t>(words + 8 * k);
  }
  PERHAPS_INLINE static void set_word(std::byte* words, std::uint64_t k, std::uint64_t word) noexcept {
    detail::store(words + 8 * k, word);
  }

  std::byte* table_;
};

// The first slot of a run whose value is above `value`, or the one behind the run.
template <class T>
PERHAPS_INLINE std::uint64_t upper_bound(const T& t, typename T::Run run, std::uint64_t value) noexcept {
  std::uint64_t low = run.first;
  std::uint64_t high = run.last + 1;
  while (high - low > 8) {
    const std::uint64_t middle = low + (high - low) / 2;
    if (t.slot(middle) <= value) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  while (low < high && t.slot(low) <= value) ++low;
  return low;
}

// Which of a block's 64 quotients there are.
constexpr std::uint64_t quotients_of_block(const QuotientShape& shape, std::uint64_t b) noexcept {
  const std::uint64_t left = shape.buckets > b * 64 ? shape.buckets - b * 64 : 0;
  return left >= 64 ? ~std::uint64_t{0} : below_bit(left);
}

// A block of slots, done with: 64 values of `width` bits into `width` words, 64 bytes of 0 or 1 into the run ends.
void write_slots(detail::QuotientPen& pen) noexcept;
// Done with the quotients of a block: only now is it known how far they spill.
void next_start_block(detail::QuotientPen& pen) noexcept;

}  // namespace perhaps::quotient
