// Six ways in which RocksDB can keep the same filters: whole or in pieces (its partitioned filters), read when a table
// is opened and kept, or read through the block cache when they are needed, pinned there or not.
//
// What is read on opening is kept outside the block cache, or, in pieces, pinned in it. Where the cache may drop
// filters, it has room for half of them beside the data blocks: otherwise there would be nothing to choose.
#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/iostats_context.h>
#include <rocksdb/perf_context.h>
#include <rocksdb/table.h>

#include <stdexcept>

#include "cli/json.h"
#include "cli/print.h"
#include "lsm_blocks.h"
#include "lsm_fill_rocksdb.h"
#include "perhaps_rocksdb.h"

namespace perhaps::bench {
namespace {

using cli::grouped;
using cli::Json;

enum class Kept { outside, cached, pinned };
struct Way {
  const char* name;
  bool pieces;
  Kept kept;
};
constexpr Way kWays[] = {
    {"whole, read on opening", false, Kept::outside},    {"whole, in the cache", false, Kept::cached},
    {"whole, pinned in the cache", false, Kept::pinned}, {"pieces, read on opening", true, Kept::outside},
    {"pieces, in the cache", true, Kept::cached},        {"pieces, pinned in the cache", true, Kept::pinned},
};

struct Counts {
  std::uint64_t cache = 0;
  std::uint64_t filter_bytes = 0;
  std::uint64_t opening_bytes = 0;
  std::uint64_t memory_opened = 0;
  std::uint64_t memory = 0;
  double filter_blocks = 0, index_blocks = 0, data_blocks = 0, bytes = 0;  // per lookup
};

class Keeping {
 public:
  Keeping(const LsmOptions& options, const Way& way, std::filesystem::path folder)
      : options_(options), way_(way), folder_(std::move(folder)) {
    capacity_ = options.cache + (way.kept == Kept::outside ? 0 : options.even_bytes() / 2);
  }

  Counts counted(const Questions& questions) {
    Counts counts{.cache = capacity_};
    open();
    fill_levels(options_, *db_);
    db_.reset();
    ::rocksdb::SetPerfLevel(::rocksdb::kEnableCount);
    ::rocksdb::get_iostats_context()->Reset();
    open();
    counts.opening_bytes = ::rocksdb::get_iostats_context()->bytes_read;
    counts.memory_opened = memory();
    auto& context = *::rocksdb::get_perf_context();
    context.Reset();
    ::rocksdb::PinnableSlice value;
    for (const std::uint64_t number : questions.absent) {
      value.Reset();
      const auto status = db_->Get({}, db_->DefaultColumnFamily(), lsm_key(number), &value);
      if (!status.IsNotFound()) throw std::runtime_error("rocksdb: found a key that is absent: " + status.ToString());
    }
    const auto per_lookup = [&](std::uint64_t n) {
      return static_cast<double>(n) / static_cast<double>(questions.absent.size());
    };
    counts.filter_blocks = per_lookup(context.filter_block_read_count);
    counts.index_blocks = per_lookup(context.index_block_read_count);
    counts.data_blocks =
        per_lookup(context.block_read_count - context.filter_block_read_count - context.index_block_read_count);
    counts.bytes = per_lookup(context.block_read_byte);
    ::rocksdb::SetPerfLevel(::rocksdb::kDisable);
    counts.memory = memory();
    ::rocksdb::TablePropertiesCollection tables;
    check(db_->GetPropertiesOfAllTables(&tables));
    for (const auto& [name, properties] : tables) counts.filter_bytes += properties->filter_size;
    return counts;
  }

 private:
  void open() {
    ::rocksdb::Options open = level_options(options_);
    open.max_file_opening_threads = 1;  // this one, whose reads are counted
    open.skip_stats_update_on_db_open = true;
    ::rocksdb::BlockBasedTableOptions table;
    table.filter_policy = rocksdb::new_filter_policy({.bits_per_key = LsmOptions::kBits});
    table.block_cache = cache_ = ::rocksdb::NewLRUCache(capacity_, 0);
    table.cache_index_and_filter_blocks = way_.kept != Kept::outside;
    const auto tier = way_.kept == Kept::cached ? ::rocksdb::PinningTier::kNone : ::rocksdb::PinningTier::kAll;
    table.metadata_cache_options = {tier, tier, tier};
    if (way_.pieces) {
      table.index_type = ::rocksdb::BlockBasedTableOptions::kTwoLevelIndexSearch;
      table.partition_filters = true;
    }
    open.table_factory.reset(::rocksdb::NewBlockBasedTableFactory(table));
    ::rocksdb::DB* db = nullptr;
    check(::rocksdb::DB::Open(open, folder_.string(), &db));
    db_.reset(db);
  }
  std::uint64_t memory() const {
    std::uint64_t readers = 0;
    if (!db_->GetIntProperty("rocksdb.estimate-table-readers-mem", &readers)) {
      throw std::runtime_error("rocksdb: no figure for the memory of open tables");
    }
    return readers + cache_->GetUsage();
  }

  const LsmOptions& options_;
  Way way_;
  std::filesystem::path folder_;
  std::uint64_t capacity_ = 0;
  std::shared_ptr<::rocksdb::Cache> cache_;
  std::unique_ptr<::rocksdb::DB> db_;
};

}  // namespace

std::string blocks_report(const LsmOptions& options, const Questions& questions, const std::filesystem::path& folder,
                          bool json, StepDone step_done) {
  std::vector<std::vector<std::string>> rows = {{"filters", "bits/key", "read on opening", "memory then",
                                                 "after lookups", "filter blocks", "index blocks", "data blocks",
                                                 "bytes"}};
  std::vector<std::string> objects;
  for (const Way& way : kWays) {
    const auto place = folder / std::to_string(objects.size());
    std::filesystem::create_directories(place);
    const Counts counts = Keeping(options, way, place).counted(questions);
    step_done(objects.size() + 1, std::size(kWays), way.name);
    const double bits = 8 * static_cast<double>(counts.filter_bytes) / static_cast<double>(options.keys);
    rows.push_back({way.name, fmt::format("{:.2f}", bits), grouped(counts.opening_bytes), grouped(counts.memory_opened),
                    grouped(counts.memory), fmt::format("{:.4f}", counts.filter_blocks),
                    fmt::format("{:.4f}", counts.index_blocks), fmt::format("{:.4f}", counts.data_blocks),
                    grouped(counts.bytes)});
    Json object;
    object.add("filters", way.name).add("cache", counts.cache).add("filter_bytes", counts.filter_bytes);
    object.add("bits_per_key", bits).add("opening_bytes", counts.opening_bytes);
    object.add("memory_opened", counts.memory_opened).add("memory", counts.memory);
    object.add("filter_blocks", counts.filter_blocks).add("index_blocks", counts.index_blocks);
    objects.push_back(object.add("data_blocks", counts.data_blocks).add("bytes", counts.bytes).text());
  }
  if (json) {
    Json all;
    all.add("engine", options.engine).add("keys", options.keys).add("value", options.value);
    return all.add("lookups", options.lookups).add("skew", options.skew).raw("settings", Json::array(objects)).text() +
           "\n";
  }
  return fmt::format("blocks and bytes read per lookup of an absent key, {} lookups{}\n", grouped(options.lookups),
                     options.skew ? ", keys by Zipf's law" : "") +
         cli::table(rows, "lrrrrrrrr");
}

}  // namespace perhaps::bench
