// The quotient filter, in its rank-and-select form (Pandey, Bender, Johnson, Patro: A General-Purpose Counting Filter,
// 2017; the idea is Cleary's and Knuth's). It stores the fingerprints themselves, sorted: so it can erase, count, list
// what it holds, be merged with another in one sequential pass, and grow without the keys.
//
//   fingerprint F = floor(mixed * buckets * 2^width / 2^64), mixed = (h ^ h >> 32) * 0x9fb21c651e98df25 mod 2^64
//                 = quotient (0..buckets-1) . remainder (remainder_bits) . guard (guard_bits)
//                   width = remainder_bits + guard_bits; any number of buckets, F is monotone in `mixed`
//
// A fingerprint wants to sit in the slot of its quotient. Slots are kept as by linear probing that never wraps: all
// fingerprints in ascending order, each at its own slot or, where that is taken, as little to the right as possible.
// Those of one quotient stand side by side: a run. Two bits for each slot number say which run is whose:
//   occupied[q]   some fingerprint has quotient q
//   run_end[s]    slot s holds the last fingerprint of a run
// The i-th set bit of `occupied` and the i-th set bit of `run_end` belong to the same run. To count from the start of
// the table would take forever, so each block of 64 also says how far the runs before it spill into it:
//   spill[b]      slots at and after 64 b that hold quotients below 64 b; 255: that many or more, see the block before
//
//     quotient      0  1  2  3  4  5  6  7                 remainders of quotient 1: a b c, 2: d, 4: e, 6: f
//     occupied      0  1  1  0  1  0  1  0
//     slot          0  1  2  3  4  5  6  7
//     remainder     .  a  b  c  d  e  f  .
//     run_end       0  0  0  1  1  1  1  0
//
// To find the run of an occupied q in block b: let d be the number of occupied quotients from 64 b to q. The run ends
// at the d-th run end at or after slot 64 b + spill[b], and begins behind the run end before that, but not before q.
//
//   table  = head (64 bytes) . blocks of 8 * width + 17 bytes;  all numbers little-endian
//   head   = | fingerprints stored, u64 | 56 bytes 0 |
//   block  = | 64 slots of `width` bits, slot i from bit i * width | occupied u64 | run_end u64 | spill u8 |
//   blocks = ceil((buckets + spare) / 64): the last runs spill into spare slots. spare = 64 for each of the first 1, 4,
//            16, 64, 256 times 64 buckets, 320 at most, `buckets` at most. At 95 % load the backlog at the end exceeds
//            k slots with probability e^(-k / 10), in small tables it is a matter of 8 standard deviations.
//
// Unused slots are 0, and runs are sorted by remainder and guard, so the bytes are a function of the multiset of
// fingerprints alone: in whatever order keys came and went, equal contents are equal bytes.
//
// False positives: a key that was not inserted answers *perhaps* if quotient and remainder are those of one that was:
//   fpr(n) = 1 - (1 - 1 / (buckets * 2^remainder_bits))^n, about load * 2^-remainder_bits
// That is exact and holds at every load. Space: remainder_bits + 2.125 bits per slot; at 95 % load 1.05 times that per
// key.
//
// A multiset: every insert stores one fingerprint more, also if the key looked present (`Inserted::present`), and every
// erase takes one away. count(h) is how often quotient and remainder of h are there. Counts are repetitions, not the
// compressed counters of the paper: a key inserted a thousand times takes a thousand slots and makes its neighbours
// slow.
//
// Erase removes one fingerprint that equals the key's, guard included. A key that was inserted is always found. A key
// that was *not* inserted finds one by accident, and then takes away another's, with probability
//   wrong_erase(n) = 1 - (1 - 1 / (buckets * 2^width))^n <= fpr(n) * 2^-guard_bits + (digests that are equal, 2^-64)
// Queries do not look at the guard: it makes erase safer, not fpr lower. There are no tombstones: after an erase the
// bytes are those of a filter that never had the key, so needs_rebuild() is false, always.
//
// Full: insert answers `full` at capacity() = 95 % of the buckets, and if there is no slot left before the end (only
// with a multiset that piles up there). Past 95 % clusters grow like 1 / (1 - load)^2 and so does the time.
//
// Growing: F has the same bits in every shape with the same buckets * 2^width. Twice the buckets with one remainder bit
// less is such a shape: resize() enumerates and writes, no key is needed. Each doubling at full load doubles the FPR,
// because fpr counts keys against buckets * 2^remainder_bits, which has not changed. Fewer bits are possible as well:
// F >> k is the fingerprint in any shape with buckets * 2^width smaller by 2^k exactly.
#pragma once
#include <algorithm>
#include <array>
#include <vector>

#include "perhaps/detail/quotient_table.h"
#include "perhaps/flat.h"

namespace perhaps {

struct QuotientLayout {
  using Shape = QuotientShape;
  using word = std::uint64_t;
  static constexpr std::string_view family = "quotient";
  // The number in a file, and the batch kernels.
  static constexpr Kind kind = Kind::quotient;
  static constexpr auto query_kernel = &detail::Kernels::quotient_query;
  static constexpr auto insert_kernel = &detail::Kernels::quotient_insert;
  static constexpr bool fills_up = true;

  // Digests of integers are weakest in their low bits and fingerprints may take 63: fold the high half in and multiply.
  // A bijection, so that different digests stay different.
  static constexpr std::uint64_t mixed(std::uint64_t h) noexcept { return (h ^ h >> 32) * 0x9fb21c651e98df25u; }
  static constexpr std::uint64_t fingerprint_of(const Shape& shape, std::uint64_t h) noexcept {
    return detail::scale(mixed(h), shape.fingerprints());
  }

  template <class Isa>
  static bool may_contain(const Shape& shape, const std::byte* table, std::uint64_t h) noexcept {
    return has<detail::isa::WordBits<Isa>>(shape, table, fingerprint_of(shape, h));
  }

  // Is there a slot with the fingerprint's quotient and remainder? Bytes that contradict themselves answer *perhaps*.
  template <class Bits>
  PERHAPS_INLINE static bool has(const Shape& shape, const std::byte* table, std::uint64_t fingerprint) noexcept {
    const detail::QuotientTable<Bits> t(shape, table);
    const std::uint64_t q = fingerprint >> shape.width();
    const std::byte* block = t.block(q / 64);
    const std::uint64_t starts = t.occupied(q / 64);
    const std::uint64_t i = q % 64;
    if ((starts >> i & 1) == 0) return false;
    const std::uint64_t value = (fingerprint & t.slot_mask()) >> shape.guard_bits << shape.guard_bits;
    if (const auto run = t.run_within(t.grid(), block, starts, i); run.found()) [[likely]] {
      return run.first > run.last || t.any_equal(block, run.first, run.last, value, shape.guard_bits);
    }
    return has_far<Bits>(shape, table, q, value);
  }
  template <class Bits>
  PERHAPS_INLINE static bool has_far(const Shape& shape, const std::byte* table, std::uint64_t q,
                                     std::uint64_t value) noexcept {
    const detail::QuotientTable<Bits> t(shape, table);
    const auto run = t.run_of(q);
    if (!run.found()) return true;
    for (std::uint64_t b = run.first / 64; b <= run.last / 64; ++b) {
      const std::uint64_t first = b == run.first / 64 ? run.first % 64 : 0;
      const std::uint64_t last = b == run.last / 64 ? run.last % 64 : 63;
      if (t.any_equal(t.block(b), first, last, value, shape.guard_bits)) return true;
    }
    return false;
  }

  static void prefetch(const Shape& shape, const std::byte* table, std::uint64_t h) noexcept {
    prefetch_fingerprint(shape, table, fingerprint_of(shape, h));
  }
  // The block of the quotient, and the slot it wants.
  static void prefetch_fingerprint(const Shape& shape, const std::byte* table, std::uint64_t fingerprint) noexcept {
    const std::uint64_t q = fingerprint >> shape.width();
    const std::byte* block = table + Shape::kHeadBytes + q / 64 * shape.block_bytes();
    detail::prefetch_read(block + 8 * shape.width());
    detail::prefetch_read(block + q % 64 * shape.width() / 8);
  }
  static Inserted insert(const Shape& shape, std::byte* table, std::uint64_t h) noexcept {
    return detail::kernels().quotient_insert_one(shape, table, fingerprint_of(shape, h));
  }
  static Erased erase(const Shape& shape, std::byte* table, std::uint64_t h) noexcept {
    return detail::kernels().quotient_erase_one(shape, table, fingerprint_of(shape, h));
  }
  // How often quotient and remainder of h are there.
  static std::uint64_t count(const Shape& shape, const std::byte* table, std::uint64_t h) noexcept {
    return count_of(shape, table, fingerprint_of(shape, h));
  }
  static std::uint64_t keys(const Shape&, const std::byte* table) noexcept {
    return detail::load<std::uint64_t>(table);
  }
  static bool needs_rebuild(const Shape&, const std::byte*) noexcept { return false; }

  // A run that begins and has no end contradicts itself.
  static detail::Everything<Shape> everything() noexcept {
    static constexpr auto kTable = [] {
      std::array<std::byte, Shape{}.bytes()> table{};
      table[Shape::kHeadBytes + 8 * Shape{}.width()] = std::byte{1};  // quotient 0 is occupied
      return table;
    }();
    return {Shape{}, kTable.data()};
  }

  // Of the head only. Blocks may hold anything: probes are bounded whatever the bytes say.
  PERHAPS_API static Result<void> check(const Shape& shape, Bytes table);
  // A pass over the table: is it one that inserts could have made?
  PERHAPS_API static Result<void> verify(const Shape& shape, Bytes table);

  // Whole tables. `into` is zeroed.
  PERHAPS_API static Result<void> merge(const Shape& a, const std::byte* table_a, const Shape& b,
                                        const std::byte* table_b, const Shape& shape, std::byte* into);
  PERHAPS_API static Result<void> resize(const Shape& from, const std::byte* table, const Shape& shape,
                                         std::byte* into);
  PERHAPS_API static Result<Shape> union_shape(const Shape& a, std::uint64_t keys_a, const Shape& b,
                                               std::uint64_t keys_b);
  PERHAPS_API static Result<void> build(const Shape& shape, std::byte* into, std::vector<std::uint64_t> fingerprints);

 private:
  PERHAPS_API static std::uint64_t count_of(const Shape& shape, const std::byte* table,
                                            std::uint64_t fingerprint) noexcept;
};

namespace detail {

struct QuotientCursor {
  QuotientShape shape;
  const std::byte* table = nullptr;
  // Quotients not read yet: those set in `starts`, of block `start_block`, and all of the blocks behind. Run ends
  // likewise.
  std::uint64_t start_block = 0;
  std::uint64_t starts = 0;
  std::uint64_t end_block = 0;
  std::uint64_t ends = 0;
  std::uint64_t next_slot = 0;  // behind the last run
  // What is left of a run that did not fit: slots from next_slot to run_last.
  bool in_run = false;
  std::uint64_t run_base = 0;
  std::uint64_t run_last = 0;
};

struct QuotientPen {
  QuotientShape shape;
  std::byte* table = nullptr;
  std::uint64_t written = 0;
  std::uint64_t next_slot = 0;
  std::uint64_t start_block = 0;  // the block of the last quotient, and those of it so far
  std::uint64_t starts = 0;
  // Slots from this block on are not written yet. Slot s is in values[s % 256], and ends[s % 256] is 1 if its run ends.
  std::uint64_t slot_block = 0;
  std::array<std::uint64_t, 256> values{};
  std::array<std::byte, 256> ends{};
};

}  // namespace detail

// Lists the fingerprints of a table in ascending order, as many at a time as the caller has room for.
//   for (std::array<std::uint64_t, 512> some; const std::size_t n = reader.read(some);) ..
class QuotientReader {
 public:
  // From the first one on. The table must outlive this.
  PERHAPS_API QuotientReader(QuotientShape shape, const std::byte* table) noexcept;
  // 0 at the end. A table that contradicts itself ends early or comes out of order.
  PERHAPS_API std::size_t read(std::span<std::uint64_t> out) noexcept;

 private:
  detail::QuotientCursor at_;
};

// Writes a table from fingerprints in ascending order, in one pass and without moving anything.
class QuotientWriter {
 public:
  // REQUIRES: the table is zeroed
  PERHAPS_API QuotientWriter(QuotientShape shape, std::byte* table) noexcept;
  // False if they are not ascending, not fingerprints of this shape, or too many; the table is useless then.
  PERHAPS_API bool append(std::span<const std::uint64_t> ascending) noexcept;
  PERHAPS_API bool finish() noexcept;

 private:
  detail::QuotientPen pen_;
  std::uint64_t waiting_ = 0;  // the last one appended: the next one tells whether it ends its run
  bool has_waiting_ = false;
  bool good_ = true;
};

template <Hasher H>
using BasicQuotient = Flat<QuotientLayout, H>;
using Quotient = BasicQuotient<Hash>;
using QuotientView = Quotient::View;
using QuotientSpan = Quotient::Span;

// How often the key's fingerprint, without its guard, is stored.
template <Hasher H>
std::uint64_t count(const FlatView<QuotientLayout, H>& filter, std::type_identity_t<Digest<H>> d) noexcept {
  d.check(filter.hasher());
  return QuotientLayout::count(filter.shape(), filter.bytes().data(), d.word());
}
template <Hasher H>
std::uint64_t count(const BasicQuotient<H>& filter, std::type_identity_t<Digest<H>> d) noexcept {
  return count(filter.view(), d);
}

// Calls use(fingerprint) for all of them, in ascending order.
template <Hasher H, class Use>
void for_each_fingerprint(FlatView<QuotientLayout, H> filter, Use use) {
  QuotientReader reader(filter.shape(), filter.bytes().data());
  std::array<std::uint64_t, 512> some;
  for (std::size_t n = reader.read(some); n != 0; n = reader.read(some)) {
    for (std::size_t i = 0; i < n; ++i) use(some[i]);
  }
}

// All fingerprints of both; one that is in both is stored twice. Linear and sequential: two readers, one writer. The
// shapes may differ as long as buckets * 2^width does not. Into `shape`, or the smallest of that kind that holds both.
// Errc::full: more copies of the last fingerprints than the spare slots at the end can take.
template <Hasher H>
Result<BasicQuotient<H>> merge(FlatView<QuotientLayout, H> a, std::type_identity_t<FlatView<QuotientLayout, H>> b,
                               QuotientShape shape) {
  if (!(a.hasher() == b.hasher())) return Error{Errc::mismatch, "quotient: the filters hash with different seeds"};
  if (!shape.valid()) return Error{Errc::bad_parameter, "quotient: a shape outside its range"};
  BasicQuotient<H> both(shape, a.hasher());
  auto done = QuotientLayout::merge(a.shape(), a.bytes().data(), b.shape(), b.bytes().data(), shape,
                                    both.writable_bytes().data());
  if (!done) return std::move(done).error();
  return both;
}
template <Hasher H>
Result<BasicQuotient<H>> merge(FlatView<QuotientLayout, H> a, std::type_identity_t<FlatView<QuotientLayout, H>> b) {
  auto shape = QuotientLayout::union_shape(a.shape(), a.keys(), b.shape(), b.keys());
  if (!shape) return std::move(shape).error();
  for (;;) {
    auto both = merge(a, b, *shape);
    if (both || both.error().code != Errc::full) return both;
    // Copies at the end: only more spare slots help.
    auto larger = shape->with_more_spare();
    if (!larger) return both;
    shape = *larger;
  }
}

// The same fingerprints, or their upper bits, in another shape: larger or smaller.
template <Hasher H>
Result<BasicQuotient<H>> resize(FlatView<QuotientLayout, H> filter, QuotientShape shape) {
  if (!shape.valid()) return Error{Errc::bad_parameter, "quotient: a shape outside its range"};
  BasicQuotient<H> other(shape, filter.hasher());
  auto done = QuotientLayout::resize(filter.shape(), filter.bytes().data(), shape, other.writable_bytes().data());
  if (!done) return std::move(done).error();
  return other;
}

// A filter of many digests at once: they are sorted and written. It takes as long as the sort, and 8 bytes per key.
template <Hasher H>
Result<BasicQuotient<H>> build_quotient(QuotientShape shape, std::span<const Digest<H>> digests, H hasher) {
  if (!shape.valid()) return Error{Errc::bad_parameter, "quotient: a shape outside its range"};
  std::vector<std::uint64_t> fingerprints(digests.size());
  for (std::size_t i = 0; i < digests.size(); ++i) {
    digests[i].check(hasher);
    fingerprints[i] = QuotientLayout::fingerprint_of(shape, digests[i].word());
  }
  BasicQuotient<H> filter(shape, hasher);
  auto done = QuotientLayout::build(shape, filter.writable_bytes().data(), std::move(fingerprints));
  if (!done) return std::move(done).error();
  return filter;
}

}  // namespace perhaps
