// A filter that grows with its items and keeps its rate: type perhapsGF, over the library's growing filter (growing.h).
//
// One table, no links. When it is full it moves to a block of the server that is 3 to 6 % larger, and its parts follow
// one by one, with the items that are added then. The budget decides first: a filter that may not grow stays as it is.
//
//   header  "perhapsG" | u64 first, step | f64 rate      all little-endian
//   table   as growing.h lays it out: 64 bytes with numbers of items, slots in use and waiting parts, then the parts
#pragma once
#include "perhaps/growing.h"
#include "redis/budget.h"

namespace perhaps::redis {

class GrowingFilter {
 public:
  using Hash = std::uint64_t;
  static constexpr std::string_view kMagic = "perhapsG";
  static constexpr int kEncoding = 1;
  static constexpr std::uint64_t kHeaderBytes = 32;
  static constexpr double kLeastRate = 1e-12;
  // A capacity up to this says that nobody knows how many items will come.
  static constexpr std::uint64_t kUnknown = 1260;

  GrowingShape shape{};
  double rate = 0;

  explicit GrowingFilter(const redisbloom::Memory& memory) noexcept : memory_(&memory) {}
  ~GrowingFilter() { memory_->give(table_); }
  GrowingFilter(const GrowingFilter&) = delete;
  GrowingFilter& operator=(const GrowingFilter&) = delete;

  // With the shape that is set; false: no memory. The second takes over shape.bytes() bytes, if they can be a table.
  bool make_table() noexcept { return (table_ = memory_->take(shape.bytes())) != nullptr; }
  bool take_table(std::byte* table) noexcept {
    if (!accepts(0, {table, table_bytes()})) return false;
    table_ = table;
    return true;
  }
  bool has_table() const noexcept { return table_ != nullptr; }
  // May `data` be written at this offset? A head must come whole, and no more parts can wait than there are. That holds
  // after every operation, too, whatever the rest says, so what was accepted once can always be saved and loaded.
  bool accepts(std::uint64_t at, Bytes data) const noexcept {
    if (at >= GrowingShape::kHeadBytes) return true;
    return at == 0 && data.size() >= GrowingShape::kHeadBytes &&
           waiting_in(data.data()) <= (shape.step == 0 ? 0 : shape.grid_before().parts);
  }
  bool copy_to(GrowingFilter& empty) const noexcept {
    empty.shape = shape;
    empty.rate = rate;
    if (!empty.make_table()) return false;
    std::memcpy(empty.table_, table_, table_bytes());
    return true;
  }
  void swap(GrowingFilter& other) noexcept {
    std::swap(shape, other.shape);
    std::swap(rate, other.rate);
    std::swap(table_, other.table_);
  }

  std::size_t table_bytes() const noexcept { return static_cast<std::size_t>(shape.bytes()); }
  std::span<std::byte> from(std::uint64_t at) const noexcept {
    return at < shape.bytes() ? std::span(table_ + at, table_bytes() - at) : std::span<std::byte>();
  }
  Bytes table() const noexcept { return {table_, table_bytes()}; }
  std::uint64_t items() const noexcept { return GrowingLayout::keys(shape, table_); }
  // Parts that have not moved to the newest step yet.
  std::uint64_t waiting() const noexcept { return waiting_in(table_); }
  // Items that fit before it needs more memory. Old items may take several slots.
  std::uint64_t headroom() const noexcept {
    const auto used = redisbloom::load<std::uint64_t>(table_ + 8);
    return shape.capacity() - std::min(used, shape.capacity());
  }
  // Of the table as it is, by a pass over it.
  double fpr() const { return condition_of(shape, table()).fpr; }

  Hash hash(Bytes item) const noexcept { return perhaps::Hash{}(item).word(); }
  bool may_contain(Hash h) const noexcept { return may_contain(std::span(&h, 1), false) != 0; }
  // REQUIRES: many.size() <= 64
  std::uint64_t may_contain(std::span<const Hash> many, bool ahead) const noexcept {
    std::uint64_t found = 0;
    GrowingLayout::query(shape, table_, {.words = many.data(), .count = many.size(), .ahead = ahead}, &found);
    return found;
  }
  void prefetch(Hash h) const noexcept { GrowingLayout::prefetch(shape, table_, h); }
  // An item that is perhaps there is not stored again.
  redisbloom::Added add(Hash h) noexcept {
    using redisbloom::Added;
    if (may_contain(h)) return Added::present;
    while (GrowingLayout::insert(shape, table_, h) == Inserted::full)
      if (!grow()) return Added::no_memory;
    return Added::added;
  }
  // Becomes the filter of the items of both, which has the sum of both rates. An error changes nothing.
  Result<void> merge(const GrowingFilter& other) {
    auto both = GrowingLayout::union_shape(shape, table_, other.shape, other.table_);
    if (!both) return std::move(both).error();
    GrowingFilter whole(*memory_);
    whole.shape = *both;
    whole.rate = std::min(rate, other.rate);
    whole.table_ = take_instead(whole.shape.bytes(), shape.bytes());
    if (whole.table_ == nullptr) return Error{Errc::full, "growing: no memory for the union"};
    auto merged = GrowingLayout::merge(shape, table_, other.shape, other.table_, whole.shape, whole.table_);
    if (merged) swap(whole);
    return merged;
  }

  template <class Move>
  void move_table(std::uint64_t, Move move) noexcept {
    if (std::byte* const now = move(table_)) table_ = now;
  }

  redisbloom::Buffer header() const {
    format::Writer out;
    out.add(bytes_of(kMagic)).le(std::uint64_t{shape.first}).le(std::uint64_t{shape.step});
    out.le(std::bit_cast<std::uint64_t>(rate));
    return std::move(out).done();
  }
  bool parse_header(Bytes header) {
    if (header.size() != kHeaderBytes || !std::ranges::equal(header.first(8), bytes_of(kMagic))) return false;
    format::Reader in(header.subspan(8));
    const auto first = in.le<std::uint64_t>();
    const auto step = in.le<std::uint64_t>();
    rate = std::bit_cast<double>(in.le<std::uint64_t>());
    if (!(rate >= kLeastRate && rate < 1)) return false;
    const auto parsed =
        GrowingShape::from(std::array{first, step, GrowingShape::for_keys({.keys = 0, .fpr = rate}).rate});
    if (!parsed || parsed->bytes() > redisbloom::kMaxBytes) return false;
    shape = *parsed;
    return true;
  }

 private:
  static std::uint64_t waiting_in(const std::byte* head) noexcept { return redisbloom::load<std::uint64_t>(head + 16); }
  // To the next step. False: the table is not full enough for one, or there is no memory, and nothing has changed.
  bool grow() noexcept {
    const auto next = GrowingLayout::larger(shape, table_);
    if (!next || next->bytes() > redisbloom::kMaxBytes) return false;
    std::byte* const larger = take_instead(next->bytes(), shape.bytes());
    if (larger == nullptr) return false;
    // A small table that doubles may need less than it has, and all of its parts have been moved.
    std::memcpy(larger, table_, static_cast<std::size_t>(std::min(shape.bytes(), next->bytes())));
    memory_->give(table_);
    table_ = larger;
    GrowingLayout::extend(shape, *next, table_);
    shape = *next;
    return true;
  }

  const redisbloom::Memory* memory_;
  std::byte* table_ = nullptr;
};

}  // namespace perhaps::redis
