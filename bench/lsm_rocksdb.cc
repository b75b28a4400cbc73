// RocksDB for `perhaps bench lsm`. Counts are those of RocksDB's perf context.
#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/perf_context.h>
#include <rocksdb/table.h>

#include <array>

#include "lsm.h"
#include "lsm_fill_rocksdb.h"
#include "perhaps_rocksdb.h"

namespace perhaps::bench {
namespace {

using Policy = std::shared_ptr<const ::rocksdb::FilterPolicy>;

class RocksDb final : public Database {
 public:
  RocksDb(const LsmOptions& options, const Policy& policy, const std::filesystem::path& folder) : options_(options) {
    ::rocksdb::Options open = level_options(options);
    ::rocksdb::BlockBasedTableOptions table;
    table.filter_policy = policy;
    table.block_cache = ::rocksdb::NewLRUCache(options.cache);
    open.table_factory.reset(::rocksdb::NewBlockBasedTableFactory(table));
    ::rocksdb::DB* db = nullptr;
    check(::rocksdb::DB::Open(open, folder.string(), &db));
    db_.reset(db);
  }

  void fill() override { fill_levels(options_, *db_); }

  std::uint64_t filter_bytes() override {
    ::rocksdb::TablePropertiesCollection tables;
    check(db_->GetPropertiesOfAllTables(&tables));
    std::uint64_t bytes = 0;
    for (const auto& [name, properties] : tables) bytes += properties->filter_size;
    return bytes;
  }

  bool get(const std::string& key) override {
    value_.Reset();
    const auto status = db_->Get({}, db_->DefaultColumnFamily(), key, &value_);
    if (!status.IsNotFound()) check(status);
    if (counting_) note();
    return status.ok();
  }

  bool has_multiget() const override { return true; }
  std::size_t multiget(const std::vector<std::string>& keys) override {
    const std::vector<::rocksdb::Slice> slices(keys.begin(), keys.end());
    std::array<::rocksdb::PinnableSlice, kMultiGet> values;
    std::array<::rocksdb::Status, kMultiGet> statuses;
    db_->MultiGet({}, db_->DefaultColumnFamily(), slices.size(), slices.data(), values.data(), statuses.data());
    std::size_t found = 0;
    for (std::size_t i = 0; i < slices.size(); ++i) found += statuses[i].ok();
    return found;
  }

  void start_counting() override {
    ::rocksdb::SetPerfLevel(::rocksdb::kEnableCount);
    auto& context = *::rocksdb::get_perf_context();
    context.EnablePerLevelPerfContext();
    context.Reset();
    context.ClearPerLevelPerfContext();
    context.EnablePerLevelPerfContext();
    counted_ = {0, std::vector<LevelCounts>(options_.levels + 1)};
    before_ = counted_.levels;
    counting_ = true;
  }
  Counted counted() override {
    counting_ = false;
    ::rocksdb::get_perf_context()->DisablePerLevelPerfContext();
    ::rocksdb::SetPerfLevel(::rocksdb::kDisable);
    return counted_;
  }

 private:
  // After each lookup, because RocksDB counts blocks and not tables: where a key lies between two blocks, it may look
  // into both. A lookup comes to one table of a level; level 0 is empty.
  void note() {
    const auto& context = *::rocksdb::get_perf_context();
    counted_.file_reads = context.block_read_count;
    for (const auto& [level, counts] : *context.level_to_perf_context) {
      // Filters and indexes are kept with the open tables, so only data blocks are counted.
      const LevelCounts now{counts.bloom_filter_useful, counts.block_cache_miss_count + counts.block_cache_hit_count,
                            counts.user_key_return_count};
      LevelCounts& before = before_.at(level);
      const bool found = now.found != before.found;
      const bool looked_into = now.in_vain != before.in_vain;
      counted_.levels.at(level) += {now.skipped - before.skipped, looked_into && !found, found};
      before = now;
    }
  }

  const LsmOptions& options_;
  std::unique_ptr<::rocksdb::DB> db_;
  ::rocksdb::PinnableSlice value_;
  bool counting_ = false;
  Counted counted_;
  std::vector<LevelCounts> before_;  // as RocksDB counts, with all blocks in in_vain
};

}  // namespace

std::vector<Setting> rocksdb_settings(const LsmOptions& options, const std::filesystem::path& folder) {
  using Role = Setting::Role;
  std::vector<Setting> all;
  const auto add = [&](const char* name, Role role, const Policy& policy) {
    const auto place = folder / std::to_string(all.size());
    std::filesystem::create_directories(place);
    all.push_back({name, role, std::make_unique<RocksDb>(options, policy, place)});
  };
  const auto spread = [&](double share, std::uint32_t ribbon_from) {
    const auto bytes = static_cast<std::uint64_t>(share * static_cast<double>(options.even_bytes()));
    return rocksdb::new_allocating_policy({.bytes = bytes, .keys = options.level_keys, .ribbon_from = ribbon_from});
  };
  constexpr double kBits = LsmOptions::kBits;
  add("no filter", Role::none, nullptr);
  add("RocksDB Bloom, 10 bits", Role::own, rocksdb::PolicyPtr(::rocksdb::NewBloomFilterPolicy(kBits)));
  add("RocksDB Ribbon of that rate", Role::other, rocksdb::PolicyPtr(::rocksdb::NewRibbonFilterPolicy(kBits, -1)));
  add("perhaps, 10 bits", Role::ours, rocksdb::new_filter_policy({.bits_per_key = kBits}));
  add("perhaps, 7 bits", Role::other, rocksdb::new_filter_policy({.bits_per_key = 7}));
  add("perhaps line, 10 bits", Role::other,
      rocksdb::new_filter_policy({.bits_per_key = kBits, .family = perhaps::Kind::line}));
  add("allocating, Bloom", Role::other, spread(1, 99));
  add("allocating, Bloom and Ribbon", Role::spread, spread(1, 2));
  add("allocating, 35 % less memory", Role::other, spread(0.65, 2));
  return all;
}

}  // namespace perhaps::bench
