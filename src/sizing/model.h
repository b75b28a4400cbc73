// What the models of several families share: searches for a size, and the sum of a blocked filter.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

namespace perhaps::model {

inline constexpr double kInfinity = std::numeric_limits<double>::infinity();

// The smallest x in [1, limit] with good(x), for a predicate that stays true once it is; `limit` if there is none. The
// search widens from `guess`: a rate costs up to 30 us, and a good guess saves most of the steps.
template <class Good>
std::uint64_t first_good(std::uint64_t guess, std::uint64_t limit, Good good) {
  std::uint64_t bad = 0;
  std::uint64_t known_good = limit;
  guess = std::clamp<std::uint64_t>(guess, 1, limit);
  std::uint64_t step = guess / 64 + 1;
  if (good(guess)) {
    known_good = guess;
    while (known_good > step && good(known_good - step)) known_good -= step, step *= 2;
    bad = known_good > step ? known_good - step : 0;
  } else {
    bad = guess;
    while (bad < limit - std::min(limit, step) && !good(bad + step)) bad += step, step *= 2;
    if (bad < limit - std::min(limit, step)) known_good = bad + step;
  }
  while (known_good - bad > 1) {
    const std::uint64_t middle = bad + (known_good - bad) / 2;
    (good(middle) ? known_good : bad) = middle;
  }
  return known_good;
}

// How many keys until `rate(keys)` reaches fpr. Keys are a real number here: filters of one line hold few.
template <class Rate>
double keys_until(double fpr, Rate rate) {
  if (!(fpr < 1)) return kInfinity;
  double high = 1;
  while (rate(high) < fpr && high < 1e19) high *= 2;
  double low = 0;
  for (int step = 0; step < 100 && high - low > 1e-9 * high; ++step) {
    const double middle = (low + high) / 2;
    (rate(middle) < fpr ? low : high) = middle;
  }
  return low;
}

// A blocked filter's rate is a sum over sets S of probed bits: (-1)^|S| * P(no key set a bit of S). A key misses S
// unless it falls on the block (1 / blocks) and then hits S (probability `hit`), independently of the other keys, so
//   P(no key set a bit of S) = (1 - hit / blocks)^keys
// exactly. `weight` collects the signs and the number of such S. Long double: the terms are of order one and cancel.
struct Term {
  long double weight;
  long double hit;
};
using Terms = std::vector<Term>;

inline double sum(const Terms& terms, double blocks, double keys) noexcept {
  long double rate = 0;
  for (const Term& t : terms) rate += t.weight * std::exp(keys * std::log1p(-t.hit / blocks));
  return static_cast<double>(std::clamp(rate, 0.0L, 1.0L));
}

}  // namespace perhaps::model
