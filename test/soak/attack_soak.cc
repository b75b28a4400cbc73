// Promise: filters under a secret have the rate of their model against 1e9 tries of somebody who does not know it
// (support/keyed_trial.h). Would notice: a digest that depends on less than the whole secret, or on the key in a way
// that can be guessed.
#include "support/keyed_trial.h"

namespace perhaps::test {
namespace {

TEST(AttackSoak, AThousandMillionTries) { expect_keyed_holds(1'000'000'000); }

}  // namespace
}  // namespace perhaps::test
