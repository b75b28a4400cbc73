// A filter that forgets: type perhapsWF, over the library's window (window.h).
//
// By items: the last `window` insertions are remembered, at most 8/7 as many. By time: `window` seconds, at most 8/7 as
// long. Only a primary reads a clock. That a generation began is told when it is written to, and replicated and logged
// as BF.ADVANCE with the time. A primary that is asked leaves out what has gone by since; a replica answers by what it
// was told.
//
//   header  "perhapsW" | u64 lines, rows, probes, step, by_time, capacity | f64 rate      all little-endian
//   table   as window.h lays it out: 128 bytes with the generations, then the lines
#pragma once
#include "format/redisbloom.h"
#include "perhaps/window.h"

namespace perhaps::redis {

class WindowFilter {
 public:
  using Hash = std::uint64_t;
  static constexpr std::string_view kMagic = "perhapsW";
  static constexpr std::uint64_t kHeaderBytes = 64;

  WindowShape shape{};
  std::uint64_t capacity = 0;
  double rate = 0;

  explicit WindowFilter(const redisbloom::Memory& memory) noexcept : memory_(&memory) {}
  ~WindowFilter() { memory_->give(table_); }
  WindowFilter(const WindowFilter&) = delete;
  WindowFilter& operator=(const WindowFilter&) = delete;

  // With the shape that is set; false: no memory. The second takes over a table of shape.bytes() bytes.
  bool make_table() noexcept { return (table_ = memory_->take(shape.bytes())) != nullptr; }
  void take_table(std::byte* table) noexcept { table_ = table; }
  bool copy_to(WindowFilter& empty) const noexcept {
    empty.shape = shape;
    empty.capacity = capacity;
    empty.rate = rate;
    if (!empty.make_table()) return false;
    std::memcpy(empty.table_, table_, shape.bytes());
    return true;
  }

  std::uint64_t table_bytes() const noexcept { return shape.bytes(); }
  std::span<std::byte> from(std::uint64_t at) const noexcept {
    return at < shape.bytes() ? std::span(table_ + at, shape.bytes() - at) : std::span<std::byte>();
  }
  bool by_time() const noexcept { return shape.by_time != 0; }
  // Of the eight generations; one that came twice counts twice.
  std::uint64_t items() const noexcept {
    std::uint64_t total = 0;
    for (std::size_t i = 0; i < WindowShape::kRemembered; ++i) total += word(WindowLayout::kInserted + 8 * i);
    return total;
  }
  double fpr() const { return state_of(shape, {table_, shape.bytes()}).fpr; }

  // True if generations began. Time does not go back.
  bool advance(std::uint64_t milliseconds) noexcept {
    const std::uint64_t before = word(WindowLayout::kEpoch);
    detail::window_advance(shape, table_, milliseconds);
    return word(WindowLayout::kEpoch) != before;
  }
  // Generations that have gone by unnoticed at this time.
  std::uint64_t late(std::uint64_t milliseconds) const noexcept {
    const std::uint64_t epoch = milliseconds / shape.step;
    return by_time() && epoch > word(WindowLayout::kEpoch) ? epoch - word(WindowLayout::kEpoch) : 0;
  }

  Hash hash(Bytes item) const noexcept { return perhaps::Hash{}(item).value; }
  bool may_contain(Hash h, std::uint64_t late = 0) const noexcept {
    if (late >= WindowShape::kRemembered) return false;
    std::uint32_t seen = WindowLayout::seen(shape, table_, h);
    // The oldest `late` of the eight have gone by: generation g is bit g mod 8.
    const std::uint64_t generation = word(WindowLayout::kGeneration);
    for (std::uint64_t i = 0; i < late; ++i) seen &= ~(1u << (generation + 1 + i) % 8);
    return seen != 0;
  }
  void prefetch(Hash h) const noexcept { WindowLayout::prefetch(shape, table_, h); }
  redisbloom::Added add(Hash h) noexcept {
    return WindowLayout::insert(shape, table_, h) == Inserted::added ? redisbloom::Added::added
                                                                     : redisbloom::Added::present;
  }

  template <class Move>
  void move_table(std::uint64_t, Move move) noexcept {
    if (std::byte* const now = move(table_)) table_ = now;
  }

  redisbloom::Buffer header() const {
    format::Writer out;
    out.add(bytes_of(kMagic));
    for (const std::uint64_t number : shape.numbers()) out.le(number);
    out.le(capacity).le(std::bit_cast<std::uint64_t>(rate));
    return std::move(out).done();
  }
  bool parse_header(Bytes header) {
    if (header.size() != kHeaderBytes || !std::ranges::equal(header.first(8), bytes_of(kMagic))) return false;
    format::Reader in(header.subspan(8));
    std::array<std::uint64_t, 5> numbers;
    for (std::uint64_t& number : numbers) number = in.le<std::uint64_t>();
    capacity = in.le<std::uint64_t>();
    rate = std::bit_cast<double>(in.le<std::uint64_t>());
    const auto parsed = WindowShape::from(numbers);
    if (!parsed || parsed->bytes() > redisbloom::kMostBytes || !(rate > 0 && rate < 1)) return false;
    shape = *parsed;
    return true;
  }

 private:
  std::uint64_t word(std::size_t at) const noexcept { return detail::load<std::uint64_t>(table_ + at); }

  const redisbloom::Memory* memory_;
  std::byte* table_ = nullptr;
};

}  // namespace perhaps::redis
