// Promise: a ribbon can be built from every set of random digests, with one seed or two. Would notice: a plan with too
// little room, by the share of shards that started over, and a set that ended as `every`. The soak test of the same
// name builds fifty times as many.
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
