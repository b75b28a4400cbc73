// The tables of ranges: is there a key from a to b?
#pragma once
#include <vector>

#include "report.h"

namespace perhaps::bench {

inline constexpr std::uint64_t kMinRanged = 1000;  // keys: fewer have no rate to speak of

// Ranges of 1, 10, 100 and 1000 numbers, anywhere and right behind a key.
std::vector<Table> range_tables(std::uint64_t n);
// Builds the filters of so many keys once, then fills and prints the tables; false if something was wrong.
bool run_ranges(std::vector<Table>& tables, std::uint64_t rounds);

}  // namespace perhaps::bench
