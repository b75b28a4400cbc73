// Measured rates beside modelled ones. All bounds are 5 sigma.
//
// The false positives of one filter are not binomial about the model's rate: the filter itself is a sample, and a small
// one that happens to be fuller answers *perhaps* more often to every question. So rates are averaged over many
// independent filters (seeds) and sigma comes from the sample variance over filters, which contains both causes.
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

// Mean and its standard error of values that come one at a time.
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

inline double binomial_error(double rate, double questions) { return std::sqrt(rate * (1 - rate) / questions); }

struct Measured {
  Mean fpr;        // answers of *perhaps* to keys that were not inserted, one value for each filter
  Mean condition;  // what condition_of says of the same filters
  Mean keys;       // the number of keys that it estimates
};

// `filters` filters of one shape with seeds 1, 2 .., each holding the first `keys` integers of a pattern and asked
// about the `questions` that follow them.
template <class F>
Measured measure(typename F::Shape shape, std::uint64_t keys, std::uint64_t filters, std::uint64_t questions,
                 const IntegerPattern& pattern = kIntegerPatterns[0]) {
  Measured m;
  std::vector<std::uint64_t> numbers(std::max(keys, questions));
  std::vector<std::uint64_t> answers(questions / kBatch + 1);
  for (std::uint64_t seed = 1; seed <= filters; ++seed) {
    F filter(shape, hasher_of<typename F::hasher_type>(seed));
    for (std::uint64_t i = 0; i < keys; ++i) numbers[i] = pattern.key(i);
    filter.insert(std::span<const std::uint64_t>(numbers).first(keys));
    for (std::uint64_t i = 0; i < questions; ++i) numbers[i] = pattern.key(keys + i);
    filter.may_contain(std::span<const std::uint64_t>(numbers).first(questions), answers);
    m.fpr.add(static_cast<double>(count_ones(answers)) / static_cast<double>(questions));
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
