// What the sizing and the building of perhaps/ribbon.h have to agree on. Integers only: the same on every machine.
#pragma once
#include <cstdint>

namespace perhaps::detail {

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
