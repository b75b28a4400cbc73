// Ranks by Zipf's law: rank r, from 0 on, is asked for in proportion to 1 / (r + 1)^0.99, which is YCSB's default. By
// inverting an approximation of the distribution (Gray et al., "Quickly generating billion-record synthetic databases",
// SIGMOD 1994), exact for the first two ranks.
#pragma once
#include <cmath>
#include <cstdint>

namespace perhaps::bench {

class Zipf {
 public:
  static constexpr double kExponent = 0.99;

  // REQUIRES: ranks >= 2
  explicit Zipf(std::uint64_t ranks)
      : ranks_(static_cast<double>(ranks)),
        sum_(sum_of(ranks)),
        eta_((1 - std::pow(2 / ranks_, 1 - kExponent)) / (1 - sum_of(2) / sum_)) {}

  // From 64 random bits.
  std::uint64_t rank(std::uint64_t random) const {
    const double u = static_cast<double>(random >> 11) * 0x1p-53;
    if (u * sum_ < 1) return 0;
    if (u * sum_ < sum_of(2)) return 1;
    const double at = ranks_ * std::pow(eta_ * u - eta_ + 1, 1 / (1 - kExponent));
    return static_cast<std::uint64_t>(std::fmin(at, ranks_ - 1));
  }

 private:
  static double sum_of(std::uint64_t ranks) {
    double sum = 0;
    for (std::uint64_t i = 1; i <= ranks; ++i) sum += std::pow(static_cast<double>(i), -kExponent);
    return sum;
  }

  double ranks_;
  double sum_;
  double eta_;
};

}  // namespace perhaps::bench
