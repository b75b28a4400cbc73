// Promise: a ribbon can be built from every set of random digests: 1e5 sets each of 1, 10 .. 1e4 keys, 1e4 of 1e5, 1e3
// of 1e6. Would notice: one set that ended as `every`, one missing key, a plan with too little room.
#include "support/ribbon_sets.h"

namespace perhaps::test {
namespace {

TEST(RibbonSoak, NoSetFails) {
  for (const std::uint64_t keys : {1, 10, 100, 1'000, 10'000}) expect_no_failure(keys, 100'000);
  expect_no_failure(100'000, 10'000);
  expect_no_failure(1'000'000, 1'000);
}

}  // namespace
}  // namespace perhaps::test
