// Compares measured rates with models. All bounds are 5 sigma.
//
// The number of false positives of one filter is not binomial with the rate of the model: the filter itself is random,
// and a small one that happens to be fuller answers *perhaps* more often to every query. So rates are averaged over
// many independent filters (seeds), and sigma comes from the sample variance over filters, which includes both causes.
#pragma once
#include <gtest/gtest.h>

#include <cmath>
#include <cstdint>
#include <cstdio>

#include "perhaps/algebra.h"
#include "support/families.h"
#include "support/keys.h"
#include "support/no_false_negatives.h"

namespace perhaps::test {

constexpr double kSigmas = 5;

// Mean and standard error of values that are added one at a time.
class Mean {
 public:
  void add(double x) {
    ++n_;
    const double delta = x - mean_;
    mean_ += delta / static_cast<double>(n_);
    squares_ += delta * (x - mean_);
  }
  double value() const { return mean_; }
  double error() const {
    const double n = static_cast<double>(n_);
    return std::sqrt(squares_ / (n - 1) / n);
  }

 private:
  std::uint64_t n_ = 0;
  double mean_ = 0;
  double squares_ = 0;
};

inline double binomial_error(double rate, double queries) { return std::sqrt(rate * (1 - rate) / queries); }

struct Measured {
  Mean fpr;        // share of absent keys answered *perhaps*, one value per filter
  Mean condition;  // the rate according to condition_of, for the same filters
  Mean keys;       // its estimate of the number of keys
};

// `filters` filters of one shape with seeds 1, 2 .., each holding the first `keys` integers of a pattern and queried
// with the `queries` integers that follow them.
template <class F>
Measured measure(typename F::Shape shape, std::uint64_t keys, std::uint64_t filters, std::uint64_t queries,
                 const IntegerPattern& pattern = kIntegerPatterns[0]) {
  Measured m;
  std::vector<std::uint64_t> numbers(std::max(keys, queries));
  std::vector<std::uint64_t> answers(queries / kBatch + 1);
  for (std::uint64_t seed = 1; seed <= filters; ++seed) {
    F filter(shape, hasher_of<typename F::hasher_type>(seed));
    for (std::uint64_t i = 0; i < keys; ++i) numbers[i] = pattern.key(i);
    filter.insert(std::span<const std::uint64_t>(numbers).first(keys));
    for (std::uint64_t i = 0; i < queries; ++i) numbers[i] = pattern.key(keys + i);
    filter.may_contain(std::span<const std::uint64_t>(numbers).first(queries), answers);
    m.fpr.add(static_cast<double>(count_ones(answers)) / static_cast<double>(queries));
    const Condition c = condition_of(filter);
    m.condition.add(c.fpr);
    m.keys.add(c.keys);
  }
  return m;
}

// Prints one row of doc/maths.md.
template <class F>
void print_row(typename F::Shape shape, std::uint64_t keys, double model, double measured, double error) {
  std::printf(
      "  %-8s %9llu keys  %6.2f bits/key  %2u probes   model %.4e   measured %.4e   z %+.1f\n",
      std::string(F::layout::family).c_str(), static_cast<unsigned long long>(keys),
      static_cast<double>(shape.bytes()) * 8 / static_cast<double>(keys),
      [&] {
        if constexpr (requires { shape.probes; }) {
          return shape.probes;
        } else {
          return 8u;
        }
      }(),
      model, measured, (measured - model) / error);
}

}  // namespace perhaps::test
