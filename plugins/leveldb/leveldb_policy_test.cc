// Promise: no key of a window is denied, whatever the family, the number of keys and the bits per key; at the same size
// the rate is at most three tenths of LevelDB's own; damaged filters answer *perhaps*; the compatible mode writes
// LevelDB's own bytes. Would notice: a missing key, a worse rate, a filter that is larger than LevelDB's, an answer of
// *no* from bytes that are cut short, a byte that differs.
#include <gtest/gtest.h>
#include <leveldb/slice.h>

#include <cmath>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "perhaps/any_filter.h"
#include "perhaps/engine/packed.h"
#include "perhaps_leveldb.h"
#include "support/keys.h"

namespace perhaps {
namespace {

using Policy = std::unique_ptr<const ::leveldb::FilterPolicy>;

Policy stock(int bits_per_key) { return Policy(::leveldb::NewBloomFilterPolicy(bits_per_key)); }

// The keys of window w: as db_bench's, sixteen digits.
std::vector<std::string> keys_of(std::uint64_t window, std::size_t count) {
  std::vector<std::string> keys;
  for (std::size_t i = 0; i < count; ++i) {
    char text[32];
    std::snprintf(text, sizeof text, "%016llu",
                  static_cast<unsigned long long>(test::Stream{window + 1}.at(i) % 10'000'000'000'000'000));
    keys.emplace_back(text);
  }
  return keys;
}

std::string filter_of(const Policy& policy, const std::vector<std::string>& keys) {
  const std::vector<::leveldb::Slice> slices(keys.begin(), keys.end());
  std::string filter = "before";
  policy->CreateFilter(slices.data(), static_cast<int>(slices.size()), &filter);
  EXPECT_EQ(filter.substr(0, 6), "before");
  return filter.substr(6);
}

TEST(LevelDbPolicy, DeniesNoKey) {
  std::vector<Kind> kinds = {Kind::dense};
  for (const Family& family : families()) {
    if (can_pack_few(family.kind)) kinds.push_back(family.kind);
  }
  for (const Kind family : kinds) {
    for (const std::size_t count : {1u, 2u, 3u, 7u, 18u, 36u, 63u, 64u, 65u, 66u, 100u, 255u, 256u, 1000u, 4000u}) {
      for (const double bits : {0.5, 3.0, 10.0, 14.5, 40.0}) {
        if (family != Kind::dense && (bits != 10 || count > 300)) continue;
        const Policy policy = leveldb::new_filter_policy({.bits_per_key = bits, .family = family});
        auto keys = keys_of(count, count);
        keys.push_back(keys.front());  // LevelDB gives every version of a key
        const std::string filter = filter_of(policy, keys);
        for (const std::string& key : keys) {
          ASSERT_TRUE(policy->KeyMayMatch(key, filter))
              << name_of(family) << ", " << count << " keys, " << bits << " bits";
        }
      }
    }
  }
}

// 400 windows of each size, 2000 absent keys each, z = 5 over the ratio's own errors.
TEST(LevelDbPolicy, AnswersWronglyAFractionAsOftenAsTheBuiltInOne) {
  constexpr std::uint64_t kWindows = 400;
  constexpr std::uint64_t kQuestions = 2000;
  for (const std::size_t count : {18u, 25u, 36u, 60u, 120u, 600u}) {
    for (const int bits : {8, 10, 12, 16}) {
      if (count != 36 && bits != 10) continue;
      const Policy ours = leveldb::new_filter_policy({.bits_per_key = static_cast<double>(bits)});
      const Policy theirs = stock(bits);
      std::uint64_t wrong = 0;
      std::uint64_t their_wrong = 0;
      std::size_t bytes = 0;
      std::size_t their_bytes = 0;
      for (std::uint64_t window = 0; window < kWindows; ++window) {
        const auto keys = keys_of(window, count);
        const std::string filter = filter_of(ours, keys);
        const std::string their_filter = filter_of(theirs, keys);
        bytes += filter.size();
        their_bytes += their_filter.size();
        for (const std::string& key : keys_of(1'000'000 + window, kQuestions)) {
          wrong += ours->KeyMayMatch(key, filter);
          their_wrong += theirs->KeyMayMatch(key, their_filter);
        }
      }
      const double n = kWindows * kQuestions;
      const double ratio = static_cast<double>(wrong) / static_cast<double>(their_wrong);
      std::printf("  %4zu keys, %2d bits per key: %.2f bits, %.4f %%; LevelDB %.2f bits, %.4f %%; %.3f times\n", count,
                  bits, static_cast<double>(bytes) * 8 / static_cast<double>(kWindows * count),
                  100 * static_cast<double>(wrong) / n,
                  static_cast<double>(their_bytes) * 8 / static_cast<double>(kWindows * count),
                  100 * static_cast<double>(their_wrong) / n, ratio);
      EXPECT_LE(bytes, their_bytes);
      const double error =
          ratio * std::sqrt(1 / (static_cast<double>(wrong) + 1) + 1 / static_cast<double>(their_wrong));
      EXPECT_LT(ratio - 5 * error, 0.3) << count << " keys, " << bits << " bits";
    }
  }
}

TEST(LevelDbPolicy, ReadsWhatOtherOptionsHaveWritten) {
  const auto keys = keys_of(1, 30);
  const Policy reader = leveldb::new_filter_policy({.bits_per_key = 20});
  for (const Kind family : {Kind::dense, Kind::line, Kind::classic, Kind::block}) {
    const std::string filter = filter_of(leveldb::new_filter_policy({.bits_per_key = 8, .family = family}), keys);
    for (const std::string& key : keys) EXPECT_TRUE(reader->KeyMayMatch(key, filter)) << name_of(family);
    std::uint64_t wrong = 0;
    for (const std::string& key : keys_of(2, 1000)) wrong += reader->KeyMayMatch(key, filter);
    EXPECT_LT(wrong, 500u) << name_of(family);
  }
}

TEST(LevelDbPolicy, DamageThatCanBeSeenAnswersPerhaps) {
  const auto keys = keys_of(1, 30);
  const Policy policy = leveldb::new_filter_policy();
  EXPECT_TRUE(policy->KeyMayMatch("x", ""));
  EXPECT_TRUE(policy->KeyMayMatch("x", std::string(40, '\0')));
  EXPECT_TRUE(policy->KeyMayMatch("x", std::string(40, '\x66')));
  for (const Kind family : {Kind::line, Kind::classic, Kind::block}) {
    const std::string filter = filter_of(leveldb::new_filter_policy({.family = family}), keys);
    for (std::size_t from = 1; from < filter.size() - 3; ++from) {
      EXPECT_TRUE(policy->KeyMayMatch("x", filter.substr(from)))
          << name_of(family) << " without its first " << from << " bytes";
    }
  }
  // And any bytes at all can be queried.
  for (std::uint64_t i = 0; i < 20'000; ++i) {
    std::string bytes(test::Stream{3}.at(i) % 70, 0);
    for (std::size_t j = 0; j < bytes.size(); ++j) bytes[j] = static_cast<char>(test::Stream{i}.at(j));
    policy->KeyMayMatch("x", bytes);
  }
}

// Without this refusal, a database would silently have no filters.
TEST(LevelDbPolicy, RefusesWhatItCannotMake) {
  EXPECT_THROW(leveldb::new_filter_policy({.family = Kind::scalable}), std::invalid_argument);
  for (const Kind kind : {Kind::fuse, Kind::cuckoo, Kind::quotient, Kind::ribbon}) {
    try {
      leveldb::new_filter_policy({.family = kind});
      ADD_FAILURE() << name_of(kind);
    } catch (const std::invalid_argument& error) {
      EXPECT_NE(std::string(error.what()).find(name_of(kind)), std::string::npos) << error.what();
    }
  }
  for (const double bits : {0.0, -1.0, 101.0, std::nan("")}) {
    EXPECT_THROW(leveldb::new_filter_policy({.bits_per_key = bits}), std::invalid_argument);
    EXPECT_THROW(leveldb::new_filter_policy({.bits_per_key = bits, .compatible = true}), std::invalid_argument);
  }
}

TEST(LevelDbPolicy, CompatibleModeWritesTheSameBytes) {
  for (const int bits : {1, 5, 10, 16, 100}) {
    const Policy ours = leveldb::new_filter_policy({.bits_per_key = static_cast<double>(bits), .compatible = true});
    const Policy theirs = stock(bits);
    EXPECT_STREQ(ours->Name(), theirs->Name());
    for (const std::size_t count : {1u, 3u, 18u, 36u, 1000u}) {
      const auto keys = keys_of(count, count);
      const std::string filter = filter_of(ours, keys);
      EXPECT_EQ(filter, filter_of(theirs, keys)) << count << " keys, " << bits << " bits";
      for (const std::string& key : keys) EXPECT_TRUE(ours->KeyMayMatch(key, filter));
      for (const std::string& key : keys_of(7777, 500)) {
        EXPECT_EQ(ours->KeyMayMatch(key, filter), theirs->KeyMayMatch(key, filter));
      }
    }
  }
  EXPECT_TRUE(leveldb::new_filter_policy({.compatible = true})->KeyMayMatch("x", "y"));  // LevelDB says no
}

}  // namespace
}  // namespace perhaps
