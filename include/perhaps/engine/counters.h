// What the filters of a read path are worth, counted level by level: cheap enough to leave on.
//
//   ReadCounters counters(levels);
//   counters.no(2);                          the filter of level 2 said *no*: a read was saved
//   counters.found(2, bytes);                it said *perhaps*, bytes were read, and the key was there
//   counters.false_positive(2, bytes);       .. and it was not
//
// A thread adds to one of kStripes rows, each on cache lines of its own, with relaxed atomics: a few nanoseconds, and
// nobody waits. Reading sums the rows; what other threads add meanwhile may or may not be in the sum.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "perhaps/detail/config.h"

namespace perhaps {

// What happened at one level.
struct LevelCounts {
  std::uint64_t no = 0;
  std::uint64_t found = 0;
  std::uint64_t false_positives = 0;
  std::uint64_t bytes_read = 0;

  // How often its filter was queried.
  std::uint64_t probes() const noexcept { return no + found + false_positives; }
  // Among the queries for absent keys; 0 if there were none.
  double fpr() const noexcept {
    const std::uint64_t absent = no + false_positives;
    return absent == 0 ? 0 : static_cast<double>(false_positives) / static_cast<double>(absent);
  }
};

// The counters of all levels, for any number of threads.
class ReadCounters {
 public:
  static constexpr std::size_t kStripes = 16;  // rows that threads spread over

  // All zero. Throws std::bad_alloc.
  explicit ReadCounters(std::size_t levels)
      : levels_(levels),
        stride_((levels + 1) / 2 * 2),  // whole lines
        cells_(new (std::align_val_t{kLineBytes}) Cell[kStripes * stride_]) {}

  // How many levels it counts.
  std::size_t levels() const noexcept { return levels_; }

  // REQUIRES of all: level < levels()
  void no(std::size_t level) noexcept { add(here(level).no, 1); }
  void found(std::size_t level, std::uint64_t bytes) noexcept {
    add(here(level).found, 1);
    add(here(level).bytes_read, bytes);
  }
  void false_positive(std::size_t level, std::uint64_t bytes) noexcept {
    add(here(level).false_positives, 1);
    add(here(level).bytes_read, bytes);
  }

  // The sum over all threads.  REQUIRES: level < levels()
  LevelCounts of(std::size_t level) const noexcept {
    LevelCounts sum;
    for (std::size_t stripe = 0; stripe < kStripes; ++stripe) {
      const Cell& cell = cells_[stripe * stride_ + level];
      sum.no += cell.no.load(std::memory_order_relaxed);
      sum.found += cell.found.load(std::memory_order_relaxed);
      sum.false_positives += cell.false_positives.load(std::memory_order_relaxed);
      sum.bytes_read += cell.bytes_read.load(std::memory_order_relaxed);
    }
    return sum;
  }

 private:
  using Count = std::atomic<std::uint64_t>;
  struct Cell {
    Count no{0};
    Count found{0};
    Count false_positives{0};
    Count bytes_read{0};
  };
  static_assert(sizeof(Cell) * 2 == kLineBytes);
  struct Free {
    void operator()(Cell* cells) const noexcept { ::operator delete[](cells, std::align_val_t{kLineBytes}); }
  };

  static void add(Count& count, std::uint64_t n) noexcept { count.fetch_add(n, std::memory_order_relaxed); }
  // Threads take the stripes in turn.
  static std::size_t stripe() noexcept {
    static std::atomic<std::size_t> next{0};
    thread_local const std::size_t mine = next.fetch_add(1, std::memory_order_relaxed) % kStripes;
    return mine;
  }
  Cell& here(std::size_t level) noexcept { return cells_[stripe() * stride_ + level]; }

  std::size_t levels_;
  std::size_t stride_;
  std::unique_ptr<Cell[], Free> cells_;
};

}  // namespace perhaps
