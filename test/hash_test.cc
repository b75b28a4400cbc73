// Promise: a key has the same digest everywhere and forever, and digests of different hashers cannot be mixed. Would
// notice: another hash, another widening of integers, a seed without effect, an overload that accepts what it should
// not.
#include "perhaps/hash.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <string>
#include <unordered_set>
#include <vector>

#include "perhaps/block_bloom.h"
#include "perhaps/bloom.h"
#include "perhaps/line_bloom.h"
#include "support/families.h"
#include "support/keys.h"
#include "support/statistics.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace perhaps::test {
namespace {

// Which types can be keys.
static_assert(Key<int> && Key<long> && Key<unsigned short> && Key<std::uint64_t> && Key<std::int8_t>);
static_assert(Key<std::string> && Key<std::string_view> && Key<const char*> && Key<char[6]>);
static_assert(Key<Bytes> && Key<std::vector<std::byte>> && Key<std::span<std::byte>>);
// Is 'a' the text "a" or 97? Is true 1? Both are ambiguous, so neither compiles.
static_assert(!Key<char> && !Key<bool> && !Key<wchar_t> && !Key<char8_t> && !Key<char16_t> && !Key<char32_t>);
static_assert(!Key<double> && !Key<void*> && !Key<std::vector<int>>);

// A filter cannot be queried with a digest of another hasher.
template <class F, class D>
concept CanQuery = requires(const F f, D d) {
  f.may_contain(d);
};
template <class F, class D>
concept CanInsert = requires(F f, D d) {
  f.insert(d);
};
static_assert(CanQuery<LineBloom, Digest<Hash>> && CanInsert<LineBloom, Digest<Hash>>);
static_assert(CanQuery<KeyedLineBloom, Digest<KeyedHash>> && CanInsert<KeyedLineBloom, Digest<KeyedHash>>);
static_assert(!CanQuery<LineBloom, Digest<KeyedHash>> && !CanInsert<LineBloom, Digest<KeyedHash>>);
static_assert(!CanQuery<KeyedLineBloom, Digest<Hash>> && !CanInsert<KeyedBlockBloom, Digest<Hash>>);
static_assert(!CanQuery<LineBloom::Shared, Digest<KeyedHash>> && !CanInsert<LineBloom::Span, Digest<KeyedHash>>);
static_assert(!CanQuery<LineBloom, std::span<const Digest<KeyedHash>>>);
static_assert(!CanQuery<LineBloom, char> && !CanQuery<LineBloom, bool> && !CanInsert<LineBloom, char>);
static_assert(!std::is_convertible_v<Digest<Hash>, Digest<KeyedHash>>);
static_assert(!std::is_convertible_v<std::uint64_t, Digest<Hash>>);

template <class H>
struct Hashing : ::testing::Test {};
using Hashers = ::testing::Types<Hash, KeyedHash>;
TYPED_TEST_SUITE(Hashing, Hashers);

TYPED_TEST(Hashing, ANumberItsTextAndItsBytesAreThreeKeys) {
  const auto hasher = hasher_of<TypeParam>(1);
  for (const std::uint64_t number : {std::uint64_t{0}, std::uint64_t{42}, std::uint64_t{1} << 63}) {
    const auto as_number = digest_of(hasher, number);
    const auto as_text = digest_of(hasher, std::to_string(number));
    const auto as_bytes = digest_of(hasher, std::as_bytes(std::span(&number, 1)));
    EXPECT_NE(as_number, as_text);
    EXPECT_NE(as_number, as_bytes);
    EXPECT_NE(as_text, as_bytes);
  }
}

TYPED_TEST(Hashing, SignedIntegersAreSignExtended) {
  const auto hasher = hasher_of<TypeParam>(1);
  EXPECT_EQ(digest_of(hasher, 42), digest_of(hasher, 42L));
  EXPECT_EQ(digest_of(hasher, 42), digest_of(hasher, 42u));
  EXPECT_EQ(digest_of(hasher, std::int8_t{-1}), digest_of(hasher, -1LL));
  EXPECT_EQ(digest_of(hasher, -1), digest_of(hasher, UINT64_MAX));
  EXPECT_EQ(digest_of(hasher, std::uint8_t{255}), digest_of(hasher, 255));
  EXPECT_NE(digest_of(hasher, UINT32_MAX), digest_of(hasher, -1));
}

TYPED_TEST(Hashing, TextAndBytesOfEqualContentAreOneKey) {
  const auto hasher = hasher_of<TypeParam>(1);
  const std::string text = "hello";
  EXPECT_EQ(digest_of(hasher, "hello"), digest_of(hasher, text));
  EXPECT_EQ(digest_of(hasher, std::string_view(text)), digest_of(hasher, bytes_of(text)));
  EXPECT_NE(digest_of(hasher, std::string("a\0", 2)), digest_of(hasher, "a"));
  EXPECT_EQ(digest_of(hasher, std::string()), digest_of(hasher, Bytes{}));
}

TYPED_TEST(Hashing, ManyEqualsOneByOne) {
  const auto hasher = hasher_of<TypeParam>(5);
  const Texts texts(kTextPatterns[1], 200);
  std::vector<Bytes> bytes;
  for (const auto& view : texts.views) bytes.push_back(bytes_of(view));
  const auto of_views = digests_of(hasher, texts.views);
  const auto of_bytes = digests_of(hasher, bytes);
  for (std::size_t i = 0; i < bytes.size(); ++i) {
    EXPECT_EQ(of_views[i], hasher(bytes[i]));
    EXPECT_EQ(of_bytes[i], hasher(bytes[i]));
  }
}

TYPED_TEST(Hashing, SeedsAndSecretsGiveUnrelatedDigests) {
  std::unordered_set<std::uint64_t> numbers;
  std::unordered_set<std::uint64_t> texts;
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    const auto hasher = hasher_of<TypeParam>(seed);
    EXPECT_EQ(hasher, hasher_of<TypeParam>(seed));
    EXPECT_NE(hasher, hasher_of<TypeParam>(seed + 1));
    EXPECT_NE(hasher.tag(), hasher_of<TypeParam>(seed + 1).tag());
    for (std::uint64_t key = 0; key < 100; ++key) {
      numbers.insert(digest_of(hasher, key).value);
      texts.insert(digest_of(hasher, std::to_string(key)).value);
    }
  }
  EXPECT_EQ(numbers.size(), 10'000u);
  EXPECT_EQ(texts.size(), 10'000u);
}

// Flipping one bit of an integer flips each bit of its word about half the time, except for the lowest eight bits of
// the default hash, which are weaker (hash.h). n = 2000 integers for each of 64 x 56 pairs; for a random function sigma
// is 0.011. A deviation of 0.1 is far beyond chance, but far too small to harm a filter.
TYPED_TEST(Hashing, IntegersAvalanche) {
  constexpr int kIntegers = 2000;
  const auto hasher = hasher_of<TypeParam>(9);
  double worst = 0;
  for (int in = 0; in < 64; ++in) {
    std::array<int, 64> flips{};
    for (int i = 0; i < kIntegers; ++i) {
      const std::uint64_t key = Stream{static_cast<std::uint64_t>(in)}.at(static_cast<std::uint64_t>(i));
      std::uint64_t change = hasher(key).word() ^ hasher(key ^ std::uint64_t{1} << in).word();
      for (; change != 0; change &= change - 1) ++flips[static_cast<std::size_t>(std::countr_zero(change))];
    }
    for (std::size_t out = 8; out < 64; ++out) worst = std::max(worst, std::abs(flips[out] / double{kIntegers} - 0.5));
  }
  EXPECT_LT(worst, 0.1);
}

// Integers in regular sets behave like random keys: the rate matches the model. n = 40 seeds x 50,000 queries of a
// filter of 20,000 keys, 5 sigma of the sample over seeds. A folded product alone fails here by 20 sigma and more.
template <class L>
void expect_model(const char* name, typename L::Shape shape, std::uint64_t (*key)(std::uint64_t)) {
  constexpr std::uint64_t kKeys = 20'000;
  constexpr std::uint64_t kQueries = 50'000;
  Mean rate;
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    Flat<L, Hash> filter(shape, Hash(seed));
    for (std::uint64_t i = 0; i < kKeys; ++i) filter.insert(key(i));
    std::uint64_t perhaps = 0;
    for (std::uint64_t i = kKeys; i < kKeys + kQueries; ++i) perhaps += filter.may_contain(key(i));
    rate.add(static_cast<double>(perhaps) / kQueries);
  }
  EXPECT_NEAR(rate.value(), shape.fpr(kKeys), kSigmas * rate.error()) << L::family << ", " << name;
}

TEST(HashDefault, RegularIntegersBehaveAsRandomOnes) {
  struct Set {
    const char* name;
    std::uint64_t (*key)(std::uint64_t);
  };
  const Set sets[] = {
      {"sequence", [](std::uint64_t i) { return i; }},
      {"i * 2^20", [](std::uint64_t i) { return i << 20; }},
      {"i * 2^40", [](std::uint64_t i) { return i << 40; }},
      {"i * 1000", [](std::uint64_t i) { return i * 1000; }},
      {"pointers", [](std::uint64_t i) { return 0x7f0000000000 + i * 16; }},
      {"two counters", [](std::uint64_t i) { return i % 1024 | (i / 1024) << 44; }},
      {"grid", [](std::uint64_t i) { return i % 1000 * 0x1000000010000 + i / 1000; }},
      {"reversed bytes", [](std::uint64_t i) { return __builtin_bswap64(i); }},
      {"doubles", [](std::uint64_t i) { return std::bit_cast<std::uint64_t>(static_cast<double>(i)); }},
      {"golden ratio", [](std::uint64_t i) { return i * 0x9e3779b97f4a7c15u; }},
  };
  for (const Set& set : sets) {
    expect_model<LineLayout>(set.name, {400, 8}, set.key);
    expect_model<LineLayout>(set.name, {300, 5}, set.key);
    expect_model<BlockLayout>(set.name, {840}, set.key);
    expect_model<BloomLayout<Multiplicative>>(set.name, {200'000, 7}, set.key);
  }
}

// Compared with xxHash's own function: all lengths across its three internal ranges, several seeds.
TEST(HashDefault, IsXxh3) {
  std::vector<std::byte> text(3000);
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<std::byte>(Stream{2}.at(i));
  for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{1}, Hash::kDefaultSeed, UINT64_MAX}) {
    for (std::size_t size = 0; size <= text.size(); size += size < 300 ? 1 : 37) {
      ASSERT_EQ(Hash(seed)(Bytes(text).first(size)).value, XXH3_64bits_withSeed(text.data(), size, seed)) << size;
    }
  }
  // Columns have a way of their own: every length beside every other one, at odd addresses.
  for (const std::uint64_t seed : {std::uint64_t{0}, Hash::kDefaultSeed, UINT64_MAX}) {
    std::vector<Bytes> keys;
    for (std::size_t size = 0; size < 300; ++size) keys.push_back(Bytes(text).subspan(size, size * 89 % 300));
    const auto digests = digests_of(Hash(seed), keys);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      ASSERT_EQ(digests[i].value, XXH3_64bits_withSeed(keys[i].data(), keys[i].size(), seed)) << keys[i].size();
    }
  }
  // The published XXH3_64bits of the empty string.
  EXPECT_EQ(Hash(0)(Bytes{}).value, 0x2d06800538d394c2u);
  // The default is not what everybody else computes.
  EXPECT_EQ(Hash(), Hash(Hash::kDefaultSeed));
  EXPECT_NE(Hash()(Bytes{}), Hash(0)(Bytes{}));
}

// Distinct integers have distinct digests: a million of each regular pattern.
TEST(HashDefault, IntegersDoNotCollide) {
  for (const IntegerPattern& pattern : kIntegerPatterns) {
    if (std::string_view(pattern.name) == "duplicates") continue;
    std::vector<std::uint64_t> digests;
    for (std::uint64_t i = 0; i < 1'000'000; ++i) digests.push_back(Hash(4)(pattern.key(i)).value);
    std::ranges::sort(digests);
    EXPECT_EQ(std::ranges::adjacent_find(digests), digests.end()) << pattern.name;
  }
}

// SipHash-c-d, written directly from section 2 of the paper.
std::uint64_t siphash(int c, int d, const KeyedHash::Secret& secret, Bytes text) {
  const auto word = [](Bytes bytes) {
    std::uint64_t w = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i) w += std::to_integer<std::uint64_t>(bytes[i]) << (8 * i);
    return w;
  };
  const std::uint64_t k0 = word(Bytes(secret).first(8));
  const std::uint64_t k1 = word(Bytes(secret).last(8));
  std::uint64_t v[4] = {k0 ^ word(bytes_of("uespemos")), k1 ^ word(bytes_of("modnarod")),
                        k0 ^ word(bytes_of("arenegyl")), k1 ^ word(bytes_of("setybdet"))};
  const auto half = [&](int a, int b, int turn_b, int turn_a) {
    v[a] += v[b];
    v[b] = std::rotl(v[b], turn_b) ^ v[a];
    v[a] = std::rotl(v[a], turn_a);
  };
  const auto rounds = [&](int n) {
    for (int i = 0; i < n; ++i) {
      half(0, 1, 13, 32);
      half(2, 3, 16, 0);
      half(2, 1, 17, 32);
      half(0, 3, 21, 0);
    }
  };
  std::vector<std::byte> padded(text.begin(), text.end());
  padded.resize(text.size() / 8 * 8 + 7);
  padded.push_back(static_cast<std::byte>(text.size()));
  for (std::size_t at = 0; at < padded.size(); at += 8) {
    const std::uint64_t m = word(Bytes(padded).subspan(at, 8));
    v[3] ^= m;
    rounds(c);
    v[0] ^= m;
  }
  v[2] ^= 0xff;
  rounds(d);
  return v[0] ^ v[1] ^ v[2] ^ v[3];
}

KeyedHash::Secret counting_secret() {
  KeyedHash::Secret secret;
  for (std::size_t i = 0; i < secret.size(); ++i) secret[i] = static_cast<std::byte>(i);
  return secret;
}

TEST(HashKeyed, IsSipHash13) {
  const auto secret = counting_secret();
  std::vector<std::byte> text(300);
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<std::byte>(i);
  // Appendix A of the paper: SipHash-2-4 of 00 01 .. 0e under the key 00 01 .. 0f. It verifies the function above.
  ASSERT_EQ(siphash(2, 4, secret, Bytes(text).first(15)), 0xa129ca6149be45e5u);
  for (std::size_t size = 0; size <= text.size(); ++size) {
    const Bytes part = Bytes(text).first(size);
    ASSERT_EQ(KeyedHash(secret)(part).value, siphash(1, 3, secret, part)) << size;
  }
}

TEST(HashKeyed, CheckValueIdentifiesTheSecretAndIsNoDigestOfTheFilter) {
  const KeyedHash a(counting_secret());
  auto other = counting_secret();
  other[15] ^= std::byte{1};
  EXPECT_EQ(a.check_value(), KeyedHash(counting_secret()).check_value());
  EXPECT_NE(a.check_value(), KeyedHash(other).check_value());
  EXPECT_NE(a.check_value(), a(bytes_of("perhaps: check value")).value);
}

#if PERHAPS_CHECK_DIGESTS && !defined(NDEBUG)
TEST(HashDeathTest, ADigestOfAnotherSeedIsNoticed) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  LineBloom filter({.keys = 100, .fpr = 0.01}, Hash(1));
  const auto foreign = digest_of(Hash(2), "key");
  EXPECT_DEATH(static_cast<void>(filter.may_contain(foreign)), "another seed or key");
  EXPECT_DEATH(filter.insert(foreign), "another seed or key");
  EXPECT_DEATH(static_cast<void>(filter.may_contain(std::span(&foreign, 1))), "another seed or key");
  EXPECT_DEATH(filter.insert(std::span(&foreign, 1)), "another seed or key");
  EXPECT_DEATH(static_cast<void>(filter.shared().may_contain(foreign)), "another seed or key");
}
#endif

}  // namespace
}  // namespace perhaps::test
