// Promise: many threads may insert into and query one filter without a lock, and a lookup after the insert of its key
// answers *perhaps*. Would notice: a lost bit (the final bytes differ from those of a single thread), a false negative
// while others write, a data race (under ThreadSanitizer).
#include <atomic>
#include <thread>

#include "support/no_false_negatives.h"

namespace perhaps::test {
namespace {

template <class F>
struct Concurrent : ::testing::Test {};
TYPED_TEST_SUITE(Concurrent, FamiliesAndHashers, FamilyNames);

// Small, so that threads contend for the same words all the time.
TYPED_TEST(Concurrent, NothingIsLost) {
  constexpr std::uint64_t kWriters = 4;
  constexpr std::uint64_t kReaders = 2;
  constexpr std::uint64_t kKeys = 50'000;  // per writer
  const auto hasher = hasher_of<typename TypeParam::hasher_type>(2);
  TypeParam filter(Request{.keys = kWriters * kKeys, .fpr = 0.05}, hasher);
  TypeParam alone(filter.shape(), hasher);
  std::vector<Digest<typename TypeParam::hasher_type>> digests;
  for (std::uint64_t i = 0; i < kWriters * kKeys; ++i) digests.push_back(digest_of(hasher, i));
  alone.insert(std::span<const Digest<typename TypeParam::hasher_type>>(digests));

  std::array<std::atomic<std::uint64_t>, kWriters> announced{};
  std::atomic<std::uint64_t> no = 0;
  {
    std::vector<std::jthread> threads;
    for (std::uint64_t w = 0; w < kWriters; ++w) {
      threads.emplace_back([&, w] {
        const auto shared = filter.shared();
        for (std::uint64_t i = 0; i < kKeys; ++i) {
          shared.insert(digests[w * kKeys + i]);
          announced[w].store(i + 1, std::memory_order_release);
        }
      });
    }
    for (std::uint64_t r = 0; r < kReaders; ++r) {
      threads.emplace_back([&, r] {
        const auto shared = filter.shared();
        for (std::uint64_t query = r, finished = 0; finished < kWriters; ++query) {
          finished = 0;
          for (std::uint64_t w = 0; w < kWriters; ++w) {
            const std::uint64_t known = announced[w].load(std::memory_order_acquire);
            finished += known == kKeys;
            if (known == 0) continue;
            // The newest key, and an older one.
            no += !shared.may_contain(digests[w * kKeys + known - 1]);
            no += !shared.may_contain(digests[w * kKeys + Stream{r}.at(query) % known]);
          }
        }
      });
    }
  }
  EXPECT_EQ(no, 0u);
  EXPECT_TRUE(same_bytes(filter.bytes(), alone.bytes()));
}

// All threads insert the same keys. Each new bit is new to exactly one of them, so at least one gets `added`.
TYPED_TEST(Concurrent, AKeyIsNewToOneThreadAtLeast) {
  constexpr std::uint64_t kThreads = 4;
  constexpr std::uint64_t kKeys = 500;
  TypeParam filter(Request{.keys = kKeys, .fpr = 1e-4}, hasher_of<typename TypeParam::hasher_type>(1));
  std::array<std::atomic<int>, kKeys> added{};
  {
    std::vector<std::jthread> threads;
    for (std::uint64_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&] {
        const auto shared = filter.shared();
        for (std::uint64_t key = 0; key < kKeys; ++key) added[key] += shared.insert(key) == Inserted::added;
      });
    }
  }
  std::uint64_t never = 0;
  for (const auto& times : added) never += times == 0;
  EXPECT_LE(never, 5u);  // false positives at insertion: 500 keys, each with at most 1e-4
  for (std::uint64_t key = 0; key < kKeys; ++key) EXPECT_EQ(filter.shared().insert(key), Inserted::present);
}

// Const calls on one filter, from threads that each use a different kind of lookup.
TYPED_TEST(Concurrent, ReadersShareAFilter) {
  const auto hasher = hasher_of<typename TypeParam::hasher_type>(2);
  const auto keys = keys_of(kIntegerPatterns[1], 2000);
  const auto digests = digests_of(hasher, keys);
  TypeParam filter(Request{.keys = keys.size(), .fpr = 0.01}, hasher);
  filter.insert(std::span<const std::uint64_t>(keys));
  std::atomic<std::uint64_t> perhaps = 0;
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&, view = filter.view()] {
        std::vector<std::uint64_t> answers(keys.size() / kBatch + 1);
        view.may_contain(std::span(digests), std::span(answers));
        perhaps += count_ones(answers);
        view.may_contain(std::span<const std::uint64_t>(keys), std::span(answers));
        perhaps += count_ones(answers);
        for (const auto& d : digests) perhaps += view.may_contain(d);
      });
    }
  }
  EXPECT_EQ(perhaps, 4 * 3 * keys.size());
}

}  // namespace
}  // namespace perhaps::test
