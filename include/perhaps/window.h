// The window filter: was this key seen among the last W keys, or in the last W ticks of a clock? Within the window
// there is no false negative, however long the stream; the memory never grows.
//
// Time is cut into *generations*, seven to a window. A filter remembers the present generation and the seven before it,
// each as a Bloom filter of its own, and all eight are interleaved bit by bit: where a Bloom filter has a bit, this one
// has a *cell* of eight bits, and bit g mod 8 of it belongs to generation g.
//
//   table = head, 128 bytes | row 0: `lines` lines | row 1 | .. | row rows-1          all integers little-endian
//   head  = generation u64, epoch u64, 48 zero bytes, inserted[8] u64: keys put into generation g, at g mod 8
//   line  = 64 bytes: 63 cells of a byte, and the *stamp*
//
//             byte 0 .. 20          21 .. 41          42 .. 62         63
//             | lane 0: 21 cells | lane 1: 21 cells | lane 2: 21 cells | stamp |      with three probes in a row
//
//   x_r   = fold(h ^ kSalt[r], kFactor[r]), fold(a, b) = both halves of the 128-bit product a * b, xored; r < rows
//   line  = floor(x_r * lines / 2^64), in row r
//   cell  = floor(p * width / 2^32) of lane i = 0..probes-1, p = low32(x_r) * kBlockSalt[i] mod 2^32;
//           lane i begins at floor(63 i / probes)
//
// A key sets bit g mod 8 in `probes` cells of one line in each row. A query is an AND over the same cells: what remains
// has a bit for each generation that perhaps saw the key. So a key costs `rows` cache misses, however many generations
// there are, and an absent key mostly one: the first row says no.
//
// Forgetting. When generation g begins, the bits of generation g - 8 must disappear from all lines. They are not
// cleared then, but when a key is next inserted into the line: the insert clears what has gone stale since the last
// stamp (eight 64-bit ANDs) and writes the low byte of g as the new stamp. A query masks stale bits out and writes
// nothing. So a new generation begins with one store in the head, without a pause at any size. After 256 generations
// without an insert the stamp of a line looks fresh again. What the line holds is at most what it holds in a full
// filter, so the rate stays below the model's.
//
// By keys: a generation is `step` insertions, and W = 7 step. Every key among the last W insertions answers *perhaps*,
// and none that was inserted 8 step or more insertions ago is remembered (but for false positives). By time: a
// generation is `step` ticks of any unit, and `advance(filter, now)` tells the filter the time. A key inserted at time
// t answers *perhaps* while now - t <= W = 7 step, and not after 8 step. Nothing here reads a clock. The filter cannot
// limit how many keys arrive in W: if there are more than it was made for, the rate rises and no key is lost.
// state_of() and condition_of() say how full it is.
//
// The rate, exactly: n keys in a generation answer for an absent key in one row with the probability
//   f(n) = sum over sets S of lanes of (-1)^|S| (1 - hit(S) / lines)^n,   hit(S) = 1 - prod over S of (1 - 1 / width)
// Rows are independent, and so are generations: rate = 1 - prod over the 8 generations of (1 - f(n_g)^rows).
// Bits for each key of the window, at the moment before a generation ends, when the rate is highest:
//
//                                                             lines read    1 %     0.1 %    1e-4     1e-6
//   this, rows as for_keys chooses them                            3-5      17.1     24.2     30.1     43.4
//   8 generations, each a LineBloom of its own                       8      17.0     24.3     32.8     55.6
//   age-partitioned Bloom filter, best k and l <= 64             k to k+l   19.6     26.1     33.0     47.7
//   the same inside one line (a lane of each line a slice)           1      24.1     37.5     54.5      103
//   this with one row: eight generations in one line                 1      25.0     46.8     87.5      331
//
// The age-partitioned filter (Shtul, Baquero, Almeida 2020) was the starting point: of k + l slices the k youngest are
// written to, and a key is present if k consecutive slices have it. It shares bits between generations and pays for it
// with slices that are still half empty: (k + l) / l times the bits of a plain filter, where this pays 8 / 7. Its gain
// is to touch fewer slices than all generations together; interleaved generations touch fewer lines still. One line for
// everything holds so few keys of each generation that the overfull lines decide the rate: hence several independent
// rows. 4 generations in half bytes take 3 to 5 % more space; 16 in two bytes need one row more for the same.
#pragma once
#include <algorithm>
#include <array>
#include <vector>

#include "perhaps/detail/bits.h"
#include "perhaps/flat.h"

namespace perhaps {

struct WindowShape {
  static constexpr std::uint32_t kMaxRows = 8;                        // independent tables
  static constexpr std::uint32_t kMaxProbes = 7;                      // in a row
  static constexpr std::uint64_t kMaxLines = std::uint64_t{1} << 50;  // in a row
  static constexpr std::uint64_t kWindow = 7;                         // generations in a window
  static constexpr std::uint64_t kRemembered = 8;                     // with the present one
  static constexpr std::uint64_t kHeadBytes = 128;                    // before the rows

  std::uint64_t lines = 1;  // in a row, 1 to kMaxLines
  std::uint32_t rows = 1;
  std::uint32_t probes = 1;   // in a row
  std::uint64_t step = 1;     // insertions or ticks in a generation, 1 or more
  std::uint32_t by_time = 0;  // 1: `step` is ticks

  // A window of the last request.keys insertions.
  PERHAPS_API static WindowShape for_keys(const Request& request);
  // A window of `ticks` ticks, in which request.keys keys are expected.
  PERHAPS_API static WindowShape for_ticks(std::uint64_t ticks, const Request& request);

  // The highest rate while every window brings `keys` distinct keys, spread evenly over it.
  PERHAPS_API double fpr(double keys) const;
  // The share of absent keys that one generation of `keys` distinct keys answers for.
  PERHAPS_API double generation_fpr(double keys) const;
  PERHAPS_API double keys_for(double fpr) const;

  // Insertions, or ticks if it is by time, that are certainly remembered.
  constexpr std::uint64_t window() const noexcept { return step > UINT64_MAX / kWindow ? UINT64_MAX : step * kWindow; }
  constexpr std::uint64_t bytes() const noexcept { return kHeadBytes + rows * lines * kLineBytes; }
  // Every number is in its range.
  constexpr bool valid() const noexcept {
    return lines >= 1 && lines <= kMaxLines && rows >= 1 && rows <= kMaxRows && probes >= 1 && probes <= kMaxProbes &&
           step >= 1 && by_time <= 1;
  }
  // What a file stores; from() reads it.
  std::vector<std::uint64_t> numbers() const { return {lines, rows, probes, step, by_time}; }
  // The window, and the lines of its rows.
  PERHAPS_API Facts facts() const;
  PERHAPS_API static Result<WindowShape> from(std::span<const std::uint64_t> numbers);
  friend bool operator==(const WindowShape&, const WindowShape&) = default;
};

struct WindowLayout {
  using Shape = WindowShape;
  using word = std::uint64_t;
  static constexpr std::string_view family = "window";
  // The number in a file, and the batch kernels.
  static constexpr Kind kind = Kind::window;
  static constexpr auto query_kernel = &detail::Kernels::window_query;
  static constexpr auto insert_kernel = &detail::Kernels::window_insert;

  static constexpr std::uint32_t kCells = kLineBytes - 1;  // in a line, beside its stamp
  static constexpr std::size_t kStamp = kCells;            // where it is in a line
  static constexpr std::size_t kGeneration = 0;            // where they are in the head
  static constexpr std::size_t kEpoch = 8;                 // ticks / step when it was last advanced
  static constexpr std::size_t kInserted = 64;             // keys in each of eight generations
  // What makes the digests of the rows independent.
  static constexpr std::array<std::uint64_t, WindowShape::kMaxRows> kSalt = {
      0x243f6a8885a308d3u, 0x13198a2e03707344u, 0xa4093822299f31d0u, 0x082efa98ec4e6c89u,
      0x452821e638d01377u, 0xbe5466cf34e90c6cu, 0xc0ac29b7c97c50ddu, 0x3f84d5b5b5470917u};  // digits of pi
  static constexpr std::array<std::uint64_t, WindowShape::kMaxRows> kFactor = {
      0xa0761d6478bd642fu, 0xe7037ed1a0b428dbu, 0x8ebc6af09c88c6e3u, 0x589965cc75374cc3u,
      0x1d8e4e27c47d124fu, 0xeb44accab455d165u, 0x9c6e6877736c46e3u, 0x7b215d5a8b1f29adu};

  // The digest of h in a row.
  static std::uint64_t row_digest(std::uint32_t row, std::uint64_t h) noexcept {
    return detail::folded_product(h ^ kSalt[row], kFactor[row]);
  }
  // Where the line of row digest x begins, in bytes.
  static std::uint64_t line_at(WindowShape shape, std::uint32_t row, std::uint64_t x) noexcept {
    return WindowShape::kHeadBytes + (row * shape.lines + detail::scale(x, shape.lines)) * kLineBytes;
  }
  // The first cell of a lane: the cells of a line are dealt out to `probes` lanes.
  static constexpr std::uint32_t lane_begin(std::uint32_t lane, std::uint32_t probes) noexcept {
    return kCells * lane / probes;
  }
  // The cell of row digest x in a lane.
  static std::uint32_t cell_of(std::uint64_t x, std::uint32_t lane, std::uint32_t probes) noexcept {
    const std::uint32_t begin = lane_begin(lane, probes);
    const std::uint32_t width = lane_begin(lane + 1, probes) - begin;
    const std::uint32_t p = static_cast<std::uint32_t>(x) * detail::kBlockSalt[lane];
    return begin + static_cast<std::uint32_t>(std::uint64_t{p} * width >> 32);
  }

  // The bits of a line that are not stale: all but those of the generations that began since its stamp.
  static std::uint32_t live(std::uint64_t generation, std::byte stamp) noexcept {
    const std::uint32_t behind = (static_cast<std::uint32_t>(generation) - static_cast<std::uint32_t>(stamp)) & 0xff;
    if (behind == 0) return 0xff;
    if (behind >= 8) return 0;
    const std::uint32_t stale = ((1u << behind) - 1) << ((static_cast<std::uint32_t>(stamp) + 1) % 8);
    return ~(stale | stale >> 8) & 0xff;
  }

  // The generations that perhaps saw the key: bit g mod 8 for generation g.
  static std::uint32_t seen(WindowShape shape, const std::byte* table, std::uint64_t h) noexcept {
    const std::uint64_t generation = generation_of(table);
    std::uint32_t bits = 0xff;
    for (std::uint32_t row = 0; bits != 0 && row < shape.rows; ++row) {
      const std::uint64_t x = row_digest(row, h);
      const std::byte* line = table + line_at(shape, row, x);
      bits &= live(generation, line[kStamp]);
      for (std::uint32_t i = 0; i < shape.probes; ++i)
        bits &= static_cast<std::uint32_t>(line[cell_of(x, i, shape.probes)]);
    }
    return bits;
  }

  template <class Isa>
  static bool may_contain(WindowShape shape, const std::byte* table, std::uint64_t h) noexcept {
    return seen(shape, table, h) != 0;
  }
  // `present`: the key was perhaps in the window. It is inserted all the same, and its window begins anew.
  static Inserted insert(WindowShape shape, std::byte* table, std::uint64_t h) noexcept {
    std::uint64_t before = 0;
    detail::kernels().window_insert_seen(shape, table, {.words = &h, .count = 1}, &before);
    return before != 0 ? Inserted::present : Inserted::added;
  }
  static void prefetch(WindowShape shape, const std::byte* table, std::uint64_t h) noexcept {
    for (std::uint32_t row = 0; row < shape.rows; ++row)
      detail::prefetch_read(table + line_at(shape, row, row_digest(row, h)));
  }
  // For windows by time.
  PERHAPS_API static void advance(const WindowShape& shape, std::byte* table, std::uint64_t now) noexcept;
  static std::uint64_t generation_of(const std::byte* table) noexcept {
    return detail::load<std::uint64_t>(table + kGeneration);
  }
};

template <Hasher H>
using BasicWindow = Flat<WindowLayout, H>;
using Window = BasicWindow<Hash>;
using WindowView = Window::View;
using WindowSpan = Window::Span;

// For windows by time; by keys it does nothing. Time must not go backwards: an earlier `now` is ignored. Before the
// first call it is time 0. O(1), whatever the size and however far time jumps.
template <Hasher H>
void advance(FlatSpan<WindowLayout, H> filter, std::uint64_t now) noexcept {
  WindowLayout::advance(filter.shape(), filter.writable_bytes().data(), now);
}
template <Hasher H>
void advance(BasicWindow<H>& filter, std::uint64_t now) noexcept {
  advance(filter.span(), now);
}

// Inserts a column and says which keys looked present before, as a deduplicator needs it. In order, as if one by one:
// of two equal keys in `many` the second was present. Bit i % 64 of answers[i / 64] belongs to many[i]; the unused bits
// of the last word become 0.  REQUIRES: answers.size() * kBatch >= many.size()
template <Hasher H>
void insert(FlatSpan<WindowLayout, H> filter, std::type_identity_t<std::span<const Digest<H>>> many,
            std::span<std::uint64_t> answers) noexcept {
  assert(answers.size() * kBatch >= many.size());
  const bool ahead = detail::far_away(filter.byte_size());
  std::byte* const table = filter.writable_bytes().data();
  std::array<std::uint64_t, 16 * kBatch> words;
  for (std::size_t from = 0; from < many.size(); from += words.size()) {
    const std::size_t count = std::min(words.size(), many.size() - from);
    for (std::size_t i = 0; i < count; ++i) {
      many[from + i].check(filter.hasher());
      words[i] = many[from + i].word();
    }
    detail::kernels().window_insert_seen(filter.shape(), table, {.words = words.data(), .count = count, .ahead = ahead},
                                         &answers[from / kBatch]);
  }
}
template <Hasher H>
void insert(BasicWindow<H>& filter, std::type_identity_t<std::span<const Digest<H>>> many,
            std::span<std::uint64_t> answers) noexcept {
  insert(filter.span(), many, answers);
}

// What the head says, without a look at the cells.
struct WindowState {
  std::uint64_t generation = 0;             // how many have begun, in jumps of at most 8
  std::uint64_t epoch = 0;                  // by time: floor(now / step)
  std::array<std::uint64_t, 8> inserted{};  // keys inserted, the present generation first; repeated keys count again
  double fpr = 0;                           // by the model, if they are all distinct: an upper bound
};
// REQUIRES: table.size() >= shape.bytes()
PERHAPS_API WindowState state_of(WindowShape shape, Bytes table);
template <Hasher H>
WindowState state_of(FlatView<WindowLayout, H> filter) {
  return state_of(filter.shape(), filter.bytes());
}
template <Hasher H>
WindowState state_of(const BasicWindow<H>& filter) {
  return state_of(filter.view());
}

// By one pass over the cells, as for the other families.
// fill: the share of bits that are set, of the eight generations remembered. fpr: of these very bits; exact for each
// generation, and taken together as if they were independent. keys: distinct in each generation, added up.
PERHAPS_API Condition condition_of(WindowShape shape, Bytes table);

}  // namespace perhaps
