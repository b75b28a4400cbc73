// Promise: after 1e9 keys a window filter still has its initial size, every key of the window answers *perhaps*, and
// the rate of absent keys matches the model. Would notice: anything that degrades over time, such as stamps that wrap
// around or counts that drift. Seed 51; the bound is 5 sigma and 2 % for the fill of one filter.
#include <sys/resource.h>

#include "perhaps/window.h"
#include "support/statistics.h"

namespace perhaps::test {
namespace {

std::uint64_t resident_kilobytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return static_cast<std::uint64_t>(usage.ru_maxrss);
}

TEST(WindowSoak, AThousandMillionKeys) {
  constexpr std::uint64_t kKeys = 1'000'000'000;
  constexpr std::uint64_t kWindow = 100'002;  // a multiple of 7, so that the window is exactly this long
  constexpr std::uint64_t kColumn = 50'000;
  Window filter(Request{.keys = kWindow, .fpr = 1e-3}, Hash(51));
  const std::uint64_t bytes = filter.byte_size();
  std::vector<Digest<Hash>> digests(kColumn);
  std::vector<std::uint64_t> answers(kColumn / 64 + 1);
  const auto column = [&](std::uint64_t from) {
    for (std::uint64_t i = 0; i < kColumn; ++i) digests[i] = Hash(51)(from + i);
    return std::span<const Digest<Hash>>(digests);
  };
  std::uint64_t wrongly = 0;
  std::uint64_t missing = 0;
  std::uint64_t early = 0;
  for (std::uint64_t from = 0; from < kKeys; from += kColumn) {
    // Every key is new, so every key that was "present" is a false positive.
    insert(filter, column(from), answers);
    wrongly += count_ones(answers);
    if (from % (200 * kColumn) == 0 && from != 0) {
      filter.may_contain(column(from - kColumn), answers);
      missing += kColumn - count_ones(answers);
    }
    if (from == 100 * kColumn) early = resident_kilobytes();
  }
  EXPECT_EQ(missing, 0u);
  EXPECT_EQ(filter.byte_size(), bytes);
  EXPECT_LE(resident_kilobytes(), early + 1024);  // pages of code come and go
  // Between two generations seven are full and one is filling.
  const double full = filter.shape().generation_fpr(kWindow / 7.0);
  double filling = 0;
  for (int i = 0; i < 64; ++i) filling += filter.shape().generation_fpr((i + 0.5) / 64 * kWindow / 7) / 64;
  const double model = 1 - std::pow(1 - full, 7) * (1 - filling);
  const double rate = static_cast<double>(wrongly) / kKeys;
  std::printf("  1e9 keys, %lu bytes all along, resident %lu kB: rate %.6g, model %.6g\n", bytes, resident_kilobytes(),
              rate, model);
  EXPECT_NEAR(rate, model, kSigmas * binomial_error(model, kKeys) + 0.02 * model);
}

}  // namespace
}  // namespace perhaps::test
