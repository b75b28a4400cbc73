// Promise: for given keys the bytes of a filter never change, on any machine, compiler or kernel. Would notice: any
// change of a hash, a layout or the widening of integers, by the digest of a table and by the first false positives of
// its filter.
//
// test/golden/digests.txt holds the expected values. An intended change needs a new version of the file format first;
// then PERHAPS_UPDATE_GOLDEN=1 rewrites the file.
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "support/golden_lines.h"

namespace perhaps::test {
namespace {

TEST(Golden, BytesAndFalsePositives) {
  const std::string now = golden_lines();
  const std::string path = std::string(PERHAPS_TEST_DATA) + "/golden/digests.txt";
  if (std::getenv("PERHAPS_UPDATE_GOLDEN") != nullptr) std::ofstream(path) << now;
  std::ifstream file(path);
  ASSERT_TRUE(file) << path;
  std::ostringstream wanted;
  wanted << file.rdbuf();
  EXPECT_EQ(now, wanted.str());
}

}  // namespace
}  // namespace perhaps::test
