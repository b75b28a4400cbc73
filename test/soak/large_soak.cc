// Promise: 64 bits everywhere. A filter of 2^31 bits and one of 2^34 keep every key and the rate of their model, and
// positions continue beyond 2^32 lines. Would notice: a product or an index that is truncated to 32 bits, a rate that
// drifts with size.
//
// Needs about 5 GiB of memory and some minutes. Keys are random digests of seed 1, absent ones of seed 2; rates within
// 5 sigma (binomial, and the spread over lines where it matters).
#include <sys/mman.h>

#include <cinttypes>
#include <cmath>

#include "perhaps/algebra.h"
#include "perhaps/bulk.h"
#include "support/no_false_negatives.h"

namespace perhaps::test {
namespace {

constexpr std::uint64_t kChunk = 1 << 20;

// Calls `use` with digests [0, count) of the stream of `seed`, in chunks.
template <class Use>
void in_chunks(std::uint64_t seed, std::uint64_t count, Use use) {
  std::vector<Digest<Hash>> digests(kChunk);
  for (std::uint64_t from = 0; from < count; from += kChunk) {
    const std::uint64_t size = std::min(kChunk, count - from);
    for (std::uint64_t i = 0; i < size; ++i) digests[i] = Digest<Hash>::made_by(Hash(), Stream{seed}.at(from + i));
    use(std::span<const Digest<Hash>>(digests).first(size));
  }
}

template <class F>
std::uint64_t perhaps_of(const F& filter, std::uint64_t seed, std::uint64_t count) {
  std::vector<std::uint64_t> answers(kChunk / kBatch);
  std::uint64_t perhaps = 0;
  in_chunks(seed, count, [&](std::span<const Digest<Hash>> digests) {
    filter.may_contain(digests, std::span(answers).first((digests.size() + kBatch - 1) / kBatch));
    perhaps += count_ones(std::span(answers).first((digests.size() + kBatch - 1) / kBatch));
  });
  return perhaps;
}

template <class F>
void fill_and_query(typename F::Shape shape, std::uint64_t keys, std::uint64_t queries) {
  F filter(shape);
  in_chunks(1, keys, [&](std::span<const Digest<Hash>> digests) { filter.insert(digests); });
  EXPECT_EQ(perhaps_of(filter, 1, keys), keys) << "false negatives";
  const double measured = static_cast<double>(perhaps_of(filter, 2, queries)) / static_cast<double>(queries);
  const double model = shape.fpr(static_cast<double>(keys));
  const double sigma = std::sqrt(model * (1 - model) / static_cast<double>(queries));
  std::printf("  %-8s 2^%.3f bits, %" PRIu64 " keys, %" PRIu64 " queries: model %.5e measured %.5e z %+.1f\n",
              std::string(F::layout::family).c_str(), std::log2(static_cast<double>(shape.bytes()) * 8), keys, queries,
              model, measured, (measured - model) / sigma);
  // Over 2^22 lines and more their own spread is below 0.1 % of the rate.
  EXPECT_NEAR(measured, model, 5 * sigma + 0.001 * model);
}

template <class F>
struct Large : ::testing::Test {};
TYPED_TEST_SUITE(Large, Families, FamilyNames);

TYPED_TEST(Large, KeepsItsKeysAndItsRateAtEverySize) {
  using Shape = typename TypeParam::Shape;
  for (const std::uint64_t bits :
       {std::uint64_t{1} << 31, std::uint64_t{1} << 32, (std::uint64_t{1} << 32) + 64, std::uint64_t{1} << 34}) {
    constexpr auto units = TypeParam::layout::fold_units();
    Shape shape;
    shape.*units.count = (bits + units.bits - 1) / units.bits;
    if constexpr (std::same_as<Shape, BloomShape>) shape.probes = 4;
    // Dense enough for tens of thousands of false positives: 10 bits per key, and 16 with a billion keys.
    const std::uint64_t keys = bits / (bits < std::uint64_t{1} << 33 ? 10 : 16);
    fill_and_query<TypeParam>(shape, keys, 100'000'000);
  }
}

TYPED_TEST(Large, AHundredMillionKeysByTwoThreads) {
  const auto shape = TypeParam::Shape::for_keys({.keys = 100'000'000, .fpr = 0.01});
  std::vector<std::uint64_t> keys(100'000'000);
  for (const IntegerPattern& pattern : kIntegerPatterns) {
    for (std::uint64_t i = 0; i < keys.size(); ++i) keys[i] = pattern.key(i);
    TypeParam filter(shape);
    insert_parallel(filter, std::span<const std::uint64_t>(keys), 2);
    std::vector<std::uint64_t> answers((keys.size() + kBatch - 1) / kBatch);
    with_every_kernel([&](const kernel::InstructionSet& row) {
      filter.may_contain(std::span<const std::uint64_t>(keys), std::span(answers));
      EXPECT_EQ(count_ones(answers), keys.size()) << pattern.name << ", " << row.name;
    });
  }
}

// Needs no memory: positions stay in range, keep their order, and halve, far beyond 2^32 units.
TEST(LargeArithmetic, LinesPastTwoToTheThirtyTwo) {
  for (const std::uint64_t lines : {(std::uint64_t{1} << 32) + 2, std::uint64_t{1} << 33,
                                    std::uint64_t{6'000'000'000'000}, std::uint64_t{1} << 54}) {
    const LineShape whole{lines, 8};
    const LineShape half{lines / 2, 8};
    std::vector<std::uint64_t> places;
    for (std::uint64_t i = 0; i < 100'000; ++i) {
      const std::uint64_t h = Stream{3}.at(i);
      const std::uint64_t line = LineLayout::line_of(whole, h);
      ASSERT_LT(line, lines);
      ASSERT_EQ(LineLayout::line_of(half, h), line / 2);
      ASSERT_EQ(line, positions(whole, h)[0] / 512);
      places.push_back(line);
    }
    // They reach the upper half: 100,000 fair coins, 5 sigma.
    const auto upper = std::ranges::count_if(places, [&](std::uint64_t line) { return line >= lines / 2; });
    EXPECT_NEAR(static_cast<double>(upper), 50'000, 5 * 158);
  }
}

// A sparse mapping of more than 2^32 lines: only the pages that a few thousand keys touch exist.
TEST(LargeArithmetic, ATableOfMoreThanTwoToTheThirtyTwoLines) {
  const LineShape shape{.lines = (std::uint64_t{1} << 32) + 12'345, .probes = 8};
  void* mapped =
      mmap(nullptr, shape.bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) GTEST_SKIP() << "the kernel does not map " << shape.bytes() << " bytes";
  madvise(mapped, shape.bytes(), MADV_NOHUGEPAGE);
  const std::span<std::byte> table(static_cast<std::byte*>(mapped), shape.bytes());
  {
    auto span = *LineBloomSpan::over(table, shape);
    const auto shared = *LineBloomShared::over(table, shape);
    const auto digests = random_digests(Hash(), 5, 6000);
    const auto in = std::span<const Digest<Hash>>(digests).first(3000);
    const auto out = std::span<const Digest<Hash>>(digests).last(3000);
    std::vector<std::uint64_t> answers(3000 / kBatch + 1);
    span.insert(in);
    std::uint64_t past = 0;
    with_every_kernel([&](const kernel::InstructionSet& row) {
      span.may_contain(in, std::span(answers));
      EXPECT_EQ(count_ones(answers), 3000u) << row.name;
      span.may_contain(out, std::span(answers));
      EXPECT_EQ(count_ones(answers), 0u) << row.name;
    });
    for (const auto& d : in) {
      EXPECT_TRUE(span.may_contain(d) && shared.may_contain(d));
      for (const std::uint64_t p : positions(shape, d.word())) {
        EXPECT_TRUE(bit_at(table, p));
        past += p >= std::uint64_t{1} << 40;
      }
    }
    EXPECT_GT(past, 10'000u);
  }
  munmap(mapped, shape.bytes());
}

}  // namespace
}  // namespace perhaps::test
