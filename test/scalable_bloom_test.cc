// Promise: however many keys are inserted, none is missing and the rate stays below the requested one; batches answer
// like single lookups; a chain can be restored from its numbers and bytes. Would notice: a link that is filled beyond
// its capacity, shares that add up to more than one, a link that is not queried, numbers that are trusted.
#include "perhaps/scalable_bloom.h"

#include "support/sanitized.h"
#include "support/statistics.h"

namespace perhaps::test {
namespace {

static_assert(Filter<ScalableBloom> && MutableFilter<ScalableBloom> && Filter<ScalableBloomView>);
static_assert(std::is_nothrow_move_constructible_v<ScalableBloom>);

template <class F>
struct ScalableOf : ::testing::Test {};
TYPED_TEST_SUITE(ScalableOf, FamiliesAndHashers, FamilyNames);

TYPED_TEST(ScalableOf, LosesNothingAndStaysBelowItsRate) {
  using H = typename TypeParam::hasher_type;
  for (const double target : {1e-2, 1e-3}) {
    for (const std::uint64_t n : {std::uint64_t{1}, std::uint64_t{1000}, samples(100'000)}) {
      Mean rate;
      double bits = 0;
      std::uint64_t missing = 0;
      const std::uint64_t filters = n > 1000 ? 3 : 10;
      for (std::uint64_t seed = 1; seed <= filters; ++seed) {
        const H hasher = hasher_of<H>(seed);
        Scalable<TypeParam> filter(Growth{.fpr = target, .first = 100}, hasher);
        const auto digests = random_digests(hasher, seed, n);
        if (seed % 2 == 0) {
          filter.insert(std::span<const Digest<H>>(digests));
        } else {
          for (const auto d : digests) filter.insert(d);
        }
        for (const auto d : digests) missing += !filter.may_contain(d);
        std::vector<std::uint64_t> answers(n / 64 + 1);
        filter.may_contain(std::span<const Digest<H>>(digests), answers);
        missing += n - count_ones(answers);
        constexpr std::uint64_t kQueries = 60'000;
        const auto absent = random_digests(hasher, 1000 + seed, kQueries);
        answers.assign(kQueries / 64 + 1, 0);
        filter.may_contain(std::span<const Digest<H>>(absent), answers);
        rate.add(static_cast<double>(count_ones(answers)) / kQueries);
        bits += static_cast<double>(filter.byte_size() * 8) / static_cast<double>(filters * n);
        EXPECT_LE(filter.keys(), n);
        EXPECT_LE(filter.fpr(), target);
      }
      EXPECT_EQ(missing, 0u);
      const double error = std::max(rate.error(), binomial_error(target, 60'000.0 * double(filters)));
      std::printf("  target %g, %lu keys: measured %.3g, %.1f bits per key\n", target, n, rate.value(), bits);
      EXPECT_LE(rate.value(), target + kSigmas * error);
    }
  }
}

TEST(ScalableBloom, SharesAddUpToOne) {
  for (const double spread : {1.0 / 32, 1.0, 8.0, 100.0}) {
    const Growth growth{.fpr = 0.01, .spread = spread};
    double sum = 0;
    for (std::uint64_t i = 0; i < ScalableBloom::Shape::kMaxLinks; ++i) sum += growth.share(i);
    EXPECT_LT(sum, growth.fpr);
    EXPECT_NEAR(sum, growth.fpr, growth.fpr * 0.03);
  }
}

TEST(ScalableBloom, BatchAnswersAsOneByOne) {
  ScalableBloom filter(Growth{.fpr = 0.05, .first = 20});
  for (std::uint64_t i = 0; i < 5000; ++i) filter.insert(i);
  ASSERT_GT(filter.links().size(), 5u);
  std::vector<std::uint64_t> keys(9000);
  for (std::uint64_t i = 0; i < keys.size(); ++i) keys[i] = i + 2500;
  const auto digests = digests_of(Hash(), keys);
  std::vector<std::uint64_t> by_digest(keys.size() / 64 + 1);
  std::vector<std::uint64_t> by_key(by_digest.size());
  filter.may_contain(std::span<const Digest<Hash>>(digests), by_digest);
  filter.may_contain(std::span<const std::uint64_t>(keys), by_key);
  with_every_kernel([&](const kernel::InstructionSet&) {
    for (std::size_t i = 0; i < keys.size(); ++i) {
      ASSERT_EQ(filter.may_contain(digests[i]), bool(by_digest[i / 64] >> i % 64 & 1));
    }
  });
  EXPECT_EQ(by_digest, by_key);
  EXPECT_EQ(filter.may_contain(std::span<const Digest<Hash>>(digests).first(64)), by_digest[0]);
}

TEST(ScalableBloom, BatchInsertSaysWhichKeysWerePresent) {
  // 4000 distinct keys, each several times, in one batch and across batches: exactly the first of each is new, except
  // for false positives, which a rate of 1e-9 excludes.
  Scalable<Bloom> filter(Growth{.fpr = 1e-9, .first = 50});
  std::set<std::uint64_t> seen;
  for (std::uint64_t round = 0; round < 40; ++round) {
    std::vector<std::uint64_t> keys(777);
    for (std::uint64_t i = 0; i < keys.size(); ++i) keys[i] = Stream{5}.at(round * 777 + i) % 4000;
    const auto digests = digests_of(Hash(), keys);
    std::vector<std::uint64_t> answers(keys.size() / 64 + 1, ~std::uint64_t{0});
    filter.insert(std::span<const Digest<Hash>>(digests), answers);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      ASSERT_EQ(bool(answers[i / 64] >> i % 64 & 1), !seen.insert(keys[i]).second) << "round " << round << ", " << i;
    }
  }
  EXPECT_EQ(filter.keys(), seen.size());
}

TEST(ScalableBloom, RepeatedKeysFillNothing) {
  ScalableBloom filter(Growth{.fpr = 0.01, .first = 100});
  for (std::uint64_t i = 0; i < 100'000; ++i) filter.insert(i % 90);
  EXPECT_EQ(filter.links().size(), 1u);
  EXPECT_LE(filter.keys(), 90u);
  EXPECT_EQ(filter.insert(std::uint64_t{5}), Inserted::present);
  EXPECT_EQ(filter.try_insert(std::string("new")), Inserted::added);
}

TEST(ScalableBloom, OutOfMemoryLeavesItUnchanged) {
  // A chain whose only link claims to be full of 2^60 keys: the next one is larger than any memory.
  const Scalable<BlockBloom> small(Growth{.fpr = 1e-9, .first = 3});
  auto shape = small.shape();
  shape.links[0].keys = shape.links[0].capacity = std::uint64_t{1} << 60;
  const std::vector<Bytes> tables = {small.links()[0].bytes()};
  Scalable<BlockBloom> full(*Scalable<BlockBloom>::View::over(tables, shape));
  const auto before = full.numbers();
  EXPECT_EQ(full.try_insert(1), Inserted::full);
  EXPECT_EQ(full.numbers(), before);
  EXPECT_FALSE(full.may_contain(1));
  EXPECT_THROW(full.insert(1), std::bad_alloc);
}

TEST(ScalableBloom, ComesBackFromNumbersAndBytes) {
  Scalable<Bloom> filter(Growth{.fpr = 1e-4, .factor = 3, .spread = 2, .first = 10}, Hash(9));
  for (std::uint64_t i = 0; i < 3000; ++i) filter.insert(i);
  using Shape = Scalable<Bloom>::Shape;
  const auto numbers = filter.numbers();
  const auto shape = Shape::from(Kind::classic, numbers);
  ASSERT_TRUE(shape) << shape.error().detail;
  EXPECT_EQ(*shape, filter.shape());
  std::vector<Bytes> tables;
  for (const auto& link : filter.links()) tables.push_back(link.bytes());
  const auto view = Scalable<Bloom>::View::over(tables, *shape, Hash(9));
  ASSERT_TRUE(view);
  Scalable<Bloom> copy(*view);
  Scalable<Bloom> moved = std::move(copy);
  const Scalable<Bloom> again = moved;
  moved.insert(std::uint64_t{6000});  // does not affect the copy
  for (std::uint64_t i = 0; i < 6000; ++i) {
    EXPECT_EQ(view->may_contain(i), filter.may_contain(i));
    EXPECT_EQ(again.may_contain(i), filter.may_contain(i));
  }
  EXPECT_EQ(again.numbers(), numbers);

  // The numbers of a file are not trusted.
  const auto refused = [&](std::size_t at, std::uint64_t value) {
    auto bad = numbers;
    bad[at] = value;
    return !Shape::from(Kind::classic, bad);
  };
  EXPECT_TRUE(refused(0, 2));
  for (const std::size_t at : {1, 2, 3}) {
    for (const double x : {0.0, -1.0, std::nan(""), HUGE_VAL}) {
      EXPECT_TRUE(refused(at, std::bit_cast<std::uint64_t>(x))) << at << " " << x;
    }
  }
  EXPECT_TRUE(refused(4, 0));
  for (const std::uint64_t links : {std::uint64_t{0}, std::uint64_t{1}, numbers[5] + 1, UINT64_MAX, UINT64_MAX / 4 + 2})
    EXPECT_TRUE(refused(5, links));
  EXPECT_TRUE(refused(6, 0));           // bits
  EXPECT_TRUE(refused(7, 31));          // probes
  EXPECT_TRUE(refused(8, UINT64_MAX));  // keys
  EXPECT_TRUE(refused(9, 0));           // capacity
  for (std::size_t size = 0; size < numbers.size(); ++size)
    EXPECT_FALSE(Shape::from(Kind::classic, std::span(numbers).first(size)));
  tables.pop_back();
  EXPECT_FALSE(Scalable<Bloom>::View::over(tables, *shape, Hash(9)));
  tables.emplace_back();
  EXPECT_FALSE(Scalable<Bloom>::View::over(tables, *shape, Hash(9)));
}

TEST(ScalableBloom, UnionHoldsBothAndGrowsOn) {
  ScalableBloom a(Growth{.fpr = 0.01, .first = 50});
  ScalableBloom b(Growth{.fpr = 0.01, .first = 70});
  for (std::uint64_t i = 0; i < 1000; ++i) a.insert(i), b.insert(i + 10'000);
  ASSERT_TRUE(a.merge(b));
  for (std::uint64_t i = 0; i < 1000; ++i) a.insert(i + 20'000);
  std::uint64_t missing = 0;
  for (std::uint64_t i = 0; i < 1000; ++i)
    missing += !a.may_contain(i) + !a.may_contain(i + 10'000) + !a.may_contain(i + 20'000);
  EXPECT_EQ(missing, 0u);
  EXPECT_LE(a.fpr(), 0.02);
  ASSERT_TRUE(a.merge(a));
  EXPECT_FALSE(a.merge(ScalableBloom(Growth{}, Hash(1))));
}

// With any factor above 1 every link is larger than the last, however small the first one: {1.5, first 1} stayed at one
// key per link, and after 4096 keys there was no link left.
TEST(ScalableBloom, EveryLinkIsLargerThanTheLast) {
  for (const double factor : {1 + 0x1p-52, 1.0001, 1.1, 1.5, 1.99, 2.0, 3.7, 1024.0}) {
    const Growth growth{.factor = factor};
    for (std::uint64_t keys = 1; keys < std::uint64_t{1} << 62; keys += 1 + keys / 7) {
      ASSERT_GT(growth.after(keys), keys) << factor;
      ASSERT_LE(growth.after(keys), std::uint64_t{1} << 62) << factor;
    }
  }
  EXPECT_EQ(Growth{.factor = 1}.after(7), 7u);
  for (const std::uint64_t first : {1, 2, 3}) {
    ScalableBloom filter(Growth{.factor = 1.5, .first = first});
    for (std::uint64_t i = 0; i < 20'000; ++i) filter.insert(i);
    EXPECT_LE(filter.links().size(), 25u);
    for (std::uint64_t i = 0; i < 20'000; ++i) ASSERT_TRUE(filter.may_contain(i));
  }
}

// As an owner of one table (flat_test): every answer is *perhaps*, keys change nothing, it may be copied and assigned
// to.
TYPED_TEST(ScalableOf, MovedFromAnswersPerhaps) {
  using H = typename TypeParam::hasher_type;
  const H hasher = hasher_of<H>(3);
  Scalable<TypeParam> from(Growth{.fpr = 0.01, .first = 20}, hasher);
  for (std::uint64_t i = 0; i < 500; ++i) from.insert(i);
  Scalable<TypeParam> to = std::move(from);
  const auto expect_perhaps = [&](const Scalable<TypeParam>& filter) {
    for (const std::size_t count : {1u, 63u, 64u, 65u, 1024u, 3000u}) {
      const auto digests = random_digests(hasher, 9, count);
      std::vector<std::uint64_t> keys(count);
      std::vector<std::uint64_t> answers(count / 64 + 1);
      filter.may_contain(std::span<const Digest<H>>(digests), answers);
      EXPECT_EQ(count_ones(answers), count);
      filter.may_contain(std::span<const std::uint64_t>(keys), answers);
      EXPECT_EQ(count_ones(answers), count);
      for (const auto d : digests) ASSERT_TRUE(filter.may_contain(d));
      filter.prefetch(digests[0]);
    }
    EXPECT_TRUE(filter.may_contain("a key"));
    EXPECT_TRUE(filter.hasher() == hasher);
    EXPECT_EQ(filter.fpr(), 1);
    EXPECT_EQ(filter.byte_size(), 0u);
  };
  expect_perhaps(from);  // NOLINT(bugprone-use-after-move)
  EXPECT_EQ(from.insert(std::uint64_t{7}), Inserted::present);
  EXPECT_EQ(from.try_insert("a key"), Inserted::present);
  const auto many = random_digests(hasher, 1, 3000);
  from.insert(std::span<const Digest<H>>(many));
  Scalable<TypeParam> copy = from;
  expect_perhaps(copy);
  EXPECT_FALSE(copy.merge(to));
  EXPECT_FALSE(to.merge(copy));
  expect_perhaps(from);
  from = std::move(to);
  expect_perhaps(to);  // NOLINT(bugprone-use-after-move)
  for (std::uint64_t i = 0; i < 500; ++i) EXPECT_TRUE(from.may_contain(i));
  EXPECT_LT(from.fpr(), 0.01);
  EXPECT_EQ(from.insert(std::uint64_t{1'000'000}), Inserted::added);
}

// The links of a temporary chain would dangle.
template <class F>
concept LendsLinks = requires(F&& filter) {
  std::forward<F>(filter).links();
};
static_assert(LendsLinks<ScalableBloom&> && !LendsLinks<ScalableBloom>);

}  // namespace
}  // namespace perhaps::test
