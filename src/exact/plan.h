// How many columns: what a part of an exact set (perhaps/exact.h) costs under each code, in integers, so that it is the
// same on every machine.
#pragma once
#include <cstdint>
#include <limits>

#include "exact/tables.h"

namespace perhaps::detail {

// In bits times 1024, as measured with 1e6 keys: a column of a ribbon filter and a bit of a map, per key.
inline constexpr std::uint64_t kColumnCost = 1030;
inline constexpr std::uint64_t kValueCost = 1044;
inline constexpr std::uint64_t kEntryCost = 72 * 1024;  // of a part in the directory

struct ExactPlan {
  ExactCode code = kAllOut;
  std::uint64_t cost = 0;
};

inline constexpr std::uint64_t kMaxKeys = std::uint64_t{1} << 44;  // that costs are computed of

// `listed` keys behind a filter of so many columns, and what passes of the `others`.
constexpr std::uint64_t cost_of(std::uint64_t listed, std::uint64_t others, std::uint32_t columns) noexcept {
  return (columns * kColumnCost + kValueCost) * listed + (others >> columns) * kValueCost;
}

// The cheapest number of columns.
constexpr ExactPlan plan_listed(std::uint64_t listed, std::uint64_t others) noexcept {
  ExactPlan best{.code = 0, .cost = std::numeric_limits<std::uint64_t>::max()};
  for (std::uint32_t columns = 0; columns <= RibbonShape::kMaxColumns; ++columns) {
    const std::uint64_t cost = cost_of(listed, others, columns);
    if (cost < best.cost) best = {static_cast<ExactCode>(columns), cost};
  }
  return best;
}

// The code for so many members and others.
constexpr ExactPlan plan_of(std::uint64_t members, std::uint64_t others) noexcept {
  if (members == 0) return {kAllOut, 0};
  if (others == 0) return {kAllIn, 0};
  if (members <= others) return plan_listed(members, others);
  ExactPlan plan = plan_listed(others, members);
  if (plan.code != 0) plan.code = static_cast<ExactCode>(plan.code + kInverted);
  return plan;
}

}  // namespace perhaps::detail
