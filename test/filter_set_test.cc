// Promise: a set of filters answers for each of them as the filter itself does, whatever the families, hashes a key
// once, refuses a filter that hashes differently, and reads newest first until the first hit. Would notice: an answer
// that differs from the filter's own, a mixed set, a read after the hit, a wrong count.
#include "perhaps/engine/filter_set.h"

#include <gtest/gtest.h>

#include <string>
#include <thread>

#include "support/keys.h"

namespace perhaps {
namespace {

constexpr std::uint64_t kKeys = 500;

std::string key_of(std::uint64_t set, std::uint64_t i) { return std::to_string(set) + ":" + std::to_string(i); }

std::unique_ptr<AnyFilter> filter_of(Kind family, std::uint64_t set, const AnyHasher& hasher) {
  auto builder = make_builder(family, {.keys = kKeys, .fpr = 0.05}, hasher);
  EXPECT_TRUE(builder);
  auto lanes = (*builder)->lanes(1);
  for (std::uint64_t i = 0; i < kKeys; ++i) {
    const std::string key = key_of(set, i);
    const Bytes bytes = bytes_of(key);
    EXPECT_TRUE(lanes[0]->insert(std::span(&bytes, 1)));
  }
  lanes.clear();
  auto filter = (*builder)->finish();
  EXPECT_TRUE(filter);
  return *std::move(filter);
}

// Filters of every family in turn.
std::vector<std::unique_ptr<AnyFilter>> many_filters(std::size_t count, const AnyHasher& hasher = Hash(3)) {
  std::vector<std::unique_ptr<AnyFilter>> filters;
  for (std::size_t i = 0; i < count; ++i)
    filters.push_back(filter_of(families()[i % families().size()].kind, i, hasher));
  return filters;
}

TEST(FilterSet, AnswersAsEachFilterDoes) {
  for (const std::size_t count : {std::size_t{1}, std::size_t{20}, std::size_t{70}}) {
    const auto filters = many_filters(count);
    FilterSet set;
    for (const auto& filter : filters) ASSERT_TRUE(set.add(*filter));
    std::vector<std::uint64_t> answers(set.words());
    std::vector<std::string> keys;
    for (std::uint64_t i = 0; i < 200; ++i) keys.push_back(key_of(i % (2 * count), i));
    for (const std::string& key : keys) {
      set.may_contain(bytes_of(key), answers);
      for (std::size_t f = 0; f < count; ++f) {
        ASSERT_EQ(answers[f / 64] >> f % 64 & 1, filters[f]->may_contain(bytes_of(key))) << key << " in " << f;
      }
      EXPECT_EQ(count % 64 == 0 ? 0 : answers.back() >> count % 64, 0);
    }
    std::vector<Bytes> batch;
    for (std::size_t i = 0; i < kBatch; ++i) batch.push_back(bytes_of(keys[i]));
    std::vector<std::uint64_t> columns(count);
    set.may_contain(batch, columns);
    for (std::size_t f = 0; f < count; ++f) EXPECT_EQ(columns[f], filters[f]->may_contain(batch)) << f;
  }
}

TEST(FilterSet, RefusesMixedHashers) {
  const auto filters = many_filters(1);
  const auto other_seed = many_filters(1, Hash(4));
  const auto keyed = many_filters(1, KeyedHash({}));
  FilterSet set;
  ASSERT_TRUE(set.add(*filters[0]));
  EXPECT_EQ(set.add(*other_seed[0]).error().code, Errc::mismatch);
  EXPECT_EQ(set.add(*keyed[0]).error().code, Errc::mismatch);
  EXPECT_EQ(set.size(), 1u);
  ASSERT_TRUE(set.add(*filters[0]));
}

TEST(FilterSet, ReadsNewestFirstAndStopsAtTheFirstHit) {
  const auto filters = many_filters(30);
  FilterSet set;
  for (const auto& filter : filters) ASSERT_TRUE(set.add(*filter));
  ReadCounters counters(set.size());
  LevelCounts expected[30];
  for (std::uint64_t i = 0; i < 400; ++i) {
    const std::uint64_t home = i % 40;  // 30 and above: in no filter
    const std::string key = key_of(home, i);
    std::vector<std::size_t> read;
    const std::size_t found = set.find(bytes_of(key), counters, [&](std::size_t f, std::uint64_t& bytes) {
      read.push_back(f);
      bytes = 100;
      return f == home;
    });
    EXPECT_EQ(found, std::min<std::uint64_t>(home, 30));
    EXPECT_EQ(set.find(bytes_of(key), [&](std::size_t f) { return f == home; }), found);
    std::vector<std::size_t> perhaps;
    for (std::size_t f = 0; f < 30 && (perhaps.empty() || perhaps.back() != home); ++f) {
      if (filters[f]->may_contain(bytes_of(key))) {
        perhaps.push_back(f);
        ++(f == home ? expected[f].found : expected[f].false_positives);
        expected[f].bytes_read += 100;
      } else {
        ++expected[f].no;
      }
    }
    EXPECT_EQ(read, perhaps);
  }
  for (std::size_t f = 0; f < 30; ++f) {
    const LevelCounts counted = counters.of(f);
    EXPECT_EQ(counted.no, expected[f].no);
    EXPECT_EQ(counted.found, expected[f].found);
    EXPECT_EQ(counted.false_positives, expected[f].false_positives);
    EXPECT_EQ(counted.bytes_read, expected[f].bytes_read);
    EXPECT_EQ(counted.probes(), counted.no + counted.found + counted.false_positives);
  }
}

TEST(FilterSet, EmptyFindsNothing) {
  const FilterSet set;
  EXPECT_EQ(set.words(), 0u);
  EXPECT_EQ(set.find(bytes_of("x"), [](std::size_t) { return true; }), 0u);
  set.may_contain(bytes_of("x"), {});
}

TEST(ReadCounters, LoseNothingBetweenThreads) {
  ReadCounters counters(3);
  {
    std::vector<std::jthread> threads;
    for (int t = 0; t < 20; ++t) {
      threads.emplace_back([&] {
        for (std::uint64_t i = 0; i < 1000; ++i) {
          counters.no(0);
          counters.found(1, 2);
          counters.false_positive(2, 3);
        }
      });
    }
  }
  EXPECT_EQ(counters.of(0).no, 20'000u);
  EXPECT_EQ(counters.of(1).bytes_read, 40'000u);
  EXPECT_EQ(counters.of(2).false_positives, 20'000u);
  EXPECT_EQ(counters.of(2).fpr(), 1);
}

}  // namespace
}  // namespace perhaps
