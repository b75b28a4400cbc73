#include "maps.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <vector>

#include "key_list.h"
#include "peak_memory.h"
#include "perhaps/coded_map.h"
#include "perhaps/exact.h"
#include "perhaps/ribbon.h"
#include "perhaps/ribbon_map.h"
#include "stopwatch.h"

namespace perhaps::bench {
namespace {

using Digests = std::span<const Digest<Hash>>;

std::vector<Digest<Hash>> digests_from(std::uint64_t first, std::uint64_t count) {
  const KeyList<std::uint64_t> keys(count, [&](std::uint64_t i) { return first + i; });
  std::vector<Digest<Hash>> digests(count);
  digests_of(Hash(), keys.keys(), std::span(digests));
  return digests;
}

std::uint64_t low_bits(std::uint64_t number, std::uint32_t bits) { return number & ~std::uint64_t{0} >> (64 - bits); }

template <class T>
T value_of(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().detail);
  return *std::move(result);
}

// One round: build(), which gives what is measured; a look at its answers; then lookups, in columns and one by one,
// with a sum that depends on every answer.
template <class Build, class Check, class Column, class One>
void take_turn(Row& row, Digests present, Digests absent, Build build, Check check, Column column, One one) {
  using Built = decltype(build());
  std::optional<Built> built;
  const PeakMemory peak;
  const double time = seconds([&] { built.emplace(build()); });
  const auto keys = static_cast<double>(present.size());
  row.ns["peak, B/key"].push_back(peak.bytes() / keys);
  row.ns["build"].push_back(1e9 * time / keys);
  if (!check(*built)) row.refused = "a wrong answer";
  row.bytes = built->byte_size();
  row.bits_per_key = 8.0 * static_cast<double>(row.bytes) / keys;
  const auto timed = [&](const char* name, Digests digests, auto query) {
    std::uint64_t sum = 0;
    const double all = seconds([&] { sum = query(digests); });
    keep(sum);
    row.ns[name].push_back(1e9 * all / static_cast<double>(digests.size()));
  };
  const auto in_columns = [&](Digests digests) {
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < digests.size(); i += kColumn) {
      sum += column(*built, digests.subspan(i, std::min(kColumn, digests.size() - i)));
    }
    return sum;
  };
  const auto one_by_one = [&](Digests digests) {
    std::uint64_t sum = 0;
    for (const Digest<Hash> digest : digests) sum += one(*built, digest);
    return sum;
  };
  timed("batch, present", present, in_columns);
  timed("batch, absent", absent, in_columns);
  timed("single, present", present, one_by_one);
  timed("single, absent", absent, one_by_one);
}

// How many keys of a column are in.
template <class Set>
std::uint64_t ask_column(const Set& set, Digests digests) {
  std::array<std::uint64_t, kColumn / kBatch> answers{};
  if constexpr (std::same_as<Set, Exact>) {
    set.contains(digests, answers);
  } else {
    set.may_contain(digests, answers);
  }
  std::uint64_t in = 0;
  for (const std::uint64_t word : answers) in += static_cast<std::uint64_t>(std::popcount(word));
  return in;
}
// The sum of their values.
template <class Map>
std::uint64_t find_column(const Map& map, Digests digests) {
  std::array<std::uint64_t, kColumn> values;
  std::array<std::uint64_t, kColumn / kBatch> found;
  map.find(digests, values, found);
  return std::accumulate(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(digests.size()),
                         std::uint64_t{0});
}
template <class Map>
bool has_values(const Map& map, Digests digests, std::span<const std::uint64_t> values) {
  for (std::size_t i = 0; i < digests.size(); i += 97) {
    if (map.find(digests[i]) != values[i]) return false;
  }
  return true;
}

Row named(const std::string& name) {
  Row row;
  row.about = {.name = name, .kind = Kind::ours};
  return row;
}

constexpr std::uint32_t kColumns[] = {1, 8, 12, 16, 32};  // that a filter can have, too

}  // namespace

Table maps_table(std::uint64_t n) {
  return {.group = "",
          .section = "maps",
          .keys = n,
          .mix = "digests",
          .columns = {"build", "peak, B/key", "batch, present", "batch, absent", "single, present", "single, absent"},
          .rows = {}};
}

bool run_maps(Table& table, std::uint64_t rounds) {
  const std::uint64_t n = table.keys;
  const std::vector<Digest<Hash>> present = digests_from(0, n);
  const std::vector<Digest<Hash>> absent = digests_from(kAbsent, n);
  std::vector<std::uint64_t> values(n);
  std::vector<Row> filters;
  std::vector<Row> maps;
  for (const std::uint32_t c : kColumns) {
    filters.push_back(named("ribbon, " + std::to_string(c) + (c == 1 ? " column" : " columns")));
    maps.push_back(named("map, " + std::to_string(c) + (c == 1 ? " bit" : " bits")));
  }
  maps.push_back(named("map, 64 bits"));
  Row coded = named("coded map, 99:1");
  Row exact = named("exact, 1/8 in");
  const Digests members = Digests(present).first(n / 8);
  const auto has_all = [&](const Ribbon& filter) {
    return ask_column(filter, Digests(present).first(kColumn)) == kColumn;
  };
  const auto has_mapped = [&](const auto& map) { return has_values(map, present, values); };
  const auto is_right = [&](const Exact& set) {
    for (std::size_t i = 0; i < n; i += 97) {
      if (set.contains(present[i]) != (i < members.size())) return false;
    }
    return true;
  };
  const auto one_value = [](const auto& map, Digest<Hash> digest) { return map.find(digest).value_or(0); };
  for (std::uint64_t round = 0; round < rounds; ++round) {
    for (std::size_t i = 0; i < maps.size(); ++i) {
      const std::uint32_t bits = i < filters.size() ? kColumns[i] : 64;
      for (std::uint64_t k = 0; k < n; ++k) values[k] = low_bits(key_number(k ^ kNeverAsked), bits);
      if (i < filters.size()) {
        const Request request{.fpr = std::ldexp(1.0, -static_cast<int>(bits))};
        take_turn(
            filters[i], present, absent, [&] { return value_of(Ribbon::build(Digests(present), request)); }, has_all,
            ask_column<Ribbon>,
            [](const Ribbon& filter, Digest<Hash> digest) { return std::uint64_t{filter.may_contain(digest)}; });
      }
      const MapRequest request{.value_bits = bits};
      take_turn(
          maps[i], present, absent, [&] { return value_of(RibbonMap::build(Digests(present), values, request)); },
          has_mapped, find_column<RibbonMap>, one_value);
    }
    for (std::uint64_t k = 0; k < n; ++k) values[k] = key_number(k ^ kNeverAsked) % 100 == 0;
    take_turn(
        coded, present, absent, [&] { return value_of(CodedMap::build(present, values)); }, has_mapped,
        find_column<CodedMap>, one_value);
    take_turn(
        exact, present, absent, [&] { return value_of(Exact::build(members, Digests(present))); }, is_right,
        ask_column<Exact>, [](const Exact& set, Digest<Hash> digest) { return std::uint64_t{set.contains(digest)}; });
  }
  table.rows = filters;
  table.rows.insert(table.rows.end(), maps.begin(), maps.end());
  table.rows.push_back(coded);
  table.rows.push_back(exact);
  print(table);
  bool right = true;
  for (const Row& row : table.rows) right &= row.refused.empty();
  for (std::size_t i = 0; i < filters.size() && right; ++i) {
    std::printf(
        "  %2u columns: a map's batch takes %.2f times that of the filter's present keys, %.2f of its absent ones\n",
        kColumns[i], ratio(maps[i].ns.at("batch, present"), filters[i].ns.at("batch, present")),
        ratio(maps[i].ns.at("batch, absent"), filters[i].ns.at("batch, absent")));
  }
  return right;
}

}  // namespace perhaps::bench
