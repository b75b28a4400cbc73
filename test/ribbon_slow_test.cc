// Promise: no set of random digests fails to become a ribbon, and none needs more than a seed or two. Would notice: a
// plan with too little room, by the share of shards that started over, and a set that ended as `every`. The soak of
// the same name does fifty times as many.
#include "support/ribbon_sets.h"

namespace perhaps::test {
namespace {

TEST(RibbonSlow, NoSetFails) {
  expect_no_failure(1, 2000);
  expect_no_failure(10, 2000);
  expect_no_failure(100, 2000);
  expect_no_failure(1'000, 2000);
  expect_no_failure(10'000, 2000);
  expect_no_failure(100'000, 200);
  expect_no_failure(1'000'000, 20);
}

}  // namespace
}  // namespace perhaps::test
