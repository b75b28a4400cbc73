// LevelDB for `perhaps bench lsm`. It has no counters: reads are counted where it opens files; its own list of tables
// says which level a file belongs to, and so which files a lookup has to consult. No block is cached, so that every
// lookup that passes a filter is a read. The tree is the one that LevelDB makes of keys in random order.
#include <leveldb/cache.h>
#include <leveldb/db.h>
#include <leveldb/env.h>
#include <leveldb/filter_policy.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <map>
#include <stdexcept>
#include <thread>

#include "lsm.h"
#include "perhaps_leveldb.h"

namespace perhaps::bench {
namespace {

using Policy = std::shared_ptr<const ::leveldb::FilterPolicy>;

void check(const ::leveldb::Status& status) {
  if (!status.ok()) throw std::runtime_error("leveldb: " + status.ToString());
}

// Records which tables the querying thread reads; compactions run on a thread of their own.
class WatchingEnv final : public ::leveldb::EnvWrapper {
 public:
  WatchingEnv() : EnvWrapper(::leveldb::Env::Default()) {}
  ::leveldb::Status NewRandomAccessFile(const std::string& name, ::leveldb::RandomAccessFile** file) override {
    ::leveldb::RandomAccessFile* opened = nullptr;
    auto status = target()->NewRandomAccessFile(name, &opened);
    if (status.ok()) *file = new Watched(opened, std::stoull(std::filesystem::path(name).stem().string()), *this);
    return status;
  }
  static inline thread_local const WatchingEnv* watching = nullptr;
  std::vector<std::uint64_t> read = {};  // numbers of files

 private:
  class Watched final : public ::leveldb::RandomAccessFile {
   public:
    Watched(::leveldb::RandomAccessFile* file, std::uint64_t number, WatchingEnv& env)
        : file_(file), number_(number), env_(env) {}
    ::leveldb::Status Read(std::uint64_t offset, std::size_t n, ::leveldb::Slice* result,
                           char* scratch) const override {
      if (watching == &env_) env_.read.push_back(number_);
      return file_->Read(offset, n, result, scratch);
    }

   private:
    std::unique_ptr<::leveldb::RandomAccessFile> file_;
    std::uint64_t number_;
    WatchingEnv& env_;
  };
};

// Counts the bytes of the filters that are built.
class WeighingPolicy final : public ::leveldb::FilterPolicy {
 public:
  explicit WeighingPolicy(const ::leveldb::FilterPolicy& policy) : policy_(policy) {}
  const char* Name() const override { return policy_.Name(); }
  void CreateFilter(const ::leveldb::Slice* keys, int n, std::string* dst) const override {
    const std::size_t before = dst->size();
    policy_.CreateFilter(keys, n, dst);
    bytes_ += dst->size() - before;
    keys_ += static_cast<std::uint64_t>(n);
  }
  bool KeyMayMatch(const ::leveldb::Slice& key, const ::leveldb::Slice& filter) const override {
    return policy_.KeyMayMatch(key, filter);
  }
  double bytes_per_key() const { return keys_ == 0 ? 0 : static_cast<double>(bytes_) / static_cast<double>(keys_); }

 private:
  const ::leveldb::FilterPolicy& policy_;
  mutable std::atomic<std::uint64_t> bytes_{0};
  mutable std::atomic<std::uint64_t> keys_{0};
};

struct Table {
  std::uint64_t number;
  std::size_t level;
  std::string first, last;  // keys
};

class LevelDb final : public Database {
 public:
  LevelDb(const LsmOptions& options, Policy policy, std::filesystem::path folder)
      : options_(options), policy_(std::move(policy)), folder_(std::move(folder)) {}

  void fill() override {
    std::unique_ptr<WeighingPolicy> weighing;
    if (policy_ != nullptr) weighing = std::make_unique<WeighingPolicy>(*policy_);
    open(weighing.get());
    for (std::uint64_t i = 0; i < options_.keys; ++i) {
      check(db_->Put({}, lsm_key(i), lsm_value(options_, i)));
    }
    settle();
    open(weighing.get());  // the memtable becomes a table
    settle();
    open(policy_.get());  // from here on nothing is weighed
    if (weighing != nullptr) filter_bytes_per_key_ = weighing->bytes_per_key();
    // Opens every table: its index and its filters are read once, and not for a lookup.
    for (const Table& table : tables()) db_->Get({}, table.first, &value_);
  }
  std::uint64_t filter_bytes() override {
    return static_cast<std::uint64_t>(filter_bytes_per_key_ * static_cast<double>(options_.keys));
  }

  bool get(const std::string& key) override {
    const auto status = db_->Get(::leveldb::ReadOptions(), key, &value_);
    if (!status.IsNotFound()) check(status);
    if (WatchingEnv::watching == &env_) note(key, status.ok());
    return status.ok();
  }

  void start_counting() override {
    list_tables();
    counted_ = {0, std::vector<LevelCounts>(kLevels)};
    WatchingEnv::watching = &env_;
    env_.read.clear();
  }
  Counted counted() override {
    WatchingEnv::watching = nullptr;
    std::size_t levels = 1;
    for (const Table& table : tables_) levels = std::max(levels, table.level + 1);
    counted_.levels.resize(levels);
    return counted_;
  }

 private:
  static constexpr std::size_t kLevels = 7;

  void open(const ::leveldb::FilterPolicy* policy) {
    db_.reset();  // it holds a lock
    ::leveldb::Options open;
    open.create_if_missing = true;
    open.compression = ::leveldb::kNoCompression;
    open.filter_policy = policy;
    open.block_cache = cache_.get();
    open.env = &env_;
    open.max_open_files = 10'000;
    // Level 1 has 10 MiB whatever these options say.
    open.write_buffer_size = 1 << 20;
    ::leveldb::DB* db = nullptr;
    check(::leveldb::DB::Open(open, folder_.string(), &db));
    db_.reset(db);
  }

  std::string property(const char* name) const {
    std::string text;
    db_->GetProperty(name, &text);
    return text;
  }
  // Waits until no compaction is left.
  void settle() {
    std::string before;
    for (std::string now = property("leveldb.sstables"); now != before; now = property("leveldb.sstables")) {
      before = now;
      std::this_thread::sleep_for(std::chrono::milliseconds(500));
    }
  }

  // Also while lookups are counted: LevelDB compacts tables that are often read in vain.
  void list_tables() {
    tables_ = tables();
    for (const Table& table : tables_) level_of_[table.number] = table.level;
  }
  // "--- level 1 ---", then " 17:2113['first' @ 5 : 1 .. 'last' @ 9 : 1]" for each table.
  std::vector<Table> tables() const {
    std::vector<Table> all;
    const std::string text = property("leveldb.sstables");
    std::size_t level = 0;
    for (std::size_t from = 0; from < text.size();) {
      const std::size_t end = std::min(text.find('\n', from), text.size());
      const std::string line = text.substr(from, end - from);
      from = end + 1;
      if (line.starts_with("--- level ")) {
        level = std::stoul(line.substr(10));
        continue;
      }
      std::vector<std::string> quoted;
      for (std::size_t at = line.find('\''); at != std::string::npos && quoted.size() < 4; at = line.find('\'', at + 1))
        quoted.push_back(line.substr(at + 1, 16));
      if (quoted.size() == 4) all.push_back({std::stoull(line), level, quoted[0], quoted[2]});
    }
    return all;
  }

  void note(const std::string& key, bool found) {
    if (std::ranges::any_of(env_.read, [&](std::uint64_t number) { return !level_of_.contains(number); }))
      list_tables();
    std::vector<std::uint64_t> asked(kLevels), read(kLevels);
    for (const std::uint64_t number : env_.read) ++read[level_of_[number]];
    // The last table that was read is the one that has the key; those below it were not consulted.
    const std::size_t last = found && !env_.read.empty() ? level_of_[env_.read.back()] : kLevels - 1;
    for (const Table& table : tables_) {
      // On level 0, where the newest table comes first, those that are older than the one with the key were not asked.
      if (found && last == 0 && table.level == 0 && table.number < env_.read.back()) continue;
      if (table.level <= last && table.first <= key && key <= table.last) ++asked[table.level];
    }
    for (std::size_t level = 0; level <= last; ++level) {
      const bool here = found && level == last && read[level] != 0;
      counted_.levels[level] += {asked[level] - std::min(asked[level], read[level]), read[level] - here, here};
    }
    counted_.file_reads += env_.read.size();
    env_.read.clear();
  }

  const LsmOptions& options_;
  Policy policy_;
  std::filesystem::path folder_;
  WatchingEnv env_;
  std::unique_ptr<::leveldb::Cache> cache_{::leveldb::NewLRUCache(0)};
  std::unique_ptr<::leveldb::DB> db_;
  std::string value_;
  double filter_bytes_per_key_ = 0;
  std::map<std::uint64_t, std::size_t> level_of_;
  std::vector<Table> tables_;
  Counted counted_;
};

}  // namespace

std::vector<Setting> leveldb_settings(const LsmOptions& options, const std::filesystem::path& folder) {
  using Role = Setting::Role;
  std::vector<Setting> all;
  const auto add = [&](const char* name, Role role, Policy policy) {
    const auto place = folder / std::to_string(all.size());
    all.push_back({name, role, std::make_unique<LevelDb>(options, std::move(policy), place)});
  };
  constexpr double kBits = LsmOptions::kBits;
  add("no filter", Role::none, nullptr);
  add("LevelDB Bloom, 10 bits", Role::own, Policy(::leveldb::NewBloomFilterPolicy(static_cast<int>(kBits))));
  add("perhaps, 10 bits", Role::ours, leveldb::new_filter_policy({.bits_per_key = kBits}));
  add("perhaps, 7 bits", Role::other, leveldb::new_filter_policy({.bits_per_key = 7}));
  return all;
}

}  // namespace perhaps::bench
