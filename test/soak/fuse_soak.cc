// Promise: a filter can be built from every random set, of 10^5 sets of 1 to 10^4 keys, 10^4 of 10^5 and 10^3 of 10^6,
// and at every size a try succeeds for 95 % of the sets. Would notice: one lost key, one set that needs 16 seeds, a
// size with a bad geometry.
#include <cmath>

#include "support/fuse_sets.h"

namespace perhaps::test {
namespace {

TEST(FuseSoak, RandomSets) {
  for (const std::uint32_t arity : {3u, 4u}) {
    for (const std::uint64_t keys : {1, 10, 100, 1000, 10'000}) expect_all_built(arity, keys, 100'000, 10);
    expect_all_built(arity, 100'000, 10'000, 10);
    expect_all_built(arity, 1'000'000, 1000, 10);
  }
}

// Sizes 2 % apart, 2000 sets up to 20,000 keys and 4e7 / keys above. Allows three sigma of the count for chance.
TEST(FuseSoak, TriesSucceedAtEverySize) {
  for (const std::uint32_t arity : {3u, 4u}) {
    for (std::uint64_t keys = 1; keys <= 2'000'000; keys += keys / 50 + 1) {
      const std::uint64_t sets = keys <= 20'000 ? 2000 : std::max<std::uint64_t>(40'000'000 / keys, 50);
      const FuseTries tries = fuse_tries(arity, keys, sets, keys);
      const double n = static_cast<double>(sets);
      EXPECT_GE(static_cast<double>(tries.at_once), n * 0.95 - 3 * std::sqrt(n * 0.95 * 0.05))
          << keys << " keys, arity " << arity;
      EXPECT_EQ(tries.missing, 0u);
    }
  }
}

}  // namespace
}  // namespace perhaps::test
