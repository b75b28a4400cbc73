// How long it takes to make one quotient filter of two.
#pragma once
#include <cstdint>

#include "report.h"

namespace perhaps::bench {

// Twice as many are merged as well.
inline constexpr std::uint64_t kMaxMerged = 10'000'000;

Table merge_table(std::uint64_t keys);
// Two quotient filters of n keys each become one: merged, or the fingerprints of the second inserted into a copy of the
// first that has room for them, in their order and in that of the keys. ns for a key of the second; all three end with
// the same bytes, or no speed is printed. Merging is charged with the memory of its result, page faults and zeroing
// included; inserting is given the copy, which is made and touched before the clock starts. To charge it with the copy
// as well would flatter merging: resize() alone takes half as long as merge().
// False if they do not.
bool run_merge(Table& table, std::uint64_t rounds);

}  // namespace perhaps::bench
