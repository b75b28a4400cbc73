#include "fpr.h"

#include <cmath>
#include <cstdio>
#include <vector>

#include "perhaps/block_bloom.h"
#include "perhaps/bloom.h"
#include "perhaps/line_bloom.h"
#include "spread.h"

namespace perhaps::bench {
namespace {

constexpr std::uint64_t kKeys = 1'000'000;
constexpr std::uint64_t kFilters = 4;
constexpr std::uint64_t kQueries = 5'000'000;  // of each filter

// The textbook formula, which is exact (nearly) for the classic filter only.
double textbook(double bits, double probes) { return std::pow(1 - std::exp(-probes * kKeys / bits), probes); }

std::uint32_t probes_of(BloomShape shape) { return shape.probes; }
std::uint32_t probes_of(LineShape shape) { return shape.probes; }
std::uint32_t probes_of(BlockShape) { return BlockShape::kProbes; }

// Keys of filter f are the numbers from f * 2^40 on, hashed with its own seed; absent keys are the ones after them.
template <class F>
bool measure(double bits_per_key, std::uint64_t seed) {
  std::vector<std::uint64_t> keys(1 << 16);
  std::vector<std::uint64_t> answers(keys.size() / kBatch);
  std::uint64_t perhaps = 0;
  const auto shape = F::Shape::for_keys({.keys = kKeys, .bits_per_key = bits_per_key});
  for (std::uint64_t f = 0; f < kFilters; ++f) {
    F filter(shape, Hash(seed + f));
    std::uint64_t number = (seed + f) << 40;
    for (const std::uint64_t end = number + kKeys; number < end; ++number) filter.insert(number);
    for (std::uint64_t asked = 0; asked < kQueries;) {
      const std::size_t part = std::min<std::size_t>(keys.size(), kQueries - asked);
      for (std::size_t i = 0; i < part; ++i) keys[i] = number++;
      filter.may_contain(std::span<const std::uint64_t>(keys).first(part), answers);
      for (std::size_t i = 0; i < (part + 63) / 64; ++i)
        perhaps += static_cast<std::uint64_t>(std::popcount(answers[i]));
      asked += part;
    }
  }
  const double n = static_cast<double>(kFilters) * kQueries;
  const double model = shape.fpr(kKeys);
  const double measured = static_cast<double>(perhaps) / n;
  const double sigma =
      std::hypot(spread(shape, kKeys) / std::sqrt(double{kFilters}), std::sqrt(model * (1 - model) / n));
  const double z = (measured - model) / sigma;
  std::printf("%-8s %8.2f %7u %12.6f %12.6f %12.6f %9.4f %7.2f%s\n", std::string(F::layout::family).c_str(),
              8.0 * static_cast<double>(shape.bytes()) / kKeys, probes_of(shape),
              100 * textbook(8.0 * static_cast<double>(shape.bytes()), probes_of(shape)), 100 * model, 100 * measured,
              measured / model, z, std::abs(z) <= 5 ? "" : "  OUT OF BOUNDS");
  std::fflush(stdout);
  return std::abs(z) <= 5;
}

}  // namespace

int print_rates(std::uint64_t seed) {
  std::printf("%llu keys, %llu filters of each shape, %llu absent keys asked of each; --seed %llu\n\n",
              static_cast<unsigned long long>(kKeys), static_cast<unsigned long long>(kFilters),
              static_cast<unsigned long long>(kQueries), static_cast<unsigned long long>(seed));
  std::printf("%-8s %8s %7s %12s %12s %12s %9s %7s\n", "family", "b/key", "probes", "textbook %", "model %",
              "measured %", "m/model", "sigma");
  bool good = true;
  for (const double bits : {5.0, 8.0, 10.0, 12.0, 16.0, 20.0}) good &= measure<Bloom>(bits, seed);
  for (const double bits : {5.0, 8.0, 10.0, 10.24, 12.0, 16.0, 20.0, 28.0}) good &= measure<LineBloom>(bits, seed);
  for (const double bits : {6.0, 8.0, 10.0, 32.0 / 3, 12.0, 16.0, 20.0}) good &= measure<BlockBloom>(bits, seed);
  return good ? 0 : 1;
}

}  // namespace perhaps::bench
