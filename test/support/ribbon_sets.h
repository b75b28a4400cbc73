// Many random sets, each built into a shard of a ribbon and asked for all of its keys.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "perhaps/ribbon.h"
#include "support/keys.h"
#include "support/no_false_negatives.h"

namespace perhaps::test {

inline void expect_no_failure(std::uint64_t keys, std::uint64_t sets) {
  const RibbonShape shape = [&] {
    RibbonShape one = RibbonShape::for_keys({.keys = keys, .fpr = 0.01});
    one.shard_bits = 0;  // as one shard, whatever the size
    one.table_bytes = detail::directory_bytes(0) + RibbonLayout::shard_bytes(one, keys);
    return one;
  }();
  std::vector<std::byte> table(shape.bytes());
  detail::store(table.data(), detail::directory_bytes(0));
  detail::store(table.data() + 8, shape.table_bytes);
  const auto shard = std::span(table).subspan(detail::directory_bytes(0));
  std::vector<std::uint64_t> digests(keys);
  std::vector<std::uint64_t> answers(keys / kBatch + 1);
  StaticScratch scratch;
  std::uint64_t started_over = 0, every = 0, missing = 0;
  for (std::uint64_t set = 0; set < sets; ++set) {
    for (std::uint64_t i = 0; i < keys; ++i) digests[i] = Stream{set + 1}.at(i);
    std::ranges::sort(digests);
    std::ranges::fill(shard, std::byte{0});
    RibbonLayout::build_shard(shape, digests, shard, scratch);
    RibbonLayout::query(shape, table.data(), digests.data(), keys, answers.data(), false);
    missing += keys - count_ones(answers);
    every += shape.tiny() ? shard[0] == std::byte{RibbonLayout::kMaxSeeds} : shard[0] != std::byte{0};
    started_over += !shape.tiny() && RibbonLayout::seed_of(shard.data()) != 0;
  }
  std::printf("  %8llu keys: %llu sets, %llu started over\n", static_cast<unsigned long long>(keys),
              static_cast<unsigned long long>(sets), static_cast<unsigned long long>(started_over));
  EXPECT_EQ(every, 0u) << keys << " keys";
  EXPECT_EQ(missing, 0u) << keys << " keys";
  EXPECT_LE(started_over * 5, sets) << keys << " keys";
}

}  // namespace perhaps::test
