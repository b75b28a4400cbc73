// Promise: a classic filter of few keys has the requested rate, which is also the model's, down to 1e-12, and
// what no family can meet is refused by name. Would notice: positions of a key that depend on each other. Enhanced
// double hashing fails every row below 1e-5: 10 keys at 1e-9 came out at 2.3e-7.
// 1000 filters per row; 5 million queries, z = 5 (Poisson; where less than one is expected, at most 5).
#include <gtest/gtest.h>

#include "perhaps/any_filter.h"
#include "perhaps/bloom.h"
#include "support/statistics.h"

namespace perhaps::test {
namespace {

TEST(Rates, ClassicOfFewKeysMeetsLowRates) {
  constexpr std::uint64_t kFilters = 1000;
  constexpr std::uint64_t kQueries = 5'000;
  using L = BloomLayout<Multiplicative>;
  for (const std::uint64_t keys : {1, 2, 3, 10, 30, 100}) {
    for (const double fpr : {1e-2, 1e-4, 1e-6, 1e-9, 1e-12}) {
      const auto shape = BloomShape::for_keys({.keys = keys, .fpr = fpr});
      const double model = shape.fpr(static_cast<double>(keys));
      ASSERT_LE(model, fpr * 1.0001) << keys << " keys";
      std::uint64_t perhaps = 0;
      Mean said;
      for (std::uint64_t seed = 1; seed <= kFilters; ++seed) {
        Bloom filter(shape);
        filter.insert(std::span<const Digest<Hash>>(random_digests(Hash(), seed, keys)));
        said.add(condition_of(filter).fpr);
        const Stream queries{kFilters + seed};
        for (std::uint64_t i = 0; i < kQueries; ++i) {
          perhaps += L::may_contain<detail::isa::Portable>(shape, filter.bytes().data(), queries.at(i));
        }
      }
      const double expected = said.value() * kFilters * kQueries;
      std::printf("  %4llu keys at %g: model %.3g, of these bits %.3g, measured %llu for %.3g\n",
                  static_cast<unsigned long long>(keys), fpr, model, said.value(),
                  static_cast<unsigned long long>(perhaps), expected);
      // The rate of these very filters is what condition_of says, and its mean what the model says.
      EXPECT_LE(static_cast<double>(perhaps), expected + kSigmas * std::sqrt(std::max(expected, 1.0)))
          << keys << " keys at " << fpr;
      EXPECT_GE(static_cast<double>(perhaps), expected - kSigmas * std::sqrt(expected)) << keys << " keys at " << fpr;
      EXPECT_NEAR(said.value(), model, kSigmas * said.error() + 0.005 * model) << keys << " keys at " << fpr;
    }
  }
}

// Two keys of one line, or block, that agree in 32 bits agree in the whole pattern of eight probes. The model has it,
// so the conditional rate is measured: queries that have the low half of a stored word. 2^20 of them per row, z = 5.
template <class L>
void expect_equal_patterns(typename L::Shape shape, double places) {
  constexpr std::uint64_t kKeys = 50;
  constexpr std::uint64_t kQueries = 1 << 20;
  Flat<L, Hash> filter(shape);
  std::vector<std::uint64_t> words;
  for (const auto& d : random_digests(Hash(), 5, kKeys)) {
    words.push_back(d.word());
    filter.insert(d);
  }
  std::uint64_t perhaps = 0;
  for (std::uint64_t i = 0; i < kQueries; ++i) {
    const std::uint64_t word = (Stream{6}.at(i) << 32) | (words[i % kKeys] & 0xffffffff);
    perhaps += L::template may_contain<detail::isa::Portable>(shape, filter.bytes().data(), word);
  }
  const double conditional = static_cast<double>(perhaps) / kQueries;
  EXPECT_NEAR(conditional, 1 / places, kSigmas * binomial_error(1 / places, kQueries) + 0.05 / places) << L::family;
  // Which is what the model adds, once for each key.
  EXPECT_NEAR(shape.equal_patterns(kKeys), kKeys * conditional * 0x1p-32, 0.3 * shape.equal_patterns(kKeys));
}
TEST(Rates, EqualPatternsAreInTheModel) {
  expect_equal_patterns<LineLayout>({.lines = 100, .probes = 8}, 100);
  expect_equal_patterns<BlockLayout>({.blocks = 200}, 200);
  // The figures: one key at 1e-11 came out at 2^-32, 23 times as much.
  EXPECT_GE(BlockShape{.blocks = 1}.fpr(1), 0x1p-32);
  EXPECT_GE((LineShape{.lines = 1, .probes = 8}.fpr(1)), 0x1p-32);
}

// Every family, every number of keys, every rate: the shape meets the rate by its model, or the request is refused and
// the error names the family and the field.
TEST(Rates, MetOrRefused) {
  for (const Family& family : families()) {
    std::uint64_t refused = 0;
    for (const std::uint64_t keys : {1, 2, 3, 10, 30, 100, 1000, 10'000, 1'000'000, 100'000'000}) {
      for (const double fpr : {0.5, 0.1, 1e-2, 1e-3, 1e-4, 1e-6, 1e-8, 1e-9, 1e-10, 1e-11, 1e-12}) {
        const auto size = size_of(family.kind, {.keys = keys, .fpr = fpr});
        if (size) {
          EXPECT_LE(size->fpr, fpr * 1.01) << family.name << ", " << keys << " keys at " << fpr;
        } else {
          ++refused;
          EXPECT_LT(fpr, 2e-9) << family.name << ", " << keys << ": " << size.error().detail;
          EXPECT_EQ(size.error().detail.rfind(std::string(family.name) + ": fpr: ", 0), 0u) << size.error().detail;
        }
      }
    }
    const auto below = size_of(family.kind, {.keys = 10, .fpr = 1e-13});
    ASSERT_FALSE(below) << family.name;
    EXPECT_NE(below.error().detail.find("fpr"), std::string::npos);
    std::printf("  %s: %llu of 110 refused\n", std::string(family.name).c_str(),
                static_cast<unsigned long long>(refused));
  }
}

}  // namespace
}  // namespace perhaps::test
