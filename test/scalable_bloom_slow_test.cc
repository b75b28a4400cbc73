// Promise: after ten million keys the chain has lost none and its rate is below the requested one, and the window
// filter has forgotten everything but its window and has not grown. Would notice: a share or a capacity that is wrong
// only in a long chain, stamps that do not survive many rounds. Bounds are 5 sigma; n and rates are printed.
#include "perhaps/scalable_bloom.h"
#include "perhaps/window.h"
#include "support/statistics.h"

namespace perhaps::test {
namespace {

constexpr std::uint64_t kKeys = 10'000'000;
constexpr std::uint64_t kColumn = 1 << 16;

template <class Use>
void in_columns(std::uint64_t from, std::uint64_t to, Use use) {
  std::vector<Digest<Hash>> digests;
  for (; from < to; from += digests.size()) {
    digests.resize(std::min(kColumn, to - from));
    for (std::uint64_t i = 0; i < digests.size(); ++i) digests[i] = Hash()(Stream{41}.at(from + i));
    use(std::span<const Digest<Hash>>(digests));
  }
}

template <class F>
std::uint64_t perhaps_in(const F& filter, std::uint64_t from, std::uint64_t to) {
  std::uint64_t sum = 0;
  std::vector<std::uint64_t> answers;
  in_columns(from, to, [&](std::span<const Digest<Hash>> digests) {
    answers.assign(digests.size() / 64 + 1, 0);
    filter.may_contain(digests, answers);
    sum += count_ones(answers);
  });
  return sum;
}

template <class F>
void ten_million(double target) {
  Scalable<F> filter(Growth{.fpr = target});
  in_columns(0, kKeys, [&](std::span<const Digest<Hash>> digests) { filter.insert(digests); });
  EXPECT_EQ(perhaps_in(filter, 0, kKeys), kKeys);
  const double rate = static_cast<double>(perhaps_in(filter, kKeys, 2 * kKeys)) / kKeys;
  std::printf("  %s, target %g: measured %.4g (n = 1e7), model %.4g, %.1f bits per key, %zu links\n",
              std::string(F::layout::family).c_str(), target, rate, filter.fpr(),
              static_cast<double>(filter.byte_size() * 8) / kKeys, filter.links().size());
  EXPECT_LE(rate, target);
  // Keys that look present are not inserted, so those that are set a few more bits than in the model: at most 2 %.
  EXPECT_NEAR(rate, filter.fpr(), kSigmas * binomial_error(rate, kKeys) + 0.02 * rate);
}

TEST(ScalableSlow, TenMillionKeys) {
  ten_million<LineBloom>(1e-2);
  ten_million<LineBloom>(1e-3);
}

TEST(WindowSlow, TenMillionKeys) {
  for (const double target : {1e-2, 1e-3, 1e-6}) {
    Window filter(Request{.keys = 70'000, .fpr = target});
    const std::uint64_t bytes = filter.byte_size();
    const std::uint64_t n = kKeys / filter.shape().step * filter.shape().step;
    in_columns(0, n, [&](std::span<const Digest<Hash>> digests) { filter.insert(digests); });
    EXPECT_EQ(filter.byte_size(), bytes);
    EXPECT_EQ(perhaps_in(filter, n - 70'000, n), 70'000u);
    // Older keys, and as many that were never inserted, are equally absent.
    const std::uint64_t old = n - 8 * filter.shape().step;
    const double queries = static_cast<double>(old + kKeys);
    const double rate = static_cast<double>(perhaps_in(filter, 0, old) + perhaps_in(filter, n, n + kKeys)) / queries;
    const double model = filter.shape().fpr(70'000);
    std::printf("  window of 70,000, target %g: measured %.4g (n = %.0f), model %.4g\n", target, rate, queries, model);
    // A single filter: its fill varies too, which the binomial error does not include.
    EXPECT_NEAR(rate, model, kSigmas * binomial_error(model, queries) + 0.02 * model);
  }
}

}  // namespace
}  // namespace perhaps::test
