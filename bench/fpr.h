// perhaps-bench fpr: theory beside measurement, for doc/maths.md.
#pragma once
#include <cstdint>

namespace perhaps::bench {

// Prints one line for each family and shape; 0 if every rate is within five standard deviations of its model, else 1.
int print_rates(std::uint64_t seed);

}  // namespace perhaps::bench
