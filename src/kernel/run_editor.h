// Writing slots in runs (perhaps/detail/run_table.h), over the bit tricks of an instruction set. Ranks and selects are
// most of the work: with BMI2 a select is two instructions instead of some thirty, and x86-64 without POPCNT counts
// bits in a dozen. So what is here is compiled twice, from the same text; all is inlined into functions of its
// instruction set.
#pragma once
#include <algorithm>
#include <cstdint>

#include "perhaps/detail/isa.h"
#include "perhaps/detail/run_table.h"

namespace perhaps::runs {

using PortableBits = detail::isa::WordBits<detail::isa::Portable>;

constexpr std::uint64_t from_bit(std::uint64_t i) noexcept { return ~std::uint64_t{0} << i; }
constexpr std::uint64_t below_bit(std::uint64_t i) noexcept { return (std::uint64_t{1} << i) - 1; }

// Moves bits from..to-1 of some words up by `width`, with `value` in the gap.  REQUIRES: 8 bytes behind the last one
PERHAPS_INLINE void insert_bits(std::byte* words, std::uint64_t from, std::uint64_t to, std::uint32_t width,
                                std::uint64_t value) noexcept {
  std::byte* at = words + from / 8;
  const std::uint64_t low = from % 8;
  std::uint64_t left = low + (to - from) + width;
  std::uint64_t old = detail::load<std::uint64_t>(at);
  std::uint64_t word = (old & below_bit(low)) | (value | old >> low << width) << low;
  for (; left > 64; left -= 64) {
    detail::store(at, word);
    at += 8;
    const std::uint64_t carry = old >> (64 - width);
    old = detail::load<std::uint64_t>(at);
    word = old << width | carry;
  }
  const std::uint64_t kept = left < 64 ? from_bit(left) : 0;
  detail::store(at, (word & ~kept) | (old & kept));
}

// A table that can be written. Slots are moved by shifting words; the last slot of a block and the first of the next
// are carried over by hand.
template <class Table>
class Editor : public Table {
 public:
  using Table::block;
  using Table::block_of;
  using Table::grid;
  using Table::in_block;
  using Table::per_block;
  using Table::run_ends;
  using Table::slot_in;
  using Table::slot_mask;
  using Table::stored_spill;
  using Table::width;
  using typename Table::Run;

  // `of` is what a Table is made of: a shape or a grid.
  template <class Of>
  PERHAPS_INLINE Editor(const Of& of, std::byte* bytes) noexcept : Table(of, bytes) {}

  PERHAPS_INLINE void set_occupied(std::uint64_t b, std::uint64_t word) noexcept {
    detail::store(at(b) + grid().occupied_at(), word);
  }
  PERHAPS_INLINE void set_run_ends(std::uint64_t b, std::uint64_t word) noexcept {
    // Blocks of fewer than 64 slots have other things in the rest of the word.
    std::byte* const to = at(b) + grid().run_ends_at();
    detail::store(to, (detail::load<std::uint64_t>(to) & ~Table::ends_mask()) | word);
  }
  PERHAPS_INLINE void set_spill(std::uint64_t b, std::uint64_t spilled) noexcept {
    at(b)[grid().block_bytes - 1] = static_cast<std::byte>(std::min(spilled, Table::kFarSpill));
  }

  // Puts `value` into bucket q, whose run is `run` if it has one, at `slot`; the slots from there to the first that is
  // not in use are moved by one.
  PERHAPS_INLINE void insert(std::uint64_t q, std::uint64_t starts, bool has_run, const Run& run, std::uint64_t slot,
                             std::uint64_t unused, std::uint64_t value) noexcept {
    const bool ends_run = !has_run || slot > run.last;
    // Spills first: they are found through the run ends, which are about to move.
    const std::uint64_t last_block = block_of(unused);
    for (std::uint64_t b = q / 64 + 1; b <= last_block; ++b) {
      const std::uint64_t stored = stored_spill(b);
      if (stored < Table::kFarSpill) set_spill(b, stored + 1);
    }
    if (ends_run && has_run) {
      const std::uint64_t b = block_of(run.last);
      set_run_ends(b, run_ends(b) & ~(std::uint64_t{1} << in_block(run.last, b)));
    }
    insert_at(slot, unused, value, ends_run);
    set_occupied(q / 64, starts | std::uint64_t{1} << q % 64);
  }

  // Takes `slot` out of the run of bucket q; what is behind it, up to `settled`, moves down by one. False, and no slot
  // has moved, if the table contradicts itself.
  PERHAPS_INLINE bool erase(std::uint64_t q, std::uint64_t starts, const Run& run, std::uint64_t slot,
                            std::uint64_t settled) noexcept {
    // Spills that are stored as "far" may come near: they are found through the run ends, so before those move.
    std::uint64_t known = Table::kNowhere;  // the spill of block b - 1, once it had to be found
    const std::uint64_t last_block = block_of(settled - 1);
    for (std::uint64_t b = q / 64 + 1; b <= last_block; ++b) {
      std::uint64_t spilled = stored_spill(b);
      if (spilled == Table::kFarSpill)
        spilled = known == Table::kNowhere ? Table::spill(b) : Table::spill_after(b - 1, known);
      known = spilled;
      if (spilled == 0 || spilled == Table::kNowhere) return false;
      set_spill(b, spilled - 1);
    }
    if (run.first == run.last) {
      set_occupied(q / 64, starts & ~(std::uint64_t{1} << q % 64));
    } else if (slot == run.last) {
      const std::uint64_t b = block_of(slot - 1);
      set_run_ends(b, run_ends(b) | std::uint64_t{1} << in_block(slot - 1, b));
    }
    erase_at(slot, settled);
    return true;
  }

 private:
  PERHAPS_INLINE std::byte* at(std::uint64_t b) noexcept { return const_cast<std::byte*>(block(b)); }

  PERHAPS_INLINE void set_slot_in(std::byte* from, std::uint64_t i, std::uint64_t value) noexcept {
    const std::uint64_t bit = i * width();
    const std::uint64_t old = detail::load<std::uint64_t>(from + bit / 8);
    detail::store(from + bit / 8, (old & ~(slot_mask() << bit % 8)) | value << bit % 8);
  }

  // Makes room at `slot` by moving the slots from there up to `unused` by one, and fills it.
  PERHAPS_INLINE void insert_at(std::uint64_t slot, std::uint64_t unused, std::uint64_t value, bool ends_run) noexcept {
    const std::uint64_t highest_block = block_of(unused);
    std::uint64_t b = block_of(slot);
    std::uint64_t low = in_block(slot, b);
    std::uint64_t carry = ends_run;
    for (;; ++b) {
      const bool highest = b == highest_block;
      const std::uint64_t high = highest ? in_block(unused, b) : per_block() - 1;
      const std::uint64_t ends = run_ends(b);
      const std::uint64_t moves = from_bit(low) & (below_bit(high) << 1 | 1);
      const std::uint64_t next_value = highest ? 0 : slot_in(block(b), per_block() - 1);
      insert_bits(at(b), low * width(), high * width(), width(), value);
      set_run_ends(b, (ends & ~moves) | (((ends & from_bit(low)) << 1) & moves) | carry << low);
      if (highest) return;
      value = next_value;
      carry = ends >> (per_block() - 1);
      low = 0;
    }
  }

  // Closes the gap at `slot` by moving down the slots behind it, up to `settled`, which does not move.
  PERHAPS_INLINE void erase_at(std::uint64_t slot, std::uint64_t settled) noexcept {
    const std::uint64_t last = settled - 1;
    const std::uint64_t lowest_block = block_of(slot);
    const std::uint64_t highest_block = block_of(last);
    for (std::uint64_t b = lowest_block;; ++b) {
      const bool highest = b == highest_block;
      const std::uint64_t low = b == lowest_block ? in_block(slot, b) : 0;
      const std::uint64_t high = highest ? in_block(last, b) : per_block() - 1;
      slots_down(at(b), low, high);
      set_slot_in(at(b), high, highest ? 0 : slot_in(block(b + 1), 0));
      const std::uint64_t ends = run_ends(b);
      const std::uint64_t carry = highest ? 0 : run_ends(b + 1) & 1;
      const std::uint64_t moves = from_bit(low) & below_bit(high);
      set_run_ends(b, (ends & ~(moves | std::uint64_t{1} << high)) | (ends >> 1 & moves) | carry << high);
      if (highest) return;
    }
  }

  // Slots low+1..high become low..high-1. What slot `high` then holds is undefined. The words may end in the bits
  // behind the slots, which keep what they hold.
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
};

}  // namespace perhaps::runs
