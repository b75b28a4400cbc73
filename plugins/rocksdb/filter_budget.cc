// A budget for the filters of a tree that is learned while it changes. Public classes only.
//
// Before a flush or a compaction begins, the listener reads which tables are alive and on which levels; from events it
// knows the bytes of their filters, which compactions run, and what these have written. When RocksDB then opens a
// table, and before its first key is there, the policy chooses its bits per key:
//
//   allowed   the allowance of the keys that will be alive when this job is done
//   price     so that all of these tables would take `allowed` (demand.h)
//   wanted    at that price and the demand of the new table, plus its part of what the tables that stay on its level
//             and below take less than they would at that price, or minus what they take more: they were moved here, or
//             the tree has changed. Tables above it do not last, and their part is kept for those that replace them
//   limit     what is left of `allowed` by the tables that stay and by other jobs, for the keys this job still writes:
//             if those jobs are done when this one is, and if they are not
//   due       what is left of it but for kReserve
//   bits      wanted, but no less than due and no more than limit
//
// So a table has more than the average only if others have less already, and what they have less is spent on the tables
// that are written next. Ascending keys make tables that are moved from level to level and never written again: nothing
// was saved on them, and each has the average, wherever it is.
#include <rocksdb/db.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <utility>

#include "demand.h"
#include "policy_names.h"

namespace perhaps::rocksdb {
namespace {

using Properties = ::rocksdb::TableProperties;

constexpr double kRatio = 10;
// Shares of the allowance: what a table may take beyond it rather than have no filter, and the most that is kept for
// tables to come. With less kept, small tables find nothing left for them: 0.01 costs 1.7 times the reads of 0.04
// (BudgetReads of rocksdb_budget_test); with more, less than 0.95 would be spent where they do not come.
constexpr double kSlack = 0.02;
constexpr double kReserve = 0.03;
// The share of it that is not spent where half of all entries are deletions.
constexpr double kUnsure = 0.015;

// Of what is learned from one event after the other, the weight of the last one.
constexpr double kNew = 0.25;
void learn(double& average, double value) { average += average == 0 ? value : kNew * (value - average); }

// ".../000123.sst"
std::uint64_t number_of(const std::string& path) {
  std::uint64_t number = 0;
  const std::size_t name = path.find_last_of('/') + 1;
  std::from_chars(path.data() + name, path.data() + path.size(), number);
  return number;
}

// What a table takes, from the moment it is written.
struct Facts {
  double keys = 0;
  double deletions = 0;  // among them
  double bits = 0;       // of its filter
};

// A table that is alive.
struct Table {
  std::uint64_t number = 0;
  int level = 0;
  double keys = 0;
  double deletions = 0;
  double bits = 0;
};

// A flush or a compaction that is running.
struct Job {
  int level = 0;  // that it writes to
  std::set<std::uint64_t> inputs = {};
  double in_entries = 0;
  double in_keys = 0;  // without those that deletions remove
  bool to_deepest = false;
  double in_bits = 0;
  double keys = 0;          // that it will have written, as far as is known
  double written = 0;       // keys
  double written_bits = 0;  // of filters
  double asked_bits = 0;    // per key, of what it writes now
  double bits_per_key = 0;  // as far as is known, that these will be
  std::uint64_t output = 0;
};

// A column family.
struct Tree {
  std::string session;  // of the database: what was running before it was opened does not run any more
  std::vector<Table> tables;
  std::map<int, Job> jobs;
  double flushed = 0;  // keys of a flush
  double output = 0;   // keys of a table that a compaction writes
  // Share of `in_keys` that a compaction writes, to a level with others below it and to the deepest one.
  std::array<double, 2> kept = {1, 1};
  double level0 = 0;  // tables on level 0
  // Bits of filters that were asked for and that were made, lately: prefixes and versions of keys count differently,
  // and filters have whole words. Until one is known, as those of some hundred keys.
  double asked_bits = 10;
  double made_bits = 11;
  double taken() const { return made_bits / asked_bits; }
};

// The table that this thread is about to open.
struct Opening {
  const void* budget = nullptr;
  std::string database, family;
  int job = 0;
};
thread_local Opening opening;

class State {
 public:
  explicit State(const FilterBudgetOptions& options) : options_(options) {}

  // Reads the tree. REQUIRES: no lock of the database is held
  void look(::rocksdb::DB& db) {
    const std::lock_guard one_at_a_time(look_mutex_);  // or an older list of files could replace a newer one
    std::vector<::rocksdb::LiveFileMetaData> files;
    db.GetLiveFilesMetaData(&files);
    std::string session;
    db.GetDbSessionId(session).PermitUncheckedError();
    const std::string family = db.DefaultColumnFamily()->GetName();
    bool unknown = false;
    {
      const std::lock_guard lock(mutex_);
      for (const auto& file : files)
        unknown |= file.column_family_name == family && !facts_.contains({db.GetName(), file.file_number});
    }
    // Of a database that was opened: once.
    if (unknown) look_at_properties(db, *db.DefaultColumnFamily());

    const std::lock_guard lock(mutex_);
    std::map<std::string, std::vector<Table>> tables;
    for (const auto& file : files) {
      Table table{.number = file.file_number, .level = file.level, .keys = static_cast<double>(file.num_entries)};
      const auto facts = facts_.find({db.GetName(), file.file_number});
      table.bits = facts == facts_.end() ? options_.bits_per_key * table.keys : facts->second.bits;
      if (facts != facts_.end()) table.keys = facts->second.keys, table.deletions = facts->second.deletions;
      tables[file.column_family_name].push_back(table);
    }
    for (auto& [name, now] : tables) {
      Tree& tree = trees_[{db.GetName(), name}];
      if (std::exchange(tree.session, session) != session) tree.jobs.clear();
      take(tree, std::move(now));
    }
    for (auto& [id, tree] : trees_) {
      if (id.first == db.GetName() && !tables.contains(id.second)) tree.tables.clear();
    }
  }

  void look_at_properties(::rocksdb::DB& db, ::rocksdb::ColumnFamilyHandle& family) {
    ::rocksdb::TablePropertiesCollection all;
    if (!db.GetPropertiesOfAllTables(&family, &all).ok()) return;
    const std::lock_guard lock(mutex_);
    for (const auto& [path, properties] : all) note(db.GetName(), number_of(path), *properties);
  }

  void begin(::rocksdb::DB& db, const ::rocksdb::CompactionJobInfo& info) {
    {
      const std::lock_guard lock(mutex_);
      for (const auto& [path, properties] : info.table_properties) note(db.GetName(), number_of(path), *properties);
    }
    look(db);
    const std::lock_guard lock(mutex_);
    Tree& tree = trees_[{db.GetName(), info.cf_name}];
    Job job{.level = info.output_level};
    for (const auto& file : info.input_file_infos) job.inputs.insert(file.file_number);
    double deletions = 0;
    int deepest = 0;
    for (const Table& table : tree.tables) {
      deepest = std::max(deepest, table.level);
      if (!job.inputs.contains(table.number)) continue;
      job.in_entries += table.keys;
      deletions += table.deletions;
      job.in_bits += table.bits;
    }
    // A deletion takes a key with it, and nothing is left of either where no table is below. Elsewhere the key may be
    // further down, and it takes nothing.
    job.to_deepest = job.level >= deepest;
    job.in_keys = std::max(job.in_entries - (job.to_deepest ? 2 * deletions : 0), 0.05 * job.in_entries);
    job.keys = job.in_keys * tree.kept[job.to_deepest];
    job.bits_per_key = job.in_bits / std::max(job.in_entries, 1.0);
    tree.jobs[info.job_id] = std::move(job);
  }

  void end(::rocksdb::DB& db, const std::string& family, int job_id) {
    look(db);
    const std::lock_guard lock(mutex_);
    Tree& tree = trees_[{db.GetName(), family}];
    const auto job = tree.jobs.find(job_id);
    if (job == tree.jobs.end()) return;
    // A compaction that wrote everything.
    if (job->second.in_keys > 0)
      learn(tree.kept[job->second.to_deepest], std::clamp(job->second.written / job->second.in_keys, 0.05, 2.0));
    tree.jobs.erase(job);
  }

  void open(const ::rocksdb::TableFileCreationBriefInfo& info) {
    const std::lock_guard lock(mutex_);
    Tree& tree = trees_[{info.db_name, info.cf_name}];
    opening = {.budget = this, .database = info.db_name, .family = info.cf_name, .job = info.job_id};
    if (info.reason != ::rocksdb::TableFileCreationReason::kCompaction) tree.jobs[info.job_id] = {.keys = tree.flushed};
    // DB::CompactFiles does not say that it begins.
    const auto job = tree.jobs.find(info.job_id);
    if (job == tree.jobs.end()) {
      opening = {};
    } else {
      job->second.output = number_of(info.file_path);
    }
  }

  void close(const ::rocksdb::TableFileCreationInfo& info) {
    const std::lock_guard lock(mutex_);
    if (opening.budget == this && opening.job == info.job_id) opening = {};  // a table without a filter was made
    Tree& tree = trees_[{info.db_name, info.cf_name}];
    const auto found = tree.jobs.find(info.job_id);
    const bool flush = info.reason != ::rocksdb::TableFileCreationReason::kCompaction;
    if (!info.status.ok()) {
      if (flush && found != tree.jobs.end()) tree.jobs.erase(found);
      return;
    }
    const Facts facts = note(info.db_name, number_of(info.file_path), info.table_properties);
    learn(flush ? tree.flushed : tree.output, facts.keys);
    if (found == tree.jobs.end()) return;
    Job& job = found->second;
    // A filter that RocksDB left out tells nothing of its size.
    if (job.asked_bits > 0 && facts.bits > 0) {
      tree.asked_bits += facts.keys * job.asked_bits - kNew * tree.asked_bits;
      tree.made_bits += facts.bits - kNew * tree.made_bits;
    }
    job.written += facts.keys;
    job.written_bits += facts.bits;
    job.keys = flush ? job.written : std::max(job.keys, job.written);
  }

  void forget(const std::string& database, const std::string& path) {
    const std::lock_guard lock(mutex_);
    facts_.erase({database, number_of(path)});
    for (auto& [id, tree] : trees_) {
      if (id.first != database) continue;
      std::erase_if(tree.jobs,
                    [&](const auto& job) { return job.second.inputs.empty() && job.second.output == number_of(path); });
    }
  }

  // For the table that this thread opens. Null: no filter.
  const ::rocksdb::FilterPolicy* policy() {
    const std::lock_guard lock(mutex_);
    const Opening now = std::exchange(opening, {});
    const Rate* rate = &curve_.within(options_.bits_per_key);
    if (now.budget == this) rate = &choose(trees_[{now.database, now.family}], now.job);
    if (rate->bloom_bits == 0) return nullptr;
    // They live as long as this does: a builder may refer to the policy it came from.
    PolicyPtr& made = policies_[rate->bloom_bits];
    if (!made) {
      made.reset(options_.ribbon ? ::rocksdb::NewRibbonFilterPolicy(rate->bloom_bits, -1)
                                 : ::rocksdb::NewBloomFilterPolicy(rate->bloom_bits));
    }
    return made.get();
  }

  const FilterBudgetOptions& options() const { return options_; }

  double allowed_bits(double keys) const {
    return std::min(options_.bits_per_key * keys, 8 * static_cast<double>(options_.most_bytes));
  }

 private:
  using FamilyId = std::pair<std::string, std::string>;

  const Facts& note(const std::string& database, std::uint64_t number, const Properties& properties) {
    return facts_[{database, number}] = {.keys = static_cast<double>(properties.num_entries),
                                         .deletions = static_cast<double>(properties.num_deletions),
                                         .bits = 8 * static_cast<double>(properties.filter_size)};
  }

  static void take(Tree& tree, std::vector<Table> now) {
    double level0 = 0;
    for (const Table& table : now) {
      level0 += table.level == 0;
      // A flush that is done.
      std::erase_if(tree.jobs,
                    [&](const auto& job) { return job.second.inputs.empty() && job.second.output == table.number; });
    }
    learn(tree.level0, level0);
    tree.tables = std::move(now);
  }

  const Rate& choose(Tree& tree, int job_id) {
    Job& job = tree.jobs[job_id];
    const double size = std::max({job.keys, job.written + (job.inputs.empty() ? 0 : tree.output / 2), 1.0});

    // The tree when this job is done, and the others too or not yet.
    std::map<int, double> level_keys;
    std::set<std::uint64_t> dying;
    double keys = size, taken = 0, level0 = job.level == 0;
    double unfinished_keys = size, unfinished_bits = 0;
    level_keys[job.level] += size;
    for (const auto& [id, other] : tree.jobs) {
      dying.insert(other.inputs.begin(), other.inputs.end());
      if (id == job_id) continue;
      level_keys[other.level] += other.keys;
      level0 += other.level == 0;
      keys += other.keys;
      taken += other.written_bits + (other.keys - other.written) * other.bits_per_key;
      unfinished_keys += other.in_entries;
      unfinished_bits += other.in_bits;
    }
    for (const Table& table : tree.tables) {
      if (dying.contains(table.number)) continue;
      level_keys[table.level] += table.keys;
      level0 += table.level == 0;
      keys += table.keys;
      unfinished_keys += table.keys;
    }
    const auto usual = [&](int level, double table_keys) {
      return 1 / std::max(level == 0 ? table_keys : level_keys[level], 1.0);
    };
    Demands demands, lasting;
    double staying_bits = 0, lasting_bits = 0, entries = 0, deletions = 0;
    for (const Table& table : tree.tables) {
      entries += table.keys;
      deletions += table.deletions;
      if (dying.contains(table.number)) continue;
      const double demand = usual(table.level, table.keys);
      demands.add(table.keys, demand);
      staying_bits += table.bits;
      if (table.level < job.level) continue;
      lasting.add(table.keys, demand);
      lasting_bits += table.bits;
    }
    for (const auto& [id, other] : tree.jobs) {
      if (id != job_id) demands.add(other.keys, usual(other.level, other.keys));
    }
    const double demand = usual(job.level, size);
    demands.add(size, demand);
    // Level 0 is empty after a compaction and will not remain so: its next tables have their part already. And above a
    // large level there will be smaller ones, or tables on their way to it: as many as in a tree of ratio 10, if there
    // are fewer. That takes 0.4 bits per key from the large level, which are not spent until the others are there.
    double missing = std::max(tree.level0 - level0, 0.0) * tree.flushed;
    demands.add(missing, usual(0, tree.flushed));
    double largest = 0;
    for (const auto& [level, level_size] : level_keys) largest = std::max(largest, level_size);
    const double lacking = 1 - std::min((keys - largest) / (largest / (kRatio - 1)), 1.0);
    for (double above = largest / kRatio; above * lacking > tree.flushed / kRatio && above > 1; above /= kRatio) {
      demands.add(above * lacking, 1 / above);
      missing += above * lacking;
    }

    const double allowed = allowed_bits(keys);
    const double price = demands.price(curve_, allowed_bits(keys + missing) / tree.taken());
    const double too_few = lasting.bits(curve_, price) * tree.taken() - lasting_bits;
    // Deletions will take keys of lower tables with them, and the allowance of these keys. What small levels have
    // beyond the average would then exceed it, so where everything is deleted all tables are equal.
    const double average = allowed / keys;
    const double lasting_share = 1 - 2 * std::min(deletions / std::max(entries, 1.0), 0.5);
    const double planned = average + (curve_.at(price / demand) * tree.taken() - average) * lasting_share;
    const double wanted = planned + std::clamp(too_few / std::max(size, keys / 2), -planned / 4, planned / 8);
    const double remaining = std::max(size - job.written, 1.0);
    const double spent = staying_bits + job.written_bits;
    // How many keys deletions will have removed when this job is done is a guess.
    const double unsure = kUnsure * (1 - lasting_share) * allowed;
    const double limit =
        (std::min(allowed - taken, allowed_bits(unfinished_keys) - unfinished_bits) - unsure - spent) / remaining;
    // A table without a filter is read by every lookup and saves little, so it may have half of what it wants if that
    // takes no more than kSlack beyond the allowance. Others will have less.
    const double least = std::min(wanted / 2, limit + kSlack * allowed / remaining);
    // What is reserved for others is a little less than all that is left. One table makes up for others only so far.
    const double due =
        std::min((allowed * (1 - kReserve) - taken - spent) / remaining, (1.1 + 0.4 * lasting_share) * planned);
    const double most = std::max(limit, least);
    const Rate& rate = curve_.within(std::clamp(wanted, std::min(due, most), most) / tree.taken());
    job.asked_bits = rate.bits;
    job.bits_per_key = rate.bits * tree.taken();
    return rate;
  }

  const FilterBudgetOptions options_;
  const Curve curve_{options_.ribbon};
  std::mutex look_mutex_;  // taken before the database's own and before mutex_
  std::mutex mutex_;
  std::map<std::pair<std::string, std::uint64_t>, Facts> facts_;  // by database and number
  std::map<FamilyId, Tree> trees_;
  std::map<double, PolicyPtr> policies_;
};

class BudgetPolicy final : public ::rocksdb::FilterPolicy {
 public:
  explicit BudgetPolicy(std::shared_ptr<State> state) : state_(std::move(state)) {}

  const char* Name() const override { return kBudgetName; }
  const char* CompatibilityName() const override { return any_->CompatibilityName(); }
  std::string GetId() const override { return id_of(state_->options()); }
  ::rocksdb::FilterBitsBuilder* GetBuilderWithContext(const ::rocksdb::FilterBuildingContext& context) const override {
    const ::rocksdb::FilterPolicy* const policy = state_->policy();
    return policy == nullptr ? nullptr : policy->GetBuilderWithContext(context);
  }
  // Any built-in policy reads the filters of all of them.
  ::rocksdb::FilterBitsReader* GetFilterBitsReader(const ::rocksdb::Slice& contents) const override {
    return any_->GetFilterBitsReader(contents);
  }

 private:
  std::shared_ptr<State> state_;
  PolicyPtr any_{::rocksdb::NewBloomFilterPolicy(10)};
};

class Budgeter final : public FilterBudget {
 public:
  explicit Budgeter(const FilterBudgetOptions& options)
      : state_(std::make_shared<State>(options)), policy_(std::make_shared<BudgetPolicy>(state_)) {}

  std::shared_ptr<const ::rocksdb::FilterPolicy> policy() const override { return policy_; }
  void learn(::rocksdb::DB& db, ::rocksdb::ColumnFamilyHandle& family) override {
    state_->look_at_properties(db, family);
    state_->look(db);
  }

  void OnFlushBegin(::rocksdb::DB* db, const ::rocksdb::FlushJobInfo&) override { state_->look(*db); }
  void OnFlushCompleted(::rocksdb::DB* db, const ::rocksdb::FlushJobInfo& info) override {
    state_->end(*db, info.cf_name, info.job_id);
  }
  void OnCompactionBegin(::rocksdb::DB* db, const ::rocksdb::CompactionJobInfo& info) override {
    state_->begin(*db, info);
  }
  void OnCompactionCompleted(::rocksdb::DB* db, const ::rocksdb::CompactionJobInfo& info) override {
    state_->end(*db, info.cf_name, info.job_id);
  }
  void OnTableFileCreationStarted(const ::rocksdb::TableFileCreationBriefInfo& info) override { state_->open(info); }
  void OnTableFileCreated(const ::rocksdb::TableFileCreationInfo& info) override { state_->close(info); }
  void OnTableFileDeleted(const ::rocksdb::TableFileDeletionInfo& info) override {
    state_->forget(info.db_name, info.file_path);
  }

 private:
  std::shared_ptr<State> state_;
  std::shared_ptr<const ::rocksdb::FilterPolicy> policy_;
};

}  // namespace

PolicyPtr new_unwatched_budget(const FilterBudgetOptions& options) {
  return std::make_unique<BudgetPolicy>(std::make_shared<State>(options));
}

std::shared_ptr<FilterBudget> new_filter_budget(const FilterBudgetOptions& options) {
  if (!valid(options)) throw std::invalid_argument("perhaps: no such budget: " + id_of(options));
  return std::make_shared<Budgeter>(options);
}

}  // namespace perhaps::rocksdb
