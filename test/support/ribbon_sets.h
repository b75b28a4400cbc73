// Builds ribbons of many random sets and looks up all of their keys.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>

#include "perhaps/ribbon.h"
#include "support/keys.h"
#include "support/no_false_negatives.h"

namespace perhaps::test {

inline void expect_no_failure(std::uint64_t keys, std::uint64_t sets) {
  std::vector<Digest<Hash>> digests(keys);
  std::vector<std::uint64_t> words(keys);
  std::vector<std::uint64_t> answers(keys / kBatch + 1);
  std::uint64_t started_over = 0, every = 0, missing = 0;
  for (std::uint64_t set = 0; set < sets; ++set) {
    for (std::uint64_t i = 0; i < keys; ++i) words[i] = Stream{set + 1}.at(i);
    std::ranges::transform(words, digests.begin(), [](auto h) { return digest_with(Hash(), h); });
    const auto filter =
        Ribbon::build(std::span<const Digest<Hash>>(digests), {.fpr = 0.01}, {.verify = false, .progress = {}});
    ASSERT_TRUE(filter);
    const RibbonShape shape = filter->shape();
    detail::query_batch<RibbonLayout>(shape, filter->bytes().data(),
                                      {.words = words.data(), .count = keys, .ahead = false}, answers.data());
    missing += keys - count_ones(answers);
    const std::byte* const shard = filter->bytes().data() + shape.front_bytes() + detail::directory_bytes(0);
    every += shape.tiny() ? shard[0] == std::byte{RibbonLayout::kMaxSeeds} : shard[0] != std::byte{0};
    started_over += !shape.tiny() && RibbonLayout::seed_of(shard) != 0;
    for (std::uint32_t i = 0; i < shape.fronts; ++i) EXPECT_NE(shape.starts[i], 0u) << "a front was skipped";
  }
  std::printf("  %8llu keys: %llu sets, %llu started over\n", static_cast<unsigned long long>(keys),
              static_cast<unsigned long long>(sets), static_cast<unsigned long long>(started_over));
  EXPECT_EQ(every, 0u) << keys << " keys";
  EXPECT_EQ(missing, 0u) << keys << " keys";
  EXPECT_LE(started_over * 5, sets) << keys << " keys";
}

}  // namespace perhaps::test
