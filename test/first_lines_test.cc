// Promise: the first lines a newcomer writes are short and do what they seem to do. Would notice: an API that grew.
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "perhaps/engine/filter_block.h"
#include "perhaps/line_bloom.h"

TEST(FirstLines, AreShort) {
  bool fetched = false;
  const auto fetch = [&] { fetched = true; };

  perhaps::LineBloom seen({.keys = 1'000'000, .fpr = 0.01});
  seen.insert("hello");
  if (!seen.may_contain("world")) fetch();

  EXPECT_TRUE(seen.may_contain("hello"));
  EXPECT_TRUE(fetched);
}

// The lines at the top of engine/filter_block.h, with a table of three keys.
TEST(FirstLines, OfAFilterBlock) {
  using namespace perhaps;
  const std::vector<std::string> table = {"eu/ams", "eu/ber", "us/nyc"};
  std::vector<std::byte> bytes;
  const auto write = [&](std::vector<std::byte> block) { bytes = std::move(block); };

  FilterBlockBuilder builder({.bits_per_key = 10, .prefix = PrefixExtractor::delimiter('/')});
  for (const std::string& user_key : table) builder.add(user_key);
  write(builder.finish());

  const FilterBlock filter = FilterBlock::over(bytes);
  EXPECT_TRUE(filter.may_contain("eu/ber"));
  EXPECT_TRUE(filter.may_contain_prefix("eu/"));
  EXPECT_FALSE(filter.may_contain("eu/zrh"));
  EXPECT_FALSE(filter.may_contain_prefix("af/"));
}
