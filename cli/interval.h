// How well a share is known that was measured by sampling.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "print.h"

namespace perhaps::cli {

// Lookups by which the rate of another system's filter is measured, where its formula is not enough (format/codec.h).
inline constexpr double kModelSample = 1 << 18;

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

// Both ends in one unit.
inline std::string text_of(const Interval& interval) {
  const bool small = interval.low > 0 ? interval.low < 1e-4 : interval.high < 1e-4;
  if (!small) return fmt::format("{} to {}", percent(interval.low), percent(interval.high));
  return fmt::format("{} to {}", interval.low > 0 ? one_in(interval.low) : "0", one_in(interval.high));
}

// The rate that another system's filter says of itself: a sample, but for rates too small to be sampled.
inline bool is_sample(double fpr) { return fpr * kModelSample >= 100 && fpr < 1; }
inline std::string model_text(double fpr) {
  if (!is_sample(fpr)) return fmt::format("about {} by its formula", percent(fpr));
  const auto hits = static_cast<std::uint64_t>(std::llround(fpr * kModelSample));
  const Interval likely = wilson(hits, static_cast<std::uint64_t>(kModelSample), 1.96);
  return fmt::format("about {} ({} at 95 % confidence)", percent(fpr), text_of(likely));
}

}  // namespace perhaps::cli
