// The operations on one part of a growing table (perhaps/growing.h), compiled for each instruction set (run_editor.h).
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>

#include "kernel/run_editor.h"
#include "perhaps/growing.h"

namespace perhaps::growing {

using runs::below_bit;
using runs::from_bit;
using runs::insert_bits;
using runs::PortableBits;

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

// Most keys: into a short run that ends in the block of its bucket, which has room behind its last run. Nothing is
// looked up twice there, and few branches depend on the key. False: another case, and nothing has changed.
template <class Bits>
PERHAPS_INLINE bool insert_into_block(const detail::GrowingGrid& grid, std::byte* block, std::uint64_t i,
                                      std::uint64_t sought, bool& present) noexcept {
  constexpr std::uint64_t kShort = 3;
  std::byte* const starts_at = block + grid.occupied_at();
  std::byte* const ends_at = block + grid.run_ends_at();
  const auto starts = detail::load<std::uint64_t>(starts_at);
  const auto ends_word = detail::load<std::uint64_t>(ends_at);
  const std::uint64_t ends_mask = ~std::uint64_t{0} >> (64 - grid.slots);
  const std::uint64_t ends = ends_word & ends_mask;
  const auto spilled = std::to_integer<std::uint64_t>(block[grid.block_bytes - 1]);
  // There is a next block: the last ones of a part have no buckets.
  const auto next_spill = std::to_integer<std::uint64_t>(block[2 * std::uint64_t{grid.block_bytes} - 1]);
  const auto unused = static_cast<std::uint64_t>(std::bit_width(ends));
  if (next_spill != 0 || unused >= grid.slots || spilled > unused) return false;

  const std::uint64_t runs = Bits::popcount(starts << (63 - i));
  const std::uint64_t last = Bits::find(ends & from_bit(spilled), runs - 1);
  if (last >= 64 && runs != 0) return false;
  const std::uint64_t behind = runs == 0 ? spilled : last + 1;
  const bool has_run = (starts >> i & 1) != 0;
  const auto behind_others = static_cast<std::uint64_t>(std::bit_width(ends & below_bit(last % 64)));
  const std::uint64_t first = has_run ? std::max(spilled, behind_others) : behind;
  if (behind - first > kShort) return false;

  // Always kShort slots, without a branch. Those behind the block are read but do not count; there is a next block.
  const std::uint64_t value = sought | 1;
  std::uint64_t slot = first;
  bool agrees = false;
  for (std::uint64_t at = first; at < first + kShort; ++at) {
    const std::uint64_t bit = at * grid.width;
    const std::uint64_t other = detail::load<std::uint64_t>(block + bit / 8) >> bit % 8 & grid.slot_mask();
    slot += (at < behind) & (other <= value);
    agrees |= (at < behind) & detail::agree(other, sought);
  }
  insert_bits(block, slot * grid.width, unused * grid.width, grid.width, value);
  const std::uint64_t ends_run = slot == behind;
  const std::uint64_t others = ends & ~((ends_run & std::uint64_t{has_run}) << last % 64);
  const std::uint64_t moved = (others & from_bit(slot)) << 1;
  detail::store(ends_at, (ends_word & ~ends_mask) | (others & below_bit(slot)) | moved | ends_run << slot);
  detail::store(starts_at, starts | std::uint64_t{1} << i);
  present = agrees;
  return true;
}

// Into the part that the digest belongs to. `full`: the part has no slot left before its end.
template <class Bits>
PERHAPS_INLINE Inserted insert_into_part(const detail::GrowingGrid& grid, std::byte* table,
                                         std::uint64_t mixed) noexcept {
  using Part = runs::Editor<detail::GrowingPart<Bits>>;
  const std::uint64_t bucket = mixed >> (64 - grid.bucket_bits);
  const std::uint64_t sought = detail::growing_sought(grid, mixed);
  bool present = false;
  if (insert_into_block<Bits>(grid, table + detail::growing_offset(grid, mixed), bucket % 64, sought, present)) {
    return present ? Inserted::present : Inserted::added;
  }
  Part t(grid, table + (GrowingLayout::part_of(grid, table, bucket) - table));
  const std::uint64_t q = bucket & below_bit(detail::GrowingGrid::kPartBits);
  const std::uint64_t value = sought | 1;
  const std::uint64_t starts = t.occupied(q / 64);
  const bool has_run = (starts >> q % 64 & 1) != 0;
  typename Part::Run run{};
  std::uint64_t slot;
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

  t.insert(q, starts, has_run, run, slot, unused, value);
  return present ? Inserted::present : Inserted::added;
}

// The moves are spread evenly over the inserts between two steps.
template <class Bits>
PERHAPS_INLINE Inserted insert_as(const GrowingShape& shape, const detail::GrowingGrids& grids, std::byte* table,
                                  std::uint64_t mixed) noexcept {
  const Head head{table};
  std::uint64_t waiting = head.waiting();
  if (waiting == 0) {
    if (head.used() >= grids.capacity) return Inserted::full;
  } else if (grids.is_due(head.used(), waiting)) {
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
  using Part = runs::Editor<detail::GrowingPart<Bits>>;
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
  if (!t.erase(q, starts, run, slot, settled)) return Erased::absent;
  head.set_keys(head.keys() - 1);
  head.set_used(head.used() - 1);
  return Erased::removed;
}

}  // namespace perhaps::growing
