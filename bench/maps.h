// What an answer that is more than *perhaps* costs: maps and exact sets beside ribbon filters of as many columns.
#pragma once
#include <cstdint>

#include "report.h"

namespace perhaps::bench {

inline constexpr std::uint64_t kMaxMapped = 10'000'000;

Table maps_table(std::uint64_t keys);
// Builds are timed by the clock of the thread, and `peak` is memory in bytes per key beside the digests and values that
// are given. A filter stops at the first eight columns that deny a key, and a map reads all columns of every key: so a
// map's lookups are compared with those of present keys, for which a filter reads all of them too. Of the exact set an
// eighth of the universe of n keys is in, and all figures are per key of the universe. False if an answer is wrong.
bool run_maps(Table& table, std::uint64_t rounds);

}  // namespace perhaps::bench
