// What quotient filters do with whole tables: count, check, merge, resize, build.
#include "perhaps/quotient.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "kernel/instruction_set.h"
#include "kernel/quotient.h"
#include "sizing/rate_text.h"

namespace perhaps {
namespace {

using quotient::below_bit;
using quotient::Editor;
using quotient::Table;

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
void merge_ascending(std::span<const std::uint64_t> a, std::span<const std::uint64_t> b, std::uint64_t* out) noexcept {
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

Error contradiction() { return Error{Errc::bad_parameter, "quotient: the table contradicts itself"}; }
Error piled_up() { return Error{Errc::full, "quotient: equal fingerprints pile up past the end of the table"}; }

// Why a writer did not take what was read from a table; with a sound table that does not happen.
Error not_written(const QuotientShape& shape, const std::byte* table) {
  return QuotientLayout::verify(shape, {table, static_cast<std::size_t>(shape.bytes())}) ? piled_up() : contradiction();
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

std::uint64_t QuotientLayout::count_of(const Shape& shape, const std::byte* table, std::uint64_t fingerprint) noexcept {
  const Table t(shape, table);
  const std::uint64_t q = fingerprint >> shape.width();
  if ((t.occupied(q / 64) >> q % 64 & 1) == 0) return 0;
  const auto run = t.run_of(q);
  if (!run.found()) return 0;
  const std::uint64_t guards = below_bit(shape.guard_bits);
  const std::uint64_t highest = (fingerprint & t.slot_mask()) | guards;
  const std::uint64_t lowest = highest - guards;
  const std::uint64_t end = quotient::upper_bound(t, run, highest);
  const std::uint64_t begin = lowest == 0 ? run.first : quotient::upper_bound(t, run, lowest - 1);
  return end > begin ? end - begin : 0;
}

Result<void> QuotientLayout::check(const Shape& shape, Bytes table) {
  const std::uint64_t keys = QuotientLayout::keys(shape, table.data());
  if (keys > shape.capacity()) {
    return Error{Errc::bad_parameter,
                 "quotient: " + std::to_string(keys) + " keys in a table for " + std::to_string(shape.capacity())};
  }
  for (std::size_t i = 8; i < QuotientShape::kHeadBytes; i += 8) {
    if (detail::load<std::uint64_t>(table.data() + i) != 0) {
      return Error{Errc::bad_parameter, "quotient: byte " + std::to_string(i) + " and on of the head are not 0"};
    }
  }
  return {};
}

// A table is sound if it is what a writer makes of the fingerprints that a reader finds in it: the bytes depend on them
// alone. So that no second table is needed, the blocks are compared one at a time.
Result<void> QuotientLayout::verify(const Shape& shape, Bytes bytes) {
  if (auto head = check(shape, bytes); !head) return head;
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

Result<QuotientShape> QuotientLayout::union_shape(const Shape& a, std::uint64_t keys_a, const Shape& b,
                                                  std::uint64_t keys_b) {
  return (a.buckets >= b.buckets ? a : b).grown_for(keys_a + keys_b);
}

Result<void> QuotientLayout::merge(const Shape& a, const std::byte* table_a, const Shape& b, const std::byte* table_b,
                                   const Shape& shape, std::byte* into) {
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
    merge_ascending(a_part, b_part, out.data());
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
  if (!good || !writer.finish() || QuotientLayout::keys(shape, into) != keys) {
    Error reason = not_written(a, table_a);
    return reason.code == Errc::full ? not_written(b, table_b) : std::move(reason);
  }
  return {};
}

Result<void> QuotientLayout::resize(const Shape& from, const std::byte* table, const Shape& shape, std::byte* into) {
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
                           detail::rate_text(from.fpr(static_cast<double>(shape.capacity()))) + " at " +
                           std::to_string(shape.capacity()) + " keys"
                     : "quotient: buckets * 2^(remainder + guard bits) can change by powers of two only, not from " +
                           std::to_string(from.fingerprints()) + " to " + std::to_string(shape.fingerprints())};
  }
  QuotientReader reader(from, table);
  QuotientWriter writer(shape, into);
  std::array<std::uint64_t, 512> some;
  for (std::size_t n = reader.read(some); n != 0; n = reader.read(some)) {
    for (std::size_t i = 0; i < n; ++i) some[i] >>= drop;
    if (!writer.append(std::span(some).first(n))) return not_written(from, table);
  }
  if (!writer.finish() || QuotientLayout::keys(shape, into) != keys) return not_written(from, table);
  return {};
}

Result<void> QuotientLayout::build(const Shape& shape, std::byte* into, std::vector<std::uint64_t> fingerprints) {
  if (fingerprints.size() > shape.capacity()) {
    return Error{Errc::mismatch, "quotient: " + std::to_string(fingerprints.size()) +
                                     " keys do not fit into a table for " + std::to_string(shape.capacity())};
  }
  std::sort(fingerprints.begin(), fingerprints.end());
  QuotientWriter writer(shape, into);
  if (!writer.append(fingerprints) || !writer.finish()) return piled_up();
  return {};
}

// A block of slots, done with: 64 values of `width` bits into `width` words, 64 bytes of 0 or 1 into the run ends.
void quotient::write_slots(detail::QuotientPen& pen) noexcept {
  const std::span values = std::span(pen.values).subspan(pen.slot_block * 64 % pen.values.size(), 64);
  const std::span ends = std::span(pen.ends).subspan(pen.slot_block * 64 % pen.ends.size(), 64);
  Editor<quotient::PortableBits> t(pen.shape, pen.table);
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
void quotient::next_start_block(detail::QuotientPen& pen) noexcept {
  Editor<quotient::PortableBits> t(pen.shape, pen.table);
  t.set_occupied(pen.start_block, pen.starts);
  pen.starts = 0;
  ++pen.start_block;
  if (pen.next_slot > pen.start_block * 64) t.set_spill(pen.start_block, pen.next_slot - pen.start_block * 64);
}

QuotientReader::QuotientReader(QuotientShape shape, const std::byte* table) noexcept
    : at_{.shape = shape, .table = table} {
  const Table t(shape, table);
  at_.starts = t.occupied(0) & quotient::quotients_of_block(shape, 0);
  at_.ends = t.run_ends(0);
}

std::size_t QuotientReader::read(std::span<std::uint64_t> out) noexcept {
  return kernel::active().quotient_read(at_, out.data(), out.size());
}

QuotientWriter::QuotientWriter(QuotientShape shape, std::byte* table) noexcept : pen_{.shape = shape, .table = table} {}

bool QuotientWriter::append(std::span<const std::uint64_t> ascending) noexcept {
  if (ascending.empty() || !good_) return good_;
  if (ascending.back() >= pen_.shape.fingerprints()) return good_ = false;
  if (has_waiting_) good_ = kernel::active().quotient_write(pen_, std::array{waiting_, ascending[0]}.data(), 1);
  good_ = good_ && kernel::active().quotient_write(pen_, ascending.data(), ascending.size() - 1);
  waiting_ = ascending.back();
  has_waiting_ = true;
  return good_;
}

bool QuotientWriter::finish() noexcept {
  const std::uint64_t in_another_run = (waiting_ | below_bit(pen_.shape.width())) + 1;
  if (has_waiting_)
    good_ = good_ && kernel::active().quotient_write(pen_, std::array{waiting_, in_another_run}.data(), 1);
  has_waiting_ = false;
  good_ = good_ && pen_.written <= pen_.shape.capacity();
  if (!good_) return false;
  Editor<quotient::PortableBits> t(pen_.shape, pen_.table);
  t.set_occupied(pen_.start_block, pen_.starts);
  if (pen_.next_slot > pen_.slot_block * 64) quotient::write_slots(pen_);
  for (std::uint64_t b = pen_.start_block + 1; b < t.blocks() && pen_.next_slot > b * 64; ++b) {
    t.set_spill(b, pen_.next_slot - b * 64);
  }
  detail::store(pen_.table, pen_.written);
  return true;
}

}  // namespace perhaps
