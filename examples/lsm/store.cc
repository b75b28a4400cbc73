#include "store.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "perhaps/engine/allocate.h"

namespace lsm {

using perhaps::Bytes;
using perhaps::bytes_of;
using perhaps::Kind;

Store::Memtable::Memtable()
    : filter(*perhaps::make_any(Kind::line, {.keys = kMemtableRows, .fpr = 0.01}, perhaps::Hash())) {}

// The bits of each level are decided once, for the tree that is full: a table has those of the level it is written to.
Store::Store(Disk& disk, double bits_per_key) : disk_(disk), memtable_(std::make_unique<Memtable>()) {
  std::vector<perhaps::Level> levels;
  double keys = 0;
  for (std::size_t i = 0; i < kLevels; ++i) {
    const auto tables = i == 0 ? kLevel0Tables : 1;  // that a lookup asks
    levels.push_back({.keys = kLevel0Tables * kMemtableRows * static_cast<std::uint64_t>(std::pow(kRatio, i)),
                      .cost = static_cast<double>(tables)});
    keys += static_cast<double>(levels.back().keys);
  }
  const auto budget = perhaps::LevelBudget::over(levels);
  const auto shares = budget->best(static_cast<std::uint64_t>(keys * bits_per_key / 8)).levels;
  for (std::size_t i = 0; i < kLevels; ++i) bits_[i] = shares[i].bits_per_key;
  reset_counters();
  list_filters();
}

void Store::reset_counters() {
  counters_ = std::make_unique<perhaps::ReadCounters>(kRuns);
  out_of_range_ = batches_ = 0;
}

std::uint64_t Store::rows_in(Run run) const {
  if (run == memtable) return memtable_->rows.size();
  if (run == immutable) return immutable_ == nullptr ? 0 : immutable_->rows.size();
  std::uint64_t rows = 0;
  for (const auto& table : levels_[run - level0]) rows += table->row_count();
  return rows;
}

// ------------------------------------------------------------------------------------------------------------ reading

// The filters change when a memtable is replaced or tables are, not with every row.
void Store::list_filters() {
  filters_ = {};
  sources_.clear();
  number_of_.clear();
  for (const auto& [rows, run] : {std::pair(memtable_.get(), memtable), std::pair(immutable_.get(), immutable)}) {
    if (rows == nullptr) continue;
    static_cast<void>(filters_.add(*rows->filter));  // all hash alike
    sources_.push_back({rows, nullptr, run});
  }
  for (std::size_t i = 0; i < kLevels; ++i) {
    for (const auto& table : levels_[i]) {
      number_of_[table.get()] = sources_.size();
      static_cast<void>(filters_.add(table->filter()));
      sources_.push_back({nullptr, table.get(), static_cast<Run>(level0 + i)});
    }
  }
}

// The one table of a level above 0 whose range covers the key, if there is one.
const Table* Store::table_for(std::size_t level, std::string_view key) const {
  const auto found = std::ranges::lower_bound(levels_[level], key, {}, [](const auto& table) { return table->last(); });
  return found != levels_[level].end() && (*found)->covers(key) ? found->get() : nullptr;
}

std::optional<Row> Store::read(std::size_t filter, std::string_view key, std::uint64_t& bytes) const {
  const Source& source = sources_[filter];
  if (source.table != nullptr) return source.table->read(key, bytes);
  const auto found = source.memtable->rows.find(key);
  if (found == source.memtable->rows.end()) return std::nullopt;
  return Row{found->first, found->second};
}

// Key ranges choose the tables, the filters among these are asked with one digest, and what may have the key is read.
std::optional<std::string> Store::get(std::string_view key) {
  std::vector<perhaps::FilterSet::Choice> choices;
  for (std::size_t i = 0; i < sources_.size() && sources_[i].memtable != nullptr; ++i) {
    choices.push_back({i, sources_[i].run});
  }
  for (const auto& table : levels_[0]) {
    if (table->covers(key)) choices.push_back({number_of_.at(table.get()), level0});
  }
  for (std::size_t i = 1; i < kLevels; ++i) {
    if (const Table* const table = table_for(i, key)) choices.push_back({number_of_.at(table), level0 + i});
  }
  out_of_range_ += sources_.size() - choices.size();

  std::optional<Row> row;
  filters_.find(bytes_of(key), choices, *counters_, [&](std::size_t filter, std::uint64_t& bytes) {
    row = read(filter, key, bytes);
    return row.has_value();
  });
  return row ? row->value : std::nullopt;
}

// The same for many keys at once. Each is hashed once; each filter is asked about all keys that are still looked for
// and lie in its table's range, so that its cache misses overlap.
std::vector<std::optional<std::string>> Store::multiget(std::span<const std::string> keys) {
  std::vector<Bytes> all;
  for (const std::string& key : keys) all.push_back(bytes_of(key));
  std::vector<std::uint64_t> digest_of(keys.size());
  perhaps::hash_many(*filters_.hasher(), all, digest_of);

  std::vector<std::optional<std::string>> values(keys.size());
  std::vector<bool> done(keys.size());
  for (std::size_t filter = 0; filter < sources_.size(); ++filter) {
    const auto& [rows, table, run] = sources_[filter];
    std::vector<std::size_t> asked;
    std::vector<Bytes> some;
    std::vector<std::uint64_t> digests;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (done[i]) continue;
      if (table != nullptr && !table->covers(keys[i])) {
        ++out_of_range_;
        continue;
      }
      asked.push_back(i);
      some.push_back(all[i]);
      digests.push_back(digest_of[i]);
    }
    if (asked.empty()) continue;
    ++batches_;
    const std::uint64_t answers =
        table == nullptr ? rows->filter->digests()->may_contain(digests) : table->filter().may_contain(some, digests);
    for (std::size_t j = 0; j < asked.size(); ++j) {
      if ((answers >> j & 1) == 0) {
        counters_->no(run);
        continue;
      }
      std::uint64_t bytes = 0;
      const auto row = read(filter, keys[asked[j]], bytes);
      row ? counters_->found(run, bytes) : counters_->false_positive(run, bytes);
      if (!row) continue;
      values[asked[j]] = row->value;
      done[asked[j]] = true;
    }
  }
  return values;
}

// ------------------------------------------------------------------------------------------------------------ writing

// A full memtable waits while the next one fills up by half: so long a background thread takes to write it.
void Store::write(const Row& row) {
  const auto [place, is_new] = memtable_->rows.insert_or_assign(row.key, row.value);
  const Bytes key = bytes_of(row.key);
  if (is_new) static_cast<void>(memtable_->filter->insert(std::span(&key, 1)));  // a LineBloom is never full
  if (immutable_ != nullptr && memtable_->rows.size() == kMemtableRows / 2) flush();
  if (memtable_->rows.size() < kMemtableRows) return;
  immutable_ = std::exchange(memtable_, std::make_unique<Memtable>());
  list_filters();
}

void Store::flush() {
  std::vector<Row> rows;
  for (const auto& [key, value] : immutable_->rows) rows.push_back({key, value});
  levels_[0].insert(levels_[0].begin(), table_of(rows, 0));
  immutable_.reset();
  if (levels_[0].size() == kLevel0Tables) compact(0);
  std::uint64_t most = kLevel0Tables * kMemtableRows;
  for (std::size_t i = 1; i + 1 < kLevels; ++i) {
    most *= kRatio;
    if (rows_in(static_cast<Run>(level0 + i)) > most) compact(i);
  }
  list_filters();
}

std::unique_ptr<Table> Store::table_of(std::span<const Row> rows, std::size_t level) const {
  return std::make_unique<Table>(
      disk_, rows, perhaps::FilterBlockOptions{.family = Kind::line, .bits_per_key = std::max(bits_[level], 1.0)});
}

// All tables of a level, and those of the next one that they overlap, become tables of the next one. Their filters are
// built from the rows that are left: a filter cannot forget the keys that are gone.
void Store::compact(std::size_t from) {
  const std::size_t to = from + 1;
  Tables older;
  const auto overlaps = [&](const std::unique_ptr<Table>& table) {
    return std::ranges::any_of(levels_[from], [&](const auto& newer) {
      return newer->first() <= table->last() && table->first() <= newer->last();
    });
  };
  for (auto& table : levels_[to]) {
    if (overlaps(table)) older.push_back(std::move(table));
  }
  std::erase(levels_[to], nullptr);

  Rows newest;  // emplace() leaves a row that is there, and newer tables come first
  Compacted& done = compacted_[to];
  perhaps::Quotient merged(fingerprint_shape(1), perhaps::Hash());
  for (const Tables* tables : {&levels_[from], &older}) {
    for (const auto& table : *tables) {
      done.rows_in += table->row_count();
      for (Row& row : table->rows()) newest.emplace(std::move(row.key), std::move(row.value));
      merged = *perhaps::merge(merged.view(), table->fingerprints().view());
    }
  }
  ++done.runs;
  std::vector<Row> rows;
  for (auto& [key, value] : newest) rows.push_back({key, std::move(value)});

  // Without reading a key, the merged fingerprints say how many rows there will be: a key in two tables is in twice.
  done.fingerprints += merged.keys();
  std::uint64_t before = UINT64_MAX;
  perhaps::for_each_fingerprint(merged.view(), [&](std::uint64_t fingerprint) {
    done.distinct += fingerprint != std::exchange(before, fingerprint);
  });
  for (const Row& row : rows) done.denied += !merged.may_contain(row.key);

  drop_tombstones(to + 1, rows, done);
  done.rows_out += rows.size();
  levels_[from].clear();
  for (std::size_t i = 0; i < rows.size(); i += kTableRows) {
    levels_[to].push_back(table_of(std::span(rows).subspan(i, std::min(kTableRows, rows.size() - i)), to));
  }
  std::ranges::sort(levels_[to], {}, [](const auto& table) { return table->first(); });
}

// A tombstone has done its work once no table below can have its key. Engines know that of the last level, or go by
// ranges of keys. The filters know it of single keys, and are asked about 64 at a time.
void Store::drop_tombstones(std::size_t below, std::vector<Row>& rows, Compacted& done) const {
  std::vector<std::size_t> tombstones;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i].value) tombstones.push_back(i);
  }
  std::vector<bool> drop(rows.size());
  for (std::size_t from = 0; from < tombstones.size(); from += perhaps::kBatch) {
    const auto batch = std::span(tombstones).subspan(from, std::min(perhaps::kBatch, tombstones.size() - from));
    std::vector<bool> covered(batch.size()), perhaps_below(batch.size()), really(batch.size());
    for (std::size_t level = below; level < kLevels; ++level) {
      for (const auto& table : levels_[level]) {
        std::vector<std::size_t> asked;
        std::vector<Bytes> keys;
        for (std::size_t i = 0; i < batch.size(); ++i) {
          if (!table->covers(rows[batch[i]].key)) continue;
          covered[i] = true;
          asked.push_back(i);
          keys.push_back(bytes_of(rows[batch[i]].key));
        }
        if (asked.empty()) continue;
        const std::uint64_t answers = table->filter().may_contain(keys);
        for (std::size_t j = 0; j < asked.size(); ++j) {
          if ((answers >> j & 1) == 0) continue;
          std::uint64_t bytes = 0;
          perhaps_below[asked[j]] = true;
          really[asked[j]] = really[asked[j]] || table->read(rows[batch[asked[j]]].key, bytes);  // for the count only
        }
      }
    }
    for (std::size_t i = 0; i < batch.size(); ++i) {
      drop[batch[i]] = !perhaps_below[i];
      ++(perhaps_below[i] ? done.kept : covered[i] ? done.dropped_by_filter : done.dropped_by_range);
      done.kept_in_vain += perhaps_below[i] && !really[i];
    }
  }
  std::size_t i = 0;
  std::erase_if(rows, [&](const Row&) { return bool{drop[i++]}; });
}

}  // namespace lsm
