// Builds many fuse filters of random sets and counts the seeds they needed.
#pragma once
#include <gtest/gtest.h>

#include <cstdio>

#include "build/fuse.h"
#include "support/keys.h"

namespace perhaps::test {

struct FuseTries {
  std::uint64_t sets = 0;
  std::uint64_t at_once = 0;  // peeled with the first seed
  std::uint32_t worst_seed = 0;
  std::uint64_t open = 0;     // given up: these filters answer *perhaps* for every key
  std::uint64_t missing = 0;  // keys that answer *no*
};

// `sets` sets of `keys` keys, from the streams that follow `seed`.
inline FuseTries fuse_tries(std::uint32_t arity, std::uint64_t keys, std::uint64_t sets, std::uint64_t seed) {
  FuseTries tries;
  FuseShape shape;
  shape.arity = arity;
  std::vector<std::uint64_t> digests(keys);
  std::vector<std::uint64_t> answers(keys / kBatch + 1);
  std::vector<std::byte> table(16 + FuseLayout::shard_bytes(shape, keys));
  StaticScratch scratch;
  for (std::uint64_t set = 0; set < sets; ++set) {
    const Stream stream{seed * 1'000'003 + set};
    for (std::uint64_t i = 0; i < keys; ++i) digests[i] = stream.at(i);
    std::ranges::fill(table, std::byte{});
    shape.table_bytes = table.size();
    detail::store<std::uint64_t>(table.data(), 16);
    detail::store<std::uint64_t>(table.data() + 8, table.size());
    FuseLayout::build_shard(shape, digests, std::span(table).subspan(16), scratch);
    const auto g = detail::FuseGeometry::at(table.data() + 16);
    ++tries.sets;
    tries.at_once += g.seed == 0;
    tries.worst_seed = std::max(tries.worst_seed, g.seed);
    tries.open += g.segments == 0;
    detail::query_batch<FuseLayout>(shape, table.data(), {.words = digests.data(), .count = keys, .ahead = false},
                                    answers.data());
    std::uint64_t there = 0;
    for (const std::uint64_t word : answers) there += static_cast<unsigned>(std::popcount(word));
    if (keys % kBatch == 0) there -= static_cast<unsigned>(std::popcount(answers.back()));
    tries.missing += keys - there;
  }
  return tries;
}

inline void expect_all_built(std::uint32_t arity, std::uint64_t keys, std::uint64_t sets, std::uint64_t seed) {
  const FuseTries tries = fuse_tries(arity, keys, sets, seed);
  std::printf("arity %u, %lu keys, %lu sets from seed %lu: %.2f %% at once, worst seed %u\n", arity, keys, sets, seed,
              100 * static_cast<double>(tries.at_once) / static_cast<double>(sets), tries.worst_seed);
  EXPECT_EQ(tries.open, 0u);
  EXPECT_EQ(tries.missing, 0u);
  EXPECT_LT(tries.worst_seed, 16u);  // fails for 10^-20 of the sets if 5 % of the tries fail
}

}  // namespace perhaps::test
