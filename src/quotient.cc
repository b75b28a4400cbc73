#include "perhaps/quotient.h"

#include <algorithm>
#include <cstdio>
#include <string>

namespace perhaps {
namespace {

using Bits = detail::isa::WordBits<detail::isa::Portable>;
using Table = detail::QuotientTable<Bits>;
constexpr std::uint64_t kNowhere = Table::kNowhere;

constexpr std::uint64_t from_bit(std::uint64_t i) noexcept { return ~std::uint64_t{0} << i; }
constexpr std::uint64_t below_bit(std::uint64_t i) noexcept { return (std::uint64_t{1} << i) - 1; }

// A table that can be written. Slots of a block are `width` whole words, so moving a range of slots by one is a shift
// of words; the last slot of a block and the first of the next are carried over by hand.
class Editor : public Table {
 public:
  Editor(const QuotientShape& shape, std::byte* table) noexcept : Table(shape, table), table_(table) {}

  std::uint64_t keys() const noexcept { return detail::load<std::uint64_t>(table_); }
  void set_keys(std::uint64_t keys) noexcept { detail::store(table_, keys); }

  void set_occupied(std::uint64_t b, std::uint64_t word) noexcept { detail::store(at(b) + 8 * width(), word); }
  void set_run_ends(std::uint64_t b, std::uint64_t word) noexcept { detail::store(at(b) + 8 * width() + 8, word); }
  void set_spill(std::uint64_t b, std::uint64_t spilled) noexcept {
    at(b)[8 * width() + 16] = static_cast<std::byte>(std::min(spilled, kFarSpill));
  }
  void set_slot_in(std::byte* block, std::uint64_t i, std::uint64_t value) noexcept {
    const std::uint64_t bit = i * width();
    const std::uint64_t old = detail::load<std::uint64_t>(block + bit / 8);
    detail::store(block + bit / 8, (old & ~(slot_mask() << bit % 8)) | value << bit % 8);
  }

  // Makes room at `slot` by moving the slots from there up to `unused` by one, and fills it.
  void insert_at(std::uint64_t slot, std::uint64_t unused, std::uint64_t value, bool ends_run) noexcept {
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
  void erase_at(std::uint64_t slot, std::uint64_t settled) noexcept {
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
  std::byte* at(std::uint64_t b) noexcept { return const_cast<std::byte*>(block(b)); }

  // Slots low..high-1 become low+1..high. What is in slot `low` then is not said.
  void slots_up(std::byte* words, std::uint64_t low, std::uint64_t high) noexcept {
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
  void slots_down(std::byte* words, std::uint64_t low, std::uint64_t high) noexcept {
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

  static std::uint64_t word_at(const std::byte* words, std::uint64_t k) noexcept {
    return detail::load<std::uint64_t>(words + 8 * k);
  }
  static void set_word(std::byte* words, std::uint64_t k, std::uint64_t word) noexcept {
    detail::store(words + 8 * k, word);
  }

  std::byte* table_;
};

// The first slot of a run whose value is above `value`, or the one behind the run.
std::uint64_t upper_bound(const Table& t, Table::Run run, std::uint64_t value) noexcept {
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

Error contradiction() { return Error{Errc::bad_parameter, "quotient: the table contradicts itself"}; }

std::string decimal(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", x);
  return text;
}

// A stream of fingerprints in pieces.
class Stream {
 public:
  Stream(const QuotientShape& shape, const std::byte* table) noexcept : reader_(shape, table) { refill(); }
  const std::uint64_t* begin() const noexcept { return buffer_.data() + from_; }
  std::size_t size() const noexcept { return size_ - from_; }
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
  std::array<std::uint64_t, 512> buffer_;
};

}  // namespace

namespace detail {

void quotient_query(QuotientShape shape, const std::byte* table, const std::uint64_t* digests, std::size_t count,
                    std::uint64_t* answers, bool ahead) noexcept {
  constexpr std::size_t kAhead = 24;
  for (std::size_t i = 0; ahead && i < std::min(kAhead, count); ++i) QuotientLayout::prefetch(shape, table, digests[i]);
  for (std::size_t from = 0; from < count; from += kBatch) {
    const std::size_t size = std::min(kBatch, count - from);
    std::uint64_t word = 0;
    for (std::size_t i = 0; i < size; ++i) {
      if (ahead && from + i + kAhead < count) QuotientLayout::prefetch(shape, table, digests[from + i + kAhead]);
      word |= std::uint64_t{QuotientLayout::may_contain<isa::Portable>(shape, table, digests[from + i])} << i;
    }
    answers[from / kBatch] = word;
  }
}

Inserted quotient_insert(QuotientShape shape, std::byte* table, std::uint64_t fingerprint) noexcept {
  Editor t(shape, table);
  if (t.keys() >= shape.capacity()) return Inserted::full;
  const std::uint64_t q = fingerprint >> shape.width();
  const std::uint64_t value = fingerprint & t.slot_mask();
  const std::uint64_t starts = t.occupied(q / 64);
  const bool has_run = (starts >> q % 64 & 1) != 0;
  Table::Run run{};
  std::uint64_t slot;
  if (has_run) {
    run = t.run_of(q);
    if (!run.found()) return Inserted::full;
    slot = upper_bound(t, run, value);
  } else {
    slot = t.place_of(q);
  }
  const std::uint64_t unused = slot >= t.slots() ? kNowhere : t.first_settled<true>(slot);
  if (unused == kNowhere) return Inserted::full;

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

std::size_t quotient_insert_many(QuotientShape shape, std::byte* table, const std::uint64_t* digests, std::size_t count,
                                 bool ahead) noexcept {
  constexpr std::size_t kAhead = 16;
  for (std::size_t i = 0; ahead && i < std::min(kAhead, count); ++i) QuotientLayout::prefetch(shape, table, digests[i]);
  for (std::size_t i = 0; i < count; ++i) {
    if (ahead && i + kAhead < count) QuotientLayout::prefetch(shape, table, digests[i + kAhead]);
    if (QuotientLayout::insert(shape, table, digests[i]) == Inserted::full) return i;
  }
  return count;
}

Erased quotient_erase(QuotientShape shape, std::byte* table, std::uint64_t fingerprint) noexcept {
  Editor t(shape, table);
  const std::uint64_t q = fingerprint >> shape.width();
  const std::uint64_t value = fingerprint & t.slot_mask();
  const std::uint64_t starts = t.occupied(q / 64);
  if (t.keys() == 0 || (starts >> q % 64 & 1) == 0) return Erased::absent;
  const auto run = t.run_of(q);
  if (!run.found()) return Erased::absent;
  const std::uint64_t behind = upper_bound(t, run, value);
  if (behind == run.first || t.slot(behind - 1) != value) return Erased::absent;
  const std::uint64_t slot = behind - 1;
  std::uint64_t settled = slot + 1 == t.slots() ? t.slots() : t.first_settled<false>(slot + 1);
  // A sound table may be used up to its last slot.
  if (settled == kNowhere) settled = t.slots();

  // Spills that are stored as "far" may come near: they are found through the run ends, so before those move.
  std::uint64_t known = kNowhere;  // the spill of block b - 1, once it had to be found
  for (std::uint64_t b = q / 64 + 1; b <= (settled - 1) / 64; ++b) {
    std::uint64_t spilled = t.stored_spill(b);
    if (spilled == Table::kFarSpill) spilled = known == kNowhere ? t.spill(b) : t.spill_after(b - 1, known);
    known = spilled;
    if (spilled == 0 || spilled == kNowhere) return Erased::absent;
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
  std::array<std::uint64_t, 512> out;
  bool good = true;
  while (good && left.size() != 0 && right.size() != 0) {
    // As many as can be taken without looking whether either is used up. No branch depends on the order, which is as
    // good as random.
    const std::size_t count = std::min({left.size(), right.size(), out.size()});
    const std::uint64_t* x = left.begin();
    const std::uint64_t* y = right.begin();
    for (std::size_t i = 0; i < count; ++i) {
      const bool from_left = *x <= *y;
      out[i] = from_left ? *x : *y;
      x += from_left;
      y += !from_left;
    }
    good = writer.append(std::span(out).first(count));
    left.drop(static_cast<std::size_t>(x - left.begin()));
    right.drop(static_cast<std::size_t>(y - right.begin()));
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
    : shape_(shape), table_(table), blocks_(shape.blocks()) {
  const Table t(shape, table);
  starts_ = t.occupied(0);
  ends_ = t.run_ends(0);
}

std::size_t QuotientReader::read(std::span<std::uint64_t> out) noexcept {
  const Table t(shape_, table_);
  std::size_t size = 0;
  for (;;) {
    if (in_run_) {
      for (; next_slot_ <= run_last_; ++next_slot_) {
        if (size == out.size()) return size;
        out[size++] = run_base_ | t.slot(next_slot_);
      }
      in_run_ = false;
    }
    while (starts_ == 0) {
      if (start_block_ + 1 >= blocks_) return size;
      starts_ = t.occupied(++start_block_);
    }
    while (ends_ == 0) {
      if (end_block_ + 1 >= blocks_) return size;
      ends_ = t.run_ends(++end_block_);
    }
    const std::uint64_t q = start_block_ * 64 + static_cast<std::uint64_t>(std::countr_zero(starts_));
    const std::uint64_t last = end_block_ * 64 + static_cast<std::uint64_t>(std::countr_zero(ends_));
    if (q >= shape_.buckets || last < q) return size;
    starts_ &= starts_ - 1;
    ends_ &= ends_ - 1;
    next_slot_ = std::max(next_slot_, q);
    run_base_ = q << shape_.width();
    run_last_ = last;
    in_run_ = true;
  }
}

QuotientWriter::QuotientWriter(QuotientShape shape, std::byte* table) noexcept
    : shape_(shape), table_(table), blocks_(shape.blocks()) {}

bool QuotientWriter::append(std::span<const std::uint64_t> ascending) noexcept {
  for (const std::uint64_t fingerprint : ascending) {
    if (has_waiting_) {
      good_ = good_ && fingerprint >= waiting_ &&
              put(waiting_, fingerprint >> shape_.width() != waiting_ >> shape_.width());
      if (!good_) return false;
    }
    waiting_ = fingerprint;
    has_waiting_ = true;
  }
  return good_;
}

bool QuotientWriter::finish() noexcept {
  if (has_waiting_) good_ = good_ && put(waiting_, true);
  has_waiting_ = false;
  good_ = good_ && written_ <= shape_.capacity();
  if (!good_) return false;
  Editor t(shape_, table_);
  t.set_occupied(start_block_, starts_);
  write_slots();
  for (std::uint64_t b = start_block_ + 1; b < blocks_ && next_slot_ > b * 64; ++b) t.set_spill(b, next_slot_ - b * 64);
  t.set_keys(written_);
  return true;
}

bool QuotientWriter::put(std::uint64_t fingerprint, bool ends_run) noexcept {
  const std::uint64_t q = fingerprint >> shape_.width();
  if (q >= shape_.buckets) return false;
  while (start_block_ != q / 64) next_start_block();
  starts_ |= std::uint64_t{1} << q % 64;
  const std::uint64_t slot = std::max(q, next_slot_);
  if (slot / 64 != slot_block_) {
    if (slot / 64 >= blocks_) return false;
    write_slots();
    slot_block_ = slot / 64;
  }
  values_[slot % 64] = fingerprint & below_bit(shape_.width());
  ends_ |= std::uint64_t{ends_run} << slot % 64;
  next_slot_ = slot + 1;
  ++written_;
  return true;
}

void QuotientWriter::next_start_block() noexcept {
  Editor t(shape_, table_);
  t.set_occupied(start_block_, starts_);
  starts_ = 0;
  ++start_block_;
  if (next_slot_ > start_block_ * 64) t.set_spill(start_block_, next_slot_ - start_block_ * 64);
}

// 64 values of `width` bits into `width` words.
void QuotientWriter::write_slots() noexcept {
  Editor t(shape_, table_);
  t.set_run_ends(slot_block_, ends_);
  ends_ = 0;
  std::byte* word_at = table_ + QuotientShape::kHeadBytes + slot_block_ * shape_.block_bytes();
  const std::uint32_t width = shape_.width();
  std::uint64_t word = 0;
  std::uint32_t bits = 0;
  for (std::uint64_t& value : values_) {
    word |= value << bits;
    bits += width;
    if (bits >= 64) {
      detail::store(word_at, word);
      word_at += 8;
      bits -= 64;
      word = bits == 0 ? 0 : value >> (width - bits);
    }
    value = 0;
  }
}

}  // namespace perhaps
