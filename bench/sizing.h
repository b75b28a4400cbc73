// How long it takes to choose a shape: an engine does it for every table that it writes.
#pragma once
#include <cstdint>

#include "report.h"

namespace perhaps::bench {

Table sizing_table(std::uint64_t keys);
// ns for a call of for_keys, by rate and by bits per key.
void run_sizing(Table& table, std::uint64_t rounds);

}  // namespace perhaps::bench
