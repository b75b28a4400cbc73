// Promise: filters that erase are multisets: 1e7 random operations compared with one, no false negative, for each
// family; a cuckoo filter holds capacity() keys at every size, and with 1e7 keys of 12 bits it has the promised rate
// and size. Would notice: errors that the fast tests would notice, but ten to a hundred times rarer.
#include <cstdio>

#include "perhaps/counting_bloom.h"
#include "perhaps/cuckoo.h"
#include "support/multiset_model.h"
#include "support/statistics.h"

namespace perhaps::test {
namespace {

using Table = std::vector<std::byte>;

bool empty(const Table& t) {
  return std::ranges::all_of(t, [](std::byte b) { return b == std::byte{0}; });
}

template <class L>
void expect_multiset(typename L::Shape shape, std::uint64_t most_keys, std::uint64_t operations) {
  Table t(shape.bytes());
  const ChurnResult r = churn<L>(shape, t.data(),
                                 {.seed = most_keys,
                                  .operations = operations,
                                  .universe = most_keys * 2,
                                  .most_keys = most_keys,
                                  .most_copies = 2,
                                  .check_all = 30});
  EXPECT_EQ(r.false_negatives, 0u);
  EXPECT_EQ(r.not_removed, 0u);
  EXPECT_LE(r.full, operations / 1000);
  EXPECT_TRUE(empty(t));
}

TEST(EraseSlow, CuckooIsAMultiset) {
  expect_multiset<CuckooLayout>({5000, 12}, CuckooShape{5000, 12}.capacity(), 6'000'000);
  expect_multiset<CuckooLayout>({333, 8, 4}, CuckooShape{333, 8}.capacity(), 3'000'000);
  expect_multiset<CuckooLayout>({41, 17}, CuckooShape{41, 17}.capacity(), 1'000'000);
}

TEST(EraseSlow, CountingIsAMultiset) {
  expect_multiset<CountingLayout>({2000, 7}, 20'000, 6'000'000);
  expect_multiset<CountingLayout>({150, 4, 3}, 1500, 3'000'000);
  expect_multiset<CountingLayout>({20, 11}, 120, 1'000'000);
}

TEST(EraseSlow, CuckooHoldsItsCapacity) {
  std::uint64_t filled = 0;
  const auto fill = [&](CuckooShape s, std::uint64_t seed) {
    Table t(s.bytes());
    ++filled;
    for (std::uint64_t i = 0; i < s.capacity(); ++i) {
      if (CuckooLayout::insert(s, t.data(), Stream{seed}.at(i)) == Inserted::full) return false;
    }
    return true;
  };
  std::uint64_t failed = 0;
  for (std::uint64_t buckets = 1; buckets <= 100; ++buckets) {
    for (std::uint64_t seed = 1; seed <= 1000; ++seed) {
      failed += !fill({buckets, static_cast<std::uint32_t>(6 + seed % 12)}, seed << 32 | buckets);
    }
  }
  for (std::uint64_t buckets = 101; buckets < 300'000; buckets = buckets * 9 / 8) {
    for (std::uint64_t seed = 1; seed <= 1 + 20'000 / buckets; ++seed) {
      failed += !fill({buckets, static_cast<std::uint32_t>(6 + seed % 12)}, seed << 32 | buckets);
    }
  }
  for (const std::uint32_t f : {6u, 12u}) failed += !fill({2'700'000, f}, f);
  std::printf("  %llu tables filled to capacity, %llu were full before\n", static_cast<unsigned long long>(filled),
              static_cast<unsigned long long>(failed));
  EXPECT_EQ(failed, 0u);
}

// 12 bits, 95 % load, 1e7 keys: at most 0.2 % and 12.8 bits per key.
TEST(EraseSlow, CuckooOfTenMillion) {
  constexpr std::uint64_t kKeys = 10'000'000;
  constexpr std::uint64_t kQueries = 20'000'000;
  const CuckooShape s{kKeys * 100 / 95 / 4 + 1, 12};
  Cuckoo filter(s);
  std::vector<std::uint64_t> keys(kQueries), answers(kQueries / 64 + 1);
  for (std::uint64_t i = 0; i < kKeys; ++i) keys[i] = i;
  ASSERT_EQ(filter.insert(std::span<const std::uint64_t>(keys).first(kKeys)), kKeys);
  filter.may_contain(std::span<const std::uint64_t>(keys).first(kKeys), std::span(answers));
  EXPECT_EQ(count_ones(answers), kKeys) << "no false negatives";
  for (std::uint64_t i = 0; i < kQueries; ++i) keys[i] = kKeys + i;
  filter.may_contain(std::span<const std::uint64_t>(keys), std::span(answers));
  const double rate = static_cast<double>(count_ones(answers)) / kQueries;
  const double bits = static_cast<double>(s.bytes()) * 8 / kKeys;
  const double model = s.fpr(kKeys);
  std::printf("  load %.4f, %.3f bits per key, rate %.4f %% (model %.4f %%), %llu stashed\n",
              kKeys / static_cast<double>(s.slots()), bits, 100 * rate, 100 * model,
              static_cast<unsigned long long>(CuckooLayout::stashed(filter.bytes().data())));
  EXPECT_LE(bits, 12.8);
  EXPECT_LE(rate, 0.002);
  EXPECT_NEAR(rate, model, kSigmas * binomial_error(model, kQueries));
}

}  // namespace
}  // namespace perhaps::test
