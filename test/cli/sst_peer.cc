// Makes databases with the engines themselves, for sst_test.py:
//   sst_peer leveldb|rocksdb DIR KEYS bloom|ribbon|partitioned|prefixes|none
// Keys are "key" and seven digits. RocksDB makes two tables, LevelDB one or more.
#include <leveldb/db.h>
#include <leveldb/filter_policy.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/slice_transform.h>
#include <rocksdb/table.h>

#include <cstdio>
#include <memory>
#include <string>

namespace {

std::string key_of(int i) {
  char text[16];
  std::snprintf(text, sizeof text, "key%07d", i);
  return text;
}

template <class Status>
void check(const Status& status) {
  if (status.ok()) return;
  std::fprintf(stderr, "sst_peer: %s\n", status.ToString().c_str());
  std::exit(2);
}

void make_leveldb(const std::string& path, int keys, const std::string& filter) {
  leveldb::Options options;
  options.create_if_missing = true;
  const std::unique_ptr<const leveldb::FilterPolicy> policy(filter == "none" ? nullptr
                                                                             : leveldb::NewBloomFilterPolicy(10));
  options.filter_policy = policy.get();
  leveldb::DB* raw = nullptr;
  check(leveldb::DB::Open(options, path, &raw));
  const std::unique_ptr<leveldb::DB> db(raw);
  for (int i = 0; i < keys; ++i) check(db->Put({}, key_of(i), "value" + std::to_string(i)));
  db->CompactRange(nullptr, nullptr);
}

void make_rocksdb(const std::string& path, int keys, const std::string& filter) {
  rocksdb::BlockBasedTableOptions table;
  if (filter != "none") table.filter_policy.reset(rocksdb::NewBloomFilterPolicy(10, false));
  if (filter == "ribbon") table.filter_policy.reset(rocksdb::NewRibbonFilterPolicy(10, -1));
  rocksdb::Options options;
  if (filter == "prefixes") {
    options.prefix_extractor.reset(rocksdb::NewFixedPrefixTransform(8));
    table.whole_key_filtering = false;
  }
  if (filter == "partitioned") {
    table.partition_filters = true;
    table.metadata_block_size = 512;
    table.index_type = rocksdb::BlockBasedTableOptions::kTwoLevelIndexSearch;
  }
  options.create_if_missing = true;
  options.disable_auto_compactions = true;
  options.table_factory.reset(rocksdb::NewBlockBasedTableFactory(table));
  rocksdb::DB* raw = nullptr;
  check(rocksdb::DB::Open(options, path, &raw));
  const std::unique_ptr<rocksdb::DB> db(raw);
  for (int i = 0; i < keys; ++i) {
    check(db->Put({}, key_of(i), "value"));
    if (i == keys / 2) check(db->Flush({}));
  }
  check(db->Flush({}));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  const std::string engine = argv[1];
  (engine == "leveldb" ? make_leveldb : make_rocksdb)(argv[2], std::stoi(argv[3]), argv[4]);
}
