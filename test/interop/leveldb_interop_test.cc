// Promise: LevelDB skips reads with filters that we wrote, and we answer for its tables as DB::Get does.
// Would notice: a table that differs in a byte from LevelDB's own, a key that is denied, a Get that reads although we
// answer *no*, or does not read although we answer *perhaps* (every read of the real library is counted).
#include <gtest/gtest.h>
#include <leveldb/cache.h>
#include <leveldb/db.h>
#include <leveldb/env.h>
#include <leveldb/filter_policy.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "format/leveldb.h"
#include "interop/damaged_table.h"
#include "interop/folder.h"
#include "perhaps/format/format.h"

namespace perhaps::test {
namespace {

struct Reads {
  std::uint64_t count = 0;
};

class CountedFile final : public leveldb::RandomAccessFile {
 public:
  CountedFile(leveldb::RandomAccessFile* file, Reads* reads) : file_(file), reads_(reads) {}
  leveldb::Status Read(std::uint64_t offset, std::size_t n, leveldb::Slice* result, char* scratch) const override {
    ++reads_->count;
    return file_->Read(offset, n, result, scratch);
  }

 private:
  std::unique_ptr<leveldb::RandomAccessFile> file_;
  Reads* reads_;
};

class CountingEnv final : public leveldb::EnvWrapper {
 public:
  CountingEnv() : EnvWrapper(leveldb::Env::Default()) {}
  leveldb::Status NewRandomAccessFile(const std::string& name, leveldb::RandomAccessFile** file) override {
    auto status = target()->NewRandomAccessFile(name, file);
    if (status.ok()) *file = new CountedFile(*file, &reads);
    return status;
  }
  Reads reads;
};

// Writes our bytes under LevelDB's name.
class OurBytes final : public leveldb::FilterPolicy {
 public:
  explicit OurBytes(std::uint64_t bits_per_key) : bits_per_key_(bits_per_key) {}
  const char* Name() const override { return "leveldb.BuiltinBloomFilter2"; }
  void CreateFilter(const leveldb::Slice* keys, int n, std::string* out) const override {
    std::vector<Bytes> views;
    for (int i = 0; i < n; ++i) views.push_back(bytes_of(std::string_view(keys[i].data(), keys[i].size())));
    format::Writer blob;
    format::LevelDb::append(blob, views, bits_per_key_);
    for (const std::byte b : std::move(blob).done()) out->push_back(static_cast<char>(b));
  }
  bool KeyMayMatch(const leveldb::Slice& key, const leveldb::Slice& filter) const override {
    return format::LevelDb::may_contain(bytes_of(std::string_view(filter.data(), filter.size())),
                                        leveldb_hash(bytes_of(std::string_view(key.data(), key.size()))));
  }

 private:
  std::uint64_t bits_per_key_;
};

struct Setting {
  leveldb::CompressionType compression;
  int bits_per_key;
  std::size_t block_size;
  std::size_t value_size;
};

std::string key_of(std::uint64_t i) { return "user" + std::to_string(i * 2654435761u % 1'000'000); }

class Database {
 public:
  Database(const std::string& path, const Setting& setting, const leveldb::FilterPolicy* policy) {
    options_.create_if_missing = true;
    options_.env = &env;
    options_.filter_policy = policy;
    options_.compression = setting.compression;
    options_.block_size = setting.block_size;
    options_.write_buffer_size = 64 << 20;
    options_.max_file_size = 64 << 20;
    // No block is cached, so that the next lookup reads it again.
    cache_.reset(leveldb::NewLRUCache(0));
    options_.block_cache = cache_.get();
    leveldb::DB* db = nullptr;
    const auto status = leveldb::DB::Open(options_, path, &db);
    if (!status.ok()) throw std::runtime_error(status.ToString());
    db_.reset(db);
  }
  void fill(std::uint64_t keys, std::size_t value_size) {
    std::mt19937_64 random(5);
    for (std::uint64_t i = 0; i < keys; ++i) {
      std::string value(value_size, 'v');
      for (std::size_t j = 0; j < value.size(); j += 3) value[j] = static_cast<char>(random());
      EXPECT_TRUE(db_->Put({}, key_of(i), value).ok());
      // Deleted keys stay in the table as long as a snapshot refers to them.
      if (i == keys / 2) snapshot_ = db_->GetSnapshot();
    }
    for (std::uint64_t i = 0; i < keys / 2; i += 5) EXPECT_TRUE(db_->Delete({}, key_of(i)).ok());
    db_->CompactRange(nullptr, nullptr);
    db_->ReleaseSnapshot(snapshot_);
  }
  // Whether the table was read.
  bool reads(const std::string& key, bool* found = nullptr) {
    const std::uint64_t before = env.reads.count;
    std::string value;
    const auto status = db_->Get({}, key, &value);
    if (found != nullptr) *found = status.ok();
    EXPECT_TRUE(status.ok() || status.IsNotFound()) << status.ToString();
    return env.reads.count != before;
  }

  CountingEnv env;

 private:
  leveldb::Options options_;
  std::unique_ptr<leveldb::Cache> cache_;
  std::unique_ptr<leveldb::DB> db_;
  const leveldb::Snapshot* snapshot_ = nullptr;
};

constexpr Setting kSettings[] = {{leveldb::kNoCompression, 10, 4096, 40},
                                 {leveldb::kSnappyCompression, 10, 4096, 100},
                                 {leveldb::kNoCompression, 4, 500, 3},
                                 {leveldb::kNoCompression, 16, 9000, 700}};
constexpr std::uint64_t kKeys = 4000;

TEST(LevelDbInterop, TablesWithOurFiltersAreThoseOfLevelDbAndSkipReads) {
  for (const Setting& setting : kSettings) {
    const std::unique_ptr<const leveldb::FilterPolicy> stock(leveldb::NewBloomFilterPolicy(setting.bits_per_key));
    const OurBytes ours(static_cast<std::uint64_t>(setting.bits_per_key));
    const Folder our_folder, their_folder;
    Database(our_folder.path(), setting, &ours).fill(kKeys, setting.value_size);
    Database(their_folder.path(), setting, stock.get()).fill(kKeys, setting.value_size);
    EXPECT_EQ(file_bytes(our_folder.only(".ldb")), file_bytes(their_folder.only(".ldb")));

    // LevelDB's own reader over our filters.
    Database db(our_folder.path(), setting, stock.get());
    db.reads(key_of(1));
    for (std::uint64_t i = 0; i < kKeys; ++i) {
      bool found = false;
      db.reads(key_of(i), &found);
      EXPECT_EQ(found, i >= kKeys / 2 || i % 5 != 0) << key_of(i);
    }
    std::uint64_t wasted = 0;
    constexpr std::uint64_t kQueries = 20'000;
    for (std::uint64_t i = 0; i < kQueries; ++i) wasted += db.reads(key_of(i % kKeys) + "/" + std::to_string(i));
    // At 4 bits per key about 15 % of the reads are not avoided; without a filter, none is.
    EXPECT_LT(wasted, kQueries / 4) << setting.bits_per_key << " bits per key";
    EXPECT_GT(wasted, 0u);
  }
}

TEST(LevelDbInterop, WeAnswerForItsTablesAsGetDoes) {
  const format::Codec& codec = *format::find("leveldb-table");
  for (const Setting& setting : kSettings) {
    const std::unique_ptr<const leveldb::FilterPolicy> stock(leveldb::NewBloomFilterPolicy(setting.bits_per_key));
    const Folder folder;
    Database(folder.path(), setting, stock.get()).fill(kKeys, setting.value_size);
    const auto file = file_bytes(folder.only(".ldb"));
    EXPECT_EQ(codec.sniff({.bytes = file}), format::Sniffed::certain);
    const auto opened = codec.open({.bytes = file}, format::Params(codec));
    ASSERT_TRUE(opened) << opened.error().detail;

    Database db(folder.path(), setting, stock.get());
    db.reads(key_of(1));
    for (std::uint64_t i = 0; i < kKeys; ++i) EXPECT_TRUE(opened->whole->may_contain(bytes_of(key_of(i)))) << key_of(i);
    std::mt19937_64 random(11);
    for (std::uint64_t i = 0; i < 20'000; ++i) {
      // Next to keys, before and after all of them, and the keys themselves.
      std::string key = key_of(random() % (2 * kKeys));
      if (i % 3 == 0) key += static_cast<char>(random());
      if (i % 3 == 1) key.resize(random() % (key.size() + 1));
      if (i % 50 == 0) key = std::string(random() % 5, '\xff');
      EXPECT_EQ(opened->whole->may_contain(bytes_of(key)), db.reads(key)) << ::testing::PrintToString(key);
    }
  }
}

TEST(LevelDbInterop, DamagedTablesDenyNoKey) {
  const Setting setting{leveldb::kSnappyCompression, 10, 200, 8};
  const std::unique_ptr<const leveldb::FilterPolicy> stock(leveldb::NewBloomFilterPolicy(setting.bits_per_key));
  const Folder folder;
  Database(folder.path(), setting, stock.get()).fill(100, setting.value_size);
  std::vector<std::string> keys;
  for (std::uint64_t i = 0; i < 100; i += 3) keys.push_back(key_of(i));
  expect_damage_denies_no_key(*format::find("leveldb-table"), file_bytes(folder.only(".ldb")), keys);
}

}  // namespace
}  // namespace perhaps::test
