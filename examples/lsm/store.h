// A log-structured merge tree, without its log: what filters do on its way of a read, and in its compactions.
//
//   memtable           rows in memory, newest; a filter grows with it
//   immutable          a full memtable that waits to be written
//   level 0            tables as they were written, newest first: their key ranges overlap
//   level 1, 2, 3      each kRatio times as large as the one above it; its tables have ranges apart
//
// A lookup goes down these runs until it finds a row, which may say that the key was deleted.
#pragma once
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "perhaps/any_filter.h"
#include "perhaps/engine/counters.h"
#include "perhaps/engine/filter_set.h"
#include "table.h"

namespace lsm {

// What compactions into one level did.
struct Compacted {
  std::uint64_t runs = 0;
  std::uint64_t rows_in = 0;
  std::uint64_t rows_out = 0;
  // Tombstones met, by what became of them.
  std::uint64_t dropped_by_range = 0;   // no table further down has a range around the key
  std::uint64_t dropped_by_filter = 0;  // none of those that have may contain it
  std::uint64_t kept = 0;               // some filter said *perhaps*,
  std::uint64_t kept_in_vain = 0;       // wrongly
  // The quotient filters of the tables that went in, merged without a key.
  std::uint64_t fingerprints = 0;  // in all of them
  std::uint64_t distinct = 0;      // what they say will be left
  std::uint64_t denied = 0;        // keys of the result that the merged one denies: none
};

class Store {
 public:
  static constexpr std::size_t kMemtableRows = 500;
  static constexpr std::size_t kLevel0Tables = 4;
  static constexpr std::size_t kLevels = 4;  // level 0 among them
  static constexpr std::uint64_t kRatio = 4;
  static constexpr std::size_t kTableRows = 1000;

  // The runs that counters tell apart: two memtables, then the levels.
  enum Run : std::size_t { memtable, immutable, level0, kRuns = level0 + kLevels };

  // Filters take so many bits per key over the whole tree: more on small levels, fewer on large ones.
  Store(Disk& disk, double bits_per_key);

  void put(std::string_view key, std::string_view value) { write({std::string(key), std::string(value)}); }
  void erase(std::string_view key) { write({std::string(key), std::nullopt}); }
  std::optional<std::string> get(std::string_view key);
  // The answer for each.  REQUIRES: at most kBatch keys, ascending
  std::vector<std::optional<std::string>> multiget(std::span<const std::string> keys);

  const perhaps::ReadCounters& counters() const { return *counters_; }
  void reset_counters();
  std::uint64_t out_of_range() const { return out_of_range_; }  // tables that lookups left out by their range of keys
  std::uint64_t batches() const { return batches_; }            // of filter queries, by multiget()

  std::span<const std::unique_ptr<Table>> level(std::size_t i) const { return levels_[i]; }
  std::uint64_t rows_in(Run run) const;
  double bits_per_key(std::size_t level) const { return bits_[level]; }
  const Compacted& compacted_into(std::size_t level) const { return compacted_[level]; }

 private:
  using Rows = std::map<std::string, std::optional<std::string>, std::less<>>;
  using Tables = std::vector<std::unique_ptr<Table>>;
  struct Memtable {
    Memtable();
    Rows rows;
    std::unique_ptr<perhaps::AnyMutable> filter;
  };

  void write(const Row& row);
  void flush();
  void compact(std::size_t from);
  void drop_tombstones(std::size_t below, std::vector<Row>& rows, Compacted& done) const;
  std::unique_ptr<Table> table_of(std::span<const Row> rows, std::size_t level) const;
  void list_filters();
  const Table* table_for(std::size_t level, std::string_view key) const;
  std::optional<Row> read(std::size_t filter, std::string_view key, std::uint64_t& bytes) const;

  Disk& disk_;
  std::array<double, kLevels> bits_{};
  std::unique_ptr<Memtable> memtable_, immutable_;
  std::array<Tables, kLevels> levels_;  // level 0: newest first; others: in the order of their keys
  std::array<Compacted, kLevels> compacted_;

  // All filters, newest first, and what each belongs to: a memtable or a table.
  struct Source {
    const Memtable* memtable;
    const Table* table;
    Run run;
  };
  std::vector<Source> sources_;
  std::map<const Table*, std::size_t> number_of_;  // in sources_ and in filters_
  perhaps::FilterSet filters_;

  std::unique_ptr<perhaps::ReadCounters> counters_;
  std::uint64_t out_of_range_ = 0;
  std::uint64_t batches_ = 0;
};

}  // namespace lsm
