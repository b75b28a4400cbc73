// Promise: a thousand million inserts and queries of one shared filter, from two threads and from six times as many as
// the machine has cores, lose no bit: a key whose insert has returned answers *perhaps* to every thread, and the bytes
// in the end are those of one thread. Would notice: a lost bit, a false negative while others write. concurrent_test
// has the same under ThreadSanitizer, with fewer operations.
//
// PERHAPS_OPERATIONS: how many of all three families together (default: a thousand million)
#include <gtest/gtest.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <thread>

#include "support/families.h"
#include "support/keys.h"

namespace perhaps::test {
namespace {

std::uint64_t operations_wanted() {
  const char* const text = std::getenv("PERHAPS_OPERATIONS");
  return text == nullptr ? 1'000'000'000 : std::strtoull(text, nullptr, 10);
}

template <class F>
struct ConcurrentSoak : ::testing::Test {};
TYPED_TEST_SUITE(ConcurrentSoak, Families, FamilyNames);

// One filter, filled by `writers` while `readers` query. Returns the number of operations.
template <class F>
std::uint64_t one_round(std::uint64_t round, std::uint64_t writers, std::uint64_t readers) {
  constexpr std::uint64_t kKeys = 200'000;  // few enough to contend for words, and the cache holds them
  const Hash hasher(round);
  F filter(Request{.keys = kKeys, .fpr = 0.02}, hasher);
  F alone(filter.shape(), hasher);
  std::vector<Digest<Hash>> digests;
  for (std::uint64_t i = 0; i < kKeys; ++i) digests.push_back(digest_of(hasher, i));
  alone.insert(std::span<const Digest<Hash>>(digests));

  struct alignas(64) Progress {
    std::atomic<std::uint64_t> done = 0;
  };
  std::vector<Progress> announced(writers);
  std::atomic<std::uint64_t> no = 0;
  std::atomic<std::uint64_t> queries = 0;
  const std::uint64_t share = kKeys / writers;
  {
    std::vector<std::jthread> threads;
    for (std::uint64_t w = 0; w < writers; ++w) {
      threads.emplace_back([&, w] {
        const auto shared = filter.shared();
        const std::uint64_t end = w + 1 == writers ? kKeys : (w + 1) * share;
        for (std::uint64_t i = w * share; i < end; ++i) {
          shared.insert(digests[i]);
          announced[w].done.store(i - w * share + 1, std::memory_order_release);
        }
      });
    }
    for (std::uint64_t r = 0; r < readers; ++r) {
      threads.emplace_back([&, r] {
        const auto shared = filter.shared();
        std::uint64_t asked = 0;
        std::uint64_t denied = 0;
        const std::uint64_t most = 2 * kKeys;  // also after the last insert
        for (std::uint64_t query = 0; asked < most; ++query) {
          const std::uint64_t w = (query + r) % writers;
          const std::uint64_t known = announced[w].done.load(std::memory_order_acquire);
          asked += 2;
          if (known == 0) continue;
          denied += !shared.may_contain(digests[w * share + known - 1]);
          denied += !shared.may_contain(digests[w * share + Stream{r}.at(query) % known]);
        }
        no += denied;
        queries += asked;
      });
    }
  }
  EXPECT_EQ(no, 0u) << "round " << round;
  EXPECT_TRUE(std::ranges::equal(filter.bytes(), alone.bytes())) << "round " << round;
  return kKeys + queries;
}

TYPED_TEST(ConcurrentSoak, NothingIsLost) {
  const std::uint64_t cores = std::max(2u, std::thread::hardware_concurrency());
  const struct {
    std::uint64_t writers;
    std::uint64_t readers;
  } settings[] = {{1, 1}, {4 * cores, 2 * cores}};
  std::uint64_t all = 0;
  for (const auto& [writers, readers] : settings) {
    std::uint64_t done = 0;
    for (std::uint64_t round = 0; done < operations_wanted() / 6 + 1 && !this->HasFailure(); ++round)
      done += one_round<TypeParam>(round, writers, readers);
    all += done;
    std::printf("%llu writers, %llu readers: %llu operations\n", static_cast<unsigned long long>(writers),
                static_cast<unsigned long long>(readers), static_cast<unsigned long long>(done));
  }
  EXPECT_GE(all, operations_wanted() / 3);
}

}  // namespace
}  // namespace perhaps::test
