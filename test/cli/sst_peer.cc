// Makes databases with the engines themselves, for sst_test.py:
//   sst_peer leveldb|rocksdb DIR KEYS bloom|ribbon|partitioned|prefixes|plain|cuckoo|other|none
//   sst_peer leveldb|rocksdb DIR KEYS perhaps-FAMILY|perhaps-FAMILY-partitioned             a filter of our plug-in
// Keys are "key" and seven digits. RocksDB makes two tables, LevelDB one or more. `plain` and `cuckoo` are other table
// formats of RocksDB; `other` is a policy that nobody knows.
#include <leveldb/db.h>
#include <leveldb/filter_policy.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/slice_transform.h>
#include <rocksdb/table.h>

#include <cstdio>
#include <memory>
#include <string>

#include "perhaps_leveldb.h"
#include "perhaps_rocksdb.h"

namespace {

// The family of "perhaps-line" and "perhaps-line-partitioned".
std::optional<perhaps::Kind> ours(std::string_view filter) {
  constexpr std::string_view kOurs = "perhaps-";
  if (!filter.starts_with(kOurs)) return {};
  filter.remove_prefix(kOurs.size());
  return perhaps::kind_named(filter.substr(0, filter.find('-')));
}

class OtherPolicy final : public leveldb::FilterPolicy {
 public:
  const char* Name() const override { return "sst_peer.Other"; }
  void CreateFilter(const leveldb::Slice*, int, std::string* filter) const override { *filter += "?"; }
  bool KeyMayMatch(const leveldb::Slice&, const leveldb::Slice&) const override { return true; }
};

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
  std::unique_ptr<const leveldb::FilterPolicy> policy;
  if (const auto family = ours(filter)) {
    policy = perhaps::leveldb::new_filter_policy({.family = *family});
  } else if (filter == "other") {
    policy = std::make_unique<OtherPolicy>();
  } else if (filter != "none") {
    policy.reset(leveldb::NewBloomFilterPolicy(10));
  }
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
  if (const auto family = ours(filter)) table.filter_policy = perhaps::rocksdb::new_filter_policy({.family = *family});
  rocksdb::Options options;
  if (filter == "prefixes") {
    options.prefix_extractor.reset(rocksdb::NewFixedPrefixTransform(8));
    table.whole_key_filtering = false;
  }
  if (filter.ends_with("partitioned")) {
    table.partition_filters = true;
    table.metadata_block_size = 512;
    table.index_type = rocksdb::BlockBasedTableOptions::kTwoLevelIndexSearch;
  }
  options.create_if_missing = true;
  options.disable_auto_compactions = true;
  options.table_factory.reset(filter == "plain"    ? rocksdb::NewPlainTableFactory()
                              : filter == "cuckoo" ? rocksdb::NewCuckooTableFactory()
                                                   : rocksdb::NewBlockBasedTableFactory(table));
  options.allow_mmap_reads = filter == "plain" || filter == "cuckoo";
  if (filter == "plain") options.prefix_extractor.reset(rocksdb::NewFixedPrefixTransform(8));
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
