// Empty ranges: the range filter, a Bloom filter of prefixes in as many bits, and none. Rates, the theorem's bound, and
// ns for a range.
#include "ranges.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

#include "number.h"
#include "perhaps/bloom.h"
#include "perhaps/range.h"
#include "stopwatch.h"

namespace perhaps::bench {
namespace {

constexpr double kBits = 16;
constexpr unsigned kPrefixShift = 10;  // of the Bloom filter: blocks of 1024 numbers
constexpr std::uint64_t kRanges = 1'000'000;
constexpr std::uint64_t kOther = std::uint64_t{1} << 40;  // numbers that are no keys

struct Where {
  const char* mix;
  std::uint64_t size;
  bool beside;  // right behind a key
};
constexpr Where kWhere[] = {
    {"1 number, anywhere", 1, false},         {"10 numbers, anywhere", 10, false},
    {"100 numbers, anywhere", 100, false},    {"1000 numbers, anywhere", 1000, false},
    {"1 number, behind a key", 1, true},      {"10 numbers, behind a key", 10, true},
    {"100 numbers, behind a key", 100, true}, {"1000 numbers, behind a key", 1000, true},
};

std::vector<std::uint64_t> sorted_keys(std::uint64_t n) {
  std::vector<std::uint64_t> keys(n);
  for (std::uint64_t i = 0; i < n; ++i) keys[i] = key_number(i);
  std::sort(keys.begin(), keys.end());
  return keys;
}

std::vector<Interval> empty_ranges(const std::vector<std::uint64_t>& keys, const Where& where) {
  std::vector<Interval> ranges;
  for (std::uint64_t i = 0; ranges.size() < kRanges; ++i) {
    const std::uint64_t random = key_number(kOther + i);
    const std::uint64_t low = where.beside ? keys[random % keys.size()] + 1 : random;
    if (low == 0 || low > UINT64_MAX - where.size) continue;
    const auto next = std::lower_bound(keys.begin(), keys.end(), low);
    if (next == keys.end() || *next - low >= where.size) ranges.push_back({low, low + where.size - 1});
  }
  return ranges;
}

bool prefixes_may_contain(const Bloom& prefixes, Interval range) {
  for (std::uint64_t block = range.low >> kPrefixShift; block <= range.high >> kPrefixShift; ++block) {
    if (prefixes.may_contain(block)) return true;
  }
  return false;
}

Row row_of(const char* name, std::uint64_t bytes, std::uint64_t n) {
  Row row;
  row.about = {.name = name, .kind = Kind::ours};
  row.bytes = bytes;
  row.bits_per_key = 8.0 * static_cast<double>(bytes) / static_cast<double>(n);
  return row;
}

}  // namespace

std::vector<Table> range_tables(std::uint64_t n) {
  std::vector<Table> tables;
  for (const Where& where : kWhere) {
    tables.push_back(
        {.group = "", .section = "ranges", .keys = n, .mix = where.mix, .columns = {"single", "batch"}, .rows = {}});
  }
  return tables;
}

bool run_ranges(std::vector<Table>& tables, std::uint64_t rounds) {
  const std::uint64_t n = tables.front().keys;
  const auto keys = sorted_keys(n);
  const auto filter = RangeFilter::of(keys, {.bits_per_key = kBits});
  Bloom prefixes({.keys = n, .bits_per_key = kBits});
  for (const std::uint64_t key : keys) prefixes.insert(key >> kPrefixShift);
  const bool finds_all = std::ranges::all_of(keys, [&](std::uint64_t key) { return filter.may_contain(key); });
  bool sound = true;
  for (Table& table : tables) {
    const Where& where = *std::ranges::find(kWhere, table.mix, [](const Where& w) { return std::string(w.mix); });
    const auto ranges = empty_ranges(keys, where);
    Row ours = row_of("range filter", filter.byte_size(), n);
    Row blooms = row_of("Bloom of prefixes", prefixes.byte_size(), n);
    Row none = row_of("no filter", 0, n);
    for (std::uint64_t round = 0; round < rounds; ++round) {
      const auto timed = [&](Row& row, const char* column, auto work) {
        row.ns[column].push_back(1e9 * seconds(work) / kRanges);
      };
      std::uint64_t perhaps = 0;
      std::uint64_t of_prefix = 0;
      timed(ours, "single", [&] {
        for (const Interval& range : ranges) perhaps += filter.may_contain_any(range);
      });
      std::vector<std::uint64_t> answers((kRanges + kBatch - 1) / kBatch);
      timed(ours, "batch", [&] { filter.may_contain_any(std::span<const Interval>(ranges), std::span(answers)); });
      keep(answers[0]);
      timed(blooms, "single", [&] {
        for (const Interval& range : ranges) of_prefix += prefixes_may_contain(prefixes, range);
      });
      ours.fpr = static_cast<double>(perhaps) / kRanges;
      blooms.fpr = static_cast<double>(of_prefix) / kRanges;
    }
    const double bound = ours.fpr_model = filter.fpr(static_cast<double>(where.size));
    blooms.fpr_model = blooms.fpr;  // it has no formula that knows where ranges lie
    none.fpr = none.fpr_model = 1;
    if (!finds_all) ours.refused = "a false negative";
    if (ours.fpr > bound + 5 * std::sqrt(bound / kRanges)) ours.refused = "a rate above the bound";
    sound &= ours.refused.empty();
    table.rows = {ours, blooms, none};
    print(table);
    std::printf("  the bound of the theorem: %.4f %%\n", 100 * bound);
  }
  return sound;
}

}  // namespace perhaps::bench
