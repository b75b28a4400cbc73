// Promise: a RocksDB database with our filters answers as an in-memory model does: after puts, deletes, batches,
// flushes, compactions, ingested files, reopening under other policies (ours of several families, compatible,
// allocating, RocksDB's own, none), whole and in partitions, with keys and prefixes, and after kill -9; stock RocksDB
// and ours use each other's filters in compatible mode, and ignore each other's otherwise. Would notice: one wrong
// answer in 100,000 operations (PERHAPS_OPERATIONS for more), a lost write, a filter that is not used.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <rocksdb/convenience.h>
#include <rocksdb/db.h>
#include <rocksdb/filter_policy.h>
#include <rocksdb/options.h>
#include <rocksdb/slice_transform.h>
#include <rocksdb/sst_file_writer.h>
#include <rocksdb/statistics.h>
#include <rocksdb/table.h>
#include <rocksdb/utilities/options_util.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "perhaps_rocksdb.h"
#include "rocksdb_fixture.h"

namespace perhaps {
namespace {

using Policy = std::shared_ptr<const ::rocksdb::FilterPolicy>;

constexpr std::size_t kPrefix = 5;
constexpr std::uint64_t kKeys = 12'000;  // half of them are asked for only

// In 300 groups, and those of the other half in 300 others.
std::string key_of(std::uint64_t i) {
  char text[32];
  const auto group = static_cast<unsigned>(2 * (i % 300) + (i >= kKeys / 2));
  std::snprintf(text, sizeof text, "%04u/%08u", group, static_cast<unsigned>(i * 2654435761u));
  return text;
}

struct Setting {
  Policy policy;
  bool partitioned = false;
  bool whole_keys = true;
  bool prefixes = true;
};

// Listens to every database here, whichever policy that has at the moment.
const std::shared_ptr<rocksdb::FilterBudget>& filter_budget() {
  static const auto budget = rocksdb::new_filter_budget({.bits_per_key = 8});
  return budget;
}

::rocksdb::Options options_of(const Setting& setting) {
  ::rocksdb::Options options = many_small_tables();
  options.target_file_size_base = 32 << 10;
  options.max_bytes_for_level_base = 128 << 10;
  options.level0_file_num_compaction_trigger = 2;
  options.max_background_jobs = 2;
  if (setting.prefixes) options.prefix_extractor.reset(::rocksdb::NewFixedPrefixTransform(kPrefix));
  ::rocksdb::BlockBasedTableOptions table;
  table.filter_policy = setting.policy;
  table.whole_key_filtering = setting.whole_keys;
  table.block_size = 1024;
  if (setting.partitioned) {
    table.index_type = ::rocksdb::BlockBasedTableOptions::kTwoLevelIndexSearch;
    table.partition_filters = true;
    table.metadata_block_size = 128;
  }
  options.table_factory.reset(::rocksdb::NewBlockBasedTableFactory(table));
  options.listeners = {filter_budget()};
  return options;
}

Policy stock_bloom() { return Policy(::rocksdb::NewBloomFilterPolicy(10)); }

std::vector<Setting> settings() {
  const rocksdb::Budget budget{.bytes = 6000, .keys = {500, 500, 1500, 4500}};
  std::vector<Setting> all;
  for (const Policy& policy :
       {Policy(rocksdb::new_filter_policy()), stock_bloom(),
        Policy(rocksdb::new_filter_policy({.bits_per_key = 7, .family = Kind::line})),
        Policy(rocksdb::new_filter_policy({.compatible = true})),
        Policy(rocksdb::new_filter_policy({.family = Kind::ribbon})), Policy(),
        Policy(rocksdb::new_allocating_policy(budget)), filter_budget()->policy(),
        Policy(rocksdb::new_filter_policy({.family = Kind::ribbon, .compatible = true})),
        Policy(::rocksdb::NewRibbonFilterPolicy(10, -1)), Policy(rocksdb::new_filter_policy({.family = Kind::fuse}))}) {
    // Each policy in another surrounding the next time round.
    const std::size_t i = all.size();
    all.push_back({policy, i % 2 == 1, i % 3 != 2, i % 4 != 3});
  }
  const std::size_t policies = all.size();
  for (std::size_t i = 0; i < policies; ++i)
    all.push_back({all[i].policy, !all[i].partitioned, i % 3 != 1, i % 3 == 1 || i % 2 == 0});
  return all;
}

class RocksDb : public DatabaseTest {
 protected:
  void check_get(const Model& model, const std::string& key) {
    std::string value;
    const auto status = db_->Get({}, key, &value);
    const auto found = model.find(key);
    ASSERT_TRUE(status.ok() || status.IsNotFound()) << status.ToString();
    ASSERT_EQ(status.ok(), found != model.end()) << key;
    if (status.ok()) {
      ASSERT_EQ(value, found->second) << key;
    }
  }

  void check_multiget(const Model& model, const std::vector<std::string>& keys) {
    const std::vector<::rocksdb::Slice> slices(keys.begin(), keys.end());
    std::vector<::rocksdb::PinnableSlice> values(keys.size());
    std::vector<::rocksdb::Status> statuses(keys.size());
    db_->MultiGet({}, db_->DefaultColumnFamily(), keys.size(), slices.data(), values.data(), statuses.data());
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const auto found = model.find(keys[i]);
      ASSERT_TRUE(statuses[i].ok() || statuses[i].IsNotFound()) << statuses[i].ToString();
      ASSERT_EQ(statuses[i].ok(), found != model.end()) << keys[i];
      if (statuses[i].ok()) {
        ASSERT_EQ(values[i].ToString(), found->second) << keys[i];
      }
    }
  }

  // All keys that begin as `key` does; there may be none.
  void check_prefix(const Model& model, const std::string& key) {
    const std::string prefix = key.substr(0, kPrefix);
    const std::unique_ptr<::rocksdb::Iterator> at(db_->NewIterator({}));
    auto expected = model.lower_bound(prefix);
    for (at->Seek(prefix); at->Valid() && at->key().starts_with(prefix); at->Next(), ++expected) {
      ASSERT_TRUE(expected != model.end());
      ASSERT_EQ(at->key().ToString(), expected->first);
      ASSERT_EQ(at->value().ToString(), expected->second);
    }
    ASSERT_TRUE(at->status().ok());
    ASSERT_TRUE(expected == model.end() || !expected->first.starts_with(prefix)) << expected->first << " was not found";
  }

  void check_all(const Model& model) {
    ::rocksdb::ReadOptions all;
    all.total_order_seek = true;
    const std::unique_ptr<::rocksdb::Iterator> at(db_->NewIterator(all));
    auto expected = model.begin();
    for (at->SeekToFirst(); at->Valid(); at->Next(), ++expected) {
      ASSERT_TRUE(expected != model.end());
      ASSERT_EQ(at->key().ToString(), expected->first);
      ASSERT_EQ(at->value().ToString(), expected->second);
    }
    ASSERT_TRUE(expected == model.end());
    std::vector<std::string> some;
    for (std::uint64_t i = 0; i < kKeys; ++i) {
      some.push_back(key_of(i));
      if (some.size() < 50) continue;
      ASSERT_NO_FATAL_FAILURE(check_multiget(model, some));
      some.clear();
    }
  }

  void ingest(const ::rocksdb::Options& options, Model& model, std::mt19937_64& random) {
    std::set<std::string> keys;
    for (int i = 0; i < 200; ++i) keys.insert(key_of(random() % kKeys / 2));
    const std::string file = (folder_ / "ingested.sst").string();
    ::rocksdb::SstFileWriter writer(::rocksdb::EnvOptions(), options);
    ASSERT_TRUE(writer.Open(file).ok());
    for (const std::string& key : keys) {
      model[key] = "ingested";
      ASSERT_TRUE(writer.Put(key, "ingested").ok());
    }
    ASSERT_TRUE(writer.Finish().ok());
    const auto status = db_->IngestExternalFile({file}, {});
    ASSERT_TRUE(status.ok()) << status.ToString();
  }
};

TEST_F(RocksDb, AnswersAsAModelDoes) {
  const auto all = settings();
  const char* const soak = std::getenv("PERHAPS_OPERATIONS");
  const std::uint64_t operations = soak == nullptr ? 100'000 : std::strtoull(soak, nullptr, 10);
  const std::uint64_t turn = std::clamp<std::uint64_t>(operations / (2 * all.size()), 1, 50'000);
  std::mt19937_64 random(20260102);
  Model model;
  auto options = options_of(all[0]);
  ASSERT_NO_FATAL_FAILURE(open(options));
  for (std::uint64_t i = 0; i < operations; ++i) {
    // Keys of the upper half are never put.
    const std::string key = key_of(random() % (kKeys / 2));
    const std::string any = key_of(random() % kKeys);
    switch (random() % 16) {
      case 0:
      case 1:
      case 2:
      case 3: {
        const std::string value = std::to_string(i) + std::string(random() % 100, 'v');
        ASSERT_TRUE(db_->Put({}, key, value).ok());
        model[key] = value;
        break;
      }
      case 4:
        ASSERT_TRUE(db_->Delete({}, key).ok());
        model.erase(key);
        break;
      case 5: {
        ::rocksdb::WriteBatch batch;
        const std::string other = key_of(random() % (kKeys / 2));
        ASSERT_TRUE(batch.Put(key, "batch").ok() && batch.Delete(other).ok());
        ASSERT_TRUE(db_->Write({}, &batch).ok());
        model[key] = "batch";
        model.erase(other);
        break;
      }
      case 6:
      case 7: {
        std::vector<std::string> keys(1 + random() % 80);
        for (std::string& one : keys) one = key_of(random() % kKeys);
        ASSERT_NO_FATAL_FAILURE(check_multiget(model, keys));
        break;
      }
      case 8:
        ASSERT_NO_FATAL_FAILURE(check_prefix(model, any));
        break;
      default:
        ASSERT_NO_FATAL_FAILURE(check_get(model, any));
    }
    if (i % turn != turn - 1) continue;
    // Each turn something larger, and every second one another setting.
    switch (i / turn % 5) {
      case 0:
        ASSERT_TRUE(db_->CompactRange({}, nullptr, nullptr).ok());
        break;
      case 1:
      case 3:
        ASSERT_NO_FATAL_FAILURE(ingest(options, model, random));
        break;
      case 2:
        ASSERT_TRUE(db_->Flush({}).ok());
        break;
      default:
        break;
    }
    if (i / turn % 2 == 0) continue;
    options = options_of(all[(i / turn + 1) / 2 % all.size()]);
    ASSERT_NO_FATAL_FAILURE(open(options));
    ASSERT_NO_FATAL_FAILURE(check_all(model));
  }
  ASSERT_NO_FATAL_FAILURE(check_all(model));
  std::printf("%llu operations, %zu keys in the end\n", static_cast<unsigned long long>(operations), model.size());
}

// The writer that is killed: another process, because threads of RocksDB do not survive a fork. Reports every
// acknowledged write with one byte to standard output.
struct Write {
  std::string key, value;  // no value: deleted
};
Write write_of(std::uint64_t seed, std::uint64_t i) {
  std::mt19937_64 random(seed * 1'000'003 + i);
  const std::string key = key_of(random() % (kKeys / 2));
  return {key, random() % 4 == 0 ? std::string() : std::to_string(i) + std::string(random() % 100, 'w')};
}
Setting killed_setting(std::uint64_t round) {
  const auto all = settings();
  return all[round % all.size()];
}

TEST(RocksDbChild, DISABLED_WritesUntilItIsKilled) {
  const char* const folder = std::getenv("PERHAPS_CHILD_FOLDER");
  const char* const round_text = std::getenv("PERHAPS_CHILD_ROUND");
  if (folder == nullptr || round_text == nullptr) GTEST_SKIP();
  const std::uint64_t round = std::strtoull(round_text, nullptr, 10);
  ::rocksdb::DB* db = nullptr;
  if (!::rocksdb::DB::Open(options_of(killed_setting(round)), folder, &db).ok()) std::_Exit(1);
  for (std::uint64_t i = 0;; ++i) {
    const Write write = write_of(round, i);
    const auto status = write.value.empty() ? db->Delete({}, write.key) : db->Put({}, write.key, write.value);
    if (!status.ok() || ::write(3, "+", 1) != 1) std::_Exit(1);
  }
}

TEST_F(RocksDb, SurvivesKill) {
  Model model;
  const std::uint64_t rounds = std::getenv("PERHAPS_OPERATIONS") == nullptr ? 6 : 60;
  for (std::uint64_t round = 0; round < rounds; ++round) {
    std::array<int, 2> pipe;
    ASSERT_EQ(::pipe(pipe.data()), 0);
    ::setenv("PERHAPS_CHILD_FOLDER", (folder_ / "db").c_str(), 1);
    ::setenv("PERHAPS_CHILD_ROUND", std::to_string(round).c_str(), 1);
    const pid_t child = ::fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      ::close(pipe[0]);
      const int null = ::open("/dev/null", O_WRONLY);
      ::dup2(null, 1);
      if (pipe[1] != 3) ::dup2(pipe[1], 3);
      ::execl("/proc/self/exe", "rocksdb_database_test", "--gtest_also_run_disabled_tests",
              "--gtest_filter=RocksDbChild.*", static_cast<char*>(nullptr));
      ::_exit(127);
    }
    ::close(pipe[1]);
    // Somewhere among flushes and compactions.
    const std::uint64_t enough = 3000 + 1234 * round;
    std::uint64_t acknowledged = 0;
    std::array<char, 256> bytes;
    for (ssize_t got; (got = ::read(pipe[0], bytes.data(), bytes.size())) > 0;) {
      const bool before = acknowledged < enough;
      acknowledged += static_cast<std::uint64_t>(got);
      if (before && acknowledged >= enough) ::kill(child, SIGKILL);
    }
    ::close(pipe[0]);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL) << "the writer ended by itself";

    for (std::uint64_t i = 0; i < acknowledged; ++i) {
      const Write write = write_of(round, i);
      if (write.value.empty()) {
        model.erase(write.key);
      } else {
        model[write.key] = write.value;
      }
    }
    // The survivor under the next setting. One write may have been done and not reported.
    ASSERT_NO_FATAL_FAILURE(open(options_of(killed_setting(round + 1))));
    const Write unreported = write_of(round, acknowledged);
    std::string value;
    const auto found = db_->Get({}, unreported.key, &value);
    if (found.ok() && value == unreported.value) model[unreported.key] = value;
    if (found.IsNotFound() && unreported.value.empty()) model.erase(unreported.key);
    ASSERT_NO_FATAL_FAILURE(check_all(model));
    for (std::uint64_t i = 0; i < kKeys; i += 7) {
      ASSERT_NO_FATAL_FAILURE(check_get(model, key_of(i)));
      ASSERT_NO_FATAL_FAILURE(check_prefix(model, key_of(i)));
    }
    db_.reset();
  }
}

// Of 2000 absent keys, how many did filters exclude, and how many did RocksDB look for in a table in vain? One table.
struct Excluded {
  std::uint64_t by_filter, in_vain;
};
class RocksDbShares : public RocksDb, public testing::WithParamInterface<bool> {
 protected:
  void write(const Policy& policy) {
    open(options_with(policy));
    for (std::uint64_t i = 0; i < 2000; ++i) {
      const std::string key = key_of(i);
      ASSERT_TRUE(db_->Put({}, key, key).ok());
      model_[key] = key;
    }
    ASSERT_TRUE(db_->CompactRange({}, nullptr, nullptr).ok());
    db_.reset();
  }
  Excluded read(const Policy& policy) {
    auto options = options_with(policy);
    options.statistics = ::rocksdb::CreateDBStatistics();
    open(options);
    // Once one by one, once many at a time.
    check_all(model_);
    for (std::uint64_t i = 0; i < 2000; ++i) check_get(model_, key_of(i));
    EXPECT_TRUE(options.statistics->Reset().ok());
    std::vector<std::string> keys;
    for (std::uint64_t i = 0; i < 1000; ++i) {
      check_get(model_, key_of(kKeys / 2 + i));
      keys.push_back(key_of(kKeys / 2 + 1000 + i));
    }
    check_multiget(model_, keys);
    return {options.statistics->getTickerCount(::rocksdb::BLOOM_FILTER_USEFUL),
            options.statistics->getTickerCount(::rocksdb::BLOOM_FILTER_FULL_POSITIVE)};
  }
  ::rocksdb::Options options_with(const Policy& policy) const {
    auto options = options_of({.policy = policy, .partitioned = GetParam(), .prefixes = false});
    options.target_file_size_base = 64 << 20;
    options.write_buffer_size = 64 << 20;
    return options;
  }
  Model model_;
};

TEST_P(RocksDbShares, FiltersWithStock) {
  const Policy stock_ribbon(::rocksdb::NewRibbonFilterPolicy(10, -1));
  const Policy ours = rocksdb::new_filter_policy(), line = rocksdb::new_filter_policy({.family = Kind::line});
  const Policy compatible = rocksdb::new_filter_policy({.compatible = true});
  const Policy compatible_ribbon = rocksdb::new_filter_policy({.family = Kind::ribbon, .compatible = true});
  const Policy allocating = rocksdb::new_allocating_policy({.bytes = 2500, .keys = {2000}});
  struct {
    Policy writes, reads;
    bool used;
  } const cases[] = {{ours, ours, true},
                     {line, line, true},
                     {line, ours, true},
                     {ours, line, true},
                     {ours, stock_bloom(), false},
                     {stock_bloom(), ours, false},
                     {ours, compatible, false},
                     {compatible, stock_bloom(), true},
                     {compatible_ribbon, stock_bloom(), true},
                     {stock_bloom(), compatible, true},
                     {stock_ribbon, compatible, true},
                     {allocating, stock_bloom(), true},
                     {allocating, compatible, true},
                     {compatible, allocating, true}};
  for (const auto& [writes, reads, used] : cases) {
    SCOPED_TRACE(writes->GetId() + " written, " + reads->GetId() + " reads");
    SetUp();
    model_.clear();
    ASSERT_NO_FATAL_FAILURE(write(writes));
    const Excluded excluded = read(reads);
    if (used) {
      // 2000 asked, 1 % expected: 20, and 5 sigma are 22.
      EXPECT_GE(excluded.by_filter, 1950u);
      EXPECT_LE(excluded.in_vain, 50u);
    } else {
      EXPECT_EQ(excluded.by_filter, 0u);
    }
    db_.reset();
  }
}
INSTANTIATE_TEST_SUITE_P(Whole, RocksDbShares, testing::Values(false));
INSTANTIATE_TEST_SUITE_P(Partitioned, RocksDbShares, testing::Values(true));

// An OPTIONS file says which policy a database has; whoever registered ours gets it back.
TEST_F(RocksDb, OptionsFileRemembersThePolicy) {
  rocksdb::register_policies();
  ASSERT_NO_FATAL_FAILURE(open(options_of({rocksdb::new_filter_policy({.bits_per_key = 8.5, .family = Kind::dense})})));
  db_.reset();
  ::rocksdb::DBOptions db_options;
  std::vector<::rocksdb::ColumnFamilyDescriptor> families;
  const auto status = ::rocksdb::LoadLatestOptions({}, (folder_ / "db").string(), &db_options, &families);
  ASSERT_TRUE(status.ok()) << status.ToString();
  const auto* const table = families.at(0).options.table_factory->GetOptions<::rocksdb::BlockBasedTableOptions>();
  ASSERT_TRUE(table != nullptr && table->filter_policy != nullptr);
  EXPECT_EQ(table->filter_policy->GetId(), "perhaps:dense:8.5");
}

}  // namespace
}  // namespace perhaps
