// Promise: a growing filter starts with nothing, takes as many keys as come, misses none of them and keeps its rate at
// every moment, within 18 bits per key at 1 % from 8192 keys on; it erases, counts and merges; no insert moves more
// than one part or copies the table; its bytes are the same whatever the instruction set, and no bytes make it read out
// of range. Would notice: a fingerprint that loses its place or a bit when a part is moved, a plan that spends more
// than the rate, a copy that is not made, memory that is copied to grow.
#include "perhaps/growing.h"

#include <sys/resource.h>
#include <unistd.h>

#include "support/growing.h"
#include "support/kernels.h"
#include "support/statistics.h"

namespace perhaps::test {
namespace {

using L = GrowingLayout;

double measured_rate(const Growing& filter, std::uint64_t seed, std::uint64_t queries) {
  std::vector<Digest<Hash>> absent(queries);
  for (std::uint64_t i = 0; i < queries; ++i) absent[i] = Hash()(Stream{seed}.at(i));
  std::vector<std::uint64_t> answers(queries / kBatch + 1);
  filter.may_contain(std::span<const Digest<Hash>>(absent), std::span(answers));
  return static_cast<double>(count_ones(answers)) / static_cast<double>(queries);
}

// At every power of two and half-way. 50,000 queries; one sigma of 1 % is 0.045 %.
TEST(Growing, NoKeyIsMissedAndTheRateHoldsAtEveryMoment) {
  for (const double fpr : {0.3, 0.01, 1e-4}) {
    SCOPED_TRACE(fpr);
    constexpr std::uint64_t kKeys = 100'000;
    Growing filter(Request{.keys = 0, .fpr = fpr});
    std::uint64_t next = 48;
    for (std::uint64_t n = 1; n <= kKeys; ++n) {
      ASSERT_NE(filter.insert(Stream{1}.at(n)), Inserted::full) << n;
      if (n >= 1000 && fpr == 0.01) {
        ASSERT_LE(static_cast<double>(filter.byte_size()) * 8, (n < 8192 ? 23.0 : 18.0) * static_cast<double>(n)) << n;
      }
      if (n != next && n != kKeys) continue;
      next = std::has_single_bit(next) ? next / 2 * 3 : next / 3 * 4;
      SCOPED_TRACE(n);
      for (std::uint64_t i = 1; i <= n; ++i) ASSERT_TRUE(filter.may_contain(Stream{1}.at(i))) << i;
      ASSERT_TRUE(L::verify(filter.shape(), filter.bytes()));
      const Condition now = condition_of(filter.shape(), filter.bytes());
      EXPECT_LE(now.fpr, fpr);
      EXPECT_LE(now.fpr, filter.shape().fpr(static_cast<double>(n)) * 1.02);
      EXPECT_EQ(now.keys, static_cast<double>(n));
      const double sigma = std::sqrt(now.fpr / 50'000);
      EXPECT_NEAR(measured_rate(filter, 2, 50'000), now.fpr, kSigmas * sigma + 1e-6);
    }
  }
}

TEST(Growing, ThePlanStaysBelowTheRateForAnyNumberOfKeys) {
  for (const double fpr : {0.5, 0.1, 0.01, 1e-3, 1e-6}) {
    for (const std::uint64_t keys : {0u, 1u, 1000u, 1'000'000u}) {
      const GrowingShape shape = GrowingShape::for_keys({.keys = keys, .fpr = fpr});
      ASSERT_TRUE(shape.valid());
      EXPECT_GE(shape.capacity(), keys);
      for (double n = 1; n < 1e11; n *= 1.3) EXPECT_LE(shape.fpr(n), fpr * 1.0001) << n << " from " << keys;
    }
  }
  // Step by step: what a file stores makes the same shape, and the next step is larger.
  GrowingShape shape = GrowingShape::for_keys({.keys = 0, .fpr = 0.01});
  std::uint32_t steps = 0;
  for (std::optional<GrowingShape> next = shape; next; next = shape.next(), ++steps) {
    EXPECT_GE(next->capacity() + 1, shape.capacity());
    shape = *next;
    const auto again = GrowingShape::from(shape.numbers());
    ASSERT_TRUE(again) << again.error().detail;
    ASSERT_EQ(*again, shape);
    const double bits = static_cast<double>(shape.bytes()) * 8 / static_cast<double>(shape.capacity());
    if (shape.capacity() >= 1000 && shape.capacity() < 4'000'000'000) {
      ASSERT_LE(bits, shape.capacity() < 8192 ? 22.5 : 17.7) << shape.step;
    }
  }
  EXPECT_GT(steps, 500u);
}

TEST(Growing, NumbersThatMakeNoShapeAreRefused) {
  const std::uint64_t rate = GrowingShape{}.rate;
  using Numbers = std::vector<std::uint64_t>;
  for (const Numbers& numbers : {Numbers{}, Numbers{0, 0}, Numbers{0, 704, rate}, Numbers{705, 703, rate},
                                 Numbers{5, 3, rate}, Numbers{0, 0, 0}, Numbers{0, 0, rate << 7}}) {
    EXPECT_FALSE(GrowingShape::from(numbers));
  }
}

// Above 32,768 buckets there are several parts.
TEST(Growing, NoInsertMovesMoreThanOnePart) {
  Growing filter(Request{.keys = 0, .fpr = 0.01});
  std::uint64_t moves = 0;
  for (std::uint64_t n = 0; n < 150'000; ++n) {
    const std::uint64_t before = waiting_parts(filter);
    const std::uint32_t step = filter.shape().step;
    ASSERT_NE(filter.insert(n), Inserted::full);
    const std::uint64_t after = waiting_parts(filter);
    if (filter.shape().step == step) {
      ASSERT_LE(before - after, 1u) << n;
      moves += before - after;
    } else {
      ASSERT_EQ(before, 0u) << n;
      ASSERT_GE(after + 1, filter.shape().grid_before().parts) << n;
    }
  }
  EXPECT_GT(moves, 50u);
  EXPECT_GE(filter.shape().grid().parts, 4u);
}

// How much memory this thread was given so far, page by page: every page was zeroed, or filled from another one.
std::uint64_t bytes_given() {
  rusage now;
  getrusage(RUSAGE_THREAD, &now);
  return static_cast<std::uint64_t>(now.ru_minflt) * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

// Larger memory is more pages, not a copy of the table: to 7 MB, past the size from which filters ask for huge pages.
// A part and its copy are 64 KiB each, the largest table that is copied has 256.
TEST(Growing, NoInsertTakesOrCopiesMuchMemory) {
  Growing filter(Request{.keys = 0, .fpr = 0.01});
  std::uint64_t before = bytes_given();
  std::uint64_t most = 0;
  for (std::uint64_t n = 0; n < 3'500'000; ++n) {
    ASSERT_NE(filter.insert(n), Inserted::full);
    const std::uint64_t now = bytes_given();
    most = std::max(most, now - before);
    ASSERT_LE(now - before, std::uint64_t{512} << 10) << n << " keys, " << filter.byte_size() << " bytes";
    before = now;
  }
  RecordProperty("most_kib", static_cast<int>(most >> 10));
  EXPECT_GT(filter.byte_size(), Memory::kHugeFrom + (1 << 20));
}

TEST(Growing, AgreesWithAModel) {
  for (const double fpr : {0.7, 0.2, 0.01}) {
    GrowingModel model(Request{.keys = 0, .fpr = fpr}, 3);
    ASSERT_NO_FATAL_FAILURE(model.run(60'000, 7'919));
  }
  // Fingerprints of few bits are used up after as many doublings: from 15,000 keys on.
  GrowingModel short_ones(Request{.keys = 1000, .fpr = 0.2}, 3);
  ASSERT_NO_FATAL_FAILURE(short_ones.run(60'000, 7'919));
  GrowingModel sized(Request{.keys = 40'000, .fpr = 0.01}, 4);
  ASSERT_NO_FATAL_FAILURE(sized.run(20'000, 5'000));
}

TEST(Growing, FingerprintsThatAreUsedUpAreCopied) {
  Growing filter(Request{.keys = 1000, .fpr = 0.2});
  for (std::uint64_t n = 0; n < 80'000; ++n) ASSERT_NE(filter.insert(n), Inserted::full);
  EXPECT_GT(detail::load<std::uint64_t>(filter.bytes().data() + 8), filter.keys());
  for (std::uint64_t n = 0; n < 80'000; ++n) ASSERT_TRUE(filter.may_contain(n)) << n;
}

TEST(Growing, EveryKernelMakesTheSameBytesAndAnswers) {
  std::vector<std::uint64_t> keys(70'000);
  for (std::size_t i = 0; i < keys.size(); ++i) keys[i] = Stream{5}.at(i);
  std::vector<std::byte> expected;
  with_every_kernel([&](const kernel::InstructionSet& row) {
    SCOPED_TRACE(row.name);
    Growing filter(Request{.keys = 0, .fpr = 0.01});
    ASSERT_EQ(filter.insert(std::span<const std::uint64_t>(keys)), keys.size());
    for (std::size_t i = 0; i < keys.size(); i += 7) ASSERT_EQ(filter.erase(keys[i]), Erased::removed);
    const Bytes bytes = filter.bytes();
    if (expected.empty()) expected.assign(bytes.begin(), bytes.end());
    EXPECT_TRUE(same_bytes(bytes, expected));
    std::vector<std::uint64_t> queries(10'007);
    for (std::size_t i = 0; i < queries.size(); ++i) queries[i] = i % 2 == 0 ? keys[i] : Stream{6}.at(i);
    Unaligned copy(bytes);
    const GrowingView view = *GrowingView::over(copy.bytes(), filter.shape());
    std::vector<std::uint64_t> answers(queries.size() / kBatch + 1);
    filter.may_contain(std::span<const std::uint64_t>(queries), std::span(answers));
    for (std::size_t i = 0; i < queries.size(); ++i) {
      ASSERT_EQ(answers[i / 64] >> i % 64 & 1, std::uint64_t{view.may_contain(queries[i])}) << i;
    }
  });
}

TEST(Growing, CopiesOfOneKeyDoNotTakeAllMemory) {
  Growing filter(Request{.keys = 0, .fpr = 0.01});
  for (std::uint64_t n = 0; n < 5000; ++n) ASSERT_NE(filter.insert(n), Inserted::full);
  std::uint64_t copies = 0;
  while (copies < 10'000 && filter.insert(std::uint64_t{7}) != Inserted::full) ++copies;
  EXPECT_GE(copies, 300u);
  EXPECT_LE(copies, 1025u);
  EXPECT_LE(filter.byte_size(), 20'000u);
  EXPECT_NE(filter.insert(std::uint64_t{1'000'000}), Inserted::full) << "other keys still go in";
  EXPECT_GE(count(filter, Hash()(std::uint64_t{7})), copies);
  for (std::uint64_t i = 0; i <= copies; ++i) ASSERT_EQ(filter.erase(std::uint64_t{7}), Erased::removed);
  EXPECT_TRUE(L::verify(filter.shape(), filter.bytes()));
}

TEST(Growing, MergesOfDifferentAges) {
  for (const std::uint64_t small : {0u, 10u, 3000u}) {
    Growing old(Request{.keys = 0, .fpr = 0.05});
    Growing large(Request{.keys = 0, .fpr = 0.01});
    for (std::uint64_t n = 0; n < small; ++n) ASSERT_NE(old.insert(n), Inserted::full);
    for (std::uint64_t n = 100'000; n < 180'000; ++n) ASSERT_NE(large.insert(n), Inserted::full);
    const double rates = condition_of(old.shape(), old.bytes()).fpr + condition_of(large.shape(), large.bytes()).fpr;
    for (const bool first : {false, true}) {
      auto both = first ? merge(old.view(), large.view()) : merge(large.view(), old.view());
      ASSERT_TRUE(both) << both.error().detail;
      EXPECT_TRUE(L::verify(both->shape(), both->bytes()));
      EXPECT_EQ(both->keys(), small + 80'000);
      EXPECT_LE(condition_of(both->shape(), both->bytes()).fpr, rates * 1.01);
      for (std::uint64_t n = 0; n < small; ++n) ASSERT_TRUE(both->may_contain(n)) << n;
      for (std::uint64_t n = 100'000; n < 180'000; n += 3) ASSERT_TRUE(both->may_contain(n)) << n;
      for (std::uint64_t n = 200'000; n < 220'000; ++n) ASSERT_NE(both->insert(n), Inserted::full);
      for (std::uint64_t n = 100'000; n < 180'000; n += 3) ASSERT_TRUE(both->may_contain(n)) << n;
    }
  }
  const Growing one(Request{.keys = 0, .fpr = 0.01});
  const Growing other(Request{.keys = 0, .fpr = 0.01}, Hash(9));
  EXPECT_EQ(merge(one.view(), other.view()).error().code, Errc::mismatch);
}

// The sanitizers check that nothing is read or written out of range.
TEST(Growing, BytesThatContradictThemselvesAreHarmless) {
  std::mt19937_64 random(8);
  for (const std::uint64_t keys : {20u, 900u, 40'000u}) {
    Growing sound(Request{.keys = 0, .fpr = 0.05});
    for (std::uint64_t n = 0; n < keys; ++n) ASSERT_NE(sound.insert(n), Inserted::full);
    for (int trial = 0; trial < (keys > 1000 ? 12 : 150); ++trial) {
      std::vector<std::byte> table(sound.bytes().begin(), sound.bytes().end());
      const bool everywhere = trial % 3 == 0;
      const std::uint64_t damaged = everywhere ? table.size() / 2 : 1 + random() % 20;
      for (std::uint64_t i = 0; i < damaged; ++i) {
        table[(trial % 2 == 0 ? 64 : 0) + random() % (table.size() - 64)] = static_cast<std::byte>(random() & 0xff);
      }
      auto view = GrowingView::over(table, sound.shape());
      if (!view) continue;
      (void)L::verify(view->shape(), view->bytes());
      (void)condition_of(view->shape(), view->bytes());
      Growing copy(*view);
      for (std::uint64_t n = 0; n < 300; ++n) {
        (void)copy.may_contain(n * 77);
        (void)count(copy, Hash()(n));
        (void)copy.insert(n + keys);
        (void)copy.erase(n);
      }
      (void)merge(copy.view(), sound.view());
    }
  }
}

TEST(Growing, ADamagedTableIsNoticed) {
  Growing filter(Request{.keys = 0, .fpr = 0.01});
  for (std::uint64_t n = 0; n < 33'000; ++n) ASSERT_NE(filter.insert(n), Inserted::full);
  std::vector<std::byte> table(filter.bytes().begin(), filter.bytes().end());
  ASSERT_TRUE(L::verify(filter.shape(), table));
  std::mt19937_64 random(9);
  int noticed = 0;
  for (int trial = 0; trial < 100; ++trial) {
    const std::uint64_t bit = random() % (table.size() * 8);
    table[bit / 8] ^= std::byte{1} << static_cast<int>(bit % 8);
    noticed += !L::verify(filter.shape(), table);
    table[bit / 8] ^= std::byte{1} << static_cast<int>(bit % 8);
  }
  // A flipped bit of a fingerprint is another fingerprint, unless the order shows it.
  EXPECT_GE(noticed, 20);
}

TEST(Growing, ASpanIsFullWhenItsBytesAre) {
  const GrowingShape shape = GrowingShape::for_keys({.keys = 1000, .fpr = 0.01});
  std::vector<std::byte> bytes(shape.bytes());
  GrowingSpan span = *GrowingSpan::over(bytes, shape);
  std::uint64_t n = 0;
  while (n < 5000 && span.insert(n) != Inserted::full) ++n;
  EXPECT_GE(n, 1000u);
  EXPECT_LE(n, shape.capacity());
  for (std::uint64_t i = 0; i < n; ++i) ASSERT_TRUE(span.may_contain(i));
}

}  // namespace
}  // namespace perhaps::test
