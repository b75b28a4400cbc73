// Promise: an index finds the piece of a table for a lookup of a key, whatever the restarts and however much the keys
// share; Snappy blocks are read as specified; hostile blocks neither crash the reader nor make it allocate.
// Would notice: any piece other than that of the first separator not less than the key, found by comparing whole keys.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "format/snappy.h"
#include "format/table.h"
#include "perhaps/file/mapping.h"
#include "perhaps/format/format.h"

namespace perhaps::test {
namespace {

using format::Buffer;
using format::Handle;
using format::Index;
using format::IndexValues;
using format::Writer;

struct Separator {
  std::string user;
  std::uint64_t packed = 0;
};

// A block as both engines write it; a run of `interval` entries shares prefixes.
Buffer index_block(const std::vector<Separator>& keys, std::size_t interval, IndexValues values, bool internal) {
  Writer out;
  std::vector<std::uint32_t> restarts;
  std::string before;
  Handle last;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    std::string key = keys[i].user;
    if (internal) key.append(reinterpret_cast<const char*>(&keys[i].packed), 8);
    std::size_t shared = 0;
    if (i % interval == 0) {
      restarts.push_back(static_cast<std::uint32_t>(out.size()));
    } else {
      shared = static_cast<std::size_t>(std::ranges::mismatch(before, key).in1 - before.begin());
    }
    // Sizes go up and down, so that differences have both signs.
    const Handle at{last.offset + last.size + 5, 1000 + 37 * (i % 7)};
    out.varint(shared).varint(key.size() - shared);
    Writer value;
    value.varint(at.offset).varint(at.size);
    const Buffer handle = std::move(value).done();
    if (values == IndexValues::sized) out.varint(handle.size());
    out.add(bytes_of(key).subspan(shared));
    if (values == IndexValues::sized || shared == 0) {
      out.add(handle);
    } else {
      const auto change = static_cast<std::int64_t>(at.size - last.size);
      out.varint(static_cast<std::uint64_t>(change) << 1 ^ static_cast<std::uint64_t>(change >> 63));
    }
    last = at;
    before = key;
  }
  if (restarts.empty()) restarts.push_back(0);
  for (const std::uint32_t at : restarts) out.le(at);
  out.le(static_cast<std::uint32_t>(restarts.size()));
  return std::move(out).done();
}

constexpr std::uint64_t kShortened = ~std::uint64_t{0} >> 8 << 8 | 1;

std::uint64_t expected(const std::vector<Separator>& keys, const std::string& key) {
  for (std::size_t i = 0; i < keys.size(); ++i) {
    if (keys[i].user > key || (keys[i].user == key && keys[i].packed != kShortened)) return i;
  }
  return keys.size();
}

TEST(TableIndex, FindsWhatComparingWholeKeysFinds) {
  std::mt19937_64 random(20240501);
  for (int round = 0; round < 400; ++round) {
    const bool internal = random() % 2 == 0;
    const auto values = random() % 2 == 0 ? IndexValues::sized : IndexValues::handles;
    // Two letters and few lengths: many keys are prefixes of others, also up to the bytes of the sequence.
    const auto word = [&] {
      std::string text(random() % 12, 'a');
      for (char& c : text) c = "ab\x01\xff"[random() % 4];
      return text;
    };
    std::vector<Separator> keys;
    for (std::size_t i = random() % 60; i > 0; --i)
      keys.push_back({word(), !internal ? 0 : random() % 2 == 0 ? kShortened : (random() % 1000) << 8 | 1});
    std::ranges::sort(keys, [](const Separator& a, const Separator& b) {
      return a.user != b.user ? a.user < b.user : a.packed > b.packed;
    });
    const Buffer block = index_block(keys, 1 + random() % 9, values, internal);
    const auto index = Index::over("test", "index", block, values, internal);
    ASSERT_TRUE(index) << index.error().detail;
    ASSERT_EQ(index->pieces().size(), keys.size());
    EXPECT_TRUE(index->ascends());
    for (std::size_t i = 0; i < keys.size(); ++i) {
      ASSERT_EQ(index->pieces()[i].size, 1000 + 37 * (i % 7));
      ASSERT_EQ(index->find(bytes_of(keys[i].user)), expected(keys, keys[i].user)) << "round " << round;
    }
    for (int i = 0; i < 200; ++i) {
      const std::string key = word();
      ASSERT_EQ(index->find(bytes_of(key)), expected(keys, key)) << "round " << round;
    }
    if (internal && !keys.empty() && values == IndexValues::sized) {
      EXPECT_TRUE(Index::looks_internal(block));
    }
  }
}

TEST(TableIndex, NoBytesCanHarmIt) {
  std::mt19937_64 random(7);
  std::vector<Separator> keys;
  for (int i = 0; i < 40; ++i) keys.push_back({"key" + std::to_string(100 + i), kShortened});
  for (const auto values : {IndexValues::sized, IndexValues::handles}) {
    const Buffer whole = index_block(keys, 4, values, true);
    for (int round = 0; round < 20'000; ++round) {
      Buffer block = whole;
      for (int flips = 1 + round % 3; flips > 0; --flips)
        block[random() % block.size()] = static_cast<std::byte>(random());
      if (round % 4 == 0) block.resize(random() % block.size());
      const auto index = Index::over("test", "index", block, values, true);
      Index::looks_internal(block);
      if (!index) continue;
      EXPECT_LE(index->pieces().size(), block.size());
      EXPECT_LE(index->find(bytes_of(keys[static_cast<std::size_t>(round) % 40].user)), index->pieces().size());
    }
  }
}

// Keys of 64 KiB that share all but one byte: expanded they would take 6 GiB.
TEST(TableIndex, TakesNoMoreMemoryThanTheBlock) {
  Writer out;
  const std::string first(1 << 16, 'k');
  out.varint(0).varint(first.size()).varint(2).add(bytes_of(first)).varint(0).varint(1);
  for (int i = 0; i < 100'000; ++i) out.varint(first.size()).varint(0).varint(2).varint(0).varint(1);
  out.le(std::uint32_t{0}).le(std::uint32_t{1});
  const Buffer block = std::move(out).done();
  const auto index = Index::over("test", "index", block, IndexValues::sized, false);
  ASSERT_TRUE(index);
  EXPECT_EQ(index->pieces().size(), 100'001u);
  EXPECT_EQ(index->find(bytes_of(first)), 0u);
  EXPECT_EQ(index->find(bytes_of(first + "x")), 100'001u);
}

// golden/tables was written by RocksDB 10.5.1: keys key00000 to key00499, with its Bloom filter or, partitioned, its
// Ribbon of the same rate. n = 500 absent keys at 1 %, z = 5.
TEST(RocksDbTable, ReadsFootersOfVersions6And7) {
  for (const char* version : {"6", "7"}) {
    for (const char* kind : {"full", "partitioned"}) {
      const std::string path =
          std::string(PERHAPS_TEST_DATA) + "/golden/tables/table_v" + version + "_" + kind + ".sst";
      const auto file = Mapping::open(path);
      ASSERT_TRUE(file) << path;
      const auto opened = format::open({.bytes = file->bytes(), .file_name = path});
      ASSERT_TRUE(opened) << opened.error().detail;
      EXPECT_EQ(opened->format, "rocksdb-table");
      const Description d = opened->whole->describe();
      EXPECT_EQ(d.keys, 500u);
      EXPECT_EQ(d.more.back(), std::pair(std::string("format_version"), std::string(version)));
      std::uint64_t wrong = 0;
      for (int i = 0; i < 500; ++i) {
        char key[16];
        std::snprintf(key, sizeof key, "key%05d", i);
        EXPECT_TRUE(opened->whole->may_contain(bytes_of(key))) << path << ", " << key;
        wrong += opened->whole->may_contain(bytes_of(std::string(key) + "x"));
      }
      EXPECT_LT(wrong, 16u) << path;
      // Every byte of the footer is covered by its checksum or checked.
      Buffer damaged(file->bytes().begin(), file->bytes().end());
      for (std::size_t at = damaged.size() - 53; at < damaged.size() - 12; ++at) {
        damaged[at] ^= std::byte{1};
        EXPECT_FALSE(format::open({.bytes = damaged, .file_name = path})) << path << ", byte " << at;
        damaged[at] ^= std::byte{1};
      }
    }
  }
}

std::optional<std::string> plain(const std::string& packed) {
  const auto bytes = format::snappy_uncompressed(bytes_of(packed));
  if (!bytes) return {};
  return std::string(format::text_of(*bytes));
}

TEST(Snappy, ReadsLiteralsAndCopies) {
  using namespace std::string_literals;
  EXPECT_EQ(plain("\x00"s), "");
  EXPECT_EQ(plain("\x03\x08xyz"s), "xyz");
  // A copy of 6 bytes at offset 2 overlaps its own output.
  EXPECT_EQ(plain("\x08\x04xy\x09\x02"s), "xyxyxyxy");
  EXPECT_EQ(plain("\x05\x04xy\x0a\x02\x00"s), "xyxyx");
  EXPECT_EQ(plain("\x05\x04xy\x0b\x02\x00\x00\x00"s), "xyxyx");
  // A literal of 61 bytes, with its length in a separate byte.
  EXPECT_EQ(plain("\x3d\xf0\x3c"s + std::string(61, 'q')), std::string(61, 'q'));
}

TEST(Snappy, RefusesInvalidBlocks) {
  using namespace std::string_literals;
  EXPECT_EQ(plain(""s), std::nullopt);
  EXPECT_EQ(plain("\xff\xff\xff\xff\xff\xff\xff\xff\x7f"s), std::nullopt) << "a size beyond any expansion";
  EXPECT_EQ(plain("\x03\x08xy"s), std::nullopt) << "ends inside a literal";
  EXPECT_EQ(plain("\x02\x08xyz"s), std::nullopt) << "more than promised";
  EXPECT_EQ(plain("\x04\x08xyz"s), std::nullopt) << "less than promised";
  EXPECT_EQ(plain("\x08\x04xy\x09\x03"s), std::nullopt) << "a copy from before the start";
  EXPECT_EQ(plain("\x08\x04xy\x09\x00"s), std::nullopt) << "a copy of itself";
  EXPECT_EQ(plain("\x08\x04xy\x0a\x02"s), std::nullopt) << "ends inside an offset";
}

}  // namespace
}  // namespace perhaps::test
