// Promise: a filter of the keys that a router sent here keeps its rate, whatever bits of whatever hash the router used
// up: the top, middle or low bits of our own digest, of XXH3-64 with seed 0, of CRC-32C and of murmur3. Would notice: a
// layout that takes places from bits that all keys of a partition share. With digests in place of words, a line filter
// behind a router by the top four bits of them answers *perhaps* to 99 % of absent keys.
// 16 parts; the fifth is kept: 3000 keys, 100,000 queries; z = 5.
#include <gtest/gtest.h>

#include <string>

#include "hash/crc32.h"
#include "hash/murmur3.h"
#include "perhaps/any_filter.h"
#include "support/keys.h"
#include "support/statistics.h"

namespace perhaps::test {
namespace {

constexpr std::uint64_t kParts = 16;
constexpr std::uint64_t kPart = 5;
constexpr std::uint64_t kKeys = 3000;
constexpr std::uint64_t kQueries = 100'000;

struct Router {
  const char* name;
  std::uint64_t (*hash)(Bytes key);
  unsigned bits;
};
const Router kRouters[] = {
    {"our digest", [](Bytes key) { return Hash()(key).value; }, 64},
    {"xxh3-64, seed 0", [](Bytes key) { return Hash(0)(key).value; }, 64},
    {"crc-32c", [](Bytes key) { return std::uint64_t{crc32c(key)}; }, 32},
    {"murmur3 x64", [](Bytes key) { return murmur3_x64_128(key).first; }, 64},
};

// The digests of the next `count` keys of the part, under the seed of a filter.
std::vector<std::uint64_t> digests_of_part(const Router& router, unsigned shift, const Hash& hasher,
                                           std::uint64_t& next, std::uint64_t count) {
  std::vector<std::uint64_t> digests;
  while (digests.size() < count) {
    const std::string key = "key " + std::to_string(next++);
    if ((router.hash(bytes_of(key)) >> shift) % kParts != kPart) continue;
    digests.push_back(hasher(bytes_of(key)).value);
  }
  return digests;
}

// With the default seed, and with seed 0, under which our digest is the very hash of the second router.
void expect_rate_in_a_part(Kind kind, double fpr) {
  for (const Router& router : kRouters) {
    for (const unsigned shift : {router.bits - 4, router.bits / 2, 0u}) {
      for (const Hash hasher : {Hash(), Hash(0)}) {
        std::uint64_t next = 0;
        const auto keys = digests_of_part(router, shift, hasher, next, kKeys);
        auto builder = make_builder(kind, {.keys = kKeys, .fpr = fpr}, hasher);
        ASSERT_TRUE(builder) << builder.error().detail;
        {
          const auto lanes = (*builder)->lanes(1);
          ASSERT_TRUE(lanes[0]->insert_digests(keys));
        }
        const auto filter = (*builder)->finish();
        ASSERT_TRUE(filter) << filter.error().detail;
        const auto absent = digests_of_part(router, shift, hasher, next, kQueries);
        std::vector<std::uint64_t> answers(kQueries / kBatch + 1);
        (*filter)->digests()->may_contain(absent, answers);
        const double rate = static_cast<double>(count_ones(answers)) / kQueries;
        const double model = size_of(kind, {.keys = kKeys, .fpr = fpr})->fpr;
        // One filter of 3000 keys is up to 5 % fuller or emptier than the average.
        EXPECT_LE(rate, 1.05 * model + kSigmas * binomial_error(model, kQueries))
            << name_of(kind) << " behind " << router.name << " >> " << shift << ", seed " << hasher.seed();
      }
    }
  }
}

TEST(Partition, EveryFamilyKeepsItsRateBehindEveryRouter) {
  for (const Family& family : families()) expect_rate_in_a_part(family.kind, 0.01);
}

// partition_of is the documented way: even, and in the order of the digests.
TEST(Partition, PartitionOfIsEvenAndMonotone) {
  std::array<std::uint64_t, 7> counts{};
  constexpr std::uint64_t kDraws = 70'000;
  for (const auto& d : random_digests(Hash(), 3, kDraws)) {
    const std::uint64_t part = partition_of(d, 7);
    ASSERT_LT(part, 7u);
    ++counts[part];
  }
  for (const std::uint64_t count : counts) EXPECT_NEAR(static_cast<double>(count), 1e4, kSigmas * std::sqrt(1e4));
  EXPECT_EQ(partition_of(Digest<Hash>::made_by(Hash(), 0), 7), 0u);
  EXPECT_EQ(partition_of(Digest<Hash>::made_by(Hash(), UINT64_MAX), 7), 6u);
  EXPECT_EQ(partition_of(Digest<Hash>::made_by(Hash(), std::uint64_t{5} << 60), 16), 5u);
}

}  // namespace
}  // namespace perhaps::test
