// The operations on one part of a growing table (perhaps/growing.h), over the bit tricks of an instruction set, as
// those of a quotient table.
#pragma once
#include <algorithm>
#include <cstdint>

#include "perhaps/growing.h"

namespace perhaps::growing {

using PortableBits = detail::isa::WordBits<detail::isa::Portable>;

constexpr std::uint64_t from_bit(std::uint64_t i) noexcept { return ~std::uint64_t{0} << i; }
constexpr std::uint64_t below_bit(std::uint64_t i) noexcept { return (std::uint64_t{1} << i) - 1; }

// Slots of one bucket. More of them are copies of one key, and must not fill a part that has to be moved.
inline constexpr std::uint64_t kMaxCopies = 1024;

// The head of a table.
struct Head {
  std::byte* table;
  std::uint64_t keys() const noexcept { return detail::load<std::uint64_t>(table); }
  std::uint64_t used() const noexcept { return detail::load<std::uint64_t>(table + 8); }
  std::uint64_t waiting() const noexcept { return detail::load<std::uint64_t>(table + 16); }
  void set_keys(std::uint64_t keys) const noexcept { detail::store(table, keys); }
  void set_used(std::uint64_t used) const noexcept { detail::store(table + 8, used); }
  void set_waiting(std::uint64_t parts) const noexcept { detail::store(table + 16, parts); }
};

// Moves the last part that waits to the step that the table grows to. False: there is no memory for a copy of it, or
// its slots do not fit, and nothing has changed.
bool move_part(const GrowingShape& shape, std::byte* table) noexcept;

// A part that can be written.
template <class Bits>
class Editor : public detail::GrowingPart<Bits> {
  using Base = detail::GrowingPart<Bits>;

 public:
  using Base::block;
  using Base::block_of;
  using Base::grid;
  using Base::per_block;
  using Base::run_ends;
  using Base::slot_in;

  PERHAPS_INLINE Editor(const detail::GrowingGrid& of, std::byte* blocks) noexcept : Base(of, blocks) {}

  PERHAPS_INLINE void set_occupied(std::uint64_t b, std::uint64_t word) noexcept {
    detail::store(at(b) + grid().block_bytes - 9, word);
  }
  PERHAPS_INLINE void set_run_ends(std::uint64_t b, std::uint64_t word) noexcept {
    std::byte* const to = at(b) + grid().slot_bytes;
    detail::store(to, (detail::load<std::uint64_t>(to) & ~Base::ends_mask()) | word);
  }
  PERHAPS_INLINE void set_spill(std::uint64_t b, std::uint64_t spilled) noexcept {
    at(b)[grid().block_bytes - 1] = static_cast<std::byte>(std::min(spilled, Base::kFarSpill));
  }
  PERHAPS_INLINE void set_slot_in(std::byte* in_block, std::uint64_t i, std::uint64_t value) noexcept {
    const std::uint64_t bit = i * grid().width;
    const std::uint64_t old = detail::load<std::uint64_t>(in_block + bit / 8);
    detail::store(in_block + bit / 8, (old & ~(grid().slot_mask() << bit % 8)) | value << bit % 8);
  }

  // Makes room at `slot` by moving the slots from there up to `unused` by one, and fills it.
  PERHAPS_INLINE void insert_at(std::uint64_t slot, std::uint64_t unused, std::uint64_t value, bool ends_run) noexcept {
    const std::uint64_t lowest_block = block_of(slot);
    const std::uint64_t highest_block = block_of(unused);
    for (std::uint64_t b = highest_block;; --b) {
      const bool lowest = b == lowest_block;
      const std::uint64_t low = lowest ? slot - b * per_block() : 0;
      const std::uint64_t high = b == highest_block ? unused - b * per_block() : per_block() - 1;
      slots_up(at(b), low, high);
      set_slot_in(at(b), low, lowest ? value : slot_in(block(b - 1), per_block() - 1));
      const std::uint64_t ends = run_ends(b);
      const std::uint64_t carry = lowest ? std::uint64_t{ends_run} : run_ends(b - 1) >> (per_block() - 1);
      const std::uint64_t moves = from_bit(low) & (below_bit(high) << 1 | 1);
      set_run_ends(b, (ends & ~moves) | (((ends & from_bit(low)) << 1) & moves) | carry << low);
      if (lowest) return;
    }
  }

  // Closes the gap at `slot` by moving down the slots behind it, up to `settled`, which does not move.
  PERHAPS_INLINE void erase_at(std::uint64_t slot, std::uint64_t settled) noexcept {
    const std::uint64_t last = settled - 1;
    const std::uint64_t lowest_block = block_of(slot);
    const std::uint64_t highest_block = block_of(last);
    for (std::uint64_t b = lowest_block;; ++b) {
      const bool highest = b == highest_block;
      const std::uint64_t low = b == lowest_block ? slot - b * per_block() : 0;
      const std::uint64_t high = highest ? last - b * per_block() : per_block() - 1;
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

  // Slots low..high-1 become low+1..high. What slot `low` then holds is undefined. The words end in the bits behind the
  // slots, which keep what they hold.
  PERHAPS_INLINE void slots_up(std::byte* words, std::uint64_t low, std::uint64_t high) noexcept {
    if (low == high) return;
    const std::uint32_t width = grid().width;
    const std::uint64_t first = low * width;
    const std::uint64_t last = (high + 1) * width - 1;
    const std::uint64_t bottom = first / 64;
    std::uint64_t k = last / 64;
    std::uint64_t word = word_at(words, k);
    std::uint64_t keep = ~(below_bit(last % 64) << 1 | 1);
    for (; k > bottom; --k) {
      const std::uint64_t lower = word_at(words, k - 1);
      set_word(words, k, (word & keep) | ((word << width | lower >> (64 - width)) & ~keep));
      word = lower;
      keep = 0;
    }
    keep |= below_bit(first % 64);
    set_word(words, k, (word & keep) | (word << width & ~keep));
  }

  // Slots low+1..high become low..high-1. What slot `high` then holds is undefined.
  PERHAPS_INLINE void slots_down(std::byte* words, std::uint64_t low, std::uint64_t high) noexcept {
    if (low == high) return;
    const std::uint32_t width = grid().width;
    const std::uint64_t first = low * width;
    const std::uint64_t last = (high + 1) * width - 1;
    const std::uint64_t top = last / 64;
    std::uint64_t k = first / 64;
    std::uint64_t word = word_at(words, k);
    std::uint64_t keep = below_bit(first % 64);
    for (; k < top; ++k) {
      const std::uint64_t upper = word_at(words, k + 1);
      set_word(words, k, (word & keep) | ((word >> width | upper << (64 - width)) & ~keep));
      word = upper;
      keep = 0;
    }
    keep |= ~(below_bit(last % 64) << 1 | 1);
    set_word(words, k, (word & keep) | (word >> width & ~keep));
  }

  PERHAPS_INLINE static std::uint64_t word_at(const std::byte* words, std::uint64_t k) noexcept {
    return detail::load<std::uint64_t>(words + 8 * k);
  }
  PERHAPS_INLINE static void set_word(std::byte* words, std::uint64_t k, std::uint64_t word) noexcept {
    detail::store(words + 8 * k, word);
  }
};

// Into the part that the digest belongs to. `full`: the part has no slot left before its end.
template <class Bits>
PERHAPS_INLINE Inserted insert_into_part(const detail::GrowingGrid& grid, std::byte* table,
                                         std::uint64_t mixed) noexcept {
  using Part = Editor<Bits>;
  const std::uint64_t bucket = mixed >> (64 - grid.bucket_bits);
  Part t(grid, table + (GrowingLayout::part_of(grid, table, bucket) - table));
  const std::uint64_t q = bucket & below_bit(detail::GrowingGrid::kPartBits);
  const std::uint64_t sought = detail::growing_sought(grid, mixed);
  const std::uint64_t value = sought | 1;
  const std::uint64_t starts = t.occupied(q / 64);
  const bool has_run = (starts >> q % 64 & 1) != 0;
  typename Part::Run run{};
  std::uint64_t slot;
  bool present = false;
  if (has_run) {
    run = t.run_of(q);
    if (!run.found() || run.last - run.first >= kMaxCopies) return Inserted::full;
    slot = run.first;
    for (; slot <= run.last; ++slot) {
      const std::uint64_t other = t.slot(slot);
      if (other > value) break;
      present |= detail::agree(other, sought);
    }
    for (std::uint64_t s = slot; !present && s <= run.last; ++s) present = detail::agree(t.slot(s), sought);
  } else {
    slot = t.place_of(q);
  }
  const std::uint64_t unused = t.template first_behind<true>(q / 64);
  if (unused == Part::kNowhere || slot > unused) return Inserted::full;

  const bool ends_run = !has_run || slot > run.last;
  // Spills first: they are found through the run ends, which are about to move.
  const std::uint64_t last_block = t.block_of(unused);
  for (std::uint64_t b = q / 64 + 1; b <= last_block; ++b) {
    const std::uint64_t stored = t.stored_spill(b);
    if (stored < Part::kFarSpill) t.set_spill(b, stored + 1);
  }
  if (ends_run && has_run) {
    const std::uint64_t b = t.block_of(run.last);
    t.set_run_ends(b, t.run_ends(b) & ~(std::uint64_t{1} << (run.last - b * t.per_block())));
  }
  t.insert_at(slot, unused, value, ends_run);
  t.set_occupied(q / 64, starts | std::uint64_t{1} << q % 64);
  return present ? Inserted::present : Inserted::added;
}

// The moves are spread evenly over the inserts between two steps. A single part moves at once.
PERHAPS_INLINE bool is_due(const detail::GrowingGrids& grids, const GrowingShape& shape, std::uint64_t used,
                           std::uint64_t waiting) noexcept {
  const std::uint64_t parts = grids.of[0].parts;
  if (parts == 1 || shape.step < 2) return true;
  const std::uint64_t from = detail::GrowingGrid(shape.step - 2, 2).room();
  return used >= from && used - from >= (grids.of[0].room() - from) / parts * (parts - waiting);
}

template <class Bits>
PERHAPS_INLINE Inserted insert_as(const GrowingShape& shape, const detail::GrowingGrids& grids, std::byte* table,
                                  std::uint64_t mixed) noexcept {
  const Head head{table};
  std::uint64_t waiting = head.waiting();
  if (waiting == 0) {
    if (head.used() >= shape.capacity()) return Inserted::full;
  } else if (is_due(grids, shape, head.used(), waiting)) {
    if (!move_part(shape, table)) return Inserted::full;
    waiting = head.waiting();
  }
  const auto insert = [&] {
    return insert_into_part<Bits>(grids.of[detail::growing_moved(grids.of[0].bucket_bits, waiting, mixed)], table,
                                  mixed);
  };
  Inserted done = insert();
  if (done == Inserted::full) [[unlikely]] {
    // Its part is full before its time: all parts are moved, and the table may grow.
    while (head.waiting() != 0) {
      if (!move_part(shape, table)) return Inserted::full;
    }
    if (waiting == 0) return Inserted::full;
    waiting = 0;
    done = insert();
    if (done == Inserted::full) return done;
  }
  head.set_keys(head.keys() + 1);
  head.set_used(head.used() + 1);
  return done;
}

template <class Bits>
PERHAPS_INLINE Erased erase_as(const GrowingShape& shape, std::byte* table, std::uint64_t mixed) noexcept {
  using Part = Editor<Bits>;
  const Head head{table};
  const detail::GrowingGrid grid = GrowingLayout::grid_of(shape, table, mixed);
  const std::uint64_t bucket = mixed >> (64 - grid.bucket_bits);
  Part t(grid, table + (GrowingLayout::part_of(grid, table, bucket) - table));
  const std::uint64_t q = bucket & below_bit(detail::GrowingGrid::kPartBits);
  const std::uint64_t starts = t.occupied(q / 64);
  if (head.keys() == 0 || head.used() == 0 || (starts >> q % 64 & 1) == 0) return Erased::absent;
  const auto run = t.run_of(q);
  if (!run.found()) return Erased::absent;
  // The longest that agrees: the one with the lowest end.
  const std::uint64_t sought = detail::growing_sought(grid, mixed);
  std::uint64_t slot = Part::kNowhere;
  std::uint64_t lowest_end = ~std::uint64_t{0};
  for (std::uint64_t s = run.first; s <= run.last; ++s) {
    const std::uint64_t other = t.slot(s);
    if (other == 0 || !detail::agree(other, sought) || (other & (0 - other)) >= lowest_end) continue;
    slot = s;
    lowest_end = other & (0 - other);
  }
  if (slot == Part::kNowhere) return Erased::absent;
  const std::uint64_t settled = t.template first_behind<false>(q / 64);
  if (settled == Part::kNowhere || settled <= run.last) return Erased::absent;

  // Spills that are stored as "far" may come near: they are found through the run ends, so before those move.
  std::uint64_t known = Part::kNowhere;  // the spill of block b - 1, once it had to be found
  const std::uint64_t last_block = t.block_of(settled - 1);
  for (std::uint64_t b = q / 64 + 1; b <= last_block; ++b) {
    std::uint64_t spilled = t.stored_spill(b);
    if (spilled == Part::kFarSpill) spilled = known == Part::kNowhere ? t.spill(b) : t.spill_after(b - 1, known);
    known = spilled;
    if (spilled == 0 || spilled == Part::kNowhere) return Erased::absent;
    t.set_spill(b, spilled - 1);
  }
  if (run.first == run.last) {
    t.set_occupied(q / 64, starts & ~(std::uint64_t{1} << q % 64));
  } else if (slot == run.last) {
    const std::uint64_t b = t.block_of(slot - 1);
    t.set_run_ends(b, t.run_ends(b) | std::uint64_t{1} << (slot - 1 - b * t.per_block()));
  }
  t.erase_at(slot, settled);
  head.set_keys(head.keys() - 1);
  head.set_used(head.used() - 1);
  return Erased::removed;
}

}  // namespace perhaps::growing
