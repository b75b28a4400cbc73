// Promise: xor and binary fuse filters in the bytes of xor_singleheader are built from any set of keys, packed and
// unpacked into each other's bytes, also read with Go's header, and refused if their length and their header disagree.
// Would notice: a lost key at some small size, a rank that is off by one at the end of a bitmap, a truncated plain file
// that is read as a packed one, a header in which a flipped bit changes the answers.
#include <gtest/gtest.h>

#include <bit>
#include <cstring>

#include "hash/fnv.h"
#include "perhaps/format/format.h"
#include "support/statistics.h"

namespace perhaps::format {
namespace {

using Buffer = std::vector<std::byte>;

constexpr std::string_view kNames[] = {"fuse16", "fuse8", "xor16", "xor8"};

struct Keys {
  explicit Keys(std::size_t count, std::uint64_t seed = 0) {
    for (std::size_t i = 0; i < count; ++i) words.push_back(splitmix64(seed << 40 | i));
    for (const std::uint64_t& word : words) views.push_back(std::as_bytes(std::span(&word, 1)));
  }
  std::vector<std::uint64_t> words;
  std::vector<Bytes> views;
};

Params params_of(const Codec& codec, bool packed) {
  Params params(codec);
  EXPECT_TRUE(params.set("packed", packed ? "true" : "false"));
  return params;
}

Buffer built(const Codec& codec, std::span<const Bytes> keys, bool packed) {
  auto bytes = codec.build(keys, params_of(codec, packed));
  EXPECT_TRUE(bytes) << bytes.error().detail;
  return *std::move(bytes);
}

std::uint64_t found(const AnyFilter& filter, std::span<const Bytes> keys) {
  std::vector<std::uint64_t> answers(keys.size() / 64 + 1);
  filter.may_contain(keys, answers);
  std::uint64_t count = 0;
  for (const std::uint64_t word : answers) count += static_cast<std::uint64_t>(std::popcount(word));
  return count;
}

TEST(Fingerprints, EverySizeHasAllItsKeysInBothForms) {
  for (const std::string_view name : kNames) {
    const Codec& codec = *find(name);
    for (std::size_t n = name.starts_with("xor") ? 1 : 0; n < 260; ++n) {
      const Keys keys(n, n);
      const Keys others(300, 1000);
      const Buffer plain = built(codec, keys.views, false);
      const Buffer packed = built(codec, keys.views, true);
      const auto a = codec.open({.bytes = plain}, Params(codec));
      const auto b = codec.open({.bytes = packed}, Params(codec));
      ASSERT_TRUE(a) << a.error().detail;
      ASSERT_TRUE(b) << b.error().detail;
      ASSERT_EQ(found(*a->whole, keys.views), n) << name;
      ASSERT_EQ(found(*b->whole, keys.views), n) << name;
      ASSERT_EQ(found(*a->whole, others.views), found(*b->whole, others.views)) << name << " of " << n;
    }
  }
}

TEST(Fingerprints, PrefetchedBatchesAnswerLikeSingleLookups) {
  // Larger than any L2 cache we know, so that batches prefetch.
  const Codec& codec = *find("fuse16");
  const Keys keys(1'500'000);
  const Keys others(100'000, 1);
  for (const bool packed : {false, true}) {
    const Buffer bytes = built(codec, keys.views, packed);
    const auto opened = codec.open({.bytes = bytes}, Params(codec));
    ASSERT_TRUE(opened);
    EXPECT_EQ(found(*opened->whole, keys.views), keys.views.size());
    std::uint64_t alone = 0;
    for (const Bytes key : others.views) alone += opened->whole->may_contain(key);
    EXPECT_EQ(found(*opened->whole, others.views), alone);
    EXPECT_LE(alone, 9u);  // n = 100,000 at 2^-16: 1.5 expected, 5 sigma
  }
}

TEST(Fingerprints, RepeatedKeysCountOnce) {
  const Keys keys(100);
  std::vector<Bytes> twice = keys.views;
  twice.insert(twice.end(), keys.views.begin(), keys.views.end());
  for (const std::string_view name : kNames)
    EXPECT_EQ(built(*find(name), twice, false), built(*find(name), keys.views, false));
}

TEST(Fingerprints, PackingAndUnpackingGiveTheBytesOfBuilding) {
  const Keys keys(1000);
  for (const std::string_view name : kNames) {
    const Codec& codec = *find(name);
    const Buffer forms[] = {built(codec, keys.views, false), built(codec, keys.views, true)};
    for (const Buffer& from : forms) {
      const Source source{.bytes = from};
      const auto opened = open(source);
      ASSERT_TRUE(opened) << opened.error().detail;
      EXPECT_EQ(opened->format, name);
      for (const bool packed : {false, true}) {
        const auto converted = convert(source, *opened, codec, params_of(codec, packed));
        ASSERT_TRUE(converted) << converted.error().detail;
        EXPECT_EQ(converted->bytes, forms[packed]);
      }
      const Codec& other = *find(name == "xor8" ? "fuse8" : "xor8");
      EXPECT_FALSE(convert(source, *opened, other, Params(other)));
    }
  }
}

TEST(Fingerprints, OnlyXorNeedsAKey) {
  EXPECT_FALSE(find("xor8")->build({}, Params(*find("xor8"))));
  const Buffer bytes = built(*find("fuse8"), {}, false);
  const Keys keys(65536);
  const auto opened = open({.bytes = bytes});
  ASSERT_TRUE(opened);
  // All slots are zero, so keys with the fingerprint 0 answer *perhaps*: n = 65,536, p = 1/256, z = 5.
  EXPECT_NEAR(static_cast<double>(found(*opened->whole, keys.views)), 256, 5 * 16);
}

TEST(Fingerprints, GosHeaderIsReadAndNotWritten) {
  const Keys keys(500);
  for (const std::string_view name : {"fuse8", "fuse16"}) {
    const Codec& codec = *find(name);
    Buffer bytes = built(codec, keys.views, false);
    std::uint32_t length;
    std::memcpy(&length, bytes.data() + 12, 4);
    const std::uint32_t mask = length - 1;
    std::memcpy(bytes.data() + 8, &length, 4);
    std::memcpy(bytes.data() + 12, &mask, 4);
    const Source source{.bytes = bytes};
    const auto opened = open(source);
    ASSERT_TRUE(opened) << opened.error().detail;
    EXPECT_EQ(found(*opened->whole, keys.views), keys.views.size());
    EXPECT_FALSE(opened->whole->describe().keys);
    EXPECT_FALSE(convert(source, *opened, codec, params_of(codec, true)));
  }
}

TEST(Fingerprints, FourExtraBytesOfTheWriterAreAccepted) {
  const Keys keys(50);
  Buffer bytes = built(*find("fuse16"), keys.views, false);
  bytes.resize(bytes.size() + 4);
  const auto opened = open({.bytes = bytes});
  ASSERT_TRUE(opened) << opened.error().detail;
  EXPECT_EQ(found(*opened->whole, keys.views), 50u);
  bytes.resize(bytes.size() + 1);
  EXPECT_FALSE(open({.bytes = bytes}));
}

TEST(Fingerprints, EveryTruncationIsNoticed) {
  for (const std::size_t n : {1, 2, 3, 5, 7, 20, 100, 400}) {
    const Keys keys(n);
    for (const std::string_view name : kNames) {
      const Codec& codec = *find(name);
      for (const bool packed : {false, true}) {
        const Buffer bytes = built(codec, keys.views, packed);
        for (std::size_t size = 0; size < bytes.size(); ++size) {
          const auto opened = codec.open({.bytes = Bytes(bytes).first(size)}, Params(codec));
          ASSERT_FALSE(opened) << name << (packed ? " packed, " : " plain, ") << size << " of " << bytes.size();
          ASSERT_TRUE(opened.error().detail.starts_with(std::string(name) + ": "));
        }
      }
    }
  }
}

// Only the seed and the number of keys are independent of everything else in a file.
TEST(Fingerprints, EveryFlippedLengthIsNoticed) {
  for (const std::size_t n : {2, 7, 100, 1000}) {
    const Keys keys(n);
    for (const std::string_view name : kNames) {
      const Codec& codec = *find(name);
      Buffer bytes = built(codec, keys.views, false);
      const std::size_t from = name.starts_with("xor") ? 8 : 12;
      const std::size_t to = name.starts_with("xor") ? 16 : 28;
      for (std::size_t bit = 8 * from; bit < 8 * to; ++bit) {
        bytes[bit / 8] ^= std::byte{1} << static_cast<int>(bit % 8);
        EXPECT_FALSE(codec.open({.bytes = bytes}, Params(codec))) << name << " of " << n << ", bit " << bit;
        const auto anyway = codec.open({.bytes = bytes, .on_damage = OnDamage::perhaps}, Params(codec));
        ASSERT_TRUE(anyway);
        EXPECT_EQ(found(*anyway->whole, keys.views), n);
        bytes[bit / 8] ^= std::byte{1} << static_cast<int>(bit % 8);
      }
    }
  }
}

TEST(Fingerprints, EveryFlippedBitOfThePackedBitmapIsNoticed) {
  const Keys keys(100);
  for (const std::string_view name : kNames) {
    const Codec& codec = *find(name);
    Buffer bytes = built(codec, keys.views, true);
    const std::size_t from = name.starts_with("xor") ? 16 : 12;
    for (std::size_t bit = 8 * from; bit < 8 * (from + 18); ++bit) {
      bytes[bit / 8] ^= std::byte{1} << static_cast<int>(bit % 8);
      EXPECT_FALSE(codec.open({.bytes = bytes}, Params(codec))) << name << ", bit " << bit;
      bytes[bit / 8] ^= std::byte{1} << static_cast<int>(bit % 8);
    }
  }
}

}  // namespace
}  // namespace perhaps::format
