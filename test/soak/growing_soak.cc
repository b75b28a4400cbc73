// Promise: ten million inserts, erases and merges lose no key; a filter that grows from nothing to 3e8 keys, or with
// PERHAPS_SOAK_KEYS to more, stays within 18 bits per key (23 up to 8192 keys) and below its rate of 1 % at every power
// of two and half-way. Would notice: a rate that drifts, a key that is lost in one of many steps, a part that does not
// fit into its next place. Seeds 11 and 12; the bound is 5 sigma of a million queries.
#include <cstdlib>

#include "support/growing.h"
#include "support/statistics.h"

namespace perhaps::test {
namespace {

TEST(GrowingSoak, AgreesWithAModel) {
  GrowingModel model(Request{.keys = 0, .fpr = 0.01}, 11);
  ASSERT_NO_FATAL_FAILURE(model.run(10'000'000, 1'000'003));
  GrowingModel coarse(Request{.keys = 10'000, .fpr = 0.2}, 12);
  ASSERT_NO_FATAL_FAILURE(coarse.run(1'500'000, 250'007));
}

TEST(GrowingSoak, TheRateDoesNotDrift) {
  const char* const wanted = std::getenv("PERHAPS_SOAK_KEYS");
  const std::uint64_t keys = wanted != nullptr ? std::strtoull(wanted, nullptr, 10) : 300'000'000;
  constexpr std::uint64_t kColumn = 512;
  constexpr std::uint64_t kQueries = 1 << 20;
  Growing filter(Request{.keys = 0, .fpr = 0.01});
  std::vector<std::uint64_t> column(kColumn);
  std::vector<std::uint64_t> absent(kQueries);
  std::vector<std::uint64_t> answers(kQueries / kBatch);
  for (std::uint64_t i = 0; i < kQueries; ++i) absent[i] = ~i;
  std::uint64_t next = 1024;
  for (std::uint64_t n = 0; n < keys;) {
    for (std::uint64_t i = 0; i < kColumn; ++i) column[i] = n + i;
    ASSERT_EQ(filter.insert(std::span<const std::uint64_t>(column)), kColumn);
    n += kColumn;
    if (n >= 1024) {
      ASSERT_LE(static_cast<double>(filter.byte_size()) * 8, (n < 8192 ? 23.0 : 18.0) * static_cast<double>(n)) << n;
    }
    if (n < next) continue;
    next = std::has_single_bit(next) ? next / 2 * 3 : next / 3 * 4;
    filter.may_contain(std::span<const std::uint64_t>(absent), std::span(answers));
    const double rate = static_cast<double>(count_ones(answers)) / static_cast<double>(kQueries);
    const double bits = static_cast<double>(filter.byte_size()) * 8 / static_cast<double>(n);
    const double model = filter.shape().fpr(static_cast<double>(n));
    std::printf("%12llu keys  %.2f bits per key  model %.3e  measured %.3e\n", static_cast<unsigned long long>(n), bits,
                model, rate);
    EXPECT_LE(rate, 0.01);
    EXPECT_LE(rate, model + kSigmas * std::sqrt(model / static_cast<double>(kQueries)));
    for (std::uint64_t i = 0; i < n; i += 1 + n / 1'000'000) ASSERT_TRUE(filter.may_contain(i)) << i << " of " << n;
  }
}

}  // namespace
}  // namespace perhaps::test
