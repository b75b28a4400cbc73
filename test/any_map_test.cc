// Promise: a map in a file gives every key its value, with the words that values stand for, through AnyMap and through
// a typed view; as a filter it denies no key; damaged files are refused; and the files of test/golden/perhaps stay
// readable to the bit. Would notice: a section in the wrong place, a hasher forgotten, words mixed up, a byte that
// changes. Seeds are fixed.
#include "perhaps/any_map.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

namespace perhaps::test {
namespace {

using Typed = std::vector<Digest<Hash>>;
using Words = std::vector<std::uint64_t>;

constexpr std::uint64_t kKeys = 300;

std::string key(std::uint64_t i) { return "key " + std::to_string(i); }
std::uint64_t value(std::uint64_t i) { return i % 10 < 7 ? 0 : i % 3; }
const std::vector<std::string> kTexts = {"red", "", "blue"};

Words all_values() {
  Words values(kKeys);
  for (std::uint64_t i = 0; i < kKeys; ++i) values[i] = value(i);
  return values;
}
std::vector<std::string> all_keys() {
  std::vector<std::string> keys;
  for (std::uint64_t i = 0; i < kKeys; ++i) keys.push_back(key(i));
  return keys;
}

std::string path_of(const std::string& name) {
  return (std::filesystem::temp_directory_path() / ("any_map_test-" + std::to_string(::getpid()) + name)).string();
}
std::vector<char> bytes_in(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

// Writes the map of all keys to the path.
void write(const std::string& path, Kind kind, std::span<const std::string> texts) {
  const auto keys = all_keys();
  const Words values = all_values();
  const Record record{.keys = kKeys, .capacity = 0, .about = {{"note", "May"}}};
  if (kind == Kind::map) {
    const auto map = RibbonMap::build(std::span<const std::string>(keys), values, {.value_bits = 2, .check_bits = 6});
    ASSERT_TRUE(map);
    ASSERT_TRUE(save(path, *map, record, texts));
    return;
  }
  Typed digests;
  for (const std::string& text : keys) digests.push_back(digest_of(Hash(), text));
  const auto map = CodedMap::build(std::span<const Digest<Hash>>(digests), values, 6);
  ASSERT_TRUE(map);
  ASSERT_TRUE(save(path, *map, record, texts));
}

void expect_all(const File& file, bool words) {
  auto map = map_in(file);
  ASSERT_TRUE(map) << map.error().detail;
  const auto keys = all_keys();
  std::vector<Bytes> bytes;
  for (const std::string& text : keys) bytes.push_back(bytes_of(text));
  Words values(kKeys);
  Words found(kKeys / kBatch + 1);
  (*map)->find(bytes, values, found);
  EXPECT_EQ(values, all_values());
  for (std::uint64_t i = 0; i < kKeys; ++i) EXPECT_TRUE(found[i / 64] >> i % 64 & 1);
  EXPECT_EQ((*map)->texts().size(), words ? kTexts.size() : 0);
  EXPECT_TRUE(!words || std::ranges::equal((*map)->texts(), kTexts));
  const Description d = (*map)->describe();
  EXPECT_EQ(d.family, name_of(file.header().kind));
  EXPECT_EQ(d.keys, kKeys);
  EXPECT_EQ(d.fpr, 1.0 / 64);
  const auto filter = file.any();
  for (const Bytes one : bytes) EXPECT_TRUE(filter->may_contain(one));
  EXPECT_EQ(filter->describe().family, d.family);
  EXPECT_FALSE(file.load());
}

class AnyMapKinds : public testing::TestWithParam<Kind> {};

TEST_P(AnyMapKinds, GivesEveryKeyItsValueFromAFile) {
  for (const bool words : {false, true}) {
    const std::string path = path_of("kinds");
    write(path, GetParam(), words ? std::span<const std::string>(kTexts) : std::span<const std::string>());
    const auto file = File::open(path);
    ASSERT_TRUE(file) << file.error().detail;
    expect_all(*file, words);
    std::filesystem::remove(path);
  }
}

TEST_P(AnyMapKinds, GoldenFilesStayAsTheyAre) {
  const std::string name(name_of(GetParam()));
  const std::string golden = std::string(PERHAPS_TEST_DATA) + "/golden/perhaps/" + name + "-300.perhaps";
  const std::string path = path_of(name);
  write(path, GetParam(), kTexts);
  if (std::getenv("PERHAPS_UPDATE_GOLDEN") != nullptr) std::filesystem::copy_file(path, golden);
  const auto file = File::open(golden);
  ASSERT_TRUE(file) << file.error().detail;
  expect_all(*file, true);
  EXPECT_EQ(bytes_in(path), bytes_in(golden));
  std::filesystem::remove(path);
}

// Every byte of the header and some of the rest, without the checksums: refused, or every lookup stays inside.
TEST_P(AnyMapKinds, DamageIsRefusedOrHarmless) {
  const std::string path = path_of("damage");
  write(path, GetParam(), kTexts);
  std::vector<char> bytes = bytes_in(path);
  std::filesystem::remove(path);
  const std::string text = key(1);
  for (std::size_t at = 0; at < bytes.size(); ++at) {
    const char before = bytes[at];
    bytes[at] = static_cast<char>(before ^ 0x41);
    EXPECT_FALSE(File::over(std::as_bytes(std::span(bytes)))) << at;  // every byte is under a checksum
    if (const auto file = File::over(std::as_bytes(std::span(bytes)), {.verify = false, .secret = {}})) {
      if (const auto map = map_in(*file)) {
        const Bytes one = bytes_of(text);
        std::uint64_t value = 0;
        std::uint64_t found = 0;
        (*map)->find(std::span(&one, 1), std::span(&value, 1), std::span(&found, 1));
      }
    }
    bytes[at] = before;
  }
}

INSTANTIATE_TEST_SUITE_P(All, AnyMapKinds, testing::Values(Kind::map, Kind::coded),
                         [](const auto& test) { return std::string(name_of(test.param)); });

TEST(AnyMap, TypedViewOfAFile) {
  const std::string path = path_of("typed");
  write(path, Kind::map, {});
  const auto file = File::open(path);
  ASSERT_TRUE(file);
  const auto view = file->as<RibbonMapView>();
  ASSERT_TRUE(view) << view.error().detail;
  EXPECT_EQ(view->find(key(9)), value(9));
  EXPECT_FALSE(file->as<LineBloomView>());
  std::filesystem::remove(path);
}

TEST(AnyMap, AFilterIsNoMap) {
  const std::string path = path_of("filter");
  LineBloom filter({.keys = 10});
  ASSERT_TRUE(save(path, filter));
  const auto file = File::open(path);
  ASSERT_TRUE(file);
  const auto map = map_in(*file);
  ASSERT_FALSE(map);
  EXPECT_EQ(map.error().code, Errc::mismatch);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace perhaps::test
