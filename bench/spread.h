// How far the true rate of one filter lies from the model's, which is the mean over all filters of that shape.
//
// Keys fall on blocks at random, so blocks differ in their rate f(j), j ~ Poisson(keys per block); the rate of a filter
// is the mean over its blocks, and its standard deviation is sd(f) / sqrt(blocks). At 1e5 keys that is 2 % of the rate:
// more than the error of a measurement with 1e7 queries.
#pragma once
#include <cmath>

#include "perhaps/counting_bloom.h"
#include "perhaps/cuckoo.h"
#include "perhaps/quotient.h"
#include "perhaps/sizing.h"
#include "perhaps/window.h"

namespace perhaps::bench {

// `per_key`: the share of a block's bits that a key sets; `probes`: how many a query tests.
inline double spread_of_blocks(double blocks, double keys, double per_key, double probes) {
  const double mean = keys / blocks;
  double first = 0;
  double second = 0;
  for (double j = 0; j < 20 + 3 * mean; ++j) {
    const double p = std::exp(j * std::log(mean) - mean - std::lgamma(j + 1));
    const double rate = std::pow(1 - std::pow(1 - per_key, j), probes);
    first += p * rate;
    second += p * rate * rate;
  }
  return std::sqrt(std::max(0.0, second - first * first) / blocks);
}

inline double spread(LineShape shape, double keys) {
  return spread_of_blocks(static_cast<double>(shape.lines), keys, shape.probes / 512.0, shape.probes);
}
inline double spread(BlockShape shape, double keys) {
  return spread_of_blocks(static_cast<double>(shape.blocks), keys, 1 / 32.0, 8);
}
// One block of all bits; what varies is the number of distinct bits set, with at most the variance of a binomial.
inline double spread(BloomShape shape, double keys) {
  const double fill = shape.fill(keys);
  return shape.fpr(keys) * shape.probes / fill * std::sqrt(fill * (1 - fill) / static_cast<double>(shape.bits));
}
inline double spread(const CountingShape& shape, double keys) {
  return spread_of_blocks(static_cast<double>(shape.lines), keys, shape.probes / 128.0, shape.probes);
}

// Fingerprints: an absent key has one of `values` values, and the rate is the share of values that keys have. Keys are
// balls, values bins; what varies is how many bins are hit twice.
inline double spread_of_values(double values, double keys) {
  const double load = keys / values;
  return std::sqrt(std::max(0.0, std::exp(-load) - (1 + load) * std::exp(-2 * load)) / values);
}
inline double spread(CuckooShape shape, double keys) {
  const double fingerprints = std::exp2(shape.fingerprint_bits) - 1;
  return spread_of_values(fingerprints * static_cast<double>(shape.buckets) / 2, keys);
}
inline double spread(const QuotientShape& shape, double keys) {
  return spread_of_values(static_cast<double>(shape.buckets) * std::exp2(shape.remainder_bits), keys);
}

// Seven full generations. In each the rate is a product over the rows, whose lines are independent.
inline double spread(WindowShape shape, double keys) {
  const double each = keys / WindowShape::kWindow;
  const double of_row = spread_of_blocks(static_cast<double>(shape.lines), each, shape.probes / 63.0, shape.probes);
  const double row = std::pow(shape.generation_fpr(each), 1.0 / shape.rows);
  const double of_generation = shape.generation_fpr(each) * std::sqrt(static_cast<double>(shape.rows)) * of_row / row;
  return of_generation * std::sqrt(double{WindowShape::kWindow});
}

// Static filters: the fingerprint of an absent key is independent of the bits it is compared with, so nothing varies.
// Not zero, which would mean that it is unknown.
inline constexpr double kExact = 1e-4;

}  // namespace perhaps::bench
