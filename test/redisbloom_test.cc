// The data formats and structures of RedisBloom.
//
// Promises: a stream and a dump of a filter convert into each other and back without a changed byte; dumps as a server
// writes them (compressed strings, strings stored as numbers) can be read; the reciprocal gives the same remainder as a
// division; a failed eviction leaves the table unchanged; cuckoo filters and chains survive any churn without losing a
// key that was not deleted. Would notice: a difference anywhere. test/corrupt tests damage, the conformance suite the
// bytes of RedisBloom itself.
#include "redisbloom/redisbloom.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <string>

#include "format/redis_rdb.h"
#include "perhaps/format/format.h"

namespace perhaps::redisbloom {
namespace {

std::vector<std::string> names(std::size_t count) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i) names.push_back("item:" + std::to_string(i));
  return names;
}

std::vector<Bytes> views_of(const std::vector<std::string>& texts) {
  std::vector<Bytes> views;
  for (const std::string& text : texts) views.push_back(bytes_of(text));
  return views;
}

Buffer built(const format::Codec& codec, const std::vector<std::string>& keys,
             std::initializer_list<std::pair<const char*, const char*>> sets) {
  format::Params params(codec);
  for (const auto& [name, value] : sets) EXPECT_TRUE(params.set(name, value));
  return *codec.build(views_of(keys), params);
}

TEST(RedisBloom, StreamAndDumpConvertIntoEachOther) {
  for (const char* name : {"redisbloom-bf", "redisbloom-cf"}) {
    const format::Codec& codec = *format::find(name);
    for (const std::size_t count : {1u, 100u, 5000u}) {
      const auto keys = names(count);
      const Buffer stream = built(codec, keys, {{"capacity", "64"}});
      const Buffer dump = built(codec, keys, {{"capacity", "64"}, {"form", "dump"}});
      const auto there =
          format::convert({.bytes = stream}, *format::open({.bytes = stream}), codec, format::Params(codec));
      ASSERT_TRUE(there);
      EXPECT_EQ(there->bytes, dump);
      const auto back = format::convert({.bytes = dump}, *format::open({.bytes = dump}), codec, format::Params(codec));
      ASSERT_TRUE(back);
      EXPECT_EQ(back->bytes, stream);
      // As in an .rdb file.
      const Bytes value = Bytes(dump).subspan(1, dump.size() - 11);
      const auto opened = format::open({.bytes = value});
      ASSERT_TRUE(opened) << opened.error().detail;
      EXPECT_TRUE(opened->whole->may_contain(bytes_of(std::string_view("item:0"))));
    }
  }
}

TEST(RedisBloom, StringsAsAServerWritesThem) {
  const auto block_of = [](std::initializer_list<unsigned> bytes) {
    Buffer raw;
    for (const unsigned b : bytes) raw.push_back(static_cast<std::byte>(b));
    RdbReader in(raw, kHeap);
    const Block block = in.block();
    std::string text(reinterpret_cast<const char*>(block.at), block.size);
    kHeap.give(block.at);
    return in.failed() ? std::string("failed") : text;
  };
  EXPECT_EQ(block_of({5, 3, 'a', 'b', 'c'}), "abc");
  EXPECT_EQ(block_of({5, 0xc0, 0xf4}), "-12");
  EXPECT_EQ(block_of({5, 0xc1, 0x39, 0x30}), "12345");
  EXPECT_EQ(block_of({5, 0xc2, 0x15, 0xcd, 0x5b, 0x07}), "123456789");
  // LZF: "ab", then 2 + 2 bytes copied from one back; "ab", then 7 + 1 + 2 from two back.
  EXPECT_EQ(block_of({5, 0xc3, 5, 6, 1, 'a', 'b', 0x40, 0}), "abbbbb");
  EXPECT_EQ(block_of({5, 0xc3, 6, 12, 1, 'a', 'b', 0xe0, 1, 1}), "abababababab");
  EXPECT_EQ(block_of({5, 0xc3, 5, 7, 1, 'a', 'b', 0x40, 0}), "failed");              // claims more
  EXPECT_EQ(block_of({5, 0xc3, 5, 5, 1, 'a', 'b', 0x40, 0}), "failed");              // claims less
  EXPECT_EQ(block_of({5, 0xc3, 5, 6, 1, 'a', 'b', 0x40, 2}), "failed");              // from before the beginning
  EXPECT_EQ(block_of({5, 0xc3, 4, 0x80, 0xff, 0, 0, 0, 1, 'a', 'b', 0}), "failed");  // 4 GiB from four bytes
  EXPECT_EQ(block_of({5, 0x80, 0xff, 0xff, 0xff, 0xff, 'a'}), "failed");
  EXPECT_EQ(block_of({5}), "failed");
  EXPECT_EQ(block_of({2, 3, 'a', 'b', 'c'}), "failed");
}

TEST(RedisBloom, RemainderByReciprocal) {
  std::mt19937_64 random(1);
  for (int i = 0; i < 200000; ++i) {
    const std::uint64_t d = std::max<std::uint64_t>(2, random() >> (random() % 63));
    const Modulus modulus(d);
    for (const std::uint64_t x : {random(), random() >> (random() % 64), d - 1, d, d + 1, UINT64_MAX, std::uint64_t{0}})
      ASSERT_EQ(modulus.of(x), x % d) << x << " mod " << d;
  }
}

TEST(RedisBloom, BatchesAnswerAsOneByOne) {
  BloomChain chain(kHeap);
  LinkNumbers first;
  ASSERT_TRUE(BloomChain::first_numbers(100, 0.05, chain.options, first));
  ASSERT_TRUE(chain.append(first));
  const auto keys = names(4000);
  for (std::size_t i = 0; i < 2000; ++i) chain.add(chain.hash(bytes_of(keys[i])));
  EXPECT_GT(chain.links().size(), 3u);
  for (std::size_t from = 0; from < keys.size(); from += 40) {
    std::vector<BloomHash> hashes;
    for (std::size_t i = from; i < from + 40; ++i) hashes.push_back(chain.hash(bytes_of(keys[i])));
    for (const bool ahead : {false, true}) {
      const std::uint64_t answers = chain.may_contain(hashes, ahead);
      for (std::size_t i = 0; i < 40; ++i) {
        EXPECT_EQ(answers >> i & 1, std::uint64_t{chain.may_contain(hashes[i])});
        EXPECT_TRUE(from + i >= 2000 || (answers >> i & 1) != 0);
      }
    }
  }
}

TEST(RedisBloom, AFullCuckooFilterIsLeftUnchanged) {
  CuckooChain chain(kHeap);
  chain.expansion = 0;
  chain.bucket_size = 3;
  chain.max_iterations = 50;
  chain.size_for(96);
  ASSERT_TRUE(chain.append());
  std::size_t refused = 0;
  for (const std::string& key : names(200)) {
    const auto table = chain.from(0);
    const Buffer before(table.begin(), table.end());
    if (chain.add(CuckooChain::hash(bytes_of(key))) != Added::full) continue;
    ++refused;
    EXPECT_TRUE(std::ranges::equal(before, chain.from(0)));
  }
  EXPECT_GT(refused, 100u);
}

// Compared with a multiset. A deletion may remove the fingerprint of another item with the same fingerprint in the same
// buckets, so fingerprints are counted instead of items: (fingerprint, first bucket or its alternate in the smallest
// sub-filter).
TEST(RedisBloom, CuckooLosesNothingInChurn) {
  std::mt19937_64 random(7);
  CuckooChain chain(kHeap);
  chain.expansion = 2;
  chain.size_for(64);
  ASSERT_TRUE(chain.append());
  std::map<std::string, int> model;
  std::uint64_t most = 0;
  for (int round = 0; round < 6; ++round) {
    for (int i = 0; i < 3000; ++i) {
      const std::string key = "k" + std::to_string(random() % 4000);
      const bool add = random() % 10 < (round % 2 == 0 ? 8u : 2u);
      if (add) {
        ASSERT_EQ(chain.add(CuckooChain::hash(bytes_of(key))), Added::added);
        ++model[key];
      } else if (model[key] > 0) {
        ASSERT_TRUE(chain.erase(CuckooChain::hash(bytes_of(key))));
        --model[key];
      }
      most = std::max<std::uint64_t>(most, chain.filters().size());
    }
    chain.compact(round % 2 == 0);
    std::uint64_t items = 0;
    std::uint64_t slots = 0;
    for (const auto& [key, count] : model) items += static_cast<std::uint64_t>(count);
    for (std::uint64_t at = 0; at < chain.table_bytes(); ++at) slots += chain.from(at)[0] != std::byte{0};
    EXPECT_EQ(chain.items, items);
    EXPECT_EQ(slots, items);
  }
  EXPECT_GT(most, 2u);
}

}  // namespace
}  // namespace perhaps::redisbloom
