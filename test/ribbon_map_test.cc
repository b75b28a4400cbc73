// Promise: a map gives every key of its set the value that it was built with, whatever the number of keys, of bits and
// of columns for the check; it finds an absent key at most at the rate of its check bits; its bytes depend on nothing
// but the set; two values for one key are an error that names it; every kernel answers as the layout says; and no bytes
// lead a lookup out of the table. Would notice: a value that is lost between the layers, a column in the wrong place, a
// check that is not made, a byte that changes with threads, memory or order, a slot too many, a read outside the table
// (under ASan). Seeds are fixed; bounds are 5 sigma.
#include "perhaps/ribbon_map.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <numeric>
#include <random>
#include <thread>

#include "support/kernels.h"
#include "support/keys.h"
#include "support/sanitized.h"

namespace perhaps::test {
namespace {

using Typed = std::vector<Digest<Hash>>;
using Words = std::vector<std::uint64_t>;

// Keys first, first + 1, .. of a seed, and what their values are: a function of the key that nothing else computes.
Typed digests_from(std::uint64_t first, std::uint64_t count) {
  Typed digests(count);
  for (std::uint64_t i = 0; i < count; ++i) digests[i] = Hash()(first + i);
  return digests;
}
Words values_from(std::uint64_t first, std::uint64_t count, std::uint32_t bits) {
  Words values(count);
  for (std::uint64_t i = 0; i < count; ++i) {
    std::uint64_t x = (first + i + 1) * 0x9e3779b97f4a7c15u;
    x = (x ^ x >> 31) * 0xbf58476d1ce4e5b9u;
    values[i] = (x ^ x >> 29) & RibbonMapLayout::largest(bits);
  }
  return values;
}

RibbonMap built(const Typed& digests, const Words& values, const MapRequest& request,
                const BuildOptions& options = {}) {
  auto map = RibbonMap::build(std::span<const Digest<Hash>>(digests), values, request, options);
  EXPECT_TRUE(map) << map.error().detail;
  return *std::move(map);
}

// Every key has its value, asked alone and in a column.
template <class Map>
void expect_all(const Map& map, const Typed& digests, const Words& values) {
  Words got(digests.size(), 77);
  Words found(digests.size() / kBatch + 1);
  map.find(std::span<const Digest<Hash>>(digests), got, found);
  std::uint64_t wrong = 0;
  for (std::size_t i = 0; i < digests.size(); ++i) {
    const auto alone = map.find(digests[i]);
    wrong += !alone || *alone != values[i] || got[i] != values[i] || (found[i / 64] >> i % 64 & 1) == 0;
  }
  EXPECT_EQ(wrong, 0u) << digests.size() << " keys, " << map.shape().value_bits() << " bits, check "
                       << map.shape().check_bits;
}

TEST(RibbonMap, HoldsEveryValueForEverySmallNumberOfKeys) {
  for (std::uint64_t n = 0; n <= 600; n += n < 70 ? 1 : 13) {
    const auto bits = static_cast<std::uint32_t>(n % 64 + 1);
    const Typed digests = digests_from(n << 32, n);
    const Words values = values_from(n, n, bits);
    expect_all(built(digests, values, {.value_bits = bits, .check_bits = static_cast<std::uint32_t>(n % 33)}), digests,
               values);
  }
}

TEST(RibbonMap, HoldsEveryValueOfEveryWidth) {
  constexpr std::uint64_t kKeys = 3000;
  for (std::uint32_t bits = 1; bits <= 64; ++bits) {
    for (const std::uint32_t check : {0u, 1u, 7u, 32u}) {
      const Typed digests = digests_from(bits * 1000003, kKeys);
      const Words values = values_from(bits, kKeys, bits);
      const RibbonMap map = built(digests, values, {.value_bits = bits, .check_bits = check});
      EXPECT_EQ(map.shape().value_bits(), bits);
      expect_all(map, digests, values);
    }
  }
}

// With one front, with several runs, with several fronts.
TEST(RibbonMap, HoldsEveryValueOfLargeSets) {
  for (const std::uint64_t n : {32'769u, 100'000u, 1'500'000u}) {
    for (const MapRequest request :
         {MapRequest{1, 0}, MapRequest{8, 0}, MapRequest{5, 8}, MapRequest{64, 0}, MapRequest{64, 9}}) {
      if (n > 1'000'000 && request.value_bits == 64 && kSanitized) continue;
      const Typed digests = digests_from(7, n);
      const Words values = values_from(3, n, request.value_bits);
      expect_all(built(digests, values, request, {.threads = 2}), digests, values);
    }
  }
}

// 1.02 times the bits of value and check from four columns on, 1.05 times at one.
TEST(RibbonMap, Space) {
  constexpr std::uint64_t kKeys = 1'000'000;
  const Typed digests = digests_from(1, kKeys);
  for (const MapRequest request : {MapRequest{1, 0}, MapRequest{4, 0}, MapRequest{8, 0}, MapRequest{8, 8}}) {
    const RibbonMap map = built(digests, values_from(9, kKeys, request.value_bits), request);
    const double bits = static_cast<double>(map.byte_size() * 8) / kKeys;
    const double least = request.value_bits + request.check_bits;
    EXPECT_LE(bits, (least >= 4 ? 1.02 : 1.05) * least);
    const auto planned = static_cast<double>(RibbonMapShape::for_keys(kKeys, request).bytes());
    // At one column, half of the keys whose equation is redundant need no slot, which the plan does not count on.
    EXPECT_NEAR(static_cast<double>(map.byte_size()), planned, (least == 1 ? 0.004 : 0.002) * planned);
    RecordProperty("bits_per_key_" + std::to_string(request.value_bits) + "_" + std::to_string(request.check_bits),
                   std::to_string(bits));
  }
}

// n = 300,000 absent keys, z = 5.
TEST(RibbonMap, FindsAbsentKeysAtTheRateOfItsCheck) {
  constexpr std::uint64_t kKeys = 50'000, kAbsent = 300'000;
  const Typed digests = digests_from(0, kKeys);
  const Typed absent = digests_from(std::uint64_t{1} << 40, kAbsent);
  for (const std::uint32_t check : {0u, 1u, 4u, 8u, 12u}) {
    const RibbonMap map = built(digests, values_from(5, kKeys, 6), {.value_bits = 6, .check_bits = check});
    Words values(kAbsent);
    Words found(kAbsent / kBatch + 1);
    map.find(std::span<const Digest<Hash>>(absent), values, found);
    std::uint64_t count = 0;
    for (const std::uint64_t word : found) count += static_cast<std::uint64_t>(std::popcount(word));
    const double p = std::ldexp(1.0, -static_cast<int>(check));
    EXPECT_EQ(map.shape().fpr(), p);
    EXPECT_NEAR(static_cast<double>(count), p * kAbsent, 5 * std::sqrt(kAbsent * p * (1 - p)));
    for (std::size_t i = 0; i < kAbsent; ++i) {
      const bool here = (found[i / 64] >> i % 64 & 1) != 0;
      ASSERT_LT(values[i], 64u);
      ASSERT_TRUE(here || values[i] == 0);
      ASSERT_TRUE(i % 97 != 0 || map.find(absent[i]).has_value() == here);
    }
  }
}

TEST(RibbonMap, NoKeysNothingFound) {
  const RibbonMap map = built({}, {}, {.value_bits = 3});
  EXPECT_EQ(map.keys(), 0u);
  EXPECT_EQ(map.find("anything"), std::nullopt);
  EXPECT_EQ(map.shape().fpr(), 0);
}

TEST(RibbonMap, BytesDependOnTheSetAlone) {
  constexpr std::uint64_t kKeys = 700'000;
  Typed digests = digests_from(11, kKeys);
  Words values = values_from(12, kKeys, 7);
  const MapRequest request{.value_bits = 7, .check_bits = 3};
  const RibbonMap map = built(digests, values, request);
  // Some twice, in another order.
  for (std::size_t i = 0; i < kKeys; i += 10) {
    digests.push_back(digests[i]);
    values.push_back(values[i]);
  }
  std::vector<std::size_t> order(digests.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::shuffle(order.begin(), order.end(), std::mt19937_64(5));
  Typed others;
  Words their;
  for (const std::size_t i : order) {
    others.push_back(digests[i]);
    their.push_back(values[i]);
  }
  for (const BuildOptions& options : {BuildOptions{.threads = 1}, BuildOptions{.threads = 3},
                                      BuildOptions{.threads = 2, .memory = std::uint64_t{4} << 20}}) {
    const RibbonMap again = built(others, their, request, options);
    EXPECT_EQ(again.shape(), map.shape());
    EXPECT_TRUE(std::ranges::equal(again.bytes(), map.bytes()));
  }
  RibbonMapBuilder builder(request, {.memory = std::uint64_t{2} << 20});
  builder.insert(std::span<const Digest<Hash>>(others), std::span<const std::uint64_t>(their));
  const auto spilled = builder.finish();
  ASSERT_TRUE(spilled);
  EXPECT_GT(builder.spilled_bytes(), kKeys * 16);
  EXPECT_TRUE(std::ranges::equal(spilled->bytes(), map.bytes()));
}

TEST(RibbonMap, TwoValuesForOneKeyAreAnErrorThatNamesIt) {
  for (const std::uint64_t n : {2u, 5000u, 1'200'000u}) {
    Typed digests = digests_from(1, n);
    Words values = values_from(1, n, 8);
    digests.push_back(digests[n / 2]);
    values.push_back(values[n / 2] ^ 1);
    RibbonMapBuilder builder({.value_bits = 8});
    EXPECT_EQ(builder.conflict(), std::nullopt);
    builder.insert(std::span<const Digest<Hash>>(digests), std::span<const std::uint64_t>(values));
    const auto map = builder.finish();
    ASSERT_FALSE(map);
    EXPECT_EQ(map.error().code, Errc::mismatch);
    char digest[17];
    std::snprintf(digest, sizeof digest, "%016llx", static_cast<unsigned long long>(digests[n / 2].value));
    EXPECT_NE(map.error().detail.find(digest), std::string::npos) << map.error().detail;
    ASSERT_TRUE(builder.conflict());
    EXPECT_EQ(*builder.conflict(), digests[n / 2]);
  }
}

TEST(RibbonMap, TakesAsManyBitsAsTheLargestValueNeeds) {
  const Typed digests = digests_from(1, 3);
  for (const auto& [values, bits] :
       {std::pair<Words, std::uint32_t>{{0, 0, 0}, 1}, {{0, 5, 2}, 3}, {{UINT64_MAX, 1, 2}, 64}}) {
    const RibbonMap map = built(digests, values, {.value_bits = 0, .check_bits = 4});
    EXPECT_EQ(map.shape().value_bits(), bits);
    expect_all(map, digests, values);
  }
}

TEST(RibbonMap, RefusesWhatItCannotHold) {
  const Typed digests = digests_from(1, 3);
  const auto error_of = [&](const Words& values, const MapRequest& request) {
    const auto map = RibbonMap::build(std::span<const Digest<Hash>>(digests), values, request);
    return map ? std::string() : map.error().detail;
  };
  EXPECT_EQ(error_of({1, 2, 3}, {.value_bits = 65}), "map: 65 value bits, not 1 to 64");
  EXPECT_EQ(error_of({1, 2, 3}, {.value_bits = 2, .check_bits = 33}), "map: 33 check bits, not 0 to 32");
  EXPECT_EQ(error_of({1, 2, 4}, {.value_bits = 2}), "map: the value 4 is above 3");
  EXPECT_EQ(error_of({1, 2, 3}, {.value_bits = 2}), "");
}

// Sets that are not spread: all digests in one run, and runs of neighbours.
TEST(RibbonMap, HoldsDigestsThatAreNotSpread) {
  constexpr std::uint64_t kKeys = 60'000;
  Typed digests(kKeys);
  for (std::uint64_t i = 0; i < kKeys; ++i) {
    digests[i] = Digest<Hash>::made_by(Hash(), i * detail::unspread_of<Hash>());  // words 0, 1, 2, ..
  }
  const Words values = values_from(1, kKeys, 9);
  expect_all(built(digests, values, {.value_bits = 9}), digests, values);
}

// The kernels against the scalar definition, in every number of keys around a batch, near and far.
TEST(RibbonMap, EveryKernelEqualsTheDefinition) {
  for (const MapRequest request :
       {MapRequest{1, 0}, MapRequest{2, 1}, MapRequest{3, 0}, MapRequest{4, 0}, MapRequest{8, 0}, MapRequest{6, 2},
        MapRequest{13, 0}, MapRequest{9, 11}, MapRequest{40, 0}, MapRequest{64, 0}, MapRequest{64, 32}}) {
    for (const std::uint64_t keys : {40u, 2000u, 40'000u}) {
      const RibbonMap map = built(digests_from(2, keys), values_from(6, keys, request.value_bits), request);
      Words words(keys + 500);
      for (std::uint64_t i = 0; i < words.size(); ++i) words[i] = Hash()(2 + i).value;
      Words wanted(words.size());
      std::vector<bool> there(words.size());
      for (std::size_t i = 0; i < words.size(); ++i) {
        there[i] = RibbonMapLayout::find(map.shape(), map.bytes().data(), words[i] * Hash::kSpread, &wanted[i]);
        if (!there[i]) wanted[i] = 0;
      }
      // On bytes of exactly its own size, so that a read beyond them is noticed.
      const std::vector<std::byte> table(map.bytes().begin(), map.bytes().end());
      with_every_kernel([&](const kernel::InstructionSet& row) {
        for (const bool ahead : {false, true}) {
          for (const std::size_t count : {std::size_t{1}, std::size_t{63}, std::size_t{130}, words.size()}) {
            const std::size_t from = words.size() - count;
            Words values(count, 99);
            Words found(count / kBatch + 1, UINT64_MAX);
            RibbonMapLayout::find(
                map.shape(), table.data(),
                {.words = words.data() + from, .count = count, .ahead = ahead, .spread = Hash::kSpread}, values.data(),
                found.data());
            std::uint64_t wrong = 0;
            for (std::size_t i = 0; i < count; ++i) {
              wrong += values[i] != wanted[from + i] || (found[i / 64] >> i % 64 & 1) != there[from + i];
            }
            ASSERT_EQ(wrong, 0u) << row.name << ", " << keys << " keys, " << request.value_bits << " + "
                                 << request.check_bits << " bits, " << count << " at once";
            ASSERT_TRUE(count % 64 == 0 || found[count / 64] >> count % 64 == 0) << row.name;
          }
        }
      });
    }
  }
}

TEST(RibbonMap, ViewsCopiesAndMoves) {
  const Typed digests = digests_from(1, 1000);
  const Words values = values_from(2, 1000, 10);
  RibbonMap map = built(digests, values, {.value_bits = 10, .check_bits = 5});
  auto view = RibbonMapView::over(map.bytes(), map.shape());
  ASSERT_TRUE(view);
  expect_all(*view, digests, values);
  RibbonMap copy = map;
  RibbonMap of_view(map.view());
  const RibbonMap moved = std::move(map);
  expect_all(moved, digests, values);
  expect_all(copy, digests, values);
  expect_all(of_view, digests, values);
  EXPECT_EQ(map.find(digests[0]), std::nullopt);  // NOLINT(bugprone-use-after-move): it says what is left
  EXPECT_TRUE(RibbonMapView::over(map.bytes(), map.shape()));
  map = copy;
  expect_all(map, digests, values);
}

TEST(RibbonMap, NumbersMakeTheShapeAgain) {
  const RibbonMap map = built(digests_from(1, 40'000), values_from(2, 40'000, 10), {.value_bits = 10, .check_bits = 5});
  auto numbers = map.shape().numbers();
  const auto shape = RibbonMapShape::from(numbers);
  ASSERT_TRUE(shape) << shape.error().detail;
  EXPECT_EQ(*shape, map.shape());
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    auto wrong = numbers;
    wrong[i] = UINT64_MAX;
    const auto other = RibbonMapShape::from(wrong);
    EXPECT_TRUE(i == 0 || i == 5 || !other) << i;  // the numbers of keys have no limit
  }
  numbers[2] = 33;
  EXPECT_FALSE(RibbonMapShape::from(numbers));
  numbers.pop_back();
  EXPECT_FALSE(RibbonMapShape::from(numbers));
}

// Each byte of a table destroyed in turn: the view is refused, or every lookup stays inside (ASan would tell).
TEST(RibbonMap, NoBytesLeadOutOfTheTable) {
  for (const std::uint64_t n : {0u, 20u, 300u, 5000u}) {
    const Typed digests = digests_from(1, n + 100);
    const RibbonMap map =
        built(Typed(digests.begin(), digests.end() - 100), values_from(2, n, 5), {.value_bits = 5, .check_bits = 2});
    std::vector<std::byte> table(map.bytes().begin(), map.bytes().end());
    const std::size_t step = table.size() > 400 ? table.size() / 400 : 1;
    for (std::size_t at = 0; at < table.size(); at += at < 200 ? 1 : step) {
      const std::byte before = table[at];
      for (const unsigned value : {0x00u, 0x01u, 0x80u, 0xffu}) {
        table[at] = static_cast<std::byte>(value);
        const auto view = RibbonMapView::over(table, map.shape());
        if (!view) continue;
        Words values(digests.size());
        Words found(digests.size() / kBatch + 1);
        view->find(std::span<const Digest<Hash>>(digests), values, found);
        for (std::size_t i = 0; i < digests.size(); i += 7) static_cast<void>(view->find(digests[i]));
      }
      table[at] = before;
    }
    const auto cut = RibbonMapView::over(Bytes(table).first(table.size() - 1), map.shape());
    ASSERT_FALSE(cut);
    EXPECT_EQ(cut.error().code, Errc::truncated);
  }
}

// Under a secret, from a column of text, by lanes.
TEST(RibbonMap, KeyedAndFromText) {
  const KeyedHash hasher(KeyedHash::Secret{std::byte{1}, std::byte{2}});
  std::vector<std::string> keys;
  for (int i = 0; i < 2000; ++i) keys.push_back("key " + std::to_string(i));
  const Words values = values_from(4, keys.size(), 12);
  BasicRibbonMapBuilder<KeyedHash> builder({.value_bits = 12}, {.threads = 2}, hasher);
  {
    std::jthread other([&] {
      auto lane = builder.lane();
      EXPECT_TRUE(lane.insert(std::span<const std::string>(keys).first(900), std::span(values).first(900)));
    });
    auto lane = builder.lane();
    EXPECT_TRUE(lane.insert(std::span<const std::string>(keys).subspan(900), std::span(values).subspan(900)));
  }
  const auto map = builder.finish();
  ASSERT_TRUE(map);
  Words got(keys.size());
  Words found(keys.size() / kBatch + 1);
  map->find(std::span<const std::string>(keys), got, found);
  EXPECT_EQ(got, values);
  EXPECT_EQ(map->find(keys[77]), values[77]);
  const auto text = RibbonMap::build(std::span<const std::string>(keys), values, {.value_bits = 12});
  ASSERT_TRUE(text);
  EXPECT_EQ(text->find("key 77"), values[77]);
}

}  // namespace
}  // namespace perhaps::test
