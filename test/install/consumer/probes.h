// The same inline lookups, compiled twice with different flags.
#pragma once
#include <cstdint>

#include "perhaps/block_bloom.h"
#include "perhaps/line_bloom.h"

int plain_hits(perhaps::LineBloomView line, perhaps::BlockBloomView block, std::uint64_t keys);
int wide_hits(perhaps::LineBloomView line, perhaps::BlockBloomView block, std::uint64_t keys);

namespace {
[[maybe_unused]] int hits(perhaps::LineBloomView line, perhaps::BlockBloomView block, std::uint64_t keys) {
  int count = 0;
  for (std::uint64_t key = 0; key < keys; ++key) count += line.may_contain(key) + 2 * block.may_contain(key);
  return count;
}
}  // namespace
