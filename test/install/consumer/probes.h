// The same inline lookups and inserts, compiled twice with different flags.
#pragma once
#include <cstdint>

#include "perhaps/block_bloom.h"
#include "perhaps/line_bloom.h"

int plain_hits(perhaps::LineBloomView line, perhaps::BlockBloomView block, std::uint64_t keys);
int wide_hits(perhaps::LineBloomView line, perhaps::BlockBloomView block, std::uint64_t keys);
// How many of the keys 0 .. keys - 1 were absent before.
int plain_inserts(perhaps::LineBloomSpan line, perhaps::BlockBloomSpan block, std::uint64_t keys);
int wide_inserts(perhaps::LineBloomSpan line, perhaps::BlockBloomSpan block, std::uint64_t keys);

namespace {
[[maybe_unused]] int hits(perhaps::LineBloomView line, perhaps::BlockBloomView block, std::uint64_t keys) {
  int count = 0;
  for (std::uint64_t key = 0; key < keys; ++key) count += line.may_contain(key) + 2 * block.may_contain(key);
  return count;
}
[[maybe_unused]] int inserts(perhaps::LineBloomSpan line, perhaps::BlockBloomSpan block, std::uint64_t keys) {
  int count = 0;
  for (std::uint64_t key = 0; key < keys; ++key) {
    count += line.insert(key) == perhaps::Inserted::added;
    count += 2 * (block.insert(key) == perhaps::Inserted::added);
  }
  return count;
}
}  // namespace
