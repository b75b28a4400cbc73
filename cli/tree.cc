#include "tree.h"

#include <cmath>
#include <string>
#include <vector>

namespace perhaps::cli {
namespace {

Result<LevelBudget> budget_of(const Tree& tree, std::uint32_t ribbons) {
  double sum = 0;
  for (std::uint32_t i = 0; i < tree.levels; ++i) sum += std::pow(tree.ratio, -static_cast<double>(i));
  std::vector<Level> levels;
  for (std::uint32_t i = tree.levels; i-- > 0;) {
    const double share = std::pow(tree.ratio, -static_cast<double>(i)) / sum;
    const double keys = std::round(static_cast<double>(tree.keys) * share);
    levels.push_back({.keys = static_cast<std::uint64_t>(keys), .cost = 1, .family = tree.family});
    if (i < ribbons) levels.back().family = Kind::ribbon;
  }
  levels.front().cost = tree.runs;
  return LevelBudget::over(std::move(levels));
}

Error bad(const std::string& what) { return {Errc::bad_parameter, what}; }

std::string number(double value) {
  std::string text = std::to_string(value);
  text.erase(text.find_last_not_of('0') + 1);
  if (text.ends_with('.')) text.pop_back();
  return text;
}

}  // namespace

Result<void> check(const Tree& tree) {
  if (tree.ribbon > tree.levels)
    return bad("--ribbon " + std::to_string(tree.ribbon) + ": there are " + std::to_string(tree.levels) + " levels");
  if (tree.levels < 1 || tree.levels > Tree::kMaxLevels)
    return bad("--levels " + std::to_string(tree.levels) + ": at most " + std::to_string(Tree::kMaxLevels));
  if (!(tree.ratio >= 1) || tree.ratio > 1e6)
    return bad("--ratio " + number(tree.ratio) + ": must be from 1 to 1000000");
  if (tree.keys > LevelBudget::kMaxKeys)
    return bad("--keys " + std::to_string(tree.keys) + ": at most " + std::to_string(LevelBudget::kMaxKeys));
  return {};
}

Result<SpreadBudget> spread_budget(const Tree& tree) {
  auto evenly = budget_of(tree, 0);
  if (!evenly) return std::move(evenly).error();
  auto spread = budget_of(tree, tree.ribbon);
  if (!spread) return std::move(spread).error();
  auto ribbons = budget_of(tree, tree.levels);
  if (!ribbons) return std::move(ribbons).error();
  Allocation best = spread->best(tree.budget);
  Allocation even = evenly->even(tree.budget);
  Allocation small = spread->smallest(even.wasted);
  return SpreadBudget{*std::move(evenly), *std::move(spread), std::move(best),
                      std::move(even),    std::move(small),   ribbons->even(tree.budget)};
}

}  // namespace perhaps::cli
