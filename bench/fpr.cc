#include "fpr.h"

#include <cmath>
#include <cstdio>
#include <vector>

#include "number.h"
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

// The share of `queries` absent keys that are perhaps there, over `filters` filters. Filter f has a seed and
// keys of its own (number.h), from f * 2^40 on; absent keys are the ones after them.
template <class F>
double measure(typename F::Shape shape, std::uint64_t seed, std::uint64_t filters, std::uint64_t queries) {
  std::vector<std::uint64_t> keys(1 << 16);
  std::vector<std::uint64_t> answers(keys.size() / kBatch);
  std::uint64_t perhaps = 0;
  for (std::uint64_t f = seed; f < seed + filters; ++f) {
    F filter(shape, Hash(f));
    std::uint64_t number = f << 40;
    const auto next = [&](std::uint64_t left) {
      const std::size_t part = std::min<std::size_t>(keys.size(), left);
      for (std::size_t i = 0; i < part; ++i) keys[i] = key_number(number++);
      return std::span<const std::uint64_t>(keys).first(part);
    };
    for (std::uint64_t done = 0; done < kKeys; done += keys.size()) filter.insert(next(kKeys - done));
    for (std::uint64_t done = 0; done < queries; done += keys.size()) {
      const auto part = next(queries - done);
      filter.may_contain(part, answers);
      for (std::size_t i = 0; i < (part.size() + 63) / 64; ++i) {
        perhaps += static_cast<std::uint64_t>(std::popcount(answers[i]));
      }
    }
  }
  return static_cast<double>(perhaps) / static_cast<double>(filters * queries);
}

template <class F>
bool compare(double bits_per_key, std::uint64_t seed) {
  const auto shape = F::Shape::for_keys({.keys = kKeys, .bits_per_key = bits_per_key});
  const double n = static_cast<double>(kFilters) * kQueries;
  const double model = shape.fpr(kKeys);
  const double measured = measure<F>(shape, seed, kFilters, kQueries);
  const double sigma =
      std::hypot(spread(shape, kKeys) / std::sqrt(double{kFilters}), std::sqrt(model * (1 - model) / n));
  const double z = (measured - model) / sigma;
  const double bits = 8.0 * static_cast<double>(shape.bytes());
  std::printf("%-8s %8.2f %7u %12.6f %12.6f %12.6f %9.4f %7.2f%s\n", std::string(F::layout::family).c_str(),
              bits / kKeys, probes_of(shape), 100 * textbook(bits, probes_of(shape)), 100 * model, 100 * measured,
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
  for (const double bits : {5.0, 8.0, 10.0, 12.0, 16.0, 20.0}) good &= compare<Bloom>(bits, seed);
  for (const double bits : {5.0, 8.0, 10.0, 10.24, 12.0, 16.0, 20.0, 28.0}) good &= compare<LineBloom>(bits, seed);
  for (const double bits : {6.0, 8.0, 10.0, 32.0 / 3, 12.0, 16.0, 20.0}) good &= compare<BlockBloom>(bits, seed);
  return good ? 0 : 1;
}

}  // namespace perhaps::bench
