// Promise: a packed filter denies none of its keys, has the rate of its family and takes the bytes it was given;
// arbitrary bytes can be queried. The bytes never change, because tables on disk contain them. Would notice: a missing
// key, a rate outside 5 sigma, a read outside the bytes (under the sanitizers), a changed layout.
#include "perhaps/engine/packed.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <cstdio>
#include <numeric>

#include "perhaps/any_filter.h"
#include "perhaps/engine/dense.h"
#include "support/kernels.h"
#include "support/keys.h"
#include "support/sanitized.h"

namespace perhaps {
namespace {

using test::Stream;

std::vector<std::uint64_t> digests_of(std::uint64_t seed, std::size_t count) {
  std::vector<std::uint64_t> digests(count);
  for (std::size_t i = 0; i < count; ++i) digests[i] = Hash()(Stream{seed}.at(i)).value;
  return digests;
}

TEST(Packed, DeniesNoKey) {
  for (std::size_t count = 1; count < 400; count += count < 140 ? 1 : 23) {
    for (const double bits : {0.3, 1.0, 4.0, 10.0, 11.3, 33.0, 100.0}) {
      const auto digests = digests_of(count, count);
      auto given = digests;
      given.insert(given.end(), digests.begin(), digests.end());
      const auto packed = pack(Kind::dense, given, bits);
      const PackedView view = PackedView::over(packed);
      ASSERT_TRUE(view.usable()) << count << " keys, " << bits << " bits";
      for (const std::uint64_t digest : digests) ASSERT_TRUE(view.may_contain(digest)) << count << ", " << bits;
      if (bits >= 4 && bits < 33) {
        EXPECT_LE(static_cast<double>(packed.size()), std::max(bits * static_cast<double>(count) / 8 + 0.5, 3.0));
      }
      std::vector<std::uint64_t> answers(count / 64 + 1);
      view.may_contain(digests, answers);
      const auto perhaps =
          std::transform_reduce(answers.begin(), answers.end(), std::size_t{0}, std::plus<>(),
                                [](std::uint64_t w) { return static_cast<std::size_t>(std::popcount(w)); });
      EXPECT_EQ(perhaps, count);
      view.prefetch(digests[0]);
    }
  }
}

TEST(Packed, EveryFamily) {
  for (const Family& family : families()) {
    ASSERT_EQ(can_pack(family.kind), family.kind != Kind::scalable);
    if (!can_pack(family.kind)) continue;
    for (const std::size_t count : {1u, 40u, 3000u}) {
      const auto digests = digests_of(9, count);
      const auto packed = pack(family.kind, digests, 12);
      const PackedView view = PackedView::over(packed);
      ASSERT_TRUE(view.usable()) << family.name;
      for (const std::uint64_t digest : digests) ASSERT_TRUE(view.may_contain(digest)) << family.name;
      std::uint64_t wrong = 0;
      for (const std::uint64_t digest : digests_of(10, 5000)) wrong += view.may_contain(digest);
      // Families that erase or forget have higher rates, and with few keys most families consist mainly of their head.
      const bool plain = !family.erases && !family.forgets;
      if (count == 3000) {
        EXPECT_LT(wrong, plain ? 250u : 2500u) << family.name;
      }
    }
  }
  EXPECT_FALSE(can_pack(Kind::sets));
  EXPECT_FALSE(can_pack(Kind{77}));
}

// Few keys: where the head of a family is more than the bits there are, a dense filter takes its place. At 10 bits a
// cuckoo filter of fewer than 42 keys used to answer *perhaps* to everything, and a filter block called it damaged.
TEST(Packed, FewKeysAreWorthAFilterInEveryFamily) {
  for (const Family& family : families()) {
    if (!can_pack(family.kind)) continue;
    for (std::size_t count = 1; count <= 130; ++count) {
      for (const double bits : {4.0, 8.0, 10.0, 12.0, 20.0}) {
        const auto digests = digests_of(count, count);
        const auto packed = pack(family.kind, digests, bits);
        const PackedView view = PackedView::over(packed);
        ASSERT_TRUE(view.usable()) << family.name << ", " << count << " keys, " << bits << " bits";
        for (const std::uint64_t digest : digests) ASSERT_TRUE(view.may_contain(digest)) << family.name;
        std::uint64_t wrong = 0;
        for (const std::uint64_t digest : digests_of(777, 300)) wrong += view.may_contain(digest);
        ASSERT_LT(wrong, 300u) << family.name << ", " << count << " keys, " << bits << " bits";
      }
    }
  }
}

// 3000 filters of each size, 1000 absent digests each: n = 3e6, z = 5.
TEST(Packed, DenseFiltersKeepTheirRate) {
  constexpr std::uint64_t kSets = test::samples(3000);
  for (const std::size_t count : {1u, 2u, 5u, 18u, 36u, 50u, 64u}) {
    for (const std::size_t bytes : {count + 2, count * 10 / 8 + 2, count * 2 + 2}) {
      std::uint64_t wrong = 0;
      std::uint64_t seeds = 0;
      std::uint32_t most = 0;
      std::vector<std::byte> filter(bytes);
      const auto shape = Dense::Shape::of(count, bytes);
      for (std::uint64_t set = 0; set < kSets; ++set) {
        const auto digests = digests_of(set + 1, count);
        Dense::build(digests, filter);
        ASSERT_NE(filter.back(), std::byte{0});
        const auto seed = std::to_integer<std::uint32_t>(filter[bytes - 2]);
        seeds += seed + 1;
        most = std::max(most, seed);
        for (std::uint64_t i = 0; i < 1000; ++i) wrong += Dense::may_contain(filter, Stream{1'000'000 + set}.at(i));
      }
      const double n = 1000.0 * kSets;
      const double rate = static_cast<double>(wrong) / n;
      const double model = shape.fpr();
      std::printf("  %2zu keys, %3zu bytes: model %.4e, measured %.4e; seeds %.1f on average, %u at most\n", count,
                  bytes, model, rate, static_cast<double>(seeds) / kSets, most + 1);
      // The rates of the filters themselves vary by as much again.
      EXPECT_NEAR(rate, model, 5 * std::sqrt(2 * model / n)) << count << " keys, " << bytes << " bytes";
    }
  }
}

// Whatever the order of the digests, how often they come and what they share, and on every CPU: the same bytes.
TEST(Packed, ADenseFilterDependsOnItsKeysAlone) {
  for (const std::size_t count : {2u, 18u, 36u, 64u, 65u, 600u, 2400u}) {
    for (const bool alike : {false, true}) {
      auto digests = digests_of(count, count);
      // Equal in the lower half, by which equal ones are found.
      for (std::uint64_t& digest : digests) digest &= alike ? ~std::uint64_t{0} << 32 : ~std::uint64_t{0};
      std::sort(digests.begin(), digests.end());
      const auto wanted = pack(Kind::dense, digests, 10);
      std::reverse(digests.begin(), digests.end());
      test::with_every_kernel([&](const kernel::InstructionSet& set) {
        EXPECT_EQ(pack(Kind::dense, digests, 10), wanted) << set.name << ", " << count << " keys";
      });
      for (std::size_t i = 0; i < count; i += 7) digests.push_back(digests[i]);
      EXPECT_EQ(pack(Kind::dense, digests, 10), wanted) << count << " keys";
    }
  }
}

// n = 1e6 absent digests, z = 5, and a tenth for the accuracy of the models.
TEST(Packed, DescribesItself) {
  constexpr std::uint64_t kAbsent = 1'000'000;
  for (const Kind kind : {Kind::dense, Kind::line, Kind::classic, Kind::ribbon, Kind::fuse}) {
    for (const std::size_t count : {40u, 1000u, 5000u}) {
      const auto packed = pack(kind, digests_of(3, count), 10);
      const PackedView view = PackedView::over(packed);
      const Description d = view.describe();
      EXPECT_EQ(d.family, kind == Kind::dense && count == 5000 ? "ribbon" : name_of(kind));
      EXPECT_EQ(d.bytes, view.byte_size());
      if (d.keys) {
        EXPECT_EQ(*d.keys, count);
      }
      std::uint64_t wrong = 0;
      for (std::uint64_t i = 0; i < kAbsent; ++i) wrong += view.may_contain(Hash()(Stream{4}.at(i)).value);
      const double rate = static_cast<double>(wrong) / kAbsent;
      EXPECT_NEAR(rate, d.fpr, 0.1 * d.fpr + 5 * std::sqrt(d.fpr / kAbsent)) << d.family << ", " << count << " keys";
    }
  }
  EXPECT_EQ(PackedView::over(pack(Kind::line, {}, 10)).describe().family, "none");
  EXPECT_EQ(PackedView::over({}).describe().family, "every");
  EXPECT_EQ(PackedView::over({}).describe().fpr, 1);
}

TEST(Packed, AnyBytesCanBeQueried) {
  EXPECT_FALSE(PackedView::over({}).usable());
  EXPECT_TRUE(PackedView::over({}).may_contain(1));
  EXPECT_FALSE(PackedView::over(pack(Kind::dense, {}, 10)).may_contain(1));
  for (std::uint64_t i = 0; i < 30'000; ++i) {
    // On the heap and of exactly this size, so that a sanitizer detects a read past the end.
    std::vector<std::byte> bytes(Stream{1}.at(i) % 90);
    for (std::size_t j = 0; j < bytes.size(); ++j) bytes[j] = static_cast<std::byte>(Stream{i}.at(j));
    if (!bytes.empty() && i % 4 == 0) bytes.back() = static_cast<std::byte>(i / 4 % 64 + 1);
    if (bytes.size() > 8 && i % 4 == 1)
      bytes.back() = std::byte{65}, bytes[bytes.size() - 2] = static_cast<std::byte>(i % 5);
    if (bytes.size() > 8 && i % 4 == 2)
      bytes.back() = static_cast<std::byte>(128 + i / 4 % 12), bytes[bytes.size() - 2] = static_cast<std::byte>(i % 7);
    const PackedView view = PackedView::over(bytes);
    std::uint64_t answers = 0;
    const auto digests = digests_of(i, 40);
    view.may_contain(digests, std::span(&answers, 1));
    for (std::size_t j = 0; j < 40; ++j) {
      view.prefetch(digests[j]);
      ASSERT_EQ(view.may_contain(digests[j]), answers >> j & 1);
      // Without a view, other groups are not checked for damage.
      const bool once = packed_may_contain(bytes, digests[j]);
      ASSERT_TRUE(once == view.may_contain(digests[j]) || bytes.back() == std::byte{65});
      ASSERT_TRUE(view.usable() || (answers >> j & 1) != 0);
    }
  }
  // Real filters with a byte changed or cut off.
  for (const Kind family :
       {Kind::dense, Kind::line, Kind::classic, Kind::ribbon, Kind::fuse, Kind::cuckoo, Kind::quotient}) {
    for (const std::size_t count : {20u, 100u}) {
      const auto packed = pack(family, digests_of(1, count), 10);
      for (std::size_t at = 0; at < packed.size(); ++at) {
        std::vector<std::byte> changed = packed;
        changed[at] ^= std::byte{0x55};
        for (const std::uint64_t digest : digests_of(2, 20)) (void)PackedView::over(changed).may_contain(digest);
        const std::vector<std::byte> cut(packed.begin() + static_cast<std::ptrdiff_t>(at), packed.end());
        for (const std::uint64_t digest : digests_of(2, 20)) (void)PackedView::over(cut).may_contain(digest);
      }
    }
  }
}

// Version 1 had the same tables of digests instead of words, under other tags. Read as tables of words they would deny
// the keys that are in them, so each of its tags, behind any bytes, answers *perhaps*. (127, no keys, means the same.)
TEST(Packed, BytesOfVersion1AnswerPerhaps) {
  const auto queries = digests_of(9, 64);
  for (unsigned tag = 0; tag < 256; ++tag) {
    const bool old = (tag >= 1 && tag <= 65) || (tag >= 128 && tag <= 140);
    if (!old) continue;
    // Behind what this version writes, too: a sound table, numbers and their size, only the tag is old.
    for (const Kind kind : {Kind::dense, Kind::line, Kind::ribbon}) {
      for (const std::size_t count : {10, 100}) {
        auto bytes = pack(kind, digests_of(5, count), 10);
        bytes.back() = static_cast<std::byte>(tag);
        const auto view = PackedView::over(bytes);
        EXPECT_FALSE(view.usable()) << tag;
        for (const std::uint64_t d : queries) {
          ASSERT_TRUE(view.may_contain(d)) << tag;
          ASSERT_TRUE(packed_may_contain(bytes, d)) << tag;
        }
      }
    }
  }
}

// XXH3-64 of the packed filters of 36, 100 and 3000 keys.
TEST(Packed, BytesNeverChange) {
  const auto sum = [](Kind family, std::size_t count) {
    return Hash(0)(Bytes(pack(family, digests_of(5, count), 10))).value;
  };
  EXPECT_EQ(sum(Kind::dense, 36), 11690754355983033214u);
  EXPECT_EQ(sum(Kind::dense, 100), 17495777043154050468u);
  EXPECT_EQ(sum(Kind::dense, 3000), 5519761442819092468u);
  EXPECT_EQ(sum(Kind::line, 100), 4633332693796440095u);
}

}  // namespace
}  // namespace perhaps
