// What it costs not to know how many keys will come: a growing filter beside a quotient filter that was told.
#pragma once
#include <cstdint>

#include "report.h"

namespace perhaps::bench {

inline constexpr std::uint64_t kMaxGrown = 100'000'000;

Table grow_table(std::uint64_t keys);
// At 1 %. All take the same n keys, in columns of 512 and then one by one. The growing filter and the chain start with
// nothing; the quotient filter has room for n keys from the start, and is charged for its memory, too. `worst` is the
// slowest of the single inserts by the clock of the thread, in ns. Lookups are of absent keys, in one batch. False if a
// key is missing.
bool run_grow(Table& table, std::uint64_t rounds);

}  // namespace perhaps::bench
