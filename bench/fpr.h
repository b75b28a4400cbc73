// perhaps-bench fpr: theory beside measurement, for doc/maths.md.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace perhaps::bench {

struct Rate {
  std::string family;
  double bits_per_key;
  double fpr;
};
// Measured rates of our families at several sizes, for the picture.
std::vector<Rate> measured_rates(std::uint64_t seed);

// Prints one line for each family and shape; 0 if every rate is within five standard deviations of its model, else 1.
int print_rates(std::uint64_t seed);

}  // namespace perhaps::bench
