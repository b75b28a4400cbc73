// What the sizing and the building of perhaps/ribbon.h have to agree on. Integers only: the same on every machine.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>

#include "perhaps/ribbon.h"

namespace perhaps::detail {

// A table of so many keys with whole columns, before it is built.
RibbonShape ribbon_of(std::uint64_t keys, std::uint32_t columns);
// RibbonShape::from() for `family`, whose tables have up to so many columns.
Result<RibbonShape> ribbon_from(std::string_view family, std::span<const std::uint64_t> numbers,
                                std::uint32_t max_columns);

// Slots that stay empty in a layer of that many, with room for chance: about 12 at the two ends, 0.22 % between them,
// and two to three standard deviations.
constexpr std::uint64_t empty_slots(std::uint64_t slots) noexcept {
  std::uint64_t root = 0;
  for (std::uint64_t bit = std::uint64_t{1} << 31; bit != 0; bit /= 2) {
    if ((root + bit) * (root + bit) <= slots) root += bit;
  }
  return 14 + slots / 450 + root / 2;
}

}  // namespace perhaps::detail
