// A filter that forgets: type perhapsWF, over the library's window (window.h).
//
// By items: it remembers the last `window` insertions, and at most 8/7 as many. By time: `window` seconds, and at most
// 8/7 as long. Only a primary reads the clock. A write on a primary begins the generations that are due, and replicates
// and logs that as BF.ADVANCE with the time. A query on a primary ignores what has expired since; a query on a replica
// answers from what the primary last wrote.
//
//   header  "perhapsX" | u64 lines, rows, probes, step, by_time, capacity | f64 rate      all little-endian
//   table   as window.h lays it out: 128 bytes with the generations, then the lines. Its 48 zero bytes hold u48
//           items[8]: the items that were last added in generation g, at g mod 8. Their sum is BF.CARD.
#pragma once
#include "perhaps/window.h"
#include "redisbloom/redisbloom.h"

namespace perhaps::redis {

class WindowFilter {
 public:
  using Hash = std::uint64_t;
  static constexpr std::string_view kMagic = "perhapsX";
  static constexpr std::string_view kMagic1 = "perhapsW";  // of version 1, with another hash
  static constexpr int kEncoding = 5;                      // before it, the values of version 1
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
  bool take_table(std::byte* table) noexcept { return (table_ = table) != nullptr; }
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
  // In the eight generations, each item once.
  std::uint64_t items() const noexcept {
    std::uint64_t total = 0;
    for (std::uint64_t g = 0; g < WindowShape::kRemembered; ++g) total += items_in(g);
    return total;
  }
  // Insertions into the present generation, and which one it is.
  std::uint64_t inserted() const noexcept { return word(WindowLayout::kInserted + 8 * (generation() % 8)); }
  std::uint64_t generation() const noexcept { return word(WindowLayout::kGeneration); }
  double fpr() const { return state_of(shape, {table_, shape.bytes()}).fpr; }

  // True if generations began. Time does not go back.
  bool advance(std::uint64_t milliseconds) noexcept {
    const std::uint64_t epoch = word(WindowLayout::kEpoch);
    const std::uint64_t before = generation();
    WindowLayout::advance(shape, table_, milliseconds);
    begin_items(before);
    return word(WindowLayout::kEpoch) != epoch;
  }
  // Generations that have expired by this time but were not yet told to the filter.
  std::uint64_t late(std::uint64_t milliseconds) const noexcept {
    const std::uint64_t epoch = milliseconds / shape.step;
    return by_time() && epoch > word(WindowLayout::kEpoch) ? epoch - word(WindowLayout::kEpoch) : 0;
  }

  Hash hash(Bytes item) const noexcept { return perhaps::Hash{}(item).word(); }
  bool may_contain(Hash h, std::uint64_t late = 0) const noexcept {
    if (late >= WindowShape::kRemembered) return false;
    std::uint32_t seen = WindowLayout::seen(shape, table_, h);
    // The oldest `late` of the eight have expired: generation g is bit g mod 8.
    for (std::uint64_t i = 0; i < late; ++i) seen &= ~(1u << (generation() + 1 + i) % 8);
    return seen != 0;
  }
  void prefetch(Hash h) const noexcept { WindowLayout::prefetch(shape, table_, h); }
  redisbloom::Added add(Hash h) noexcept {
    const std::uint32_t seen = WindowLayout::seen(shape, table_, h);
    const std::uint64_t before = generation();
    const bool added = WindowLayout::insert(shape, table_, h) == Inserted::added;
    begin_items(before);
    if (!added) {
      // It was counted in the newest generation that has it, and now belongs to the present one.
      std::uint64_t last = before;
      for (int age = 1; age < 8 && (seen >> last % 8 & 1) == 0; ++age) --last;
      set_items(last, items_in(last) - (items_in(last) != 0));
    }
    set_items(generation(), items_in(generation()) + 1);
    return added ? redisbloom::Added::added : redisbloom::Added::present;
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
    if (!parsed || parsed->bytes() > redisbloom::kMaxBytes || !(rate > 0 && rate < 1)) return false;
    shape = *parsed;
    return true;
  }

 private:
  static constexpr std::size_t kItems = 16;
  static constexpr std::size_t kItemsBytes = 6;

  std::byte* items_at(std::uint64_t generation) const noexcept {
    return table_ + kItems + kItemsBytes * (generation % 8);
  }
  std::uint64_t items_in(std::uint64_t generation) const noexcept {
    std::uint64_t count = 0;
    for (std::size_t i = 0; i < kItemsBytes; ++i)
      count |= std::to_integer<std::uint64_t>(items_at(generation)[i]) << 8 * i;
    return count;
  }
  void set_items(std::uint64_t generation, std::uint64_t count) noexcept {
    for (std::size_t i = 0; i < kItemsBytes; ++i) items_at(generation)[i] = static_cast<std::byte>(count >> 8 * i);
  }
  // The generations after `before` have begun: they have no items yet.
  void begin_items(std::uint64_t before) noexcept {
    for (std::uint64_t g = before; g != generation();) set_items(++g, 0);
  }
  std::uint64_t word(std::size_t at) const noexcept { return redisbloom::load<std::uint64_t>(table_ + at); }

  const redisbloom::Memory* memory_;
  std::byte* table_ = nullptr;
};

}  // namespace perhaps::redis
