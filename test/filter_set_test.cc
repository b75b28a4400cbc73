// Promise: a set of filters answers for each of them as the filter itself does, whatever the families, and for filters
// of tables too, hashes a key once, refuses a filter that hashes differently, and reads newest first, all or those that
// are named, until the first hit. Would notice: an answer that differs from the filter's own, a mixed set, a read after
// the hit, a wrong count.
#include "perhaps/engine/filter_set.h"

#include <gtest/gtest.h>

#include <algorithm>
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

std::vector<std::byte> block_of(std::uint64_t set, FilterBlockOptions options) {
  FilterBlockBuilder builder(options);
  std::vector<std::string> keys;
  for (std::uint64_t i = 0; i < kKeys; ++i) keys.push_back(key_of(set, i));
  std::sort(keys.begin(), keys.end());
  for (const std::string& key : keys) builder.add(key);
  if (options.mode == FilterMode::per_block) builder.next_block();
  return builder.finish();
}

// Filters of a memtable beside those of tables: whole, in pieces, loaded piece by piece, damaged.
TEST(FilterSet, TakesTheFiltersOfTables) {
  const AnyHasher hasher = Hash(3);
  const auto memtable = filter_of(Kind::line, 0, hasher);
  const auto full = block_of(1, {.hasher = hasher});
  const auto pieces = block_of(2, {.mode = FilterMode::partitioned, .piece_bytes = 64, .hasher = hasher});
  auto damaged = full;
  damaged.back() = std::byte{0};
  std::uint64_t loads = 0;
  const Bytes tail = Bytes(pieces).last(*FilterBlock::tail_bytes(pieces));
  const auto load = [&](std::uint64_t offset, std::uint64_t size) {
    ++loads;
    return FilterBlock::Loaded{Bytes(pieces).subspan(offset, size)};
  };
  const FilterBlock blocks[] = {FilterBlock::over(full, {.hasher = hasher}),
                                FilterBlock::over(pieces, {.hasher = hasher}),
                                FilterBlock::lazy(tail, load, {.hasher = hasher}), FilterBlock::over(damaged)};
  // Of damaged ones the hasher is not known. They answer *perhaps*, alone and before others.
  FilterSet set;
  ASSERT_TRUE(set.add(blocks[3]));
  EXPECT_FALSE(set.hasher());
  EXPECT_EQ(set.find(bytes_of("x"), [](std::size_t) { return true; }), 0u);
  const std::string one = key_of(1, 0);
  const Bytes two[] = {bytes_of("x"), bytes_of(one)};
  std::uint64_t both[2] = {};
  set.may_contain(two, std::span(both, 1));
  EXPECT_EQ(both[0], 3u);
  ASSERT_TRUE(set.add(blocks[0]));
  EXPECT_EQ(set.hasher(), hasher);
  set.may_contain(two, both);
  EXPECT_EQ(both[0], 3u);
  EXPECT_EQ(both[1], 2u);
  FilterSet tree;
  ASSERT_TRUE(tree.add(*memtable));
  for (const FilterBlock& block : blocks) ASSERT_TRUE(tree.add(block));
  std::vector<std::string> keys;
  for (std::uint64_t i = 0; i < 900; ++i) keys.push_back(key_of(i % 9, i / 9));
  std::uint64_t no = 0;
  for (std::size_t from = 0; from < keys.size(); from += 60) {
    std::vector<Bytes> batch;
    for (std::size_t i = from; i < from + 60; ++i) batch.push_back(bytes_of(keys[i]));
    std::vector<std::uint64_t> columns(tree.size());
    tree.may_contain(batch, columns);
    for (std::size_t i = 0; i < batch.size(); ++i) {
      std::uint64_t answers = 0;
      tree.may_contain(batch[i], std::span(&answers, 1));
      for (std::size_t f = 0; f < tree.size(); ++f) {
        const bool alone = f == 0 ? memtable->may_contain(batch[i]) : blocks[f - 1].may_contain(batch[i]);
        ASSERT_EQ(answers >> f & 1, alone) << keys[from + i] << " in " << f;
        ASSERT_EQ(columns[f] >> i & 1, alone) << keys[from + i] << " in " << f;
        no += !alone;
      }
    }
  }
  EXPECT_GT(no, 2500u);
  EXPECT_GT(loads, 900u);

  EXPECT_EQ(tree.add(FilterBlock::over(block_of(1, {}))).error().code, Errc::mismatch);
  const auto per_block = block_of(1, {.mode = FilterMode::per_block, .hasher = hasher});
  EXPECT_EQ(tree.add(FilterBlock::over(per_block, {.hasher = hasher})).error().code, Errc::unsupported);
  const auto prefixes = block_of(1, {.prefix = PrefixExtractor::delimiter(':'), .whole_keys = false});
  EXPECT_EQ(FilterSet().add(FilterBlock::over(prefixes)).error().code, Errc::unsupported);
  EXPECT_EQ(tree.size(), 5u);
}

// Of many tables a lookup asks those that it names, in that order, and counts them for the levels that it names.
TEST(FilterSet, AsksSomeOfItsFilters) {
  const auto filters = many_filters(40);
  FilterSet set;
  for (const auto& filter : filters) ASSERT_TRUE(set.add(*filter));
  ReadCounters counters(3);
  LevelCounts expected[3];
  for (std::uint64_t i = 0; i < 400; ++i) {
    const std::string key = key_of(i % 50, i);
    std::vector<FilterSet::Choice> choices;  // more than are prefetched at once, or none
    for (std::size_t f = i % 40; f < 40; f += 1 + i % 3) choices.push_back({39 - f, f % 3});
    std::vector<std::size_t> read;
    const std::size_t found = set.find(bytes_of(key), choices, counters, [&](std::size_t f, std::uint64_t& bytes) {
      read.push_back(f);
      bytes = 10;
      return f == i % 50;
    });
    std::vector<std::size_t> perhaps;
    std::size_t hit = choices.size();
    for (std::size_t c = 0; c < choices.size() && hit == choices.size(); ++c) {
      LevelCounts& level = expected[choices[c].level];
      if (!filters[choices[c].filter]->may_contain(bytes_of(key))) {
        ++level.no;
        continue;
      }
      perhaps.push_back(choices[c].filter);
      if (choices[c].filter == i % 50) hit = c;
      ++(hit == c ? level.found : level.false_positives);
      level.bytes_read += 10;
    }
    EXPECT_EQ(found, hit);
    EXPECT_EQ(read, perhaps);
  }
  for (std::size_t level = 0; level < 3; ++level) {
    const LevelCounts counted = counters.of(level);
    EXPECT_EQ(counted.no, expected[level].no);
    EXPECT_EQ(counted.found, expected[level].found);
    EXPECT_EQ(counted.false_positives, expected[level].false_positives);
    EXPECT_EQ(counted.bytes_read, expected[level].bytes_read);
    EXPECT_GT(counted.found, 20u);
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
