// A memory budget over the levels of an LSM tree: what `perhaps allocate` and the page in the browser print.
#pragma once
#include <cstdint>

#include "perhaps/engine/allocate.h"

namespace perhaps::cli {

// The last level is the largest; each level is `ratio` times as large as the one before it.
struct Tree {
  static constexpr std::uint32_t kMaxLevels = 64;  // every pair of levels is compared

  std::uint32_t levels = 4;
  double ratio = 10;
  std::uint64_t keys = 0;    // in all levels
  std::uint64_t budget = 0;  // bytes of all filters
  Kind family = Kind::line;
  std::uint32_t ribbon = 0;  // the last so many levels have ribbon filters
  std::uint32_t runs = 1;    // overlapping tables on the first level
};
// An error names the option of `perhaps allocate`.
Result<void> check(const Tree& tree);

struct SpreadBudget {
  LevelBudget evenly;  // without ribbons
  LevelBudget spread;
  Allocation best;
  Allocation even;
  Allocation small;  // the fewest bytes that waste no more than `even`
  // Ribbon filters with the same bits per key on every level: the best that engines do without a plan.
  Allocation even_ribbon;
};
// REQUIRES: check(tree)
Result<SpreadBudget> spread_budget(const Tree& tree);

}  // namespace perhaps::cli
