// Point lookups in an LSM store: tables in four levels, each ten times as large as the one before it, with the filters
// that a memory budget allows. A lookup hashes the key once, prefetches from the filter of every table, and then reads
// only the tables whose filter answers *perhaps*, newest first.
#include <algorithm>
#include <cstdio>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "perhaps/engine/allocate.h"
#include "perhaps/engine/counters.h"
#include "perhaps/engine/filter_block.h"

namespace {

// A sorted table on "disk", with its filter block in memory.
class Table {
 public:
  Table(std::map<std::string, std::string> rows, double bits_per_key) : rows_(std::move(rows)) {
    perhaps::FilterBlockBuilder builder({.family = perhaps::Kind::line, .bits_per_key = bits_per_key});
    for (const auto& [key, value] : rows_) builder.add(key);
    bytes_ = builder.finish();
    filter_ = perhaps::FilterBlock::over(bytes_);
  }
  Table(const Table&) = delete;  // the filter refers to bytes_

  const perhaps::FilterBlock& filter() const { return filter_; }
  std::size_t filter_bytes() const { return bytes_.size(); }
  std::optional<std::string> read(const std::string& key) const {
    const auto found = rows_.find(key);
    return found == rows_.end() ? std::nullopt : std::optional(found->second);
  }

 private:
  std::map<std::string, std::string> rows_;
  std::vector<std::byte> bytes_;
  perhaps::FilterBlock filter_;
};

class Store {
 public:
  static constexpr std::size_t kLevels = 4;
  static constexpr std::uint64_t kKeys[kLevels] = {100, 1'000, 10'000, 100'000};

  explicit Store(std::uint64_t budget) : counters_(kLevels) {
    std::vector<perhaps::Level> levels;
    for (const std::uint64_t keys : kKeys) levels.push_back({.keys = keys});
    const auto tree = perhaps::LevelBudget::over(levels);
    const auto plan = tree->best(budget);
    std::uint64_t next = 0;
    for (std::size_t level = 0; level < kLevels; ++level) {
      std::map<std::string, std::string> rows;
      for (std::uint64_t i = 0; i < kKeys[level]; ++i, ++next)
        rows["key " + std::to_string(next)] = "level " + std::to_string(level);
      tables_.push_back(std::make_unique<Table>(std::move(rows), std::max(plan.levels[level].bits_per_key, 0.1)));
    }
  }

  std::optional<std::string> get(const std::string& key) {
    const perhaps::Bytes bytes = perhaps::bytes_of(key);
    const std::uint64_t digest = tables_[0]->filter().digest_of(bytes);
    for (const auto& table : tables_) table->filter().prefetch(bytes, digest);
    for (std::size_t level = 0; level < tables_.size(); ++level) {
      if (!tables_[level]->filter().may_contain(bytes, digest)) {
        counters_.no(level);
        continue;
      }
      auto value = tables_[level]->read(key);
      value ? counters_.found(level, 4096) : counters_.false_positive(level, 4096);
      if (value) return value;
    }
    return std::nullopt;
  }

  const perhaps::ReadCounters& counters() const { return counters_; }
  const Table& table(std::size_t level) const { return *tables_[level]; }

 private:
  std::vector<std::unique_ptr<Table>> tables_;
  perhaps::ReadCounters counters_;
};

}  // namespace

int main() {
  Store store(150'000);
  for (std::uint64_t i = 0; i < 111'100; i += 7) {
    if (!store.get("key " + std::to_string(i)))
      return std::printf("lost key %llu\n", static_cast<unsigned long long>(i)), 1;
  }
  for (std::uint64_t i = 0; i < 100'000; ++i) {
    if (store.get("no such key " + std::to_string(i))) return std::puts("found a key that does not exist"), 1;
  }
  std::puts("level     keys  bits/key   queries   skipped     found   wasted    rate");
  std::uint64_t wasted = 0;
  for (std::size_t level = 0; level < Store::kLevels; ++level) {
    const auto counts = store.counters().of(level);
    const double bits =
        8.0 * static_cast<double>(store.table(level).filter_bytes()) / static_cast<double>(Store::kKeys[level]);
    std::printf("%5zu %8llu %9.2f %9llu %9llu %9llu %8llu %6.3f %%\n", level,
                static_cast<unsigned long long>(Store::kKeys[level]), bits,
                static_cast<unsigned long long>(counts.probes()), static_cast<unsigned long long>(counts.no),
                static_cast<unsigned long long>(counts.found), static_cast<unsigned long long>(counts.false_positives),
                100 * counts.fpr());
    wasted += counts.false_positives;
  }
  std::printf("%llu wasted reads for 100,000 absent keys; without filters 400,000\n",
              static_cast<unsigned long long>(wasted));
  return wasted < 5'000 ? 0 : 1;
}
