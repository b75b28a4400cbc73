// The table of routing: one key, 512 sets.
#pragma once
#include "report.h"

namespace perhaps::bench {

inline constexpr std::uint64_t kMaxRouted = 100'000;  // keys of a set

Table route_table(std::uint64_t n);
// Fills and prints it; false if something was wrong, and no speed is to be believed.
bool run_route(Table& table, std::uint64_t rounds);

}  // namespace perhaps::bench
