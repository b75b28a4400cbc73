// How a filter under a secret fares against an adversary without it, who may insert and look up: as with random keys.
#pragma once
#include <sys/types.h>
#include <unistd.h>

#include "perhaps/perhaps.h"
#include "support/attack.h"
#include "support/statistics.h"

namespace perhaps::test {

inline std::uint64_t count_ones_of_bytes(Bytes bytes) noexcept {
  std::uint64_t ones = 0;
  for (const std::byte b : bytes) ones += static_cast<unsigned>(std::popcount(std::to_integer<unsigned>(b)));
  return ones;
}

// `tries` lookups in filters of each family, a fresh secret each. The adversary knows the inserted keys, which are all
// that was chosen by him, and tries for each of them in turn
//   - the 16 bytes with the same XXH3 digest, under seeds that a careless build might have
//   - neighbours: one bit of the key flipped, one byte more, the same number as text
//   - its digest under a guessed secret, as a number
// n = tries / 4 for each of four families; the bound is the model's rate, z = 5, plus 5 % for a filter's own fill.
inline void expect_keyed_holds(std::uint64_t tries) {
  const auto holds = [&]<class F>(std::uint64_t share) {
    constexpr std::uint64_t kKeys = 100'000;
    constexpr double kRate = 1e-3;
    const KeyedHash hasher(KeyedHash::new_secret());
    const KeyedHash guess(KeyedHash::new_secret());
    F filter(RequestOf<typename F::Shape>{.keys = kKeys, .fpr = kRate}, hasher);
    std::vector<std::string> keys;
    for (std::uint64_t i = 0; i < kKeys; ++i) keys.push_back("chosen key " + std::to_string(i));
    for (const std::string& key : keys) ASSERT_NE(filter.insert(key), Inserted::full);
    std::vector<Digest<KeyedHash>> digests(1024);
    std::vector<std::uint64_t> answers(16);
    std::uint64_t wrong = 0;
    std::uint64_t asked = 0;
    std::size_t in_batch = 0;
    const auto flush = [&] {
      filter.may_contain(std::span<const Digest<KeyedHash>>(digests.data(), in_batch), answers);
      for (std::size_t i = 0; i < in_batch; ++i) wrong += answers[i / 64] >> i % 64 & 1;
      asked += in_batch;
      in_batch = 0;
    };
    const auto ask = [&](std::string_view key) {
      digests[in_batch++] = hasher(bytes_of(key));
      if (in_batch == digests.size()) flush();
    };
    std::string key;
    for (std::uint64_t turn = 0;; ++turn) {
      if (asked >= share) break;
      const std::string& known = keys[turn % keys.size()];
      const std::uint64_t variant = turn / keys.size();
      ask(same_digest_as(known, variant));
      key = known;
      key[0] = static_cast<char>(key[0] ^ (1 + static_cast<int>(variant % 255)));
      key += static_cast<char>(variant / 255 % 256);
      key += static_cast<char>(variant / 65280 % 256);
      ask(key);
      key = known;
      for (std::uint64_t more = variant; more != 0; more /= 64) key += static_cast<char>('0' + more % 64);
      key += '\0';
      ask(key);
      ask(std::to_string(guess(bytes_of(known)).value + variant));
    }
    flush();
    const double rate = static_cast<double>(wrong) / static_cast<double>(asked);
    const double model = filter.shape().fpr(static_cast<double>(kKeys));
    std::printf("  %s: %lu tries, rate %.6f, model %.6f\n", std::string(F::layout::family).c_str(), asked, rate, model);
    EXPECT_LT(rate, 1.05 * model + kSigmas * binomial_error(model, static_cast<double>(asked)));
  };
  holds.template operator()<BasicLineBloom<KeyedHash>>(tries / 4);
  holds.template operator()<BasicBloom<Multiplicative, KeyedHash>>(tries / 4);
  holds.template operator()<BasicCuckoo<KeyedHash>>(tries / 4);
  holds.template operator()<BasicQuotient<KeyedHash>>(tries / 4);
}

}  // namespace perhaps::test
