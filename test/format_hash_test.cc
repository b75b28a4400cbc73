// Promise: foreign hashes equal those of the systems, for every key length, including the systems' variants of known
// hashes. Would notice: one wrong bit in one of them, at lengths 0 to 300 and some thousands (test/golden/hashes.json,
// whose values were made by the systems' own libraries or confirmed by their filters), and in the published test
// vectors.
#include <gtest/gtest.h>

#include <cstdio>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "hash/crc32.h"
#include "hash/farmhash.h"
#include "hash/fnv.h"
#include "hash/leveldb_hash.h"
#include "hash/lookup3.h"
#include "hash/murmur2.h"
#include "hash/murmur3.h"
#include "hash/xxh64.h"
#include "hash/xxph3.h"

namespace perhaps::test {
namespace {

std::string hex32(std::uint32_t h) {
  char text[9];
  std::snprintf(text, sizeof text, "%08x", h);
  return text;
}
std::string hex64(std::uint64_t h) {
  return hex32(static_cast<std::uint32_t>(h >> 32)) + hex32(static_cast<std::uint32_t>(h));
}
std::string hex128(Murmur128 h) { return hex64(h.first) + " " + hex64(h.second); }

constexpr std::uint64_t kRedisBloomSeed = 0xc6a4a7935bd1e995u;

// One per column of the file.
const std::map<std::string, std::function<std::string(Bytes)>> kColumns = {
    {"cassandra_murmur3", [](Bytes key) { return hex128(murmur3_x64_128_cassandra(key)); }},
    {"farmhash_fingerprint32_rust", [](Bytes key) { return hex32(farmhash_fingerprint32(key)); }},
    {"lab_mix64", [](Bytes key) { return hex64(splitmix64(fnv1a_64(key))); }},
    {"leveldb_bloomhash", [](Bytes key) { return hex32(leveldb_hash(key)); }},
    {"murmur64a_s0", [](Bytes key) { return hex64(murmur64a(key, 0)); }},
    {"murmur3_x64_128_s0", [](Bytes key) { return hex128(murmur3_x64_128(key)); }},
    {"redisbloom_a", [](Bytes key) { return hex64(murmur64a(key, kRedisBloomSeed)); }},
    {"redisbloom_b", [](Bytes key) { return hex64(murmur64a(key, murmur64a(key, kRedisBloomSeed))); }},
    {"rocksdb_hash64", [](Bytes key) { return hex64(xxph3(key)); }},
    {"rocksdb_legacy_bloomhash", [](Bytes key) { return hex32(rocksdb_hash(key)); }},
    {"spark_h1_h2_s0",
     [](Bytes key) {
       const std::uint32_t first = murmur3_x86_32_spark(key, 0);
       return hex32(first) + " " + hex32(murmur3_x86_32_spark(key, first));
     }},
    {"xxh3_64_final_s0_for_contrast", [](Bytes key) { return hex64(Hash(0)(key).value); }},
    {"xxh64_s0", [](Bytes key) { return hex64(xxh64(key, 0)); }},
    {"xxh64_s1", [](Bytes key) { return hex64(xxh64(key, 1)); }},
};

std::vector<std::byte> bytes_of_hex(const std::string& hex) {
  std::vector<std::byte> bytes(hex.size() / 2);
  for (std::size_t i = 0; i < bytes.size(); ++i)
    bytes[i] = static_cast<std::byte>(std::stoul(hex.substr(2 * i, 2), nullptr, 16));
  return bytes;
}

class FormatHash : public testing::TestWithParam<std::string> {
 protected:
  static const nlohmann::json& rows() {
    static const nlohmann::json all = nlohmann::json::parse(std::ifstream(PERHAPS_TEST_DATA "/golden/hashes.json"));
    return all;
  }
};

TEST_P(FormatHash, EqualsThatOfTheSystem) {
  const auto& hash = kColumns.at(GetParam());
  ASSERT_GE(rows().size(), 300u);
  ASSERT_EQ(rows().front().size(), kColumns.size() + 1) << "a column of the file is not checked";
  for (const auto& row : rows()) {
    const auto key = bytes_of_hex(row.at("hex"));
    ASSERT_EQ(hash(key), row.at(GetParam()).get<std::string>()) << key.size() << " bytes";
  }
}

std::vector<std::string> names_of_columns() {
  std::vector<std::string> names;
  for (const auto& [name, hash] : kColumns) names.push_back(name);
  return names;
}
INSTANTIATE_TEST_SUITE_P(Columns, FormatHash, testing::ValuesIn(names_of_columns()),
                         [](const auto& column) { return column.param; });

TEST_F(FormatHash, TwiceIsTheKeyAndTheKeyWithOneByteMore) {
  for (const auto& row : rows()) {
    auto key = bytes_of_hex(row.at("hex"));
    const auto both = murmur3_x64_128_twice(key);
    const Murmur128 alone = murmur3_x64_128(key);
    key.push_back(std::byte{1});
    const Murmur128 longer = murmur3_x64_128(key);
    const std::array<std::uint64_t, 4> expected = {alone.first, alone.second, longer.first, longer.second};
    ASSERT_EQ(both, expected) << key.size() - 1 << " bytes";
  }
}

// Widely published values of the 32-bit MurmurHash3.
TEST(Murmur3, PublishedValuesOf32Bits) {
  EXPECT_EQ(murmur3_x86_32({}, 0), 0u);
  EXPECT_EQ(murmur3_x86_32({}, 1), 0x514e28b7u);
  EXPECT_EQ(murmur3_x86_32({}, 0xffffffff), 0x81f16f39u);
  EXPECT_EQ(murmur3_x86_32(bytes_of("!"), 0), 0x72661cf4u);
  EXPECT_EQ(murmur3_x86_32(bytes_of("!C"), 0), 0xa0f7b07au);
  EXPECT_EQ(murmur3_x86_32(bytes_of("!Ce"), 0), 0x7e4a8634u);
  EXPECT_EQ(murmur3_x86_32(bytes_of("!Ce\x87"), 0), 0xf55b516bu);
  EXPECT_EQ(murmur3_x86_32(bytes_of("\xff\xff\xff\xff"), 0), 0x76293b50u);
  EXPECT_EQ(murmur3_x86_32(bytes_of("hello"), 0), 0x248bfa47u);
  EXPECT_EQ(murmur3_x86_32(bytes_of("The quick brown fox jumps over the lazy dog"), 0x9747b28c), 0x2fa826cdu);
}

// From the self-test at the end of lookup3.c.
TEST(Lookup3, ValuesOfTheSelfTest) {
  EXPECT_EQ(lookup3({}, 0), 0xdeadbeefu);
  EXPECT_EQ(lookup3({}, 0xdeadbeef), 0xbd5b7ddeu);
  EXPECT_EQ(lookup3(bytes_of("Four score and seven years ago"), 0), 0x17770551u);
  EXPECT_EQ(lookup3(bytes_of("Four score and seven years ago"), 1), 0xcd628161u);
}

// Computed from the description, independently of this code: there is no file written by Hadoop here. "abcd" has no
// tail.
TEST(Murmur2, HadoopsVariant) {
  EXPECT_EQ(murmur2_hadoop(bytes_of("abcd"), 0), 0x26873021u);
  EXPECT_EQ(murmur2_hadoop(bytes_of("hello"), 0), 0xe56129cbu);
  EXPECT_EQ(murmur2_hadoop(bytes_of("hello"), 1), 0xa631918eu);
  EXPECT_EQ(murmur2_hadoop(bytes_of("\xff\x80"), 7), 0x7aa6d1fbu);
  EXPECT_EQ(murmur2_hadoop(bytes_of("a\xff\x01"), 0x12345678), 0x6abec23fu);
}

TEST(Crc32, CheckValues) {
  EXPECT_EQ(crc32(bytes_of("123456789")), 0xcbf43926u);
  EXPECT_EQ(crc32c(bytes_of("123456789")), 0xe3069283u);
  EXPECT_EQ(crc32({}), 0u);
}

}  // namespace
}  // namespace perhaps::test
