// Promise, and its limit (SECURITY.md): whoever knows the hash makes a filter answer *perhaps* to a chosen key, fills
// it up, or takes a chosen key out of it, within seconds; whoever does not know the secret of a KeyedHash cannot
// prepare any of that. The tests of public hashing succeed if the attack does: they prove the warning. The tests of
// keyed hashing run the same attacks with all that an adversary can know and expect the rate of the model, 5 sigma.
// Surfaces: every family of the library, files, packed filters, the formats of other systems, RedisBloom's hash. The
// tool: cli/attack_test.py. A thousand million tries: soak/attack_soak.cc. How long a lookup takes is not claimed to
// hide anything.
#include <filesystem>

#include "perhaps/algebra.h"
#include "perhaps/engine/packed.h"
#include "perhaps/file/container.h"
#include "perhaps/format/format.h"
#include "perhaps/perhaps.h"
#include "redisbloom/redisbloom.h"
#include "support/attack.h"
#include "support/keyed_trial.h"

namespace perhaps::test {
namespace {

// 100 keys that somebody cares about, and for each another one with the same public digest.
struct Targets {
  explicit Targets(std::uint64_t seed) {
    for (int i = 0; i < 100; ++i) {
      victims.push_back("an alert that must not be lost: " + std::to_string(i * i));
      forged.push_back(same_digest_as(victims.back(), seed));
    }
  }
  std::vector<std::string> victims;
  std::vector<std::string> forged;
};

std::vector<Bytes> views_of(const std::vector<std::string>& texts) {
  std::vector<Bytes> views;
  for (const std::string& text : texts) views.push_back(bytes_of(text));
  return views;
}

std::size_t present_in(const AnyFilter& filter, const std::vector<std::string>& texts) {
  std::size_t present = 0;
  for (const std::string& text : texts) present += filter.may_contain(bytes_of(text));
  return present;
}

std::unique_ptr<AnyOwner> filter_of(Kind kind, const AnyHasher& hasher, const std::vector<std::string>& keys) {
  auto builder = make_builder(kind, {.keys = keys.size(), .fpr = 0.001}, hasher);
  EXPECT_TRUE(builder) << builder.error().detail;
  for (const auto& lane : (*builder)->lanes(1)) EXPECT_TRUE(lane->insert(views_of(keys)));
  auto filter = (*builder)->finish();
  EXPECT_TRUE(filter) << filter.error().detail;
  return *std::move(filter);
}

TEST(Attack, ForgedKeysHaveTheDigestOfTheirVictims) {
  for (const std::uint64_t seed : {std::uint64_t{0}, std::uint64_t{42}, UINT64_MAX, Hash().seed()}) {
    const Targets targets(seed);
    for (std::size_t i = 0; i < targets.victims.size(); ++i) {
      ASSERT_NE(targets.victims[i], targets.forged[i]);
      ASSERT_EQ(Hash(seed)(bytes_of(targets.victims[i])), Hash(seed)(bytes_of(targets.forged[i]))) << seed;
    }
  }
}

// A filter of forged keys only claims to have every victim, whatever the family and the rate. Under a secret the rate
// of 0.1 % holds: of 100 victims 8 are past 5 sigma for the worst of the families.
TEST(Attack, ForgedPositivesInEveryFamily) {
  const Targets targets(Hash().seed());
  const KeyedHash keyed(KeyedHash::new_secret());
  for (const Family& family : families()) {
    EXPECT_EQ(present_in(*filter_of(family.kind, Hash(), targets.forged), targets.victims), 100u) << family.name;
    EXPECT_LT(present_in(*filter_of(family.kind, keyed, targets.forged), targets.victims), 8u) << family.name;
  }
  // Packed, for the blocks of tables.
  std::vector<std::uint64_t> forged;
  for (const std::string& key : targets.forged) forged.push_back(Hash()(bytes_of(key)).value);
  const auto packed = pack(Kind::dense, forged, 16);
  for (const std::string& victim : targets.victims)
    EXPECT_TRUE(packed_may_contain(packed, Hash()(bytes_of(victim)).value));
}

// Erasing a forged key, which was never inserted, erases the victim: a false negative. Under a secret at most what
// wrong_erase says is lost.
TEST(Attack, ForgedDeletions) {
  const Targets targets(Hash().seed());
  const KeyedHash keyed(KeyedHash::new_secret());
  for (const Family& family : families()) {
    if (!family.erases) continue;
    for (const AnyHasher& hasher : {AnyHasher(Hash()), AnyHasher(keyed)}) {
      auto filter = make_any(family.kind, {.keys = 1000, .fpr = 1e-4}, hasher);
      ASSERT_TRUE(filter);
      ASSERT_EQ((*filter)->insert(views_of(targets.victims)), 100u);
      std::vector<std::uint64_t> digests(100);
      hash_many(hasher, views_of(targets.forged), digests);
      ASSERT_TRUE((*filter)->erase_digests(digests));
      const std::size_t left = present_in(**filter, targets.victims);
      if (std::holds_alternative<Hash>(hasher)) {
        EXPECT_LT(left, 3u) << family.name << ": the attack failed";
      } else {
        EXPECT_GT(left, 97u) << family.name;
      }
    }
  }
}

// Gerbet, Kumar, Lauradoux 2015: keys that each set as many fresh bits as a key has probes fill 69 % of the bits
// instead of 50 %, found by trying on a copy. The same keys are ordinary ones under a secret.
TEST(Attack, PollutionOfAClassicFilter) {
  constexpr std::uint64_t kKeys = 500;
  const BloomShape shape = BloomShape::for_keys({.keys = kKeys, .fpr = 0.01});
  const auto ones_in = [](const Bloom& filter) { return count_ones_of_bytes(filter.bytes()); };
  Bloom copy(shape);
  std::vector<std::uint64_t> chosen;
  std::uint64_t tries = 0;
  for (std::uint64_t ones = 0; chosen.size() < kKeys;) {
    const std::uint64_t key = Stream{81}.at(tries++);
    Bloom tried = copy;
    tried.insert(key);
    const std::uint64_t now = ones_in(tried);
    if (now - ones < shape.probes) continue;
    copy = tried;
    ones = now;
    chosen.push_back(key);
  }
  const auto rate_of = [&](const auto& filter) {
    std::uint64_t wrong = 0;
    for (std::uint64_t i = 0; i < 100'000; ++i) wrong += filter.may_contain(Stream{82}.at(i));
    return static_cast<double>(wrong) / 100'000;
  };
  Bloom victim(shape);
  BasicBloom<Multiplicative, KeyedHash> keyed(shape, KeyedHash(KeyedHash::new_secret()));
  for (const std::uint64_t key : chosen) victim.insert(key), keyed.insert(key);
  std::printf("  %lu tries: rate %.4f instead of 0.01; keyed %.4f\n", tries, rate_of(victim), rate_of(keyed));
  EXPECT_GT(rate_of(victim), 0.04);
  // n = 1e5, and the spread among filters of 500 keys.
  EXPECT_LT(rate_of(keyed), 0.02);
}

// A few dozen keys of one line, found by trying each on an empty copy, and every key of that line seems present.
TEST(Attack, FloodingOneLine) {
  const LineShape shape = LineShape::for_keys({.keys = 5000, .fpr = 0.01});
  const std::string victim = "an alert that must not be lost";
  const auto line_of = [&](auto key) {
    LineBloom empty(shape);
    empty.insert(key);
    const Bytes bytes = empty.bytes();
    const auto set = std::find_if(bytes.begin(), bytes.end(), [](std::byte b) { return b != std::byte{0}; });
    return (set - bytes.begin()) / 64;
  };
  const auto line = line_of(victim);
  LineBloom filter(shape);
  BasicLineBloom<KeyedHash> keyed(shape, KeyedHash(KeyedHash::new_secret()));
  std::uint64_t found = 0;
  for (std::uint64_t i = 0; found < 300; ++i) {
    if (line_of(i) != line) continue;
    ++found;
    filter.insert(i);
    keyed.insert(i);
  }
  EXPECT_TRUE(filter.may_contain(victim));
  // 300 of 5000 keys, spread: far below the rate of the full filter.
  std::uint64_t wrong = 0;
  for (std::uint64_t i = 0; i < 100'000; ++i) wrong += keyed.may_contain(Stream{83}.at(i));
  EXPECT_LT(wrong, 1000u);
}

// With the bytes of a filter and a public hash, keys that it does not have and claims to have are found offline. With
// the bytes and no secret it cannot be queried at all; under a guessed secret it says nothing about the true one.
TEST(Attack, SearchingStolenBytes) {
  const auto path = (std::filesystem::temp_directory_path() / ("attack_test-" + std::to_string(::getpid()))).string();
  const KeyedHash secret(KeyedHash::new_secret());
  for (const Family& family : families()) {
    std::vector<std::string> keys;
    for (int i = 0; i < 2000; ++i) keys.push_back("key " + std::to_string(i));
    const auto victim = filter_of(family.kind, Hash(), keys);
    ASSERT_TRUE(victim->save(path, {}));
    const auto stolen = File::open(path);
    ASSERT_TRUE(stolen);
    const auto copy = stolen->any();
    std::vector<std::string> found;
    std::uint64_t tries = 0;
    while (found.size() < 20 && tries < 1'000'000) {
      std::string guess = "guess " + std::to_string(tries++);
      if (copy->may_contain(bytes_of(guess))) found.push_back(std::move(guess));
    }
    EXPECT_EQ(found.size(), 20u) << family.name;
    EXPECT_EQ(present_in(*victim, found), found.size()) << family.name;

    const auto safe = filter_of(family.kind, secret, keys);
    ASSERT_TRUE(safe->save(path, {}));
    const auto without = File::open(path);
    ASSERT_FALSE(without);
    EXPECT_EQ(without.error().code, Errc::bad_key);
    const auto guessed = File::open(path, {.secret = KeyedHash(KeyedHash::new_secret())});
    ASSERT_FALSE(guessed);
    EXPECT_EQ(guessed.error().code, Errc::bad_key);
    EXPECT_LT(present_in(*safe, found), 8u) << family.name;
  }
  std::filesystem::remove(path);
}

// Every format of another system has a public hash with a public seed.
TEST(Attack, SearchingFilesOfOtherSystems) {
  std::vector<std::string> keys;
  for (int i = 0; i < 2000; ++i) keys.push_back("key " + std::to_string(i));
  std::size_t formats = 0;
  for (const format::Codec* codec : format::codecs()) {
    if (codec->build == nullptr) continue;
    const format::Params params(*codec);
    const auto bytes = codec->build(views_of(keys), params);
    ASSERT_TRUE(bytes) << codec->name << ": " << bytes.error().detail;
    const auto stolen = codec->open({*bytes}, params);
    ASSERT_TRUE(stolen) << codec->name << ": " << stolen.error().detail;
    std::size_t found = 0;
    std::uint64_t tries = 0;
    while (found < 5 && tries < 4'000'000)
      found += stolen->whole->may_contain(bytes_of("guess " + std::to_string(tries++)));
    EXPECT_EQ(found, 5u) << codec->name;
    ++formats;
  }
  EXPECT_GT(formats, 15u);
}

// RedisBloom, and with it the Redis module: keys of 16 bytes or more collide under every seed.
TEST(Attack, RedisBloom) {
  redisbloom::CuckooChain cuckoo(redisbloom::kHeap);
  cuckoo.size_for(1000);
  ASSERT_TRUE(cuckoo.append());
  const format::Codec& codec = *format::find("redisbloom-bf");
  std::vector<std::string> victims;
  std::vector<std::string> forged;
  for (int i = 0; i < 100; ++i) {
    victims.push_back("an alert that must not be lost: " + std::to_string(i * i));
    forged.push_back(same_murmur_as(victims.back()));
    ASSERT_NE(victims.back(), forged.back());
    ASSERT_EQ(cuckoo.add(redisbloom::CuckooChain::hash(bytes_of(victims.back()))), redisbloom::Added::added);
  }
  const auto bytes = codec.build(views_of(forged), format::Params(codec));
  ASSERT_TRUE(bytes);
  const auto filter = codec.open({*bytes}, format::Params(codec));
  ASSERT_TRUE(filter) << filter.error().detail;
  EXPECT_EQ(present_in(*filter->whole, victims), 100u) << "BF: forged positives";
  std::size_t left = 0;
  for (std::size_t i = 0; i < victims.size(); ++i) {
    EXPECT_TRUE(cuckoo.may_contain(redisbloom::CuckooChain::hash(bytes_of(forged[i]))));
    EXPECT_TRUE(cuckoo.erase(redisbloom::CuckooChain::hash(bytes_of(forged[i]))));
  }
  for (const std::string& victim : victims) left += cuckoo.may_contain(redisbloom::CuckooChain::hash(bytes_of(victim)));
  EXPECT_LT(left, 5u) << "CF: forged deletions";
}

TEST(Attack, KeyedHashingHolds) { expect_keyed_holds(1'000'000); }

}  // namespace
}  // namespace perhaps::test
