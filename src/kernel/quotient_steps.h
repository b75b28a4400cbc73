// The operations on a quotient table, compiled for each instruction set (run_editor.h).
#pragma once
#include "kernel/quotient.h"

namespace perhaps::quotient {

template <class Bits>
PERHAPS_INLINE Inserted insert_as(const QuotientShape& shape, std::byte* table, std::uint64_t fingerprint) noexcept {
  Editor<Bits> t(shape, table);
  const std::uint64_t keys = QuotientLayout::keys(shape, table);
  if (keys >= shape.capacity()) return Inserted::full;
  const std::uint64_t q = fingerprint >> shape.width();
  const std::uint64_t value = fingerprint & t.slot_mask();
  const std::uint64_t starts = t.occupied(q / 64);
  const bool has_run = (starts >> q % 64 & 1) != 0;
  typename Editor<Bits>::Run run{};
  std::uint64_t slot;
  if (has_run) {
    run = t.run_of(q);
    if (!run.found()) return Inserted::full;
    slot = upper_bound(t, run, value);
  } else {
    slot = t.place_of(q);
  }
  const std::uint64_t unused = slot >= t.slots() ? Table::kNowhere : t.template first_settled<true>(slot);
  if (unused == Table::kNowhere) return Inserted::full;

  bool present = false;
  if (has_run) {
    // The neighbours in the sorted run: with equal remainders they differ in the guard only.
    const std::uint64_t remainder = value >> shape.guard_bits;
    present = (slot > run.first && t.slot(slot - 1) >> shape.guard_bits == remainder) ||
              (slot <= run.last && t.slot(slot) >> shape.guard_bits == remainder);
  }
  t.insert(q, starts, has_run, run, slot, unused, value);
  detail::store(table, keys + 1);
  return present ? Inserted::present : Inserted::added;
}

template <class Bits>
PERHAPS_INLINE Erased erase_as(const QuotientShape& shape, std::byte* table, std::uint64_t fingerprint) noexcept {
  Editor<Bits> t(shape, table);
  const std::uint64_t q = fingerprint >> shape.width();
  const std::uint64_t value = fingerprint & t.slot_mask();
  const std::uint64_t starts = t.occupied(q / 64);
  const std::uint64_t keys = QuotientLayout::keys(shape, table);
  if (keys == 0 || (starts >> q % 64 & 1) == 0) return Erased::absent;
  const auto run = t.run_of(q);
  if (!run.found()) return Erased::absent;
  const std::uint64_t behind = upper_bound(t, run, value);
  if (behind == run.first || t.slot(behind - 1) != value) return Erased::absent;
  const std::uint64_t slot = behind - 1;
  std::uint64_t settled = slot + 1 == t.slots() ? t.slots() : t.template first_settled<false>(slot + 1);
  // A sound table may be used up to its last slot.
  if (settled == Table::kNowhere) settled = t.slots();
  if (!t.erase(q, starts, run, slot, settled)) return Erased::absent;
  detail::store(table, keys - 1);
  return Erased::removed;
}

// The i-th quotient and the i-th run end make the i-th run: nothing has to be searched. Run lengths are random, so the
// first kAlways slots of a run are always written, and what is too much is overwritten by the next: a loop as long as
// the run would be mispredicted for most of them. At 95 % load one run in 40 is longer than 3, one in 200 than 4. State
// is in locals, since for all the compiler knows `out` is part of it.
template <std::uint64_t kAlways>
PERHAPS_INLINE std::size_t read_runs(detail::QuotientCursor& at, std::uint64_t* out, std::size_t room) noexcept {
  const Table t(at.shape, at.table);
  const std::uint32_t width = t.width();
  const std::uint64_t mask = t.slot_mask();
  constexpr std::uint64_t kBlocksAhead = 12;
  std::size_t size = 0;
  for (;;) {
    while (at.in_run) {
      if (size == room) return size;
      out[size++] = at.run_base | t.slot(at.next_slot);
      at.in_run = at.next_slot++ != at.run_last;
    }
    while (at.starts == 0) {
      if (++at.start_block >= t.blocks()) return --at.start_block, size;
      at.starts = t.occupied(at.start_block) & quotients_of_block(at.shape, at.start_block);
    }
    while (at.ends == 0) {
      if (++at.end_block >= t.blocks()) return --at.end_block, size;
      at.ends = t.run_ends(at.end_block);
      // Blocks are not whole cache lines, and the next pages of two tables are more than the processor foresees.
      detail::prefetch_read(t.block(std::min(at.end_block + kBlocksAhead, t.blocks() - 1)) + 8 * width);
    }
    std::uint64_t starts = at.starts;
    std::uint64_t ends = at.ends;
    // Short runs inside one block, in slots counted from the start of the block of their ends.
    if (kAlways * width <= 57 && room - size >= 64 * kAlways) {
      const std::byte* block = t.block(at.end_block);
      const std::uint64_t base = at.start_block << (6 + width);
      const auto origin = static_cast<std::int64_t>(at.end_block * 64);
      const std::int64_t home = static_cast<std::int64_t>(at.start_block * 64) - origin;
      std::int64_t next = static_cast<std::int64_t>(at.next_slot) - origin;
      std::uint64_t* to = out + size;
      while (starts != 0 && ends != 0) {
        const auto i = static_cast<std::int64_t>(std::countr_zero(starts));
        const std::int64_t last = std::countr_zero(ends);
        const std::int64_t first = std::max(next, home + i);
        const auto more = static_cast<std::uint64_t>(last - first);
        if (more >= kAlways || first < 0) break;
        starts &= starts - 1;
        ends &= ends - 1;
        next = last + 1;
        const std::uint64_t bit = static_cast<std::uint64_t>(first) * width;
        const std::uint64_t word = detail::load<std::uint64_t>(block + bit / 8) >> bit % 8;
        const std::uint64_t high = base | static_cast<std::uint64_t>(i) << width;
        to[0] = high | (word & mask);
        to[1] = high | (word >> width & mask);
        to[2] = high | (word >> 2 * width & mask);
        if constexpr (kAlways == 4) to[3] = high | (word >> 3 * width & mask);
        to += more + 1;
      }
      size = static_cast<std::size_t>(to - out);
      at.next_slot = static_cast<std::uint64_t>(next + origin);
      at.starts = starts;
      at.ends = ends;
      if (starts == 0 || ends == 0) continue;
    } else if (size != 0 && kAlways * width <= 57 && room >= 64 * kAlways) {
      return size;
    }
    // Any other run, slot by slot.
    const std::uint64_t q = at.start_block * 64 + static_cast<std::uint64_t>(std::countr_zero(starts));
    const std::uint64_t last = at.end_block * 64 + static_cast<std::uint64_t>(std::countr_zero(ends));
    if (last < q || last < at.next_slot) return size;
    at.starts &= starts - 1;
    at.ends &= ends - 1;
    at.next_slot = std::max(at.next_slot, q);
    at.run_base = q << width;
    at.run_last = last;
    at.in_run = true;
  }
}

PERHAPS_INLINE std::size_t read_as(detail::QuotientCursor& at, std::uint64_t* out, std::size_t room) noexcept {
  return 4 * at.shape.width() <= 57 ? read_runs<4>(at, out, room) : read_runs<3>(at, out, room);
}

// Writes the first `count` of count + 1 fingerprints: whether one ends its run, the next one says. False: they do not
// ascend, or there is no slot left.  REQUIRES: if they ascend, the first `count` are below fingerprints()
// Those of one block of quotients go to slots of at most three blocks, if they are not too many at a time. So they are
// put down without checking where a block of slots ends, and blocks are written behind them.
PERHAPS_INLINE bool put_all_as(detail::QuotientPen& pen, const std::uint64_t* fingerprints,
                               std::size_t count) noexcept {
  constexpr std::ptrdiff_t kAtOnce = 128;
  static_assert(std::tuple_size_v<decltype(pen.values)> == 256, "a slot's place in it is its lowest byte");
  const std::uint32_t width = pen.shape.width();
  const std::uint64_t mask = below_bit(width);
  const std::uint64_t* const all_end = fingerprints + count;
  const std::uint64_t* at = fingerprints;
  while (at != all_end) {
    std::uint64_t fingerprint = *at;
    std::uint64_t q = fingerprint >> width;
    const std::uint64_t block = q / 64;
    if (block != pen.start_block) {
      if (q >= pen.shape.buckets || block < pen.start_block) return false;  // they do not ascend
      while (pen.start_block != block) next_start_block(pen);
    }
    if (pen.slot_block < block) {
      if (pen.next_slot > pen.slot_block * 64) write_slots(pen);
      pen.slot_block = block;
    }

    const std::uint64_t* const end = at + std::min(all_end - at, kAtOnce);
    std::uint64_t starts = pen.starts;
    std::uint64_t slot = pen.next_slot;
    bool ascending = true;
    do {
      const std::uint64_t next = *++at;
      const std::uint64_t next_q = next >> width;
      ascending &= fingerprint <= next;
      starts |= std::uint64_t{1} << q % 64;
      slot = std::max(slot, q);
      pen.values[slot % 256] = fingerprint & mask;
      pen.ends[slot % 256] = std::byte{q != next_q};
      ++slot;
      fingerprint = next;
      q = next_q;
    } while (at != end && q / 64 == block);
    if (!ascending || slot > pen.shape.slots()) return false;
    pen.starts = starts;
    pen.next_slot = slot;
    while (pen.slot_block < slot / 64) write_slots(pen);
  }
  pen.written += count;
  return true;
}

}  // namespace perhaps::quotient
