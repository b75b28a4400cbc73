#include "perhaps/quotient.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string>

#include "kernel/table.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define PERHAPS_BMI2 1
#else
#define PERHAPS_BMI2 0
#endif

namespace perhaps {
namespace {

// Ranks and selects are most of the work. With BMI2 a select is two instructions instead of some thirty, and x86-64
// without POPCNT counts bits in a dozen. So insert, erase and the batch query are compiled twice, from the same text.
using Portable = detail::isa::WordBits<detail::isa::Portable>;

#if PERHAPS_BMI2
#define PERHAPS_WITH_BMI2 [[gnu::target("bmi,bmi2,lzcnt,popcnt")]]
struct Bmi2 {
  PERHAPS_WITH_BMI2 static inline std::uint64_t popcount(std::uint64_t word) noexcept {
    return static_cast<std::uint64_t>(__builtin_popcountll(word));
  }
  PERHAPS_WITH_BMI2 static inline std::uint64_t find(std::uint64_t word, std::uint64_t rank) noexcept {
    return rank < 64 ? _tzcnt_u64(_pdep_u64(std::uint64_t{1} << rank, word)) : 64;
  }
};
// Zen 1 and 2 have PDEP in microcode, at up to 250 cycles.
const bool fast_pdep = [] {
  __builtin_cpu_init();
  return !__builtin_cpu_is("znver1") && !__builtin_cpu_is("znver2");
}();
bool use_bmi2() noexcept { return fast_pdep && kernel::active().bmi2; }
#endif

using Table = detail::QuotientTable<Portable>;

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

  // Slots low..high-1 become low+1..high. What is in slot `low` then is not said.
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

  // Slots low+1..high become low..high-1. What is in slot `high` then is not said.
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

template <class Bits>
PERHAPS_INLINE Inserted insert_as(const QuotientShape& shape, std::byte* table, std::uint64_t fingerprint) noexcept {
  Editor<Bits> t(shape, table);
  if (t.keys() >= shape.capacity()) return Inserted::full;
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
  const bool ends_run = !has_run || slot > run.last;
  // Spills first: they are found through the run ends, which are about to move.
  for (std::uint64_t b = q / 64 + 1; b <= unused / 64; ++b) {
    const std::uint64_t stored = t.stored_spill(b);
    if (stored < Table::kFarSpill) t.set_spill(b, stored + 1);
  }
  if (ends_run && has_run) {
    t.set_run_ends(run.last / 64, t.run_ends(run.last / 64) & ~(std::uint64_t{1} << run.last % 64));
  }
  t.insert_at(slot, unused, value, ends_run);
  t.set_occupied(q / 64, starts | std::uint64_t{1} << q % 64);
  t.set_keys(t.keys() + 1);
  return present ? Inserted::present : Inserted::added;
}

template <class Bits>
PERHAPS_INLINE Erased erase_as(const QuotientShape& shape, std::byte* table, std::uint64_t fingerprint) noexcept {
  Editor<Bits> t(shape, table);
  const std::uint64_t q = fingerprint >> shape.width();
  const std::uint64_t value = fingerprint & t.slot_mask();
  const std::uint64_t starts = t.occupied(q / 64);
  if (t.keys() == 0 || (starts >> q % 64 & 1) == 0) return Erased::absent;
  const auto run = t.run_of(q);
  if (!run.found()) return Erased::absent;
  const std::uint64_t behind = upper_bound(t, run, value);
  if (behind == run.first || t.slot(behind - 1) != value) return Erased::absent;
  const std::uint64_t slot = behind - 1;
  std::uint64_t settled = slot + 1 == t.slots() ? t.slots() : t.template first_settled<false>(slot + 1);
  // A sound table may be used up to its last slot.
  if (settled == Table::kNowhere) settled = t.slots();

  // Spills that are stored as "far" may come near: they are found through the run ends, so before those move.
  std::uint64_t known = Table::kNowhere;  // the spill of block b - 1, once it had to be found
  for (std::uint64_t b = q / 64 + 1; b <= (settled - 1) / 64; ++b) {
    std::uint64_t spilled = t.stored_spill(b);
    if (spilled == Table::kFarSpill) spilled = known == Table::kNowhere ? t.spill(b) : t.spill_after(b - 1, known);
    known = spilled;
    if (spilled == 0 || spilled == Table::kNowhere) return Erased::absent;
    t.set_spill(b, spilled - 1);
  }
  const bool only = run.first == run.last;
  if (only) {
    t.set_occupied(q / 64, starts & ~(std::uint64_t{1} << q % 64));
  } else if (slot == run.last) {
    t.set_run_ends((slot - 1) / 64, t.run_ends((slot - 1) / 64) | std::uint64_t{1} << (slot - 1) % 64);
  }
  t.erase_at(slot, settled);
  t.set_keys(t.keys() - 1);
  return Erased::removed;
}

constexpr std::size_t kKeysAhead = 24;

template <class Bits>
PERHAPS_INLINE std::size_t insert_many_as(const QuotientShape& shape, std::byte* table, const std::uint64_t* digests,
                                          std::size_t count, bool ahead) noexcept {
  for (std::size_t i = 0; ahead && i < std::min(kKeysAhead, count); ++i)
    QuotientLayout::prefetch(shape, table, digests[i]);
  for (std::size_t i = 0; i < count; ++i) {
    if (ahead && i + kKeysAhead < count) QuotientLayout::prefetch(shape, table, digests[i + kKeysAhead]);
    const std::uint64_t fingerprint = QuotientLayout::fingerprint_of(shape, digests[i]);
    if (insert_as<Bits>(shape, table, fingerprint) == Inserted::full) return i;
  }
  return count;
}

template <class Bits>
PERHAPS_INLINE void query_as(const QuotientShape& shape, const std::byte* table, const std::uint64_t* digests,
                             std::size_t count, std::uint64_t* answers, bool ahead) noexcept {
  for (std::size_t i = 0; ahead && i < std::min(kKeysAhead, count); ++i)
    QuotientLayout::prefetch(shape, table, digests[i]);
  for (std::size_t from = 0; from < count; from += kBatch) {
    const std::size_t size = std::min(kBatch, count - from);
    std::uint64_t word = 0;
    for (std::size_t i = 0; i < size; ++i) {
      if (ahead && from + i + kKeysAhead < count)
        QuotientLayout::prefetch(shape, table, digests[from + i + kKeysAhead]);
      const std::uint64_t fingerprint = QuotientLayout::fingerprint_of(shape, digests[from + i]);
      word |= std::uint64_t{QuotientLayout::has<Bits>(shape, table, fingerprint)} << i;
    }
    answers[from / kBatch] = word;
  }
}

// Which of a block's 64 quotients there are.
constexpr std::uint64_t quotients_of_block(const QuotientShape& shape, std::uint64_t b) noexcept {
  const std::uint64_t left = shape.buckets > b * 64 ? shape.buckets - b * 64 : 0;
  return left >= 64 ? ~std::uint64_t{0} : below_bit(left);
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

// A block of slots, done with: 64 values of `width` bits into `width` words, 64 bytes of 0 or 1 into the run ends.
void write_slots(detail::QuotientPen& pen) noexcept {
  const std::span values = std::span(pen.values).subspan(pen.slot_block * 64 % pen.values.size(), 64);
  const std::span ends = std::span(pen.ends).subspan(pen.slot_block * 64 % pen.ends.size(), 64);
  Editor<Portable> t(pen.shape, pen.table);
  std::uint64_t run_ends = 0;
  for (std::size_t i = 0; i < 64; i += 8) {
    // Bit 8 j goes to bit 56 + j; no two of the products' bits meet.
    const std::uint64_t eight = detail::load<std::uint64_t>(ends.data() + i);
    run_ends |= eight * 0x0102040810204080u >> 56 << i;
  }
  t.set_run_ends(pen.slot_block, run_ends);
  std::byte* to = pen.table + QuotientShape::kHeadBytes + pen.slot_block * pen.shape.block_bytes();
  std::uint32_t width = pen.shape.width();
  std::size_t count = 64;
  // Side by side in pairs while they fit into a word: that has no carries.
  std::array<std::uint64_t, 32> pairs;
  std::uint64_t* from = values.data();
  for (; 2 * width < 64; width *= 2, count /= 2, from = pairs.data()) {
    for (std::size_t i = 0; i < count / 2; ++i) pairs[i] = from[2 * i] | from[2 * i + 1] << width;
  }
  std::uint64_t word = 0;
  std::uint32_t bits = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const std::uint64_t value = from[i];
    word |= value << bits;
    bits += width;
    if (bits >= 64) {
      detail::store(to, word);
      to += 8;
      bits -= 64;
      word = bits == 0 ? 0 : value >> (width - bits);
    }
  }
  // Some at a time: all at once are a `rep stos`, which takes longer than the rest of this function.
  for (std::size_t i = 0; i < 64; i += 8) {
    std::memset(&values[i], 0, 64);
    std::memset(&ends[i], 0, 8);
  }
  ++pen.slot_block;
}

// Done with the quotients of a block: only now is it known how far they spill.
void next_start_block(detail::QuotientPen& pen) noexcept {
  Editor<Portable> t(pen.shape, pen.table);
  t.set_occupied(pen.start_block, pen.starts);
  pen.starts = 0;
  ++pen.start_block;
  if (pen.next_slot > pen.start_block * 64) t.set_spill(pen.start_block, pen.next_slot - pen.start_block * 64);
}

// Writes the first `count` of count + 1 fingerprints: whether one ends its run, the next one says. False: they do not
// ascend, or there is no slot left.  REQUIRES: if they ascend, the first `count` are below fingerprints()
// Those of one block of quotients go to slots of at most three blocks, if they are not too many at a time. So they are
// put down without asking where a block of slots ends, and blocks are written behind them.
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

// Two ascending lists, and where their merger goes.
struct Merging {
  const std::uint64_t* x;
  const std::uint64_t* y;
  const std::uint64_t* x_end;
  const std::uint64_t* y_end;
  std::uint64_t* out;

  std::ptrdiff_t steps() const noexcept { return std::min(x_end - x, y_end - y); }
  // No branch depends on the order, which is as good as random.  REQUIRES: steps() >= 1
  PERHAPS_INLINE void first_to(std::uint64_t* to) noexcept {
    const std::uint64_t low_x = *x;
    const std::uint64_t low_y = *y;
    const std::ptrdiff_t x_first = low_x <= low_y;
    *to = std::min(low_x, low_y);
    x += x_first;
    y += 1 - x_first;
  }
  PERHAPS_INLINE void last_to(std::uint64_t* to) noexcept {
    const std::uint64_t high_x = x_end[-1];
    const std::uint64_t high_y = y_end[-1];
    const std::ptrdiff_t x_last = high_x > high_y;
    *to = std::max(high_x, high_y);
    x_end -= x_last;
    y_end -= 1 - x_last;
  }
  // As many as there is room for. In lists that do not ascend both ends may have passed each other, in one of the two.
  void rest_up_to(const std::uint64_t* out_end) noexcept {
    while (out < out_end) *out++ = y >= y_end || (x < x_end && *x <= *y) ? *x++ : *y++;
  }
};

// Merges two ascending lists. A step waits for the one before it, some eight cycles; so the lists are cut in two, and
// both parts are merged from both ends at once: four chains of steps side by side.
PERHAPS_INLINE void merge_as(std::span<const std::uint64_t> a, std::span<const std::uint64_t> b,
                             std::uint64_t* out) noexcept {
  const std::uint64_t* const a_end = a.data() + a.size();
  const std::uint64_t* const b_end = b.data() + b.size();
  const std::uint64_t* const a_cut = a.data() + a.size() / 2;
  const std::uint64_t* const b_cut = a_cut == a_end ? b_end : std::lower_bound(b.data(), b_end, *a_cut);
  Merging low{a.data(), b.data(), a_cut, b_cut, out};
  std::uint64_t* low_end = out + (a_cut - a.data()) + (b_cut - b.data());
  Merging high{a_cut, b_cut, a_end, b_end, low_end};
  std::uint64_t* high_end = out + a.size() + b.size();
  // That many steps use up no list, from neither end.
  const std::ptrdiff_t steps = std::min(low.steps(), high.steps());
  for (std::ptrdiff_t i = 0; i < steps; ++i) {
    low.first_to(low.out + i);
    low.last_to(low_end - 1 - i);
    high.first_to(high.out + i);
    high.last_to(high_end - 1 - i);
  }
  low.out += steps;
  low_end -= steps;
  high.out += steps;
  for (std::ptrdiff_t i = low.steps(); i > 0; --i) low.first_to(low.out++);
  for (std::ptrdiff_t i = high.steps(); i > 0; --i) high.first_to(high.out++);
  low.rest_up_to(low_end);
  high.rest_up_to(high_end - steps);
}

#if PERHAPS_BMI2
PERHAPS_WITH_BMI2 bool put_all_bmi2(detail::QuotientPen& pen, const std::uint64_t* fingerprints,
                                    std::size_t count) noexcept {
  return put_all_as(pen, fingerprints, count);
}
PERHAPS_WITH_BMI2 std::size_t read_bmi2(detail::QuotientCursor& at, std::uint64_t* out, std::size_t room) noexcept {
  return read_as(at, out, room);
}
PERHAPS_WITH_BMI2 Inserted insert_bmi2(const QuotientShape& shape, std::byte* table, std::uint64_t f) noexcept {
  return insert_as<Bmi2>(shape, table, f);
}
PERHAPS_WITH_BMI2 Erased erase_bmi2(const QuotientShape& shape, std::byte* table, std::uint64_t f) noexcept {
  return erase_as<Bmi2>(shape, table, f);
}
PERHAPS_WITH_BMI2 std::size_t insert_many_bmi2(const QuotientShape& shape, std::byte* table,
                                               const std::uint64_t* digests, std::size_t count, bool ahead) noexcept {
  return insert_many_as<Bmi2>(shape, table, digests, count, ahead);
}
PERHAPS_WITH_BMI2 void query_bmi2(const QuotientShape& shape, const std::byte* table, const std::uint64_t* digests,
                                  std::size_t count, std::uint64_t* answers, bool ahead) noexcept {
  query_as<Bmi2>(shape, table, digests, count, answers, ahead);
}
#endif

bool put_all(detail::QuotientPen& pen, const std::uint64_t* fingerprints, std::size_t count) noexcept {
#if PERHAPS_BMI2
  if (use_bmi2()) return put_all_bmi2(pen, fingerprints, count);
#endif
  return put_all_as(pen, fingerprints, count);
}

Error contradiction() { return Error{Errc::bad_parameter, "quotient: the table contradicts itself"}; }

std::string decimal(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", x);
  return text;
}

// A stream of fingerprints in pieces.
class Stream {
 public:
  static constexpr std::size_t kRoom = 1024;

  Stream(const QuotientShape& shape, const std::byte* table) noexcept : reader_(shape, table) { refill(); }
  const std::uint64_t* begin() const noexcept { return buffer_.data() + from_; }
  std::size_t size() const noexcept { return size_ - from_; }
  std::uint64_t last() const noexcept { return buffer_[size_ - 1]; }
  // Those not above `bound`; all, if even the last is not.
  std::span<const std::uint64_t> up_to(std::uint64_t bound) const noexcept {
    if (last() <= bound) return {begin(), size()};
    return {begin(), std::upper_bound(begin(), begin() + size(), bound)};
  }
  void drop(std::size_t count) noexcept {
    from_ += count;
    if (from_ == size_) refill();
  }

 private:
  void refill() noexcept {
    from_ = 0;
    size_ = reader_.read(buffer_);
  }
  QuotientReader reader_;
  std::size_t from_ = 0;
  std::size_t size_ = 0;
  std::array<std::uint64_t, kRoom> buffer_;
};

}  // namespace

namespace detail {

void quotient_query(QuotientShape shape, const std::byte* table, const std::uint64_t* digests, std::size_t count,
                    std::uint64_t* answers, bool ahead) noexcept {
#if PERHAPS_BMI2
  if (use_bmi2()) return query_bmi2(shape, table, digests, count, answers, ahead);
#endif
  query_as<Portable>(shape, table, digests, count, answers, ahead);
}

Inserted quotient_insert(QuotientShape shape, std::byte* table, std::uint64_t fingerprint) noexcept {
#if PERHAPS_BMI2
  if (use_bmi2()) return insert_bmi2(shape, table, fingerprint);
#endif
  return insert_as<Portable>(shape, table, fingerprint);
}

std::size_t quotient_insert_many(QuotientShape shape, std::byte* table, const std::uint64_t* digests, std::size_t count,
                                 bool ahead) noexcept {
#if PERHAPS_BMI2
  if (use_bmi2()) return insert_many_bmi2(shape, table, digests, count, ahead);
#endif
  return insert_many_as<Portable>(shape, table, digests, count, ahead);
}

Erased quotient_erase(QuotientShape shape, std::byte* table, std::uint64_t fingerprint) noexcept {
#if PERHAPS_BMI2
  if (use_bmi2()) return erase_bmi2(shape, table, fingerprint);
#endif
  return erase_as<Portable>(shape, table, fingerprint);
}

std::uint64_t quotient_count(QuotientShape shape, const std::byte* table, std::uint64_t fingerprint) noexcept {
  const Table t(shape, table);
  const std::uint64_t q = fingerprint >> shape.width();
  if ((t.occupied(q / 64) >> q % 64 & 1) == 0) return 0;
  const auto run = t.run_of(q);
  if (!run.found()) return 0;
  const std::uint64_t guards = below_bit(shape.guard_bits);
  const std::uint64_t highest = (fingerprint & t.slot_mask()) | guards;
  const std::uint64_t lowest = highest - guards;
  const std::uint64_t end = upper_bound(t, run, highest);
  const std::uint64_t begin = lowest == 0 ? run.first : upper_bound(t, run, lowest - 1);
  return end > begin ? end - begin : 0;
}

Result<void> quotient_check(QuotientShape shape, Bytes table) {
  const std::uint64_t keys = load<std::uint64_t>(table.data());
  if (keys > shape.capacity()) {
    return Error{Errc::bad_parameter,
                 "quotient: " + std::to_string(keys) + " keys in a table for " + std::to_string(shape.capacity())};
  }
  for (std::size_t i = 8; i < QuotientShape::kHeadBytes; i += 8) {
    if (load<std::uint64_t>(table.data() + i) != 0) {
      return Error{Errc::bad_parameter, "quotient: byte " + std::to_string(i) + " and on of the head are not 0"};
    }
  }
  return {};
}

// A table is sound if it is what a writer makes of the fingerprints that a reader finds in it: the bytes depend on them
// alone. So that no second table is needed, the blocks are compared one at a time.
Result<void> quotient_verify(QuotientShape shape, Bytes bytes) {
  if (auto head = quotient_check(shape, bytes); !head) return head;
  const Table t(shape, bytes.data());
  std::uint64_t keys = 0;
  std::uint64_t next_slot = 0;  // behind the last run
  std::uint64_t end_block = 0;
  std::uint64_t ends = t.run_ends(0);
  const auto unused_until = [&](std::uint64_t slot) {
    for (; next_slot < slot; ++next_slot) {
      if (t.slot(next_slot) != 0) return false;
    }
    return true;
  };
  for (std::uint64_t b = 0; b < t.blocks(); ++b) {
    const std::uint64_t spilled = next_slot > b * 64 ? next_slot - b * 64 : 0;
    if (t.stored_spill(b) != std::min(spilled, Table::kFarSpill)) return contradiction();
    for (std::uint64_t starts = t.occupied(b); starts != 0; starts &= starts - 1) {
      const std::uint64_t q = b * 64 + static_cast<std::uint64_t>(std::countr_zero(starts));
      while (ends == 0 && ++end_block < t.blocks()) ends = t.run_ends(end_block);
      if (q >= shape.buckets || ends == 0) return contradiction();
      const std::uint64_t last = end_block * 64 + static_cast<std::uint64_t>(std::countr_zero(ends));
      ends &= ends - 1;
      if (last < q || last < next_slot || !unused_until(q)) return contradiction();
      keys += last - next_slot + 1;
      for (std::uint64_t value = 0; next_slot <= last; ++next_slot) {
        if (t.slot(next_slot) < value) return contradiction();
        value = t.slot(next_slot);
      }
    }
  }
  while (ends == 0 && ++end_block < t.blocks()) ends = t.run_ends(end_block);
  if (ends != 0 || !unused_until(t.slots()) || keys != QuotientLayout::keys(shape, bytes.data())) {
    return contradiction();
  }
  return {};
}

Result<QuotientShape> quotient_union_shape(QuotientShape a, std::uint64_t keys_a, QuotientShape b,
                                           std::uint64_t keys_b) {
  return (a.buckets >= b.buckets ? a : b).grown_for(keys_a + keys_b);
}

Result<void> quotient_merge(QuotientShape a, const std::byte* table_a, QuotientShape b, const std::byte* table_b,
                            QuotientShape shape, std::byte* into) {
  if (a.fingerprints() != b.fingerprints() || shape.fingerprints() != a.fingerprints()) {
    return Error{Errc::mismatch, "quotient: merging needs equal buckets * 2^(remainder + guard bits), there are " +
                                     std::to_string(a.fingerprints()) + ", " + std::to_string(b.fingerprints()) +
                                     " and for the result " + std::to_string(shape.fingerprints())};
  }
  const std::uint64_t keys = QuotientLayout::keys(a, table_a) + QuotientLayout::keys(b, table_b);
  if (keys > shape.capacity()) {
    return Error{Errc::mismatch, "quotient: " + std::to_string(keys) + " keys do not fit into a table for " +
                                     std::to_string(shape.capacity())};
  }
  Stream left(a, table_a);
  Stream right(b, table_b);
  QuotientWriter writer(shape, into);
  std::array<std::uint64_t, 2 * Stream::kRoom> out;
  bool good = true;
  while (good && left.size() != 0 && right.size() != 0) {
    // All that both have up to the lesser of their last ones.
    const auto a_part = left.up_to(right.last());
    const auto b_part = right.up_to(left.last());
    merge_as(a_part, b_part, out.data());
    good = writer.append(std::span(out).first(a_part.size() + b_part.size()));
    left.drop(a_part.size());
    right.drop(b_part.size());
  }
  for (Stream* rest : {&left, &right}) {
    while (good && rest->size() != 0) {
      good = writer.append({rest->begin(), rest->size()});
      rest->drop(rest->size());
    }
  }
  if (!good || !writer.finish() || QuotientLayout::keys(shape, into) != keys) return contradiction();
  return {};
}

Result<void> quotient_resize(QuotientShape from, const std::byte* table, QuotientShape shape, std::byte* into) {
  const std::uint64_t keys = QuotientLayout::keys(from, table);
  if (keys > shape.capacity()) {
    return Error{Errc::mismatch, "quotient: " + std::to_string(keys) + " keys do not fit into a table for " +
                                     std::to_string(shape.capacity())};
  }
  std::uint32_t drop = 0;
  while (shape.fingerprints() <= from.fingerprints() >> (drop + 1)) ++drop;
  if (shape.fingerprints() << drop != from.fingerprints()) {
    return Error{Errc::mismatch,
                 shape.fingerprints() > from.fingerprints()
                     ? "quotient: the larger table needs more bits of each key than are stored; with the same bits it "
                       "has an FPR of " +
                           decimal(from.fpr(static_cast<double>(shape.capacity()))) + " at " +
                           std::to_string(shape.capacity()) + " keys"
                     : "quotient: buckets * 2^(remainder + guard bits) can change by powers of two only, not from " +
                           std::to_string(from.fingerprints()) + " to " + std::to_string(shape.fingerprints())};
  }
  QuotientReader reader(from, table);
  QuotientWriter writer(shape, into);
  std::array<std::uint64_t, 512> some;
  for (std::size_t n = reader.read(some); n != 0; n = reader.read(some)) {
    for (std::size_t i = 0; i < n; ++i) some[i] >>= drop;
    if (!writer.append(std::span(some).first(n))) return contradiction();
  }
  if (!writer.finish() || QuotientLayout::keys(shape, into) != keys) return contradiction();
  return {};
}

Result<void> quotient_build(QuotientShape shape, std::byte* into, std::vector<std::uint64_t> fingerprints) {
  if (fingerprints.size() > shape.capacity()) {
    return Error{Errc::mismatch, "quotient: " + std::to_string(fingerprints.size()) +
                                     " keys do not fit into a table for " + std::to_string(shape.capacity())};
  }
  std::sort(fingerprints.begin(), fingerprints.end());
  QuotientWriter writer(shape, into);
  if (!writer.append(fingerprints) || !writer.finish()) {
    return Error{Errc::mismatch, "quotient: equal fingerprints pile up past the end of the table"};
  }
  return {};
}

}  // namespace detail

QuotientReader::QuotientReader(QuotientShape shape, const std::byte* table) noexcept
    : at_{.shape = shape, .table = table} {
  const Table t(shape, table);
  at_.starts = t.occupied(0) & quotients_of_block(shape, 0);
  at_.ends = t.run_ends(0);
}

std::size_t QuotientReader::read(std::span<std::uint64_t> out) noexcept {
#if PERHAPS_BMI2
  if (use_bmi2()) return read_bmi2(at_, out.data(), out.size());
#endif
  return read_as(at_, out.data(), out.size());
}

QuotientWriter::QuotientWriter(QuotientShape shape, std::byte* table) noexcept : pen_{.shape = shape, .table = table} {}

bool QuotientWriter::append(std::span<const std::uint64_t> ascending) noexcept {
  if (ascending.empty() || !good_) return good_;
  if (ascending.back() >= pen_.shape.fingerprints()) return good_ = false;
  if (has_waiting_) good_ = put_all(pen_, std::array{waiting_, ascending[0]}.data(), 1);
  good_ = good_ && put_all(pen_, ascending.data(), ascending.size() - 1);
  waiting_ = ascending.back();
  has_waiting_ = true;
  return good_;
}

bool QuotientWriter::finish() noexcept {
  const std::uint64_t in_another_run = (waiting_ | below_bit(pen_.shape.width())) + 1;
  if (has_waiting_) good_ = good_ && put_all(pen_, std::array{waiting_, in_another_run}.data(), 1);
  has_waiting_ = false;
  good_ = good_ && pen_.written <= pen_.shape.capacity();
  if (!good_) return false;
  Editor<Portable> t(pen_.shape, pen_.table);
  t.set_occupied(pen_.start_block, pen_.starts);
  if (pen_.next_slot > pen_.slot_block * 64) write_slots(pen_);
  for (std::uint64_t b = pen_.start_block + 1; b < t.blocks() && pen_.next_slot > b * 64; ++b) {
    t.set_spill(b, pen_.next_slot - b * 64);
  }
  t.set_keys(pen_.written);
  return true;
}

}  // namespace perhaps
