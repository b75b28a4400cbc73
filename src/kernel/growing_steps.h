// The operations on one part of a growing table (perhaps/growing.h), compiled for each instruction set (run_editor.h).
#pragma once
#include <algorithm>
#include <cstdint>

#include "kernel/run_editor.h"
#include "perhaps/growing.h"

namespace perhaps::growing {

using runs::below_bit;
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

// Into the part that the digest belongs to. `full`: the part has no slot left before its end.
template <class Bits>
PERHAPS_INLINE Inserted insert_into_part(const detail::GrowingGrid& grid, std::byte* table,
                                         std::uint64_t mixed) noexcept {
  using Part = runs::Editor<detail::GrowingPart<Bits>>;
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
