// Promise: at 16 bits per key, all but the head included, empty ranges of 1 to 1000 numbers are answered *perhaps* no
// more often than range size / 2^14, with uniform keys and ranges that lie anywhere or begin right behind a key.
// Would notice: a rate above the bound at n = 1e6 ranges and z = 5. Prints the table of doc/maths.md, beside a Bloom
// filter of prefixes in as many bits, and times, which are not checked. PERHAPS_KEYS for more keys.
#include <time.h>

#include <algorithm>
#include <cstdlib>

#include "perhaps/bloom.h"
#include "perhaps/range.h"
#include "support/statistics.h"

namespace perhaps::test {
namespace {

constexpr double kBits = 16;
constexpr unsigned kPrefixShift = 10;  // of the Bloom filter: blocks of 1024 numbers
constexpr std::uint64_t kRanges = 1'000'000;

double cpu_ns() {
  timespec now;
  ::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

bool prefixes_may_contain(const Bloom& prefixes, Interval range) {
  for (std::uint64_t block = range.low >> kPrefixShift; block <= range.high >> kPrefixShift; ++block) {
    if (prefixes.may_contain(block)) return true;
  }
  return false;
}

TEST(RangeSlow, SixteenBitsPerKey) {
  const char* const given = std::getenv("PERHAPS_KEYS");
  const std::uint64_t count = given == nullptr ? 1'000'000 : std::strtoull(given, nullptr, 10);
  std::vector<std::uint64_t> keys(count);
  for (std::uint64_t i = 0; i < count; ++i) keys[i] = Stream{71}.at(i);
  std::sort(keys.begin(), keys.end());
  const double begin = cpu_ns();
  const auto filter = RangeFilter::of(keys, {.bits_per_key = kBits});
  const double built = (cpu_ns() - begin) / static_cast<double>(count);
  Bloom prefixes({.keys = count, .bits_per_key = kBits});
  for (const std::uint64_t key : keys) prefixes.insert(key >> kPrefixShift);
  const double bits = static_cast<double>(filter.byte_size()) * 8 / static_cast<double>(count);
  EXPECT_LE(bits, kBits + 104.0 * 8 / static_cast<double>(count));
  std::printf("%llu keys, %.3f bits per key, built in %.0f ns per key\n", static_cast<unsigned long long>(count), bits,
              built);
  std::printf("ranges  size  bound      measured   prefix Bloom  ns alone  ns in a batch\n");
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
      std::uint64_t by_prefix = 0;
      const double start = cpu_ns();
      for (const Interval& range : ranges) perhaps += filter.may_contain_any(range);
      const double middle = cpu_ns();
      std::vector<std::uint64_t> answers(kRanges / 64 + 1);
      filter.may_contain_any(std::span<const Interval>(ranges), std::span(answers));
      const double end = cpu_ns();
      EXPECT_EQ(count_ones(answers), perhaps);
      for (const Interval& range : ranges) by_prefix += prefixes_may_contain(prefixes, range);
      const double n = kRanges;
      const double rate = static_cast<double>(perhaps) / n;
      const double bound = static_cast<double>(size) / std::exp2(kBits - 2);
      EXPECT_LE(rate, bound + kSigmas * binomial_error(bound, n));
      EXPECT_LE(filter.fpr(static_cast<double>(size)), bound);
      std::printf("%-6s %5llu  %.5f %%  %.5f %%  %8.4f %%  %8.0f  %8.0f\n", beside ? "beside" : "any",
                  static_cast<unsigned long long>(size), 100 * bound, 100 * rate,
                  100 * static_cast<double>(by_prefix) / n, (middle - start) / n, (end - middle) / n);
    }
  }
}

}  // namespace
}  // namespace perhaps::test
