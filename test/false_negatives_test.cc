// Promise: no filter ever answers *no* to a key it holds. Would notice: any kind of insert and any kind of lookup that
// disagree, for every kernel, from the empty filter to a few thousand keys. The slow test does the same for all sizes.
#include "support/no_false_negatives.h"

namespace perhaps::test {
namespace {

template <class F>
struct FalseNegatives : ::testing::Test {};
TYPED_TEST_SUITE(FalseNegatives, FamiliesAndHashers, FamilyNames);

TYPED_TEST(FalseNegatives, NoneInSmallSets) {
  every_pattern<TypeParam>(300, [](auto check) {
    for (std::uint64_t n = 0; n <= 300; n += n < 70 ? 1 : 23) check(n);
  });
}

TYPED_TEST(FalseNegatives, NoneAroundElevenThousand) {
  every_pattern<TypeParam>(11600, [](auto check) {
    for (const std::uint64_t n : {11400, 11499, 11553, 11600}) check(n);
  });
}

}  // namespace
}  // namespace perhaps::test
