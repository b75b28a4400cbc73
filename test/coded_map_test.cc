// Promise: a coded map gives every key its value in about as many bits as the entropy of the values, finds absent keys
// at the rate of its check bits, names a key with two values, has bytes that depend on the set alone, and no bytes lead
// a lookup out of the table. Would notice: a key lost between filter and map, a code decoded wrongly, a peel that does
// not pay, a length that is not checked (under ASan). Seeds are fixed; bounds are 5 sigma.
#include "perhaps/coded_map.h"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <type_traits>
#include <utility>

#include "support/keys.h"
#include "support/sanitized.h"

namespace perhaps::test {
namespace {

using Typed = std::vector<Digest<Hash>>;
using Words = std::vector<std::uint64_t>;

Typed digests_from(std::uint64_t first, std::uint64_t count) {
  Typed digests(count);
  for (std::uint64_t i = 0; i < count; ++i) digests[i] = Hash()(first + i);
  return digests;
}

// P(k) = p (1 - p)^k.
Words geometric(std::uint64_t count, double p) {
  Words values(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    const double u = (static_cast<double>(Stream{17}.at(i) >> 11) + 1) * 0x1p-53;
    values[i] = static_cast<std::uint64_t>(std::log(u) / std::log(1 - p));
  }
  return values;
}
// A share of `rare` has the value 1, the others 0.
Words two_values(std::uint64_t count, double rare) {
  Words values(count);
  for (std::uint64_t i = 0; i < count; ++i) values[i] = static_cast<double>(Stream{18}.at(i) >> 32) * 0x1p-32 < rare;
  return values;
}

double entropy(const Words& values) {
  std::map<std::uint64_t, double> counts;
  for (const std::uint64_t value : values) ++counts[value];
  double bits = 0;
  for (const auto& [value, count] : counts) bits -= count * std::log2(count / static_cast<double>(values.size()));
  return bits / static_cast<double>(values.size());
}

CodedMap built(const Typed& digests, const Words& values, std::uint32_t check_bits = 0,
               const BuildOptions& options = {}) {
  auto map = CodedMap::build(std::span<const Digest<Hash>>(digests), values, check_bits, options);
  EXPECT_TRUE(map) << map.error().detail;
  return *std::move(map);
}

void expect_all(const CodedMap& map, const Typed& digests, const Words& values) {
  Words got(digests.size(), 77);
  Words found(digests.size() / kBatch + 1);
  map.find(std::span<const Digest<Hash>>(digests), got, found);
  std::uint64_t wrong = 0;
  for (std::size_t i = 0; i < digests.size(); ++i) {
    wrong += got[i] != values[i] || (found[i / 64] >> i % 64 & 1) == 0;
    if (i % 101 == 0) wrong += map.find(digests[i]) != values[i];
  }
  EXPECT_EQ(wrong, 0u) << digests.size() << " keys";
}

// At 1e6 keys. A peel at q = 1/4 takes 1.078 of the entropy before any ribbon, so P(0) = 3/4 is the worst case.
TEST(CodedMap, SpaceApproachesTheEntropy) {
  constexpr std::uint64_t kKeys = 1'000'000;
  const Typed digests = digests_from(5, kKeys);
  struct Case {
    const char* name;
    Words values;
    double most;  // times the entropy
  };
  for (const auto& [name, values, most] :
       {Case{"geometric 1/2", geometric(kKeys, 0.5), 1.03}, Case{"geometric 3/4", geometric(kKeys, 0.75), 1.11},
        Case{"99:1", two_values(kKeys, 0.01), 1.10}}) {
    const CodedMap map = built(digests, values);
    expect_all(map, digests, values);
    const double bits = static_cast<double>(map.byte_size() * 8) / kKeys;
    EXPECT_LE(bits, most * entropy(values)) << name;
  }
}

TEST(CodedMap, HoldsEveryValueWhateverTheyAre) {
  for (const std::uint64_t n : {0u, 1u, 2u, 3u, 100u, 1023u, 1024u, 5000u, 40'000u}) {
    const Typed digests = digests_from(n, n);
    Words all_equal(n, 9);
    Words all_different(n);
    Words large(n);
    for (std::uint64_t i = 0; i < n; ++i) {
      all_different[i] = i % 4000;
      large[i] = i % 10 == 0 ? UINT64_MAX - i % 30 : 0;
    }
    for (const Words& values : {all_equal, all_different, large, geometric(n, 0.9), two_values(n, 0.3)}) {
      expect_all(built(digests, values), digests, values);
      expect_all(built(digests, values, 3), digests, values);
    }
  }
}

// n = 200,000 absent keys, z = 5.
TEST(CodedMap, FindsAbsentKeysAtTheRateOfItsCheck) {
  constexpr std::uint64_t kKeys = 20'000, kAbsent = 200'000;
  const Typed absent = digests_from(std::uint64_t{1} << 40, kAbsent);
  for (const std::uint32_t check : {0u, 4u, 8u}) {
    const CodedMap map = built(digests_from(0, kKeys), geometric(kKeys, 0.75), check);
    Words values(kAbsent);
    Words found(kAbsent / kBatch + 1);
    map.find(std::span<const Digest<Hash>>(absent), values, found);
    double count = 0;
    for (const std::uint64_t word : found) count += std::popcount(word);
    const double p = std::ldexp(1.0, -static_cast<int>(check));
    EXPECT_NEAR(count, p * kAbsent, 5 * std::sqrt(kAbsent * p * (1 - p)));
  }
}

TEST(CodedMap, BytesDependOnTheSetAlone) {
  constexpr std::uint64_t kKeys = 150'000;
  Typed digests = digests_from(5, kKeys);
  Words values = geometric(kKeys, 0.75);
  const CodedMap map = built(digests, values, 2);
  std::reverse(digests.begin(), digests.end());
  std::reverse(values.begin(), values.end());
  digests.push_back(digests[7]);
  values.push_back(values[7]);
  const CodedMap again = built(digests, values, 2, {.threads = 3});
  EXPECT_TRUE(std::ranges::equal(map.bytes(), again.bytes()));
}

TEST(CodedMap, TwoValuesForOneKeyAreAnErrorThatNamesIt) {
  Typed digests = digests_from(1, 100);
  Words values(100, 3);
  digests.push_back(digests[40]);
  values.push_back(4);
  std::optional<Digest<Hash>> conflict;
  const auto map = CodedMap::build(std::span<const Digest<Hash>>(digests), values, 0, {}, Hash(), &conflict);
  ASSERT_FALSE(map);
  EXPECT_EQ(map.error().code, Errc::mismatch);
  EXPECT_EQ(conflict, digests[40]);
}

// Bytes of the head destroyed one by one, and some of the rest: refused, or every lookup stays inside.
static_assert(!std::is_copy_constructible_v<CodedMap> && !std::is_copy_assignable_v<CodedMap>);

// Its parts point into its memory: a moved-from map has none, and says that it has no keys.
TEST(CodedMap, MovedFromItFindsNothing) {
  const Typed digests = digests_from(3, 5000);
  const Words values = geometric(5000, 0.5);
  CodedMap map = built(digests, values);
  const CodedMap other = std::move(map);
  expect_all(other, digests, values);
  EXPECT_EQ(map.keys(), 0u);  // NOLINT(bugprone-use-after-move): that is what is tested
  EXPECT_FALSE(map.find(digests[0]));
  map = built(digests, values);
  expect_all(map, digests, values);
  EXPECT_LT(built(Typed(), Words()).byte_size(), 64u);
}

TEST(CodedMap, NoBytesLeadOutOfTheTable) {
  const Typed digests = digests_from(1, 4000);
  const CodedMap map = built(digests, geometric(4000, 0.7), 2);
  std::vector<std::byte> table(map.bytes().begin(), map.bytes().end());
  std::uint64_t refused = 0;
  for (std::size_t at = 0; at < table.size(); at += at < 900 ? 1 : 61) {
    const std::byte before = table[at];
    for (const unsigned value : {0x00u, 0x01u, 0x80u, 0xffu}) {
      table[at] = static_cast<std::byte>(value);
      const auto view = CodedMap::over(table);
      refused += !view;
      if (!view) continue;
      Words values(200);
      Words found(4);
      view->find(std::span<const Digest<Hash>>(digests).first(200), values, found);
    }
    table[at] = before;
  }
  EXPECT_GT(refused, 100u);
  for (std::size_t size = 0; size < table.size(); size += 7) EXPECT_FALSE(CodedMap::over(Bytes(table).first(size)));
}

}  // namespace
}  // namespace perhaps::test
