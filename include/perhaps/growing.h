// A filter that grows with its keys, without seeing them again, and keeps its false-positive rate: one table, no chain.
// Fingerprints of several lengths in one quotient filter are the idea of InfiniFilter (Dayan, Bercea, Reviriego, Pagh
// 2023), copies of those that are used up that of the Aleph filter (2024), a part at a time that of linear hashing.
//
//   mixed   = (h ^ h >> 32) * 0x9fb21c651e98df25 mod 2^64;  the first `bucket_bits` of its bits are the bucket, and the
//             next `width - 1` the fingerprint of a new key
//   slot    = | fingerprint, its first bit highest | 1 | 0 .. 0 |, `width` bits. Old fingerprints are shorter. The
//             lowest set bit ends them, so no used slot is 0
//   runs    as in quotient.h: slots ascend with bucket and contents, the slots of a bucket stand side by side, and
//             `occupied`, `run_end` and `spill` say whose they are. But a block has 64 buckets and only 34 to 64 slots,
//             and they fill it from the front, without gaps: behind what spilled from the block before. What does not
//             fit spills into the next. So a step copies long strings of bits, not slot by slot (1 ns per key)
//
// Growing. A step makes blocks larger by two slots; every sixteenth doubles the buckets instead, and each fingerprint
// gives its first bit to the number of its bucket. One that has no bit left is copied into both buckets, so that no key
// is ever missed. Blocks are grouped into parts of 512 (all of them if there are fewer) that end in a few spare blocks,
// so no run leaves its part. A step moves one part at a time, the last one first, each to the place where it will be
// when all are moved:
//
//     before  | part 0 | part 1 | part 2 |                     as many bytes as the step will need
//             | part 0 | part 1 |    0   |   part 2   |         `waiting` = 2
//     after   |   part 0   |   part 1   |   part 2   |
//
// Whether a digest is looked up before or after the gap follows from its first bits and from `waiting`. With several
// parts the moves are spread evenly over the inserts until the next step: an insert moves one part at most,
// unless a part is full before its turn; then it moves all that wait.
//
//   table   = head (64 bytes) . parts before, below `waiting` . zeros . parts now;  all numbers little-endian
//   head    = | keys u64 | slots in use u64 | waiting u64 | 40 bytes 0 |
//   block   = | slots of `width` bits, slot i from bit i * width, ceil(slots * width / 8) bytes
//             | run_end, ceil(slots / 8) bytes | occupied u64 | spill u8 |
//
// The rate. A key that was not inserted answers *perhaps* if a fingerprint in its bucket agrees with it as far as it
// goes. A key that was inserted with F bits, bucket and fingerprint, is to blame with probability 2^-F, then and ever
// after: doublings move bits from the one to the other. So
//   fpr = sum over all keys of 2^-F            and F is chosen such that the sum stays below the rate, for ever:
// each doubling adds about 0.6 * 2^-(width - 1), and the first 22 doublings may each use up 1/30 of the rate, the next
// 22 each 1/94 (src/sizing/growing.cc has the plan). F changes once per doubling, when a block has 44 slots, so that
// slots are a bit narrower while there are few of them in a block.
//
// Load: parts are moved before 15/16 of their slots are in use, and the whole table, with the gap, is 82 to 94 % full.
// Space at 1 %: 11 or 12 bits per slot, 1 run end, 64 / slots occupied: 14 to 17.6 bits per key from 8192 keys on, and
// up to 22.3 before; doc/maths.md has the figures.
//
// The end. A fingerprint that is used up has a copy in every bucket that it stands for, twice as many after each
// doubling. Once these fill whole blocks side by side, a part does not fit into its next place: insert answers `full`
// for good, and no key is lost. Grown from nothing it takes more than 1e9 keys; made for n keys, some 30,000 n
// at 1 %, 170 n at 20 %, and less at rates above that, which are not what it is for.
//
// A multiset, as the quotient filter: every insert stores a fingerprint, every erase removes one, the longest that
// agrees. If it was another key's, that key's own prefix agrees with what is left, so no key is lost. What erase cannot
// find are the copies of a fingerprint that was used up: they stay, and the rate does not fall by what they add to it.
// Erasing a key that was not inserted removes another one with probability fpr.
//
// Merging: fpr adds up, since fingerprints have only the bits they have.
#pragma once
#include <array>
#include <vector>

#include "perhaps/detail/growing_table.h"
#include "perhaps/flat.h"

namespace perhaps {

struct GrowingLayout {
  using Shape = GrowingShape;
  using word = std::uint64_t;
  static constexpr std::string_view family = "growing";
  static constexpr Kind kind = Kind::growing;  // the number in a file
  static constexpr bool fills_up = true;

  // As the quotient filter's.
  static constexpr std::uint64_t mixed(std::uint64_t h) noexcept { return (h ^ h >> 32) * 0x9fb21c651e98df25u; }

  template <class Isa>
  static bool may_contain(const Shape& shape, const std::byte* table, std::uint64_t h) noexcept {
    const std::uint64_t m = mixed(h);
    const detail::GrowingGrid grid = grid_of(shape, table, m);
    return has<detail::isa::WordBits<Isa>>(grid, table, {m, detail::growing_offset(grid, m), 0});
  }
  // That of the part which the digest belongs to.
  PERHAPS_INLINE static detail::GrowingGrid grid_of(const Shape& shape, const std::byte* table,
                                                    std::uint64_t m) noexcept {
    const std::uint32_t before = shape.step == 0 ? 0 : shape.step - 1;
    const bool now = detail::growing_moved(detail::GrowingGrid::bits_of(before), detail::growing_waiting(table), m);
    return {now ? shape.step : before, now ? shape.width : shape.width_before};
  }

  // Is there a slot in the bucket that agrees? Bytes that contradict themselves answer *perhaps*.
  template <class Bits>
  PERHAPS_INLINE static bool has(const detail::GrowingGrid& grid, const std::byte* table,
                                 const detail::GrowingSpot& spot) noexcept {
    const std::byte* block = table + spot.offset;
    const std::uint64_t starts = detail::load<std::uint64_t>(block + grid.block_bytes - 9);
    const std::uint64_t i = spot.mixed >> (64 - grid.bucket_bits) & 63;
    if ((starts >> i & 1) == 0) return false;
    const std::uint64_t sought = detail::growing_sought(grid, spot.mixed);
    if (const auto run = detail::GrowingPart<Bits>::run_within(grid, block, starts, i); run.found()) [[likely]] {
      if (run.first > run.last) return true;
      for (std::uint64_t at = run.first;; ++at) {
        const std::uint64_t bit = at * grid.width;
        const std::uint64_t slot = detail::load<std::uint64_t>(block + bit / 8) >> bit % 8 & grid.slot_mask();
        if (detail::agree(slot, sought)) return true;
        if (at == run.last) return false;
      }
    }
    return has_far<Bits>(grid, table, spot, sought);
  }
  template <class Bits>
  PERHAPS_INLINE static bool has_far(const detail::GrowingGrid& grid, const std::byte* table,
                                     const detail::GrowingSpot& spot, std::uint64_t sought) noexcept {
    const std::uint64_t bucket = spot.mixed >> (64 - grid.bucket_bits);
    const detail::GrowingPart<Bits> part(grid, part_of(grid, table, bucket));
    const auto run = part.run_of(bucket % (64 * detail::GrowingGrid::kBlocksPerPart));
    if (!run.found()) return true;
    for (std::uint64_t at = run.first; at <= run.last; ++at) {
      if (detail::agree(part.slot(at), sought)) return true;
    }
    return false;
  }
  static const std::byte* part_of(const detail::GrowingGrid& grid, const std::byte* table,
                                  std::uint64_t bucket) noexcept {
    return table + Shape::kHeadBytes + (bucket >> detail::GrowingGrid::kPartBits) * grid.part_bytes;
  }

  static void prefetch(const Shape& shape, const std::byte* table, std::uint64_t h) noexcept {
    const std::uint64_t m = mixed(h);
    const detail::GrowingGrid grid = grid_of(shape, table, m);
    prefetch_spot(grid, table, {m, detail::growing_offset(grid, m), 0});
  }
  // The bits of the block, and where the bucket probably is.
  PERHAPS_INLINE static void prefetch_spot(const detail::GrowingGrid& grid, const std::byte* table,
                                           const detail::GrowingSpot& spot) noexcept {
    const std::uint64_t i = spot.mixed >> (64 - grid.bucket_bits) & 63;
    detail::prefetch_read(table + spot.offset + grid.block_bytes - 9);
    detail::prefetch_read(table + spot.offset + (i * grid.slots >> 6) * grid.width / 8);
  }

  // `full`: the table needs more memory (larger(), extend()), or so many copies of one fingerprint came that a part
  // cannot hold them.
  PERHAPS_API static Inserted insert(const Shape& shape, std::byte* table, std::uint64_t h) noexcept;
  PERHAPS_API static Erased erase(const Shape& shape, std::byte* table, std::uint64_t h) noexcept;
  // Batches, by the kernels of this CPU.
  PERHAPS_API static void query(const Shape& shape, const std::byte* table, const detail::Batch<>& batch,
                                std::uint64_t* answers) noexcept;
  PERHAPS_API static std::size_t insert(const Shape& shape, std::byte* table, const detail::Batch<>& batch) noexcept;
  // How many stored fingerprints agree with h.
  PERHAPS_API static std::uint64_t count(const Shape& shape, const std::byte* table, std::uint64_t h) noexcept;
  // Keys inserted and not erased.
  static std::uint64_t keys(const Shape&, const std::byte* table) noexcept {
    return detail::load<std::uint64_t>(table);
  }
  static bool needs_rebuild(const Shape&, const std::byte*) noexcept { return false; }

  // The shape of the next step, if the table is full enough for one; then extend() the table that has these bytes.
  PERHAPS_API static std::optional<Shape> larger(const Shape& shape, const std::byte* table) noexcept;
  PERHAPS_API static void extend(const Shape& shape, const Shape& to, std::byte* table) noexcept;

  // Buckets with runs that have no end contradict themselves.
  static detail::Everything<Shape> everything() noexcept {
    static constexpr auto kTable = [] {
      std::array<std::byte, Shape{}.bytes()> table{};
      for (std::size_t i = 0; i < 8; ++i) {
        table[Shape::kHeadBytes + Shape{}.grid().block_bytes - 9 + i] = std::byte{0xff};
      }
      return table;
    }();
    return {Shape{}, kTable.data()};
  }

  // Of the head only. Blocks may hold anything: probes are bounded whatever the bytes say.
  PERHAPS_API static Result<void> check(const Shape& shape, Bytes table);
  // A pass over the table: is it one that inserts could have made?
  PERHAPS_API static Result<void> verify(const Shape& shape, Bytes table);

  // Whole tables. `into` is zeroed.
  PERHAPS_API static Result<Shape> union_shape(const Shape& a, const std::byte* table_a, const Shape& b,
                                               const std::byte* table_b);
  PERHAPS_API static Result<void> merge(const Shape& a, const std::byte* table_a, const Shape& b,
                                        const std::byte* table_b, const Shape& shape, std::byte* into);
};

// By a pass over the table: the rate of its fingerprints, and the share of slots in use.
PERHAPS_API Condition condition_of(const GrowingShape& shape, Bytes table);

template <Hasher H>
using BasicGrowing = Flat<GrowingLayout, H>;
using Growing = BasicGrowing<Hash>;
using GrowingView = Growing::View;
using GrowingSpan = Growing::Span;

// How many stored fingerprints agree with the key's: at least as many as there are copies of it.
template <Hasher H>
std::uint64_t count(const FlatView<GrowingLayout, H>& filter, std::type_identity_t<Digest<H>> d) noexcept {
  d.check(filter.hasher());
  return GrowingLayout::count(filter.shape(), filter.bytes().data(), d.word());
}
template <Hasher H>
std::uint64_t count(const BasicGrowing<H>& filter, std::type_identity_t<Digest<H>> d) noexcept {
  return count(filter.view(), d);
}

// All fingerprints of both; one that is in both is stored twice. It keeps growing as `a` would, whose rate it promises
// for the keys to come; for those already in it, the rates of both add up.
template <Hasher H>
Result<BasicGrowing<H>> merge(FlatView<GrowingLayout, H> a, std::type_identity_t<FlatView<GrowingLayout, H>> b) {
  if (!(a.hasher() == b.hasher())) return Error{Errc::mismatch, "growing: the filters hash with different seeds"};
  auto shape = GrowingLayout::union_shape(a.shape(), a.bytes().data(), b.shape(), b.bytes().data());
  if (!shape) return std::move(shape).error();
  BasicGrowing<H> both(*shape, a.hasher());
  auto done = GrowingLayout::merge(a.shape(), a.bytes().data(), b.shape(), b.bytes().data(), *shape,
                                   both.writable_bytes().data());
  if (!done) return std::move(done).error();
  return both;
}

}  // namespace perhaps
