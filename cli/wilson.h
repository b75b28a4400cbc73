// Confidence intervals of a rate that was measured by sampling (interval.h prints them).
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>

namespace perhaps::cli {

// Wilson's score interval, which also holds for rates near 0, where the textbook interval is empty.
struct Interval {
  double low;
  double high;
};
inline Interval wilson(std::uint64_t hits, std::uint64_t tries, double z) {
  if (tries == 0) return {0, 1};
  const auto n = static_cast<double>(tries);
  const double p = static_cast<double>(hits) / n;
  const double middle = p + z * z / (2 * n);
  const double spread = z * std::sqrt(p * (1 - p) / n + z * z / (4 * n * n));
  const double scale = 1 + z * z / n;
  return {hits == 0 ? 0 : std::max(0.0, (middle - spread) / scale),
          hits == tries ? 1 : std::min(1.0, (middle + spread) / scale)};
}

}  // namespace perhaps::cli
