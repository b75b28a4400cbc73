// Promise: the first lines a newcomer writes are short and do what they seem to do. Would notice: an API that grew.
#include <gtest/gtest.h>

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
