// Promise: no other way to spread the bytes over the levels wastes fewer reads. Would notice: a spread on an exhaustive
// grid that beats best() by more than the coarseness of the grid, a budget that is exceeded or left unused, and rates
// that do not follow the closed form of the textbook's curve.
#include "perhaps/engine/allocate.h"

#include <gtest/gtest.h>

#include <cmath>

#include "perhaps/sizing.h"
#include "support/keys.h"

namespace perhaps {
namespace {

struct Tried {
  std::uint64_t bytes;
  double fpr;
};
Tried try_out(const Level& level, double bits) {
  if (bits <= 0) return {0, 1};
  const Request request{.keys = level.keys, .bits_per_key = bits};
  const auto of = [&](const auto& shape) { return Tried{shape.bytes(), shape.fpr(static_cast<double>(level.keys))}; };
  return level.family == Kind::line ? of(LineShape::for_keys(request)) : of(BloomShape::for_keys(request));
}

// Every spread over three levels, in steps of an eighth of a bit for the two small ones; the last gets the rest.
double brute_force(const std::vector<Level>& levels, std::uint64_t budget) {
  std::vector<std::vector<Tried>> tried(3);
  for (std::size_t i = 0; i < 3; ++i) {
    for (int step = 0; step < 200; ++step) tried[i].push_back(try_out(levels[i], step * 0.125));
  }
  double least = 1e9;
  for (const Tried& a : tried[0]) {
    for (const Tried& b : tried[1]) {
      if (a.bytes + b.bytes > budget) break;
      std::size_t c = 0;
      while (c + 1 < tried[2].size() && a.bytes + b.bytes + tried[2][c + 1].bytes <= budget) ++c;
      least = std::min(least, levels[0].cost * a.fpr + levels[1].cost * b.fpr + levels[2].cost * tried[2][c].fpr);
    }
  }
  return least;
}

TEST(Allocate, NothingOnAGridIsBetter) {
  const test::Stream random{5};
  for (std::uint64_t round = 0; round < 12; ++round) {
    std::vector<Level> levels;
    std::uint64_t keys = 0;
    for (std::uint64_t i = 0; i < 3; ++i) {
      const std::uint64_t r = random.at(round * 3 + i);
      levels.push_back({.keys = 2'000 + r % 100'000, .cost = 0.25 * static_cast<double>(1 + r / 100'000 % 8)});
      levels.back().family = round % 2 == 0 ? Kind::classic : Kind::line;
      keys += levels.back().keys;
    }
    const std::uint64_t budget = keys * (1 + round) / 8;
    const auto tree = LevelBudget::over(levels);
    ASSERT_TRUE(tree);
    const Allocation best = tree->best(budget);
    EXPECT_LE(best.bytes, budget);
    EXPECT_GT(best.bytes, budget - budget / 100) << "round " << round;
    EXPECT_LE(best.wasted, brute_force(levels, budget) * 1.005) << "round " << round;
    EXPECT_LE(best.wasted, tree->even(budget).wasted) << "round " << round;
  }
}

TEST(Allocate, RatesFollowTheNumberOfKeys) {
  const auto tree = LevelBudget::over({{.keys = 1'000'000, .family = Kind::classic},
                                       {.keys = 10'000'000, .family = Kind::classic},
                                       {.keys = 100'000'000, .family = Kind::classic},
                                       {.keys = 1'000'000'000, .family = Kind::classic}});
  ASSERT_TRUE(tree);
  const Allocation best = tree->best(std::uint64_t{1'111'000'000} * 10 / 8);
  for (std::size_t i = 1; i < 4; ++i) {
    // Only roughly, because the curve has kinks where the number of probes changes.
    EXPECT_NEAR(best.levels[i].fpr / best.levels[i - 1].fpr, 10, 4) << "level " << i;
    EXPECT_NEAR(best.levels[i - 1].bits_per_key - best.levels[i].bits_per_key, 1.44 * std::log2(10), 0.8);
  }
  EXPECT_GT(tree->even(std::uint64_t{1'111'000'000} * 10 / 8).wasted / best.wasted, 2.4);
}

TEST(Allocate, TheCostOfALevelCounts) {
  const auto tree = LevelBudget::over({{.keys = 100'000, .cost = 1}, {.keys = 100'000, .cost = 16}});
  ASSERT_TRUE(tree);
  const Allocation best = tree->best(200'000);
  EXPECT_NEAR(best.levels[0].fpr / best.levels[1].fpr, 16, 4);
}

TEST(Allocate, TheSmallestWastesNoMoreAndARibbonAtTheEndSaves) {
  std::vector<Level> levels;
  for (const std::uint64_t keys : {1'000'000u, 10'000'000u, 100'000'000u}) levels.push_back({.keys = keys});
  const auto tree = LevelBudget::over(levels);
  const Allocation even = tree->even(150'000'000);
  const Allocation small = tree->smallest(even.wasted);
  EXPECT_LE(small.wasted, even.wasted);
  EXPECT_GT(tree->best(small.bytes - small.bytes / 100).wasted, even.wasted);
  EXPECT_LT(static_cast<double>(small.bytes), 0.92 * static_cast<double>(even.bytes));
  levels.back().family = Kind::ribbon;
  const Allocation smaller = (*LevelBudget::over(levels)).smallest(even.wasted);
  EXPECT_LE(smaller.wasted, even.wasted);
  EXPECT_LT(static_cast<double>(smaller.bytes), 0.75 * static_cast<double>(even.bytes));
}

TEST(Allocate, EmptyTreesEmptyBudgetsAndBadLevels) {
  EXPECT_EQ((*LevelBudget::over({})).best(1000).bytes, 0);
  const auto tree = LevelBudget::over({{.keys = 0}, {.keys = 1000}});
  EXPECT_EQ(tree->best(0).wasted, 1);
  EXPECT_EQ(tree->even(0).wasted, 1);
  EXPECT_EQ(tree->best(10'000).levels[0].bytes, 0);
  EXPECT_LT(tree->best(UINT64_MAX).wasted, 1e-4);
  EXPECT_EQ(LevelBudget::over({{.keys = 1, .family = Kind::scalable}}).error().code, Errc::unsupported);
  EXPECT_EQ(LevelBudget::over({{.keys = 1, .cost = -1}}).error().code, Errc::bad_parameter);
}

// The bytes for more keys than this do not fit into 64 bits: the arithmetic once overflowed.
TEST(Allocate, MoreKeysThanBytesCanCountAreRefused) {
  const auto most = LevelBudget::over({{.keys = LevelBudget::kMaxKeys / 2}, {.keys = LevelBudget::kMaxKeys / 2}});
  ASSERT_TRUE(most);
  for (const auto& share : most->best(UINT64_MAX).levels) EXPECT_NEAR(share.bits_per_key, LevelBudget::kMaxBits, 0.5);
  EXPECT_EQ(LevelBudget::over({{.keys = LevelBudget::kMaxKeys}, {.keys = 1}}).error().code, Errc::bad_parameter);
  EXPECT_EQ(LevelBudget::over({{.keys = UINT64_MAX}}).error().code, Errc::bad_parameter);
}

// A family was once a string_view of the caller's: with a name that had died, `even` found no curve and gave the level
// no bits, at a rate of 1, in silence.
TEST(Allocate, KeepsNothingOfItsCallers) {
  const auto tree = [] {
    std::vector<Level> levels = {{.keys = 100'000, .family = kind_named(std::string("rib") + "bon").value()}};
    return LevelBudget::over(std::move(levels));
  }();
  ASSERT_TRUE(tree);
  const Allocation even = tree->even(125'000);
  EXPECT_NEAR(even.levels[0].bits_per_key, 10, 0.1);
  EXPECT_LT(even.levels[0].fpr, 0.01);
  EXPECT_LE(even.bytes, 125'000u);
}

// Every family has a curve or is refused, and none gets no bits.
TEST(Allocate, EveryFamilyIsSpreadOrRefused) {
  for (const Family& family : families()) {
    const auto tree = LevelBudget::over({{.keys = 100'000, .family = family.kind}});
    ASSERT_EQ(bool(tree), family.takes_any_size) << family.name;
    if (!tree) continue;
    for (const Allocation& all : {tree->even(400'000), tree->best(400'000)}) {
      EXPECT_GT(all.levels[0].bits_per_key, 8) << family.name;
      EXPECT_LT(all.levels[0].fpr, 0.5) << family.name;
    }
  }
  EXPECT_FALSE(LevelBudget::over({{.keys = 1, .family = Kind::dense}}));
  EXPECT_FALSE(LevelBudget::over({{.keys = 1, .family = Kind::sets}}));
}

}  // namespace
}  // namespace perhaps
