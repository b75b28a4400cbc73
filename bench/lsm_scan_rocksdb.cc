// RocksDB for `perhaps bench lsm --scan`: levels as for lookups, one range filter or prefix filter per table.
#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/perf_context.h>
#include <rocksdb/slice_transform.h>
#include <rocksdb/table.h>

#include <optional>
#include <stdexcept>

#include "lsm_fill_rocksdb.h"
#include "lsm_scan.h"
#include "perhaps_rocksdb_ranges.h"

namespace perhaps::bench {
namespace {

struct Filters {
  std::optional<rocksdb::RangeOptions> ranges = {};
  std::size_t prefix = 0;  // bytes, of RocksDB's own Bloom filters
};
constexpr double kBits = 16;

class RocksDbScan final : public ScanDatabase {
 public:
  RocksDbScan(const LsmOptions& options, const Filters& filters, const std::filesystem::path& folder)
      : options_(options), filters_(filters) {
    ::rocksdb::Options open = level_options(options);
    ::rocksdb::BlockBasedTableOptions table;
    table.block_cache = ::rocksdb::NewLRUCache(options.cache);
    if (filters.ranges) {
      open.table_properties_collector_factories.push_back(rocksdb::range_collector_factory(*filters.ranges));
    }
    if (filters.prefix != 0) {
      open.prefix_extractor.reset(::rocksdb::NewFixedPrefixTransform(filters.prefix));
      table.filter_policy.reset(::rocksdb::NewBloomFilterPolicy(kBits));
      table.whole_key_filtering = false;
    }
    open.table_factory.reset(::rocksdb::NewBlockBasedTableFactory(table));
    ::rocksdb::DB* db = nullptr;
    check(::rocksdb::DB::Open(open, folder.string(), &db));
    db_.reset(db);
    ::rocksdb::SetPerfLevel(::rocksdb::kEnableCount);
  }

  void fill() override { fill_levels(options_, *db_); }

  std::uint64_t filter_bytes() override {
    ::rocksdb::TablePropertiesCollection tables;
    check(db_->GetPropertiesOfAllTables(&tables));
    std::uint64_t bytes = 0;
    for (const auto& [name, table] : tables) {
      bytes += table->filter_size;
      const auto found = table->user_collected_properties.find(rocksdb::kRangeProperty);
      if (found != table->user_collected_properties.end()) bytes += found->second.size();
    }
    return bytes;
  }

  std::uint64_t scan(const std::string& lower, const std::string& upper) override {
    const rocksdb::RangeScan scan(lower, upper);
    ::rocksdb::ReadOptions read;
    scan.limit(read);
    if (!filters_.ranges) read.table_filter = nullptr;
    read.auto_prefix_mode = filters_.prefix != 0;
    const std::unique_ptr<::rocksdb::Iterator> it(db_->NewIterator(read));
    std::uint64_t found = 0;
    for (it->Seek(lower); it->Valid(); it->Next()) ++found;
    check(it->status());
    return found;
  }

  std::uint64_t blocks_read() override {
    auto& context = *::rocksdb::get_perf_context();
    const std::uint64_t blocks = context.block_read_count;
    context.Reset();
    return blocks;
  }

 private:
  const LsmOptions& options_;
  Filters filters_;
  std::unique_ptr<::rocksdb::DB> db_;
};

}  // namespace

std::vector<ScanSetting> rocksdb_scan_settings(const LsmOptions& options, const std::filesystem::path& folder) {
  std::vector<ScanSetting> all;
  const auto add = [&](const char* name, const Filters& filters) {
    const auto place = folder / std::to_string(all.size());
    std::filesystem::create_directories(place);
    all.push_back({name, std::make_unique<RocksDbScan>(options, filters, place)});
  };
  add("no filter", {});
  add("RocksDB Bloom of 11 digits, 16 bits", {.prefix = 11});
  add("perhaps ranges, 16 bits", {.ranges = rocksdb::RangeOptions{.bits_per_key = kBits}});
  add("perhaps ranges, 16 bits, 64-bit codes",
      {.ranges = rocksdb::RangeOptions{.bits_per_key = kBits, .code_bits = 64}});
  add("perhaps ranges, 10 bits", {.ranges = rocksdb::RangeOptions{.bits_per_key = 10}});
  return all;
}

}  // namespace perhaps::bench
