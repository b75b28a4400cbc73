// Promise: no filter ever answers *no* to a key it holds. Would notice: a size at which it does, among all from 0 to
// 300 and 11400 to 11600, and a million, in every family x hasher x pattern x kernel (fewer with the keyed hasher, see
// each test).
#include "support/no_false_negatives.h"

namespace perhaps::test {
namespace {

template <class F>
struct FalseNegatives : ::testing::Test {};
TYPED_TEST_SUITE(FalseNegatives, FamiliesAndHashers, FamilyNames);

TYPED_TEST(FalseNegatives, NoneAtAnySize) {
  every_pattern<TypeParam>(11600, [](auto check) {
    for (std::uint64_t n = 0; n <= 300; ++n) check(n);
    // The hasher changes only the digests: with the slow one, every tenth size is enough.
    const std::uint64_t step = std::same_as<typename TypeParam::hasher_type, KeyedHash> ? 10 : 1;
    for (std::uint64_t n = 11400; n <= 11600; n += step) check(n);
  });
}

TYPED_TEST(FalseNegatives, NoneAmongAMillion) {
  // With the slow hasher a tenth is enough, as above.
  constexpr std::uint64_t kKeys = std::same_as<typename TypeParam::hasher_type, KeyedHash> ? 100'000 : 1'000'000;
  every_pattern<TypeParam>(kKeys, [](auto check) { check(kKeys); });
}

}  // namespace
}  // namespace perhaps::test
