// Promise: at 16 bits per key, all but the head included, empty ranges of 1 to 1000 numbers are answered *perhaps* no
// more often than range size / 2^14, with uniform keys and ranges that lie anywhere or begin right behind a key.
// Would notice: a rate above the bound at n = 1e6 ranges and z = 5. PERHAPS_KEYS for more keys. `perhaps-bench --only
// ^ranges` prints the table of doc/maths.md.
#include <algorithm>
#include <cstdlib>

#include "perhaps/range.h"
#include "support/statistics.h"

namespace perhaps::test {
namespace {

constexpr double kBits = 16;
constexpr std::uint64_t kRanges = 1'000'000;

TEST(RangeSlow, SixteenBitsPerKey) {
  const char* const given = std::getenv("PERHAPS_KEYS");
  const std::uint64_t count = given == nullptr ? 1'000'000 : std::strtoull(given, nullptr, 10);
  std::vector<std::uint64_t> keys(count);
  for (std::uint64_t i = 0; i < count; ++i) keys[i] = Stream{71}.at(i);
  std::sort(keys.begin(), keys.end());
  const auto filter = RangeFilter::of(keys, {.bits_per_key = kBits});
  const double bits = static_cast<double>(filter.byte_size()) * 8 / static_cast<double>(count);
  EXPECT_LE(bits, kBits + 104.0 * 8 / static_cast<double>(count));
  for (const bool beside : {false, true}) {
    for (const std::uint64_t size : {1u, 10u, 100u, 1000u}) {
      std::vector<Interval> ranges;
      for (std::uint64_t i = 0; ranges.size() < kRanges; ++i) {
        const std::uint64_t random = Stream{72}.at(i);
        const std::uint64_t low = beside ? keys[random % count] + 1 : random;
        if (low == 0 || low > UINT64_MAX - size) continue;
        const auto next = std::lower_bound(keys.begin(), keys.end(), low);
        if (next == keys.end() || *next - low >= size) ranges.push_back({low, low + size - 1});
      }
      std::uint64_t perhaps = 0;
      for (const Interval& range : ranges) perhaps += filter.may_contain_any(range);
      std::vector<std::uint64_t> answers(kRanges / 64 + 1);
      filter.may_contain_any(std::span<const Interval>(ranges), std::span(answers));
      EXPECT_EQ(count_ones(answers), perhaps);
      const double n = kRanges;
      const double rate = static_cast<double>(perhaps) / n;
      const double bound = static_cast<double>(size) / std::exp2(kBits - 2);
      EXPECT_LE(rate, bound + kSigmas * binomial_error(bound, n));
      EXPECT_LE(filter.fpr(static_cast<double>(size)), bound);
    }
  }
}

}  // namespace
}  // namespace perhaps::test
