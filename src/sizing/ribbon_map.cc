// The shape of perhaps/ribbon_map.h.
#include <cmath>

#include "build/ribbon_plan.h"
#include "perhaps/ribbon_map.h"
#include "sizing/shape_error.h"

namespace perhaps {

RibbonMapShape RibbonMapShape::for_keys(std::uint64_t keys, const MapRequest& request) {
  return {detail::ribbon_of(keys, request.value_bits + request.check_bits), request.check_bits};
}

double RibbonMapShape::fpr() const noexcept { return keys() == 0 ? 0 : std::ldexp(1.0, -static_cast<int>(check_bits)); }

// Those of a ribbon; in place of its wide keys, which a map does not have, the bits of a check.
std::vector<std::uint64_t> RibbonMapShape::numbers() const {
  std::vector<std::uint64_t> all = ribbon.numbers();
  all[2] = check_bits;
  return all;
}

Result<RibbonMapShape> RibbonMapShape::from(std::span<const std::uint64_t> numbers) {
  std::vector<std::uint64_t> all(numbers.begin(), numbers.end());
  std::uint64_t check = 0;
  if (all.size() > 2) check = std::exchange(all[2], 0);
  auto ribbon = detail::ribbon_from(RibbonMapLayout::family, all, kMaxColumns);
  if (!ribbon) return std::move(ribbon).error();
  if (check > kMaxCheckBits || check >= ribbon->columns || ribbon->columns - check > kMaxValueBits) {
    return out_of_range(RibbonMapLayout::family, "check bits of " + std::to_string(ribbon->columns) + " columns",
                        check);
  }
  return RibbonMapShape{*ribbon, static_cast<std::uint32_t>(check)};
}

Facts RibbonMapShape::facts() const {
  return {{"value bits", std::to_string(value_bits())},
          {"check bits", std::to_string(check_bits)},
          {"fronts", std::to_string(ribbon.fronts)}};
}

}  // namespace perhaps
