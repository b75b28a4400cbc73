// Which table has this key? A map in front of the 16 tables of an LSM tree, beside one filter per table.
//
// One filter per table answers *perhaps* or *no*, so a read queries all of them, and reads every table that says
// *perhaps*. A map from each key to the number of its table is queried once, and names one table: a present key is read
// once, always, and an absent one at the rate of the map's check bits. At equal memory both waste as few reads on
// absent keys. (A map is built once: tables that are compacted need a new one, as their filters do.)
#include <cstdio>
#include <vector>

#include "perhaps/ribbon.h"
#include "perhaps/ribbon_map.h"

namespace {

constexpr std::uint64_t kTables = 16;  // four bits
constexpr std::uint64_t kKeys = 200'000;
constexpr std::uint64_t kAbsent = 200'000;
constexpr std::uint32_t kCheckBits = 8;

// Key i is in the table that chance put it into.
std::uint64_t table_of(std::uint64_t i) { return (i * 0x9e3779b97f4a7c15u) >> 60; }

struct Reads {
  std::uint64_t present = 0;
  std::uint64_t absent = 0;
  std::uint64_t probes = 0;
  std::uint64_t lost = 0;  // present keys whose table was not read
};

void print(const char* name, std::uint64_t bytes, const Reads& reads) {
  std::printf("%-22s %8llu bytes  %5.2f probes per lookup  %.4f reads per present key  %.4f per absent key\n", name,
              static_cast<unsigned long long>(bytes),
              static_cast<double>(reads.probes) / static_cast<double>(kKeys + kAbsent),
              static_cast<double>(reads.present) / static_cast<double>(kKeys),
              static_cast<double>(reads.absent) / static_cast<double>(kAbsent));
}

}  // namespace

int main() {
  using perhaps::Digest;
  using perhaps::Hash;
  const Hash hash;
  std::vector<Digest<Hash>> keys(kKeys);
  std::vector<std::uint64_t> tables(kKeys);
  std::vector<std::vector<Digest<Hash>>> by_table(kTables);
  for (std::uint64_t i = 0; i < kKeys; ++i) {
    keys[i] = hash(i);
    tables[i] = table_of(i);
    by_table[tables[i]].push_back(keys[i]);
  }

  const auto map = perhaps::RibbonMap::build(std::span<const Digest<Hash>>(keys), tables,
                                             {.value_bits = 4, .check_bits = kCheckBits});
  if (!map) return std::fprintf(stderr, "%s\n", map.error().detail.c_str()), 1;
  // Filters that waste as little on absent keys: sixteen at a sixteenth of the rate.
  std::vector<perhaps::Ribbon> filters;
  std::uint64_t filter_bytes = 0;
  for (const auto& digests : by_table) {
    auto filter = perhaps::Ribbon::build(std::span<const Digest<Hash>>(digests), {.fpr = 1.0 / 256 / kTables});
    if (!filter) return std::fprintf(stderr, "%s\n", filter.error().detail.c_str()), 1;
    filter_bytes += filter->byte_size();
    filters.push_back(*std::move(filter));
  }

  Reads with_map;
  Reads with_filters;
  for (std::uint64_t i = 0; i < kKeys; ++i) {
    ++with_map.probes;
    const auto table = map->find(keys[i]);
    with_map.present += table.has_value();
    with_map.lost += table != tables[i];
    bool read = false;
    for (std::uint64_t t = 0; t < kTables && !read; ++t) {
      ++with_filters.probes;
      if (!filters[t].may_contain(keys[i])) continue;
      ++with_filters.present;
      read = t == tables[i];
    }
    with_filters.lost += !read;
  }
  for (std::uint64_t i = 0; i < kAbsent; ++i) {
    const auto digest = hash((std::uint64_t{1} << 40) + i);
    ++with_map.probes;
    with_map.absent += map->find(digest).has_value();
    for (const perhaps::Ribbon& filter : filters) {
      ++with_filters.probes;
      with_filters.absent += filter.may_contain(digest);
    }
  }
  print("one map", map->byte_size(), with_map);
  print("a filter for each table", filter_bytes, with_filters);

  // Its claims: no key is lost, one read for each present key, absent ones within 5 sigma of the rate (n = 2e5,
  // p = 1/256: 781 +- 140), no more memory than the filters and a twelfth of their probes.
  const bool kept = with_map.lost == 0 && with_filters.lost == 0 && with_map.present == kKeys &&
                    with_map.absent < 781 + 140 && map->byte_size() < filter_bytes + filter_bytes / 50 &&
                    with_filters.probes > 10 * with_map.probes;
  if (!kept) std::fprintf(stderr, "a claim does not hold\n");
  return kept ? 0 : 1;
}
