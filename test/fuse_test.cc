// Promise: a fuse filter is built from any set of keys, at any width and arity, answers *perhaps* for all of them and
// for 2^-bits of the others, and has the same bytes however it was built; bytes that no builder made are refused or
// harmless. Would notice: a lost key, a rate that differs from the model, a byte that depends on threads, memory or
// order, a probe outside the table (under the sanitizers).
#include "perhaps/fuse.h"

#include <numeric>
#include <random>

#include "build/fuse.h"
#include "sizing/fuse.h"
#include "support/keys.h"
#include "support/no_false_negatives.h"
#include "support/sanitized.h"
#include "support/statistics.h"

namespace perhaps::test {
namespace {

static_assert(StaticLayout<FuseLayout> && CheckedLayout<FuseLayout> && !MutableLayout<FuseLayout>);
static_assert(FlatFilter<Fuse> && FlatFilter<FuseView> && !MutableFilter<Fuse>);

Fuse built(std::span<const Digest<Hash>> digests, const FuseRequest& request, const BuildOptions& options = {}) {
  auto filter = Fuse::build(digests, request, options);
  EXPECT_TRUE(filter) << filter.error().detail;
  return *std::move(filter);
}

// Written from the first comment of fuse.h, sharing no line with the code.
bool covers(const FuseShape& s, Bytes table, std::uint64_t h) {
  const auto word = [&](std::uint64_t at, unsigned size) {
    std::uint64_t value = 0;
    for (unsigned i = 0; i < size; ++i) value |= std::to_integer<std::uint64_t>(table[at + i]) << 8 * i;
    return value;
  };
  const std::uint64_t shard = word((s.shard_bits == 0 ? 0 : h >> (64 - s.shard_bits)) * 8, 8);
  const std::uint64_t length = word(shard, 4), segments = word(shard + 4, 2), seed = word(shard + 6, 2);
  const std::uint64_t p = seed * 0x9e3779b97f4a7c15u;
  if (seed >= 16) {
    h += p;
    h ^= h >> 33, h *= 0xff51afd7ed558ccdu;
    h ^= h >> 33, h *= 0xc4ceb9fe1a85ec53u;
    h ^= h >> 33;
  }
  const std::uint64_t x = h << s.shard_bits;
  const std::uint64_t first = high_product(x, segments), t = h ^ p;
  const std::uint64_t y = high_product(t, 0xa0761d6478bd642fu) ^ t * 0xa0761d6478bd642fu;
  const std::uint64_t z = y * 0xe7037ed1a0b428dbu;
  const std::uint64_t parts[4] = {x * segments >> 32, y >> 32, y & 0xffffffff, z & 0xffffffff};
  std::uint64_t sum = z >> (64 - s.bits);
  for (std::uint64_t i = 0; i < s.arity; ++i) {
    const std::uint64_t slot = (first + i) * length + (parts[i] * length >> 32);
    for (std::uint64_t bit = 0; bit < s.bits; ++bit) {
      const std::uint64_t at = slot * s.bits + bit;
      sum ^= (word(shard + 8 + at / 8, 1) >> at % 8 & 1) << bit;
    }
  }
  return sum == 0;
}

// Every kind of lookup, of present and of absent keys, answers as the slow statement of the layout does.
void expect_same_answers(const Fuse& filter, std::span<const Digest<Hash>> digests) {
  Unaligned copy(filter.bytes());
  const auto view = FuseView::over(copy.bytes(), filter.shape());
  ASSERT_TRUE(view) << view.error().detail;
  std::vector<std::uint64_t> near(digests.size() / kBatch + 1), far(near), column(near);
  std::vector<std::uint64_t> words(digests.size());
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = digests[i].word();
  detail::query_batch<FuseLayout>(filter.shape(), filter.bytes().data(),
                                  {.words = words.data(), .count = words.size(), .ahead = false}, near.data());
  detail::query_batch<FuseLayout>(filter.shape(), filter.bytes().data(),
                                  {.words = words.data(), .count = words.size(), .ahead = true}, far.data());
  view->may_contain(digests, column);
  for (std::size_t i = 0; i < digests.size(); ++i) {
    const bool wanted = covers(filter.shape(), filter.bytes(), digests[i].word());
    filter.prefetch(digests[i]);
    ASSERT_EQ(filter.may_contain(digests[i]), wanted) << i;
    ASSERT_EQ(view->may_contain(digests[i]), wanted) << i;
    for (const auto* answers : {&near, &far, &column}) {
      ASSERT_EQ((*answers)[i / kBatch] >> i % kBatch & 1, std::uint64_t{wanted}) << i;
    }
  }
}

std::uint64_t denied(const Fuse& filter, std::span<const Digest<Hash>> digests) {
  std::vector<std::uint64_t> answers(digests.size() / kBatch + 1);
  filter.may_contain(digests, answers);
  return digests.size() - count_ones(answers);
}

TEST(Fuse, EveryWidthAndArity) {
  const auto all = random_digests(Hash(), 1, 6000);
  for (const std::uint32_t arity : {3u, 4u}) {
    for (std::uint32_t bits = 1; bits <= 32; ++bits) {
      const Fuse filter = built(std::span(all).first(3000), {.fpr = std::ldexp(1.0, -int(bits)), .arity = arity});
      ASSERT_EQ(filter.shape().bits, bits);
      ASSERT_EQ(filter.shape().arity, arity);
      ASSERT_EQ(filter.keys(), 3000u);
      EXPECT_EQ(denied(filter, std::span(all).first(3000)), 0u);
      expect_same_answers(filter, all);
    }
  }
}

// fuse_slow_test tries all of them.
TEST(Fuse, EverySize) {
  const auto all = random_digests(Hash(), 2, 20'000);
  for (std::uint64_t n = 0; n <= all.size(); n += n < 300 ? 1 : 97) {
    for (const std::uint32_t arity : {3u, 4u}) {
      const auto keys = std::span(all).first(n);
      const Fuse filter = built(keys, {.fpr = 0.1, .arity = arity}, {.verify = false});
      ASSERT_EQ(denied(filter, keys), 0u) << n << " keys, arity " << arity;
    }
  }
}

TEST(Fuse, Patterns) {
  for (const auto& pattern : kIntegerPatterns) {
    const auto keys = keys_of(pattern, 30'000);
    const auto filter = Fuse::build(std::span<const std::uint64_t>(keys), {.fpr = 1e-3});
    ASSERT_TRUE(filter);
    EXPECT_EQ(denied(*filter, digests_of(Hash(), keys)), 0u) << pattern.name;
  }
  for (const auto& pattern : kTextPatterns) {
    const Texts texts(pattern, 3000);
    const auto filter = Fuse::build(std::span<const std::string_view>(texts.views), {.fpr = 1e-3});
    ASSERT_TRUE(filter);
    EXPECT_EQ(denied(*filter, digests_of(Hash(), texts.views)), 0u) << pattern.name;
  }
  const KeyedHash keyed = hasher_of<KeyedHash>(1);
  const auto digests = random_digests(keyed, 3, 1000);
  const auto filter = BasicFuse<KeyedHash>::build(digests, {.fpr = 0.01}, {}, keyed);
  ASSERT_TRUE(filter);
  for (const auto& d : digests) EXPECT_TRUE(filter->may_contain(d));
}

// Words of a poor hash, which are not spread evenly: the later seeds are for these.
TEST(Fuse, WordsThatAreNotSpread) {
  struct Pattern {
    const char* name;
    std::uint64_t (*digest)(std::uint64_t);
  };
  const Pattern patterns[] = {
      {"small numbers", [](std::uint64_t i) { return i; }},
      {"large numbers", [](std::uint64_t i) { return ~i; }},
      {"upper half only", [](std::uint64_t i) { return i * 0x9e3779b1 << 32; }},
      {"lower half only", [](std::uint64_t i) { return i * 0x9e3779b1 & 0xffffffff; }},
      {"in the middle", [](std::uint64_t i) { return i << 24; }},
      {"two clusters", [](std::uint64_t i) { return i % 2 == 0 ? i : ~i; }},
  };
  for (const auto& pattern : patterns) {
    for (const std::uint64_t n : {10, 1000, 30'000}) {
      for (const std::uint32_t arity : {3u, 4u}) {
        std::vector<Digest<Hash>> digests(n);
        for (std::uint64_t i = 0; i < n; ++i) digests[i] = digest_with(Hash(), pattern.digest(i));
        const Fuse filter = built(digests, {.fpr = 0.01, .arity = arity});
        EXPECT_EQ(denied(filter, digests), 0u) << pattern.name;
        expect_same_answers(filter, std::span(digests).first(std::min<std::size_t>(n, 1000)));
        const auto g = detail::FuseGeometry::at(filter.bytes().data() + 16);
        EXPECT_GT(g.segments, 0u) << pattern.name << ", " << n;
        EXPECT_LT(g.seed, 40u) << pattern.name << ", " << n;
      }
    }
  }
}

// Nearly every lookup takes its slots by shorter products than the formula has. They are the same slots, up to the
// longest segments for which that holds: a product that overflows, or a head taken for a plain one, would show here.
TEST(Fuse, PlainProbesFollowTheFormula) {
  using detail::FuseGeometry;
  using detail::FuseProbe;
  std::mt19937_64 random(16);
  for (const std::uint32_t length : {1u, 2u, 1772u, FuseGeometry::kPlainLength - 1}) {
    for (const std::uint32_t segments : {1u, 64u, 65535u}) {
      const FuseGeometry g{segments, length, 0};
      ASSERT_TRUE(FuseGeometry::is_plain(g.head()));
      EXPECT_FALSE(FuseGeometry::is_plain(FuseGeometry{segments, length, 1}.head()));
      EXPECT_FALSE(FuseGeometry::is_plain(FuseGeometry{segments, FuseGeometry::kPlainLength, 0}.head()));
      EXPECT_FALSE(FuseGeometry::is_plain(FuseGeometry{segments, UINT32_MAX, 0}.head()));
      EXPECT_FALSE(FuseGeometry::is_plain(FuseGeometry{0, length, 0}.head()));
      for (const std::uint32_t shard_bits : {0u, 1u, 18u}) {
        for (int i = 0; i < 1000; ++i) {
          const std::uint64_t h = i == 0 ? 0 : i == 1 ? UINT64_MAX : random();
          const auto plain = FuseProbe<4>::plain(g.head(), shard_bits, h);
          const FuseProbe<4> formula(g, shard_bits, h);
          EXPECT_EQ(plain.mixed, formula.mixed);
          for (unsigned slot = 0; slot < 4; ++slot) {
            ASSERT_EQ(plain.slot[slot], formula.slot[slot]) << length << ", " << segments << ", " << h;
            ASSERT_LT(plain.slot[slot], g.slots(4));
          }
        }
      }
    }
  }
}

TEST(Fuse, DuplicatesCostNothing) {
  const auto once = random_digests(Hash(), 4, 1000);
  std::vector<Digest<Hash>> often;
  for (int i = 0; i < 1000; ++i) often.insert(often.end(), once.begin(), once.end());
  const Fuse a = built(once, {.fpr = 1e-3});
  const Fuse b = built(often, {.fpr = 1e-3}, {.threads = 2});
  EXPECT_EQ(a.shape(), b.shape());
  EXPECT_TRUE(same_bytes(a.bytes(), b.bytes()));
}

TEST(Fuse, SameBytesForThreadsMemoryAndOrder) {
  auto digests = random_digests(Hash(), 5, 2'200'000);
  const Fuse reference = built(digests, {.fpr = 0.01});
  EXPECT_EQ(reference.shape().shard_bits, 2u);
  std::mt19937_64 random(5);
  for (const BuildOptions& options : {BuildOptions{.threads = 2}, BuildOptions{.threads = 3, .memory = 1}}) {
    std::ranges::shuffle(digests, random);
    StaticBuilder<FuseLayout, Hash> builder({.fpr = 0.01}, options);
    builder.insert(std::span<const Digest<Hash>>(digests));
    const auto filter = builder.finish();
    ASSERT_TRUE(filter) << filter.error().detail;
    EXPECT_EQ(builder.spilled_bytes() != 0, options.memory != 0);
    EXPECT_EQ(filter->shape(), reference.shape());
    EXPECT_TRUE(same_bytes(filter->bytes(), reference.bytes()));
  }
  EXPECT_EQ(denied(reference, digests), 0u);
}

// n = 20 filters of 10,000 keys, 100,000 queries each; 5 sigma.
TEST(Fuse, RateMatchesTheModel) {
  for (const std::uint32_t arity : {3u, 4u}) {
    for (const double fpr : {0.5, 0.1, 0.01, 1e-3}) {
      Mean rate;
      double model = 0;
      for (std::uint64_t seed = 1; seed <= samples(20); ++seed) {
        std::vector<std::uint64_t> numbers(110'000);
        std::iota(numbers.begin(), numbers.end(), 0);
        const auto digests = digests_of(Hash(seed), numbers);
        const auto filter = Fuse::build(std::span(digests).first(10'000), {.fpr = fpr, .arity = arity}, {}, Hash(seed));
        ASSERT_TRUE(filter);
        model = filter->shape().fpr(10'000);
        std::vector<std::uint64_t> answers(100'000 / kBatch + 1);
        filter->may_contain(std::span(digests).subspan(10'000), answers);
        rate.add(static_cast<double>(count_ones(answers)) / 100'000);
      }
      EXPECT_LE(model, fpr);
      EXPECT_NEAR(rate.value(), model, kSigmas * std::max(rate.error(), binomial_error(model, 1e5 * samples(20))))
          << arity;
    }
  }
}

TEST(Fuse, ShapesAndRequests) {
  // Overhead over n * bits at 1e7 keys, everything included.
  for (const auto& [arity, bar] : {std::pair{3u, 1.14}, std::pair{4u, 1.09}}) {
    for (const std::uint32_t bits : {1u, 8u, 16u, 32u}) {
      const auto shape = FuseShape::for_keys({.keys = 10'000'000, .fpr = std::ldexp(1.0, -int(bits)), .arity = arity});
      EXPECT_LE(static_cast<double>(shape.bytes()) * 8, 1e7 * bits * bar) << arity << ", " << bits;
    }
  }
  EXPECT_EQ(FuseShape::for_keys({.keys = 5, .fpr = 0.9}).bits, 1u);
  EXPECT_EQ(FuseShape::for_keys({.keys = 5, .fpr = 0.5}).bits, 1u);
  EXPECT_EQ(FuseShape::for_keys({.keys = 5, .fpr = 0.4999}).bits, 2u);
  EXPECT_EQ(FuseShape::for_keys({.keys = 5, .fpr = 1e-12}).bits, 32u);
  EXPECT_EQ(FuseShape::for_keys({.keys = 1'000'000, .bits_per_key = 9.2}).bits, 8u);
  EXPECT_EQ(FuseShape::for_keys({.keys = 1'000'000, .bits_per_key = 0.1}).bits, 1u);
  for (const std::uint64_t keys : {0, 1, 1000, 3'000'000}) {
    for (const std::uint64_t bytes : {1'000u, 100'000u, 10'000'000u}) {
      const auto shape = FuseShape::for_keys({.keys = keys, .max_bytes = bytes});
      EXPECT_TRUE(shape.valid());
      EXPECT_TRUE(shape.bytes() <= bytes || shape.bits == 1) << keys << ", " << bytes;
    }
  }
  const auto largest = FuseShape::for_keys({.keys = UINT64_MAX, .fpr = 1e-9});
  EXPECT_TRUE(largest.valid());

  const auto shape = FuseShape::for_keys({.keys = 12'345'678, .fpr = 1e-4, .arity = 4});
  EXPECT_EQ(*FuseShape::from(shape.numbers()), shape);
  const std::vector<std::uint64_t> good = shape.numbers();
  for (const auto& [at, value] : std::vector<std::pair<std::size_t, std::uint64_t>>{{0, 2},
                                                                                    {0, 5},
                                                                                    {1, 0},
                                                                                    {1, 33},
                                                                                    {2, 19},
                                                                                    {2, UINT64_MAX},
                                                                                    {4, 0},
                                                                                    {4, 12},
                                                                                    {4, 1 << 20 | 1},
                                                                                    {4, UINT64_MAX - 7}}) {
    auto numbers = good;
    numbers[at] = value;
    EXPECT_FALSE(FuseShape::from(numbers)) << at << ": " << value;
  }
  EXPECT_FALSE(FuseShape::from(std::span(good).first(4)));
}

// Untrusted bytes: any table that passes the check can be queried with anything.
TEST(Fuse, HostileBytes) {
  const auto queries = random_digests(Hash(), 7, 200);
  std::vector<std::uint64_t> words(queries.size()), answers(4);
  for (std::size_t i = 0; i < words.size(); ++i) words[i] = queries[i].word();
  std::mt19937_64 random(7);
  int passed = 0, refused = 0;
  for (int round = 0; round < 3000; ++round) {
    FuseShape shape;
    shape.arity = 3 + std::uint32_t(random() % 2);
    shape.bits = 1 + std::uint32_t(random() % 32);
    shape.shard_bits = std::uint32_t(random() % 3);
    const std::uint64_t shards = std::uint64_t{1} << shape.shard_bits;
    shape.table_bytes = (shards + 1 + shards * (2 + random() % 30)) * 8;
    ASSERT_TRUE(shape.valid());
    std::vector<std::byte> table(shape.table_bytes);  // exactly, so that the sanitizer detects any access past it
    for (std::byte& byte : table) byte = static_cast<std::byte>(random());
    // A directory that is valid except, sometimes, for one entry, and heads that nearly fit.
    std::uint64_t at = (shards + 1) * 8;
    for (std::uint64_t s = 0; s <= shards; ++s) {
      const std::uint64_t offset = random() % 50 == 0 ? random() % (2 * shape.table_bytes) : at;
      detail::store<std::uint64_t>(table.data() + s * 8, offset);
      if (s == shards) break;
      const std::uint64_t size = (shape.table_bytes - (shards + 1) * 8) / shards / 8 * 8;
      detail::store(table.data() + at, detail::FuseGeometry{std::uint32_t(random() % 3), std::uint32_t(random() % 40),
                                                            std::uint32_t(random() % 65536)}
                                           .head());
      at = s + 1 == shards ? shape.table_bytes : at + size;
    }
    const auto view = FuseView::over(table, shape);
    ++(view ? passed : refused);
    if (!view) continue;
    for (const auto& d : queries) {
      view->prefetch(d);
      view->may_contain(d);
    }
    for (const bool ahead : {false, true}) {
      detail::query_batch<FuseLayout>(shape, table.data(),
                                      {.words = words.data(), .count = words.size(), .ahead = ahead}, answers.data());
    }
  }
  EXPECT_GT(passed, 100);
  EXPECT_GT(refused, 100);
}

// What a build falls back to if no seed works.
TEST(Fuse, AShardWithoutSegmentsAnswersPerhaps) {
  FuseShape shape;
  shape.table_bytes = 32;
  std::vector<std::byte> table(32);
  detail::store<std::uint64_t>(table.data(), 16);
  detail::store<std::uint64_t>(table.data() + 8, 32);
  const auto view = FuseView::over(table, shape);
  ASSERT_TRUE(view) << view.error().detail;
  const auto queries = random_digests(Hash(), 8, 64);
  for (const auto& d : queries) EXPECT_TRUE(view->may_contain(d));
  EXPECT_EQ(view->may_contain(queries), UINT64_MAX);
}

// The bytes never change. An intended change needs a new version of the file format first.
TEST(Fuse, Golden) {
  struct Case {
    std::uint64_t keys;
    std::uint32_t arity, bits;
    std::uint64_t bytes;
  };
  for (const Case& c :
       {Case{0, 3, 8, 0x2b0a5c7627784864}, Case{1, 4, 5, 0x5b7b8cb4a93120bb}, Case{1000, 3, 8, 0x0d35d62e6a6bca8f},
        Case{1000, 4, 13, 0xcd88c3688e7a837c}, Case{50'000, 3, 1, 0x785b97cdc3ea9dbf},
        Case{50'000, 4, 32, 0xc6ae91746cb9ee78}, Case{1'100'000, 3, 7, 0xc04ca7f4b4c3b6ef}}) {
    std::vector<std::uint64_t> numbers(c.keys);
    std::iota(numbers.begin(), numbers.end(), 0);
    const Fuse filter =
        built(digests_of(Hash(), numbers), {.fpr = std::ldexp(1.0, -int(c.bits)), .arity = c.arity}, {.threads = 2});
    EXPECT_EQ(Hash(0)(filter.bytes()).value, c.bytes)
        << c.keys << " keys: " << std::hex << Hash(0)(filter.bytes()).value;
  }
}

TEST(Fuse, CopiesAndMoves) {
  const auto digests = random_digests(Hash(), 9, 500);
  Fuse a = built(digests, {.fpr = 0.01});
  const Fuse b = a;
  const Fuse c(a.view());
  const Fuse d = std::move(a);
  for (const Fuse* filter : {&b, &c, &d}) EXPECT_EQ(denied(*filter, digests), 0u);
  EXPECT_TRUE(same_bytes(b.bytes(), d.bytes()));
}

}  // namespace
}  // namespace perhaps::test
