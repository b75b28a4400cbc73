// Promises: the shard of a key is as documented, whatever the key; keys are distributed to shards evenly and
// independently of the digest by which a filter places them; a file of shards returns what was written, and damage to
// any byte of it is refused. Would notice: a changed seed, a biased rule, a header field that is not checked.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <fstream>

#include "perhaps/file/container.h"
#include "perhaps/file/shards.h"

namespace perhaps {
namespace {

namespace fs = std::filesystem;

class ShardsFile : public testing::Test {
 protected:
  ShardsFile() : path_(fs::temp_directory_path() / ("shards_test." + std::to_string(::getpid()))) {}
  ~ShardsFile() override { fs::remove(path_); }
  std::vector<std::byte> read() const {
    std::ifstream in(path_, std::ios::binary);
    const std::vector<char> text((std::istreambuf_iterator<char>(in)), {});
    const auto bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
  }
  fs::path path_;
};

// The table of doc/shards.md.
TEST(Shard, IsWhatThePageSays) {
  struct Row {
    std::string_view key;
    std::uint64_t hash;
    std::uint64_t of_3;
    std::uint64_t of_64;
  };
  constexpr Row kRows[] = {
      {"", 0xf35bac40e97ea642, 2, 60},
      {"hello", 0xf838850f88636c24, 2, 62},
      {"item:0", 0xac0e82e0ef462895, 2, 43},
      {"The quick brown fox jumps over the lazy dog", 0x8782c869c153344c, 1, 33},
  };
  for (const Row& row : kRows) {
    EXPECT_EQ(Hash(kShardSeed)(bytes_of(row.key)).value, row.hash) << row.key;
    EXPECT_EQ(shard_of(bytes_of(row.key), 3), row.of_3) << row.key;
    EXPECT_EQ(shard_of(bytes_of(row.key), 64), row.of_64) << row.key;
    EXPECT_EQ(shard_of(bytes_of(row.key), 1), 0u) << row.key;
  }
}

TEST(Shard, IsEvenAndIndependentOfTheDigest) {
  constexpr std::uint64_t kShards = 16;
  constexpr std::uint64_t kKeys = 160'000;
  // By shard, and by the high bits of the digest, where line and block filters place a key.
  std::array<std::array<std::uint64_t, 16>, kShards> counts{};
  for (std::uint64_t i = 0; i < kKeys; ++i) {
    const std::string key = "key " + std::to_string(i);
    ++counts[shard_of(bytes_of(key), kShards)][Hash{}(bytes_of(key)).value >> 60];
  }
  // Pearson's statistic over 256 cells: 255 degrees of freedom, standard deviation sqrt(2 * 255), 5 sigma.
  double chi = 0;
  constexpr double kMean = static_cast<double>(kKeys) / 256;
  for (const auto& row : counts)
    for (const std::uint64_t n : row)
      chi += (static_cast<double>(n) - kMean) * (static_cast<double>(n) - kMean) / kMean;
  EXPECT_LT(chi, 255 + 5 * std::sqrt(2 * 255.0)) << "n = " << kKeys;
}

TEST_F(ShardsFile, ReturnsWhatWasWritten) {
  const std::string first(100, 'a');
  const std::string second;
  const std::string third(1000, 'c');
  const std::vector<Shard> put = {{0, bytes_of(first)}, {3, bytes_of(second)}, {4, bytes_of(third)}};
  ASSERT_TRUE(write_shards(path_, 5, put));
  const std::vector<std::byte> file = read();
  EXPECT_TRUE(is_shards(file));
  EXPECT_FALSE(is_container(file));
  const auto shards = Shards::over(file, "x");
  ASSERT_TRUE(shards) << shards.error().detail;
  EXPECT_EQ(shards->count(), 5u);
  EXPECT_FALSE(shards->whole());
  ASSERT_EQ(shards->here().size(), put.size());
  for (std::size_t i = 0; i < put.size(); ++i) {
    EXPECT_EQ(shards->here()[i].index, put[i].index);
    EXPECT_TRUE(std::ranges::equal(shards->here()[i].bytes, put[i].bytes));
    EXPECT_EQ((shards->here()[i].bytes.data() - file.data()) % 64, 0);
  }
  const Shard one{0, bytes_of(first)};
  ASSERT_TRUE(write_shards(path_, 1, {&one, 1}));
  const std::vector<std::byte> whole = read();
  EXPECT_TRUE((*Shards::over(whole)).whole());
}

TEST_F(ShardsFile, RefusesDamage) {
  const std::string text = "some bytes";
  const std::vector<Shard> put = {{1, bytes_of(text)}, {2, bytes_of(text)}};
  ASSERT_TRUE(write_shards(path_, 4, put));
  const std::vector<std::byte> good = read();
  for (std::size_t at = 0; at < good.size(); ++at) {
    EXPECT_FALSE(Shards::over(Bytes(good).first(at))) << "cut to " << at;
    for (unsigned bit = 0; bit < 8; ++bit) {
      std::vector<std::byte> bad = good;
      bad[at] ^= std::byte{1} << bit;
      const auto opened = Shards::over(bad, "name");
      ASSERT_FALSE(opened) << "bit " << bit << " of byte " << at;
      EXPECT_TRUE(opened.error().detail.starts_with("name: ")) << opened.error().detail;
    }
  }
  std::vector<std::byte> longer = good;
  longer.push_back(std::byte{0});
  EXPECT_FALSE(Shards::over(longer));
}

}  // namespace
}  // namespace perhaps
