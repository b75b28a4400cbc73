// The way of a read through a log-structured merge tree, and what filters do on it. Each chapter prints what was
// counted and checks what it claims; every answer is compared with std::map.
//
//   1  writes            memtable, immutable memtable, overlapping level 0, levels below; how filters share the memory
//   2  lookups           key ranges leave out tables, filters those that remain: one hash, prefetched over all levels
//   3  many at once      the same reads from a fraction of the calls
//   4  compactions       filters are built anew; filters below tell which tombstones have done their work
//   5  without the keys  quotient filters are merged, and foresee how many rows a compaction will leave
//   6  kinds of blocks   one filter for a table, pieces, one for each data block; read on opening or when needed
#include <algorithm>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#include "store.h"

namespace {

using lsm::Store;
using Model = std::map<std::string, std::string>;
using Number = unsigned long long;

int broken_claims = 0;
void claim(bool holds, const char* what) {
  if (holds) return;
  ++broken_claims;
  std::printf("NOT SO: %s\n", what);
}

// The same numbers in every run.
struct Random {
  std::uint64_t state;
  std::uint64_t below(std::uint64_t limit) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    return (state >> 33) % limit;
  }
};

// Even numbers are written. Odd ones lie between them and are absent.
constexpr std::uint64_t kUsers = 120'000;
std::string user(std::uint64_t i) {
  const std::string digits = std::to_string(i);
  return "user" + std::string(6 - digits.size(), '0') + digits;
}

const char* name_of(std::size_t run) {
  constexpr const char* kNames[] = {"memtable", "immutable", "level 0", "level 1", "level 2", "level 3"};
  return kNames[run];
}

void write(Store& store, Model& model) {
  std::puts("1 writes");
  Random random{1};
  for (int i = 0; i < 300'850; ++i) {
    const std::string key = user(2 * random.below(kUsers));
    if (random.below(4) == 0) {
      store.erase(key);
      model.erase(key);
    } else {
      const std::string value = "value " + std::to_string(i);
      store.put(key, value);
      model[key] = value;
    }
  }
  std::printf("  %-10s %6s %8s %9s\n", "", "tables", "rows", "bits/key");
  double bits = 0;
  double rows = 0;
  for (std::size_t run = 0; run < Store::kRuns; ++run) {
    const auto in_run = static_cast<Number>(store.rows_in(static_cast<Store::Run>(run)));
    if (run < Store::level0) {
      std::printf("  %-10s %6s %8llu\n", name_of(run), "", in_run);
      continue;
    }
    double filter_bits = 0;
    for (const auto& table : store.level(run - Store::level0)) {
      filter_bits += 8 * static_cast<double>(table->filter_bytes());
    }
    bits += filter_bits;
    rows += static_cast<double>(in_run);
    std::printf("  %-10s %6zu %8llu %9.2f\n", name_of(run), store.level(run - Store::level0).size(), in_run,
                in_run == 0 ? 0 : filter_bits / static_cast<double>(in_run));
    claim(in_run != 0, "every level has rows");
  }
  std::printf("  %-10s %6s %8.0f %9.2f\n", "all tables", "", rows, bits / rows);
  claim(store.rows_in(Store::immutable) != 0, "a memtable waits to be written");
}

// Half of the keys are there, or were; the other half never was.
std::vector<std::string> questions() {
  std::vector<std::string> keys;
  Random random{2};
  for (int i = 0; i < 40'000; ++i) keys.push_back(user(2 * random.below(kUsers) + (i % 2 != 0)));
  return keys;
}

std::uint64_t data_reads(const Store& store) {
  std::uint64_t reads = 0;
  for (std::size_t i = 0; i < Store::kLevels; ++i) {
    for (const auto& table : store.level(i)) reads += table->data_reads().count;
  }
  return reads;
}

bool right(const Model& model, const std::string& key, const std::optional<std::string>& answer) {
  const auto found = model.find(key);
  return found == model.end() ? !answer : answer == found->second;
}

void look_up(Store& store, const Model& model, const std::vector<std::string>& keys) {
  std::puts("2 lookups");
  store.reset_counters();
  const std::uint64_t before = data_reads(store);
  for (const std::string& key : keys) claim(right(model, key, store.get(key)), "get() answers as the map does");
  std::printf("  %-10s %8s %8s %7s %8s %8s\n", "", "queried", "no", "found", "in vain", "rate");
  std::uint64_t reads = 0;
  std::uint64_t queried = 0;
  std::uint64_t in_vain = 0;
  for (std::size_t run = 0; run < Store::kRuns; ++run) {
    const auto counts = store.counters().of(run);
    std::printf("  %-10s %8llu %8llu %7llu %8llu %6.2f %%\n", name_of(run), static_cast<Number>(counts.probes()),
                static_cast<Number>(counts.no), static_cast<Number>(counts.found),
                static_cast<Number>(counts.false_positives), 100 * counts.fpr());
    if (run < Store::level0) continue;
    reads += counts.found + counts.false_positives;
    queried += counts.probes();
    in_vain += counts.false_positives;
  }
  const std::uint64_t blocks = data_reads(store) - before;
  std::printf("  tables left out by their key ranges: %llu, by their filters: %llu\n",
              static_cast<Number>(store.out_of_range()), static_cast<Number>(queried - reads));
  std::printf("  data blocks read: %llu for %zu lookups, %llu of them in vain; without filters %llu\n",
              static_cast<Number>(blocks), keys.size(), static_cast<Number>(in_vain), static_cast<Number>(queried));
  claim(blocks == reads, "every read is counted once");
  claim(20 * in_vain < queried - (reads - in_vain), "filters save 19 of 20 reads in vain");
}

void look_up_many(Store& store, const Model& model, std::vector<std::string> keys) {
  std::puts("3 many at once");
  std::vector<perhaps::LevelCounts> single;
  std::uint64_t queries = 0;
  for (std::size_t run = 0; run < Store::kRuns; ++run) {
    single.push_back(store.counters().of(run));
    queries += single.back().probes();
  }
  const std::uint64_t out_of_range = store.out_of_range();
  store.reset_counters();
  for (std::size_t from = 0; from < keys.size(); from += perhaps::kBatch) {
    const auto batch = std::span(keys).subspan(from, std::min(perhaps::kBatch, keys.size() - from));
    std::ranges::sort(batch);
    const auto values = store.multiget(batch);
    for (std::size_t i = 0; i < batch.size(); ++i) {
      claim(right(model, batch[i], values[i]), "multiget() answers as the map does");
    }
  }
  bool same = true;
  for (std::size_t run = 0; run < Store::kRuns; ++run) {
    const auto counts = store.counters().of(run);
    same &= counts.no == single[run].no && counts.found == single[run].found &&
            counts.false_positives == single[run].false_positives;
  }
  std::printf("  the same reads level by level: %s\n", same ? "yes" : "no");
  std::printf("  filter queries: %llu, in %llu batches; keys hashed: %zu\n", static_cast<Number>(queries),
              static_cast<Number>(store.batches()), keys.size());
  claim(same, "multiget() reads what get() reads");
  claim(store.batches() * 4 < queries, "a batch has more than four keys");
  claim(store.out_of_range() <= out_of_range, "a key that is found is out of no further range");
}

void show_compactions(const Store& store) {
  std::puts("4 compactions");
  std::printf("  %-10s %4s %9s %9s %26s %7s %8s\n", "", "", "", "", "tombstones dropped by", "", "of them");
  std::printf("  %-10s %4s %9s %9s %13s %12s %7s %8s\n", "into", "runs", "rows in", "out", "key ranges", "filters",
              "kept", "in vain");
  std::uint64_t by_filter = 0;
  std::uint64_t in_vain = 0;
  for (std::size_t level = 1; level < Store::kLevels; ++level) {
    const auto& done = store.compacted_into(level);
    std::printf("  %-10s %4llu %9llu %9llu %13llu %12llu %7llu %8llu\n", name_of(Store::level0 + level),
                static_cast<Number>(done.runs), static_cast<Number>(done.rows_in), static_cast<Number>(done.rows_out),
                static_cast<Number>(done.dropped_by_range), static_cast<Number>(done.dropped_by_filter),
                static_cast<Number>(done.kept), static_cast<Number>(done.kept_in_vain));
    by_filter += done.dropped_by_filter;
    in_vain += done.kept_in_vain;
    claim(done.dropped_by_filter > 0 || level + 1 == Store::kLevels, "filters drop what key ranges do not");
    claim(done.kept == 0 || level + 1 < Store::kLevels, "nothing is below the last level");
  }
  claim(10 * in_vain < by_filter, "few tombstones are kept in vain");
}

void show_merged(const Store& store) {
  std::puts("5 without the keys");
  std::printf("  %-10s %13s %9s %15s %7s\n", "into", "fingerprints", "distinct", "before dropping", "denied");
  for (std::size_t level = 1; level < Store::kLevels; ++level) {
    const auto& done = store.compacted_into(level);
    const std::uint64_t rows = done.rows_out + done.dropped_by_range + done.dropped_by_filter;
    std::printf("  %-10s %13llu %9llu %15llu %7llu\n", name_of(Store::level0 + level),
                static_cast<Number>(done.fingerprints), static_cast<Number>(done.distinct), static_cast<Number>(rows),
                static_cast<Number>(done.denied));
    claim(done.fingerprints == done.rows_in, "a fingerprint for each row");
    claim(done.denied == 0, "the merged filter denies no key");
    claim(done.distinct <= rows && rows - done.distinct < rows / 100, "fingerprints foresee the rows within 1 %");
  }
}

// One table of 20,000 rows in 1250 data blocks. Absent keys from anywhere, or from one hundredth of the table.
void compare_blocks() {
  std::puts("6 kinds of blocks");
  using perhaps::FilterMode;
  using enum lsm::Loading;
  std::vector<lsm::Row> rows;
  for (std::uint64_t i = 0; i < 20'000; ++i) rows.push_back({user(4 * i), "value"});
  std::printf("  %-30s %9s %9s %14s %14s %9s %9s\n", "", "", "read on", "then by 200", "by 20,000", "index", "blocks");
  std::printf("  %-30s %9s %9s %14s %14s %9s %9s\n", "filter", "bytes", "opening", "neighbours", "others", "searched",
              "read");
  struct Kind {
    const char* name;
    FilterMode mode;
    lsm::Loading loading;
  };
  constexpr Kind kKinds[] = {{"whole, read on opening", FilterMode::full, on_open},
                             {"whole, read when needed", FilterMode::full, lazily},
                             {"pieces, read on opening", FilterMode::partitioned, on_open},
                             {"pieces, read when needed", FilterMode::partitioned, lazily},
                             {"data blocks, read on opening", FilterMode::per_block, on_open},
                             {"data blocks, read when needed", FilterMode::per_block, lazily}};
  std::vector<std::uint64_t> opened, near;
  for (const Kind& kind : kKinds) {
    lsm::Disk disk;
    const lsm::Table table(disk, rows,
                           {.mode = kind.mode, .family = perhaps::Kind::dense, .bits_per_key = 10, .piece_bytes = 1024},
                           kind.loading);
    opened.push_back(table.filter_reads().bytes);
    // A filter of a data block is asked once the index has said which block it is: then always, not only for *perhaps*.
    std::uint64_t searched = 0;
    const auto ask = [&](std::uint64_t number) {
      const std::string key = user(number);
      if (kind.mode != FilterMode::per_block && !table.filter().may_contain(key)) return;
      ++searched;
      std::uint64_t bytes = 0;
      claim(!table.read(key, bytes), "an absent key is absent");
    };
    Random random{3};
    for (int i = 0; i < 200; ++i) ask(40'000 + 4 * random.below(200) + 1);
    near.push_back(table.filter_reads().bytes - opened.back());
    for (int i = 0; i < 20'000; ++i) ask(4 * random.below(19'999) + 1 + random.below(3));
    const std::uint64_t far = table.filter_reads().bytes - opened.back() - near.back();
    std::printf("  %-30s %9llu %9llu %14llu %14llu %9llu %9llu\n", kind.name, static_cast<Number>(table.filter_bytes()),
                static_cast<Number>(opened.back()), static_cast<Number>(near.back()), static_cast<Number>(far),
                static_cast<Number>(searched), static_cast<Number>(table.data_reads().count));
    claim(table.data_reads().count < 20'200 / 250, "fewer than one read in vain for 250 absent keys");
    claim(opened.back() + near.back() + far <= table.filter_bytes() + perhaps::FilterBlock::kTrailerBytes,
          "nothing is read twice");
    claim((kind.mode == FilterMode::per_block) == (searched == 20'200),
          "only filters of data blocks need the index first");
  }
  claim(near[0] == 0 && near[2] == 0 && near[4] == 0, "what was read on opening is not read again");
  claim(10 * (opened[3] + near[3]) < opened[2], "neighbours need few of the pieces");
}

}  // namespace

int main() {
  lsm::Disk disk;
  Store store(disk, 10);
  Model model;
  write(store, model);
  const auto keys = questions();
  look_up(store, model, keys);
  look_up_many(store, model, keys);
  show_compactions(store);
  show_merged(store);
  compare_blocks();
  return broken_claims == 0 ? 0 : 1;
}
