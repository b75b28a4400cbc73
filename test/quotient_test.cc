// Promise: a quotient filter is a sorted multiset of fingerprints and nothing else: after any inserts, erases, merges,
// resizes or builds, it holds exactly the fingerprints of a std::multiset, its bytes depend on these alone, and no
// bytes make it read out of range. Would notice: a spill, run end or slot that is off by one, by comparing contents,
// bytes and a full verification with the model; seeds are fixed and printed on failure.
#include "perhaps/quotient.h"

#include "perhaps/any_filter.h"
#include "support/quotient.h"
#include "support/statistics.h"

namespace perhaps::test {
namespace {

using detail::isa::Portable;
using L = QuotientLayout;

std::vector<Digest<Hash>> some_digests(std::uint64_t seed, std::uint64_t count) {
  return random_digests(Hash(), seed, count);
}

TEST(QuotientBits, SelectAndPopcountAgreeWithALoop) {
  using Bits = detail::isa::WordBits<Portable>;
  for (std::uint64_t i = 0; i < 3000; ++i) {
    std::uint64_t word = Stream{1}.at(i);
    if (i % 3 == 1) word &= Stream{2}.at(i) & Stream{3}.at(i);
    if (i % 3 == 2) word |= Stream{2}.at(i) | Stream{3}.at(i);
    if (i < 64) word = std::uint64_t{1} << i;
    if (i == 64) word = ~std::uint64_t{0};
    std::uint64_t rank = 0;
    for (std::uint64_t bit = 0; bit < 64; ++bit) {
      if ((word >> bit & 1) == 0) continue;
      ASSERT_EQ(Bits::select(word, rank++), bit) << word;
    }
    ASSERT_EQ(Bits::popcount(word), rank);
  }
}

TEST(Quotient, NoFalseNegatives) {
  for (const double fpr : {0.3, 0.01, 1e-3, 1e-6, 1e-12}) {
    for (const std::uint64_t keys : {1u, 2u, 10u, 60u, 64u, 65u, 100u, 1000u, 30'000u}) {
      SCOPED_TRACE(std::to_string(keys) + " keys at " + std::to_string(fpr));
      Quotient filter(Request{.keys = keys, .fpr = fpr});
      const auto digests = some_digests(keys, keys);
      ASSERT_EQ(filter.insert(std::span<const Digest<Hash>>(digests)), keys);
      EXPECT_EQ(filter.keys(), keys);
      std::vector<std::uint64_t> answers(keys / kBatch + 1);
      filter.may_contain(std::span<const Digest<Hash>>(digests), std::span(answers));
      EXPECT_EQ(count_ones(answers), keys);
      Unaligned copy(filter.bytes());
      const QuotientView unaligned = *QuotientView::over(copy.bytes(), filter.shape());
      for (const auto& d : digests) {
        ASSERT_TRUE(filter.may_contain(d));
        ASSERT_TRUE(unaligned.may_contain<Portable>(d));
        ASSERT_GE(count(filter, d), 1u);
      }
      EXPECT_TRUE(L::verify(filter.shape(), filter.bytes()));
    }
  }
}

TEST(Quotient, ColumnsAnswerAsSingleLookups) {
  Quotient filter(QuotientShape{.buckets = 5000, .remainder_bits = 3, .guard_bits = 2});
  for (const auto& d : some_digests(1, 4700)) ASSERT_NE(filter.insert(d), Inserted::full);
  std::vector<std::uint64_t> queries(10'007);
  for (std::size_t i = 0; i < queries.size(); ++i) queries[i] = Stream{2}.at(i);
  with_every_kernel([&](const kernel::InstructionSet& row) {
    for (const bool ahead : {false, true}) {
      std::vector<std::uint64_t> answers(queries.size() / kBatch + 1, ~std::uint64_t{0});
      detail::query_batch<L>(filter.shape(), filter.bytes().data(),
                             {.words = queries.data(), .count = queries.size(), .ahead = ahead}, answers.data());
      for (std::size_t i = 0; i < answers.size() * kBatch; ++i) {
        const bool wanted = i < queries.size() && filter.may_contain(digest_with(Hash(), queries[i]));
        ASSERT_EQ(answers[i / 64] >> i % 64 & 1, std::uint64_t{wanted}) << i << ", " << row.name;
      }
    }
  });
}

// 20 to 400 filters per row with 40,000 queries each, z = 5: sigma from the variance over filters.
TEST(Quotient, FprMatchesTheModel) {
  struct Row {
    QuotientShape shape;
    double load;
    std::uint64_t filters;
  };
  for (const Row& row :
       {Row{{1000, 3, 0}, 0.95, 400}, Row{{1000, 7, 4}, 0.5, 400}, Row{{65'536, 6, 0}, 0.95, 30},
        Row{{77'777, 8, 3}, 0.95, 60}, Row{{77'777, 1, 0}, 0.9, 20}, Row{{300'000, 10, 0}, 0.95, 20}}) {
    const auto keys = static_cast<std::uint64_t>(row.load * static_cast<double>(row.shape.buckets));
    Mean rate;
    constexpr std::uint64_t kQueries = 40'000;
    std::vector<std::uint64_t> answers(kQueries / kBatch);
    for (std::uint64_t seed = 1; seed <= row.filters; ++seed) {
      Quotient filter(row.shape, Hash(seed));
      for (std::uint64_t i = 0; i < keys; ++i) ASSERT_NE(filter.insert(i), Inserted::full);
      std::vector<std::uint64_t> numbers(kQueries);
      for (std::uint64_t i = 0; i < kQueries; ++i) numbers[i] = keys + i;
      filter.may_contain(std::span<const std::uint64_t>(numbers), std::span(answers));
      rate.add(static_cast<double>(count_ones(answers)) / kQueries);
    }
    const double model = row.shape.fpr(static_cast<double>(keys));
    std::printf("  %8llu buckets r %2u g %u load %.2f   model %.4e   measured %.4e   z %+.1f\n",
                static_cast<unsigned long long>(row.shape.buckets), row.shape.remainder_bits, row.shape.guard_bits,
                row.load, model, rate.value(), (rate.value() - model) / rate.error());
    EXPECT_NEAR(rate.value(), model, kSigmas * rate.error() + 1e-9);
  }
}

TEST(Quotient, RegularKeysKeepTheModel) {
  const QuotientShape shape{.buckets = 50'000, .remainder_bits = 5, .guard_bits = 0};
  for (const IntegerPattern& pattern : kIntegerPatterns) {
    if (std::string_view(pattern.name) == "duplicates") continue;
    Mean rate;
    for (std::uint64_t seed = 1; seed <= 12; ++seed) {
      Quotient filter(shape, Hash(seed));
      for (std::uint64_t i = 0; i < 47'000; ++i) ASSERT_NE(filter.insert(pattern.key(i)), Inserted::full);
      std::uint64_t hits = 0;
      for (std::uint64_t i = 0; i < 40'000; ++i) hits += filter.may_contain(pattern.key(47'000 + i));
      rate.add(static_cast<double>(hits) / 40'000);
    }
    EXPECT_NEAR(rate.value(), shape.fpr(47'000), kSigmas * rate.error()) << pattern.name;
  }
}

// Small tables, so that clusters, spills and the end of the table occur often; many duplicates, so that spills exceed
// 255 and fall again.
TEST(Quotient, EqualsAMultisetUnderRandomOperations) {
  std::uint64_t turn = 0;
  const kernel::InstructionSet& before = kernel::active();
  const auto rows = kernel::instruction_sets();
  for (const std::uint64_t buckets : {1u, 7u, 64u, 100u, 500u, 1280u, 5000u}) {
    for (const auto& [remainder, guard] : {std::pair{1u, 0u}, {5u, 0u}, {8u, 0u}, {9u, 4u}, {31u, 7u}, {48u, 8u}}) {
      for (const std::uint64_t distinct : {buckets / 50 + 2, 3 * buckets + 5}) {
        const QuotientShape shape{.buckets = buckets, .remainder_bits = remainder, .guard_bits = guard};
        if (!shape.valid()) continue;  // 56 bits are allowed for at most 128 buckets
        kernel::use(*rows[turn % rows.size()]);
        QuotientModel model(shape, 100 + turn++, distinct);
        ASSERT_NO_FATAL_FAILURE(model.run(12'000, 4000));
      }
    }
  }
  kernel::use(before);
}

TEST(Quotient, EraseAllGivesTheEmptyBytes) {
  for (const std::uint32_t guard : {0u, 5u}) {
    Quotient filter(QuotientShape{.buckets = 20'000, .remainder_bits = 7, .guard_bits = guard});
    const Quotient empty(filter.shape());
    auto digests = some_digests(5, 19'000);
    ASSERT_EQ(filter.insert(std::span<const Digest<Hash>>(digests)), digests.size());
    std::shuffle(digests.begin(), digests.end(), std::mt19937_64(1));
    for (const auto& d : digests) ASSERT_EQ(filter.erase(d), Erased::removed);
    EXPECT_TRUE(same_bytes(filter.bytes(), empty.bytes()));
    EXPECT_EQ(filter.erase(digests[0]), Erased::absent);
    EXPECT_FALSE(filter.needs_rebuild());
  }
}

TEST(Quotient, FullLeavesTheBytesUnchanged) {
  for (const std::uint64_t buckets : {1u, 30u, 1000u, 4000u}) {
    Quotient filter(QuotientShape{.buckets = buckets, .remainder_bits = 6, .guard_bits = 0});
    const auto digests = some_digests(9, 2 * buckets + 10);
    const std::size_t taken = filter.insert(std::span<const Digest<Hash>>(digests));
    EXPECT_EQ(taken, filter.shape().capacity());
    const Quotient before = filter;
    EXPECT_EQ(filter.insert(digests[taken]), Inserted::full);
    EXPECT_TRUE(same_bytes(before.bytes(), filter.bytes()));
    for (std::size_t i = 0; i < taken; ++i) ASSERT_TRUE(filter.may_contain(digests[i]));
  }
}

// Many equal keys at the end of the table run out of slots before they run out of capacity.
TEST(Quotient, FullAtTheEndOfTheTable) {
  const QuotientShape shape{.buckets = 2000, .remainder_bits = 8, .guard_bits = 0};
  Quotient filter(shape);
  const std::uint64_t top = shape.fingerprints() - 1;
  std::uint64_t stored = 0;
  while (detail::kernels().quotient_insert_one(shape, filter.writable_bytes().data(), top) != Inserted::full) ++stored;
  EXPECT_EQ(stored, shape.slots() - 1999);
  EXPECT_TRUE(L::verify(shape, filter.bytes()));
  const Quotient before = filter;
  EXPECT_EQ(detail::kernels().quotient_insert_one(shape, filter.writable_bytes().data(), top), Inserted::full);
  EXPECT_TRUE(same_bytes(before.bytes(), filter.bytes()));
  EXPECT_EQ(detail::kernels().quotient_insert_one(shape, filter.writable_bytes().data(), 0), Inserted::added);
  while (detail::kernels().quotient_erase_one(shape, filter.writable_bytes().data(), top) == Erased::removed) --stored;
  EXPECT_EQ(stored, 0u);
  EXPECT_EQ(filter.keys(), 1u);
  EXPECT_TRUE(L::verify(shape, filter.bytes()));
}

TEST(Quotient, BuildingEqualsInserting) {
  for (const std::uint64_t keys : {0u, 1u, 63u, 64u, 1000u, 50'000u}) {
    for (const std::uint32_t guard : {0u, 3u}) {
      const QuotientShape shape = QuotientShape::for_keys({.keys = keys, .fpr = 0.02, .guard_bits = guard});
      const auto digests = some_digests(3, keys);
      Quotient one_by_one(shape);
      ASSERT_EQ(one_by_one.insert(std::span<const Digest<Hash>>(digests)), keys);
      const auto built = build_quotient(shape, std::span<const Digest<Hash>>(digests), Hash());
      ASSERT_TRUE(built);
      EXPECT_TRUE(same_bytes(built->bytes(), one_by_one.bytes())) << keys;
    }
  }
  const auto many = some_digests(1, 100);
  EXPECT_FALSE(build_quotient(QuotientShape{.buckets = 50}, std::span<const Digest<Hash>>(many), Hash()));
}

TEST(Quotient, MergeIsTheMergeOfSortedLists) {
  for (const auto& [in_a, in_b] :
       {std::pair{0u, 0u}, {1u, 0u}, {0u, 9u}, {500u, 400u}, {9000u, 9000u}, {20'000u, 3u}}) {
    const QuotientShape shape{.buckets = 23'000, .remainder_bits = 7, .guard_bits = 2};
    Quotient a(shape), b(shape);
    for (const auto& d : some_digests(1, in_a)) ASSERT_NE(a.insert(d), Inserted::full);
    for (const auto& d : some_digests(1 + in_b % 2, in_b)) ASSERT_NE(b.insert(d), Inserted::full);
    auto wanted = contents(a.shape(), a.bytes());
    const auto more = contents(b.shape(), b.bytes());
    wanted.insert(wanted.end(), more.begin(), more.end());
    std::sort(wanted.begin(), wanted.end());
    for (const bool grow : {false, true}) {
      auto both = grow ? merge(a.view(), b.view(), *shape.grown_for(40'000)) : merge(a.view(), b.view());
      ASSERT_TRUE(both) << both.error().detail;
      EXPECT_EQ(contents(both->shape(), both->bytes()), wanted);
      EXPECT_TRUE(L::verify(both->shape(), both->bytes()));
      EXPECT_EQ(both->keys(), in_a + in_b);
    }
    // Shapes may differ as long as the fingerprints are equal.
    auto larger = resize(b.view(), {.buckets = 46'000, .remainder_bits = 6, .guard_bits = 2});
    ASSERT_TRUE(larger);
    auto mixed = merge(a.view(), larger->view());
    ASSERT_TRUE(mixed);
    EXPECT_EQ(contents(mixed->shape(), mixed->bytes()), wanted);
  }
}

TEST(Quotient, MergeRefusesWhatDoesNotFit) {
  const Quotient a(QuotientShape{.buckets = 100, .remainder_bits = 7});
  const Quotient b(QuotientShape{.buckets = 100, .remainder_bits = 8});
  const Quotient seeded(QuotientShape{.buckets = 100, .remainder_bits = 7}, Hash(1));
  EXPECT_EQ(merge(a.view(), b.view()).error().code, Errc::mismatch);
  EXPECT_EQ(merge(a.view(), seeded.view()).error().code, Errc::mismatch);
  Quotient small(QuotientShape{.buckets = 100, .remainder_bits = 1});
  for (const auto& d : some_digests(1, 90)) small.insert(d);
  const auto refused = merge(small.view(), small.view());
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().detail.find("FPR"), std::string::npos) << refused.error().detail;
  EXPECT_EQ(merge(small.view(), small.view(), small.shape()).error().code, Errc::mismatch);
}

// Copies of the last fingerprints need the spare slots at the end of the table. If both have many, the merger needs
// more than there are: then it takes a shape with more of them, and if there is none, says what is the matter. It used
// to say that a table contradicts itself.
TEST(Quotient, MergeOfCopiesAtTheEnd) {
  const auto with_copies = [](QuotientShape shape, std::uint64_t fingerprint, std::uint64_t copies) {
    Quotient filter(shape);
    for (std::uint64_t i = 0; i < copies; ++i) {
      EXPECT_NE(detail::kernels().quotient_insert_one(shape, filter.writable_bytes().data(), fingerprint),
                Inserted::full);
    }
    return filter;
  };
  const auto listed = [](const Quotient& filter) {
    std::vector<std::uint64_t> all;
    for_each_fingerprint(filter.view(), [&](std::uint64_t f) { all.push_back(f); });
    return all;
  };
  std::uint64_t grown = 0;
  std::uint64_t full = 0;
  for (const std::uint64_t buckets : {8, 64, 70, 200, 1024, 20'000}) {
    const QuotientShape shape{.buckets = buckets, .remainder_bits = 9};
    for (const std::uint64_t copies : {7, 40, 60, 100, 130, 200, 300}) {
      for (const std::uint64_t before_end : {1, 2, 700, 3000}) {
        if (copies > shape.capacity() || before_end > shape.fingerprints()) continue;
        if (copies > shape.slots() - buckets) continue;
        const auto a = with_copies(shape, shape.fingerprints() - before_end, copies);
        const auto b = with_copies(shape, shape.fingerprints() - 1, copies);
        auto expected = listed(a);
        const auto more = listed(b);
        expected.insert(expected.end(), more.begin(), more.end());
        std::sort(expected.begin(), expected.end());
        const auto both = merge(a.view(), b.view());
        if (both) {
          EXPECT_EQ(listed(*both), expected);
          EXPECT_TRUE(QuotientLayout::verify(both->shape(), both->bytes()));
          grown += both->shape().spare() > shape.spare();
        } else {
          EXPECT_EQ(both.error().code, Errc::full) << both.error().detail;
          EXPECT_NE(both.error().detail.find("pile up"), std::string::npos) << both.error().detail;
          EXPECT_GT(2 * copies, QuotientShape::kMaxSpare);
          ++full;
        }
        // A table that is given, and has too few.
        const auto larger = shape.grown_for(2 * copies);
        if (!larger) continue;
        const auto given = merge(a.view(), b.view(), *larger);
        if (given) {
          EXPECT_EQ(listed(*given), expected);
        }
        if (!given) {
          EXPECT_EQ(given.error().code, Errc::full) << given.error().detail;
        }
      }
    }
  }
  EXPECT_GT(grown, 0u);
  EXPECT_GT(full, 0u);
}

// At run time a quotient filter grows when it is full. Copies of a key at the end fill the spare slots, not the table:
// it must not grow without end.
TEST(Quotient, CopiesAtTheEndDoNotGrowItWithoutEnd) {
  const QuotientShape shape = QuotientShape::for_keys({.keys = 1000, .fpr = 1e-6});
  std::uint64_t last = 0;
  while (QuotientLayout::fingerprint_of(shape, Hash()(last).word()) >> shape.width() != shape.buckets - 1) ++last;
  auto filter = make_any(Kind::quotient, {.keys = 1000, .fpr = 1e-6}, Hash());
  ASSERT_TRUE(filter);
  const std::vector<std::uint64_t> copies(2000, Hash()(last).value);
  const std::size_t inserted = (*filter)->insert_digests(copies);
  EXPECT_GE(inserted, QuotientShape::kMaxSpare);
  EXPECT_LT(inserted, copies.size());
  EXPECT_LT((*filter)->byte_size(), 300'000u);
  EXPECT_NE((*filter)->digests()->may_contain(std::span(copies).first(1)), 0u);
}

TEST(Quotient, ResizeKeepsEverything) {
  const QuotientShape shape{.buckets = 5000, .remainder_bits = 9, .guard_bits = 3};
  Quotient filter(shape);
  const auto digests = some_digests(4, 4700);
  for (const auto& d : digests) ASSERT_NE(filter.insert(d), Inserted::full);
  const auto before = contents(shape, filter.bytes());
  for (const QuotientShape other : {QuotientShape{5000, 9, 3}, QuotientShape{10'000, 8, 3}, QuotientShape{40'000, 6, 3},
                                    QuotientShape{40'000, 9, 0}, QuotientShape{20'000, 7, 1}, QuotientShape{5000, 6, 0},
                                    QuotientShape{1'280'000, 1, 3}}) {
    auto resized = resize(filter.view(), other);
    ASSERT_TRUE(resized) << resized.error().detail;
    auto wanted = before;
    for (std::uint64_t& f : wanted) f /= shape.fingerprints() / other.fingerprints();
    EXPECT_EQ(contents(other, resized->bytes()), wanted);
    EXPECT_TRUE(L::verify(other, resized->bytes()));
    for (const auto& d : digests) ASSERT_TRUE(resized->may_contain(d));
    // The keys still find their fingerprints: erasing them all leaves nothing.
    for (const auto& d : digests) ASSERT_EQ(resized->erase(d), Erased::removed);
    const Quotient empty(other);
    EXPECT_TRUE(same_bytes(resized->bytes(), empty.bytes()));
  }
  // Resized and back again.
  auto there = resize(filter.view(), {20'000, 7, 3});
  ASSERT_TRUE(there);
  auto back = resize(there->view(), shape);
  ASSERT_TRUE(back);
  EXPECT_TRUE(same_bytes(back->bytes(), filter.bytes()));

  const auto refused = resize(filter.view(), {10'000, 9, 3});
  ASSERT_FALSE(refused);
  EXPECT_NE(refused.error().detail.find("FPR"), std::string::npos) << refused.error().detail;
  EXPECT_FALSE(resize(filter.view(), {7000, 9, 3}));
  EXPECT_FALSE(resize(filter.view(), {7000, 8, 3}));
  EXPECT_FALSE(resize(filter.view(), {2500, 10, 3})) << "the keys do not fit";
  EXPECT_FALSE(resize(filter.view(), {0, 10, 3}));
  EXPECT_EQ(*shape.grown_for(4000), shape);
  EXPECT_EQ(*shape.grown_for(9500), (QuotientShape{10'000, 8, 3}));
  EXPECT_EQ(*shape.grown_for(9501), (QuotientShape{20'000, 7, 3}));
  EXPECT_FALSE(shape.grown_for(10'000'000));
}

// Erases keys that were never inserted: each success removes the fingerprint of another key. 1e6 queries per row, z =
// 5.
TEST(Quotient, GuardBitsMakeAWrongEraseRare) {
  for (const std::uint32_t guard : {0u, 2u, 5u}) {
    const QuotientShape shape{.buckets = 1000, .remainder_bits = 4, .guard_bits = guard};
    const auto digests = some_digests(1, 950);
    std::uint64_t wrong = 0;
    std::uint64_t perhaps = 0;
    constexpr std::uint64_t kQueries = 1'000'000;
    Quotient filter(shape);
    ASSERT_EQ(filter.insert(std::span<const Digest<Hash>>(digests)), 950u);
    const auto fingerprints = contents(shape, filter.bytes());
    for (std::uint64_t i = 0; i < kQueries; ++i) {
      const auto d = Digest<Hash>::made_by(Hash(), Stream{77}.at(i));
      perhaps += filter.may_contain(d);
      if (filter.erase(d) == Erased::removed) {
        ++wrong;
        filter.insert(d);  // puts the same fingerprint back
      }
    }
    EXPECT_EQ(contents(shape, filter.bytes()), fingerprints);
    // For these fingerprints: the share of values that a query, or an erase, would find present.
    const auto distinct = [](std::vector<std::uint64_t> of, std::uint32_t shift) {
      for (std::uint64_t& f : of) f >>= shift;
      return static_cast<double>(std::unique(of.begin(), of.end()) - of.begin());
    };
    const double wrong_rate = distinct(fingerprints, 0) / static_cast<double>(shape.fingerprints());
    const double rate = distinct(fingerprints, guard) / static_cast<double>(shape.fingerprints() >> guard);
    std::printf("  guard %u   FPR %.4e   wrong erases %.4e, model %.4e\n", guard,
                static_cast<double>(perhaps) / kQueries, static_cast<double>(wrong) / kQueries, shape.wrong_erase(950));
    EXPECT_NEAR(static_cast<double>(wrong) / kQueries, wrong_rate, kSigmas * binomial_error(wrong_rate, kQueries));
    EXPECT_NEAR(static_cast<double>(perhaps) / kQueries, rate, kSigmas * binomial_error(rate, kQueries));
    EXPECT_NEAR(shape.wrong_erase(950), wrong_rate, 0.03 * wrong_rate);
    EXPECT_LE(shape.wrong_erase(950), shape.fpr(950) * std::exp2(-static_cast<double>(guard)) * 1.06);
  }
}

TEST(Quotient, CountsRepetitions) {
  Quotient filter(QuotientShape{.buckets = 3000, .remainder_bits = 20, .guard_bits = 6});
  const auto digests = some_digests(8, 40);
  for (std::size_t i = 0; i < digests.size(); ++i) {
    for (std::size_t k = 0; k < i; ++k) {
      EXPECT_EQ(filter.insert(digests[i]), k == 0 ? Inserted::added : Inserted::present);
    }
  }
  for (std::size_t i = 0; i < digests.size(); ++i) EXPECT_EQ(count(filter, digests[i]), i);
  for (std::size_t i = 0; i < digests.size(); ++i) EXPECT_EQ(filter.erase(digests[i]) == Erased::removed, i != 0);
  for (std::size_t i = 1; i < digests.size(); ++i) EXPECT_EQ(count(filter, digests[i]), i - 1);
}

TEST(Quotient, ShapesMeetTheirRequests) {
  for (const std::uint64_t keys : {0u, 1u, 2u, 19u, 20u, 100u, 1000u, 123'456u, 100'000'000u}) {
    for (const std::uint32_t guard : {0u, 8u}) {
      for (const double fpr : {0.5, 0.1, 0.03, 0.01, 1e-3, 1e-6, 1e-12}) {
        const auto s = QuotientShape::for_keys({.keys = keys, .fpr = fpr, .guard_bits = guard});
        ASSERT_TRUE(s.valid());
        // A fingerprint has 63 bits: 1e8 keys at 1e-12 would need 67.
        if (static_cast<double>(keys) / fpr < 0x1p62 / std::exp2(guard)) {
          EXPECT_LE(s.fpr(static_cast<double>(keys)), fpr);
        } else {
          EXPECT_LE(s.fpr(static_cast<double>(keys)), static_cast<double>(keys) * 0x1p-62 * std::exp2(guard));
        }
        EXPECT_GE(s.capacity(), keys);
        EXPECT_EQ(s.guard_bits, guard);
        EXPECT_EQ(*QuotientShape::from(s.numbers()), s);
        if (keys > 10'000 && fpr < 0.5) {
          const double limit = (std::log2(1 / fpr) + 2.125 + 1 + guard) / 0.95;
          EXPECT_LE(static_cast<double>(s.bytes()) * 8 / static_cast<double>(keys), limit * 1.01);
        }
      }
      for (const double bits : {5.0, 10.0, 12.5, 30.0}) {
        const auto s = QuotientShape::for_keys({.keys = keys, .bits_per_key = bits + guard, .guard_bits = guard});
        ASSERT_TRUE(s.valid());
        EXPECT_GE(s.capacity(), keys) << keys << " keys, " << bits << " bits";
        if (keys > 10'000) {
          EXPECT_LE(static_cast<double>(s.bytes()), static_cast<double>(keys) * (bits + guard) / 8);
          EXPECT_GE(static_cast<double>(s.bytes()), static_cast<double>(keys) * (bits + guard) / 8 * 0.99);
        }
      }
    }
    for (const std::uint64_t bytes : {1u, 200u, 1000u, 1'000'000u}) {
      const auto s = QuotientShape::for_keys({.keys = keys, .max_bytes = bytes});
      ASSERT_TRUE(s.valid());
      EXPECT_LE(s.bytes(), std::max<std::uint64_t>(bytes, 200));
      EXPECT_TRUE(bytes < 200 + 2 * keys || s.capacity() >= keys);
    }
  }
  EXPECT_TRUE(QuotientShape::for_keys({.keys = UINT64_MAX, .fpr = 1e-9}).valid());
  EXPECT_TRUE(QuotientShape::for_keys({.keys = UINT64_MAX, .bits_per_key = 40}).valid());
  EXPECT_TRUE(QuotientShape::for_keys({.keys = 5, .fpr = 0.1, .guard_bits = 1000}).valid());
  for (const std::vector<std::uint64_t>& wrong : {std::vector<std::uint64_t>{},
                                                  {1, 8},
                                                  {0, 8, 0},
                                                  {1, 0, 0},
                                                  {1, 49, 0},
                                                  {1, 48, 9},
                                                  {1, 8, ~std::uint64_t{0}},
                                                  {(std::uint64_t{1} << 55) + 1, 8, 0},
                                                  {~std::uint64_t{0}, 8, 0},
                                                  {1, (std::uint64_t{1} << 32) + 8, 0}}) {
    EXPECT_FALSE(QuotientShape::from(wrong));
  }
  EXPECT_TRUE(QuotientShape::from(std::vector<std::uint64_t>{std::uint64_t{1} << 55, 8, 0}));
  EXPECT_NEAR(QuotientShape({1000, 8, 0}).keys_for(QuotientShape({1000, 8, 0}).fpr(321)), 321, 1e-6);
}

// 2000 tables of random bytes after a valid head, and 2000 valid tables with a few bytes changed: nothing is read or
// written out of range (run under AddressSanitizer), every call returns, and a table whose verification passes is
// sound.
TEST(Quotient, HostileBytesStayInside) {
  for (std::uint64_t turn = 0; turn < 4000; ++turn) {
    SCOPED_TRACE(turn);
    std::mt19937_64 random(turn);
    const QuotientShape shape{.buckets = 1 + random() % (turn % 2 == 0 ? 2000 : 100),
                              .remainder_bits = 1 + static_cast<std::uint32_t>(random() % 12),
                              .guard_bits = static_cast<std::uint32_t>(random() % 3)};
    Quotient good(shape);
    for (std::uint64_t i = 0; i < shape.capacity(); ++i) good.insert(random() % (turn % 3 == 0 ? 5 : 1'000'000));
    // On the heap and exactly as long as the shape says.
    std::vector<std::byte> bytes(good.bytes().begin(), good.bytes().end());
    if (turn % 2 == 0) {
      const unsigned dense = static_cast<unsigned>(random() % 3);
      for (std::size_t i = 64; i < bytes.size(); ++i) {
        // NOLINTNEXTLINE(misc-redundant-expression): every call returns another number
        bytes[i] = static_cast<std::byte>(dense == 0 ? random() : dense == 1 ? random() & random() & random() : 255);
      }
    } else {
      for (int i = 0; i < 3; ++i) bytes[64 + random() % (bytes.size() - 64)] = static_cast<std::byte>(random());
    }
    detail::store<std::uint64_t>(bytes.data(), random() % (shape.capacity() + 1));
    auto span = QuotientSpan::over(bytes, shape);
    ASSERT_TRUE(span);
    (void)L::verify(shape, bytes);
    const auto list = contents(shape, bytes);
    EXPECT_LE(list.size(), shape.slots());
    if (auto merged = merge(QuotientView(*span), good.view()); merged) {
      EXPECT_TRUE(L::verify(merged->shape(), merged->bytes()));
    }
    if (auto grown = resize(QuotientView(*span), {shape.buckets * 2, shape.remainder_bits, shape.guard_bits}); grown) {
      EXPECT_TRUE(L::verify(grown->shape(), grown->bytes()));
    }
    for (int i = 0; i < 40; ++i) {
      const auto d = Digest<Hash>::made_by(Hash(), random());
      (void)span->may_contain(d);
      (void)count(QuotientView(*span), d);
      span->insert(d);
      span->erase(d);
      span->erase(Digest<Hash>::made_by(Hash(), random()));
    }
    std::array<Digest<Hash>, 64> batch = {};
    for (auto& d : batch) d = Digest<Hash>::made_by(Hash(), random());
    (void)span->may_contain(std::span<const Digest<Hash>>(batch));
  }
}

// Runs that do not ascend, as long as a piece of the merge: its steps from the front and from the back might take from
// the same list and pass each other. Such tables are refused, not merged into something else.
TEST(Quotient, MergeRefusesRunsThatDoNotAscend) {
  const QuotientShape shape{.buckets = 4096, .remainder_bits = 16, .guard_bits = 0};
  const auto one_run = [&](auto value_of) {
    Quotient filter(shape);
    const std::vector<std::uint64_t> zeros(1024, 0);
    EXPECT_TRUE(QuotientLayout::build(shape, filter.writable_bytes().data(), zeros));
    for (std::uint64_t i = 0; i < 1024; ++i) {
      std::byte* block = filter.writable_bytes().data() + QuotientShape::kHeadBytes + i / 64 * shape.block_bytes();
      detail::store(block + 2 * (i % 64), static_cast<std::uint16_t>(value_of(i)));
    }
    return filter;
  };
  const Quotient level = one_run([](std::uint64_t) { return 30'000; });
  const Quotient hollow = one_run([](std::uint64_t i) { return i == 0 ? 60'000 : i == 1023 ? 65'000 : 0; });
  const Quotient wild = one_run([](std::uint64_t i) { return i * 40'503 % 65'536; });
  const std::array<const Quotient*, 3> all{&level, &hollow, &wild};
  for (const Quotient* a : all) {
    for (const Quotient* b : all) {
      if (a != &level || b != &level) {
        EXPECT_FALSE(merge(a->view(), b->view()));
      }
    }
  }
}

TEST(Quotient, HeadsAreChecked) {
  Quotient filter(QuotientShape{.buckets = 100, .remainder_bits = 8});
  std::vector<std::byte> bytes(filter.bytes().begin(), filter.bytes().end());
  detail::store<std::uint64_t>(bytes.data(), 96);
  EXPECT_EQ(QuotientView::over(bytes, filter.shape()).error().code, Errc::bad_parameter);
  detail::store<std::uint64_t>(bytes.data(), 95);
  EXPECT_TRUE(QuotientView::over(bytes, filter.shape()));
  EXPECT_FALSE(L::verify(filter.shape(), bytes)) << "95 keys and no run";
  bytes[63] = std::byte{1};
  EXPECT_EQ(QuotientView::over(bytes, filter.shape()).error().code, Errc::bad_parameter);
  bytes.resize(bytes.size() - 1);
  EXPECT_EQ(QuotientView::over(bytes, filter.shape()).error().code, Errc::truncated);
}

// Every bit of a sound table matters: verify notices each flip, or the flip gives another sound table.
TEST(Quotient, VerifyNoticesFlippedBits) {
  const QuotientShape shape{.buckets = 150, .remainder_bits = 5, .guard_bits = 0};
  Quotient filter(shape);
  for (const auto& d : some_digests(1, 130)) filter.insert(d);
  std::vector<std::byte> bytes(filter.bytes().begin(), filter.bytes().end());
  std::uint64_t unnoticed = 0;
  for (std::size_t bit = 0; bit < bytes.size() * 8; ++bit) {
    bytes[bit / 8] ^= std::byte{1} << static_cast<int>(bit % 8);
    if (L::verify(shape, bytes)) {
      ++unnoticed;
      Quotient rebuilt(shape);
      QuotientWriter writer(shape, rebuilt.writable_bytes().data());
      ASSERT_TRUE(writer.append(contents(shape, bytes)) && writer.finish());
      EXPECT_TRUE(same_bytes(rebuilt.bytes(), bytes)) << "bit " << bit;
    }
    bytes[bit / 8] ^= std::byte{1} << static_cast<int>(bit % 8);
  }
  EXPECT_LT(unnoticed, 130u * 5) << "at most the bits of remainders";
}

TEST(Quotient, WriterRefusesInputThatDoesNotAscend) {
  const QuotientShape shape{.buckets = 100, .remainder_bits = 8};
  const auto refuses = [&](std::vector<std::uint64_t> fingerprints) {
    Quotient filter(shape);
    QuotientWriter writer(shape, filter.writable_bytes().data());
    return !writer.append(fingerprints) || !writer.finish();
  };
  EXPECT_FALSE(refuses({}));
  EXPECT_FALSE(refuses({0, 0, 5, 25'599}));
  EXPECT_TRUE(refuses({5, 4}));
  EXPECT_TRUE(refuses({25'600}));
  EXPECT_TRUE(refuses({25'600, 25'601, 3}));
  EXPECT_TRUE(refuses({1, ~std::uint64_t{0} - 1, ~std::uint64_t{0}, 3}));
  EXPECT_TRUE(refuses({0, ~std::uint64_t{0}}));
  EXPECT_TRUE(refuses(std::vector<std::uint64_t>(shape.slots() + 1, 7)));
}

// The bytes never change: XXH3 of the table after fixed operations.
TEST(Quotient, GoldenBytes) {
  const auto golden = [](QuotientShape shape) {
    Quotient filter(shape, Hash(1));
    for (std::uint64_t i = 0; i < 900; ++i) filter.insert(i);
    for (std::uint64_t i = 0; i < 300; ++i) filter.insert(std::to_string(i % 100));
    for (std::uint64_t i = 0; i < 900; i += 7) filter.erase(i);
    return Hash(0)(filter.bytes()).value;
  };
  with_every_kernel([&](const kernel::InstructionSet&) {
    EXPECT_EQ(golden({1300, 8, 0}), 17117308605548703475u);
    EXPECT_EQ(golden({1290, 5, 3}), 16419902835337000417u);
    EXPECT_EQ(golden({4000, 13, 0}), 8976576642765450396u);
  });
}

}  // namespace
}  // namespace perhaps::test
