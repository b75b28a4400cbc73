// Confidence intervals of a rate that was measured by sampling, as text.
#pragma once
#include <cmath>
#include <cstdint>
#include <string>

#include "print.h"
#include "wilson.h"

namespace perhaps::cli {

// Lookups by which the rate of another system's filter is measured, where its formula is not enough (format/codec.h).
inline constexpr double kModelSample = 1 << 18;

// Both ends in one unit.
inline std::string text_of(const Interval& interval) {
  const bool small = interval.low > 0 ? interval.low < 1e-4 : interval.high < 1e-4;
  if (!small) return fmt::format("{} to {}", percent(interval.low), percent(interval.high));
  return fmt::format("{} to {}", interval.low > 0 ? one_in(interval.low) : "0", one_in(interval.high));
}

// Whether the rate of another system's filter was measured by sampling; rates that are too small are computed.
inline bool is_sample(double fpr) { return fpr * kModelSample >= 100 && fpr < 1; }
inline std::string model_text(double fpr) {
  if (!is_sample(fpr)) return fmt::format("about {} by its formula", percent(fpr));
  const auto hits = static_cast<std::uint64_t>(std::llround(fpr * kModelSample));
  const Interval likely = wilson(hits, static_cast<std::uint64_t>(kModelSample), 1.96);
  return fmt::format("about {} ({} at 95 % confidence)", percent(fpr), text_of(likely));
}

}  // namespace perhaps::cli
