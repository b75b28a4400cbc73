// Promise: the filters of a real database under a FilterBudget take what it allows and at most 5 % more, whatever moves
// its tables, also while flushes and compactions run, after deletes and after it was opened again; an absent key is
// looked for in vain in fewer tables than with RocksDB's Ribbon of the same bits for all. Would notice: a filter too
// large or too small, a density that is kept by a table that was moved, a lookup that is not counted, a wrong answer.
#include <gtest/gtest.h>
#include <rocksdb/db.h>
#include <rocksdb/options.h>
#include <rocksdb/perf_context.h>
#include <rocksdb/perf_level.h>
#include <rocksdb/table.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "perhaps_rocksdb.h"

namespace perhaps {
namespace {

constexpr double kBits = 10;

std::string key_of(std::uint64_t i) {
  char text[24];
  std::snprintf(text, sizeof text, "%016llx", static_cast<unsigned long long>(i));
  return text;
}
// In any order, and each only once.
std::string shuffled(std::uint64_t i) { return key_of(i * 0x9E3779B97F4A7C15u); }

struct Spent {
  std::size_t tables = 0;
  double keys = 0, bits = 0;
  double per_key() const { return keys == 0 ? 0 : bits / keys; }
};

Spent spent(::rocksdb::DB& db) {
  ::rocksdb::TablePropertiesCollection all;
  EXPECT_TRUE(db.GetPropertiesOfAllTables(&all).ok());
  Spent sum{.tables = all.size()};
  for (const auto& [path, table] : all) {
    sum.keys += static_cast<double>(table->num_entries);
    sum.bits += 8 * static_cast<double>(table->filter_size);
  }
  return sum;
}

class BudgetTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = testing::UnitTest::GetInstance()->current_test_info()->name();
    std::replace(name.begin(), name.end(), '/', '-');
    folder_ = std::filesystem::temp_directory_path() / ("perhaps-budget-" + name + "-" + std::to_string(::getpid()));
    std::filesystem::remove_all(folder_);
    options_.create_if_missing = true;
    options_.write_buffer_size = 96 << 10;
    options_.target_file_size_base = 64 << 10;
    options_.max_bytes_for_level_base = 256 << 10;
    options_.max_bytes_for_level_multiplier = 4;
    options_.level0_file_num_compaction_trigger = 4;
    options_.max_background_jobs = 2;
    options_.compression = ::rocksdb::kNoCompression;
    watch({.bits_per_key = kBits});
  }
  void TearDown() override {
    db_.reset();
    std::filesystem::remove_all(folder_);
  }

  // Also while compactions run.
  void count() {
    if (++operations_ % kEvery == 0) check();
  }
  void check() {
    const Spent now = spent(*db_);
    most_ = std::max(most_, now.keys == 0 ? 0 : now.per_key());
    ++checks_;
  }
  void settle() {
    wait();
    check();
  }
  void wait() {
    ASSERT_TRUE(db_->Flush({}).ok());
    for (std::uint64_t left = 1; left != 0;) {
      std::uint64_t pending = 0;
      db_->GetIntProperty("rocksdb.num-running-compactions", &left);
      // With universal compaction one may be pending for ever.
      if (options_.compaction_style == ::rocksdb::kCompactionStyleLevel)
        db_->GetIntProperty("rocksdb.compaction-pending", &pending);
      left += pending;
    }
  }

 public:
  void watch(const rocksdb::FilterBudgetOptions& options) {
    const auto budget = rocksdb::new_filter_budget(options);
    ::rocksdb::BlockBasedTableOptions table;
    table.filter_policy = budget->policy();
    options_.table_factory.reset(::rocksdb::NewBlockBasedTableFactory(table));
    options_.listeners = {budget};
  }
  void open() {
    db_.reset();
    ::rocksdb::DB* db = nullptr;
    const auto status = ::rocksdb::DB::Open(options_, folder_.string(), &db);
    ASSERT_TRUE(status.ok()) << status.ToString();
    db_.reset(db);
  }
  void put(const std::string& key) {
    ASSERT_TRUE(db_->Put({}, key, std::string(40, 'v')).ok());
    count();
  }
  void erase(const std::string& key) {
    ASSERT_TRUE(db_->Delete({}, key).ok());
    count();
  }

 protected:
  static constexpr std::uint64_t kEvery = 1000;

  std::filesystem::path folder_;
  ::rocksdb::Options options_;
  std::unique_ptr<::rocksdb::DB> db_;
  std::uint64_t operations_ = 0, checks_ = 0;
  double most_ = 0;  // bits per key, at any check
};

enum Style { fixed_levels, dynamic_levels, universal };
constexpr const char* kStyles[] = {"static", "dynamic", "universal"};

struct Workload {
  const char* name;
  void (*run)(BudgetTest& test);
};
constexpr std::uint64_t kKeys = 40'000;
const Workload kWorkloads[] = {
    {"ascending",
     [](BudgetTest& test) {
       for (std::uint64_t i = 0; i < kKeys; ++i) test.put(key_of(i));
     }},
    {"descending",
     [](BudgetTest& test) {
       for (std::uint64_t i = kKeys; i-- > 0;) test.put(key_of(i));
     }},
    {"random",
     [](BudgetTest& test) {
       for (std::uint64_t i = 0; i < kKeys; ++i) test.put(shuffled(i));
     }},
    {"overwritten",
     [](BudgetTest& test) {
       std::mt19937_64 random(1);
       for (std::uint64_t i = 0; i < kKeys; ++i) test.put(shuffled(random() % (kKeys / 4)));
     }},
    {"deleted",
     [](BudgetTest& test) {
       for (std::uint64_t i = 0; i < kKeys / 2; ++i) test.put(shuffled(i));
       for (std::uint64_t i = 0; i < kKeys / 2; ++i) {
         if (i % 5 != 0) test.erase(shuffled(i));
       }
     }},
    {"queue",
     [](BudgetTest& test) {
       for (std::uint64_t i = 0; i < kKeys / 2; ++i) {
         test.put(key_of(i));
         if (i >= kKeys / 8) test.erase(key_of(i - kKeys / 8));
       }
     }},
    {"reopened",
     [](BudgetTest& test) {
       for (std::uint64_t i = 0; i < kKeys; ++i) {
         test.put(shuffled(i));
         if (i % (kKeys / 5) != kKeys / 5 - 1) continue;
         // With the object that knows it, and with a new one as after a restart of the program.
         if (i % 2 == 0) test.watch({.bits_per_key = kBits});
         test.open();
       }
     }},
    {"mixed",
     [](BudgetTest& test) {
       std::mt19937_64 random(2);
       for (std::uint64_t i = 0; i < kKeys; ++i) test.put(random() % 4 == 0 ? shuffled(i) : key_of(random() % kKeys));
     }},
};

class BudgetHolds : public BudgetTest, public testing::WithParamInterface<std::tuple<Workload, Style>> {};

TEST_P(BudgetHolds, WhateverMovesTheTables) {
  const auto [workload, style] = GetParam();
  options_.level_compaction_dynamic_level_bytes = style == dynamic_levels;
  if (style == universal) options_.compaction_style = ::rocksdb::kCompactionStyleUniversal;
  open();
  ASSERT_NO_FATAL_FAILURE(workload.run(*this));
  settle();
  const Spent at_rest = spent(*db_);
  std::printf("%-11s %-9s %6.0f entries in %3zu tables: %5.2f bits per key, up to %5.2f while they were written\n",
              workload.name, kStyles[style], at_rest.keys, at_rest.tables, at_rest.per_key(), most_);
  EXPECT_GT(checks_, kKeys / kEvery / 2);
  EXPECT_LE(most_, 1.05 * kBits);
  // The promise is an upper bound. Less is what is reserved for level 0, which is a tenth of so small a tree, and what
  // tables lack until they are rewritten: 8.6 bits were seen.
  EXPECT_GE(at_rest.per_key(), 0.6 * kBits);
}
INSTANTIATE_TEST_SUITE_P(All, BudgetHolds,
                         testing::Combine(testing::ValuesIn(kWorkloads),
                                          testing::Values(fixed_levels, dynamic_levels, universal)),
                         [](const auto& test) {
                           return std::string(std::get<0>(test.param).name) + "_" + kStyles[std::get<1>(test.param)];
                         });

// Beyond most_bytes the density falls as the tree grows: compactions take back what the first tables had.
TEST_F(BudgetTest, NeverMoreBytesThanTheMost) {
  constexpr double kMostBytes = 25'000;  // 5 bits for each key in the end
  watch({.bits_per_key = kBits, .most_bytes = static_cast<std::uint64_t>(kMostBytes)});
  open();
  double most = 0;
  for (std::uint64_t i = 0; i < kKeys; ++i) {
    put(shuffled(i));
    if (i % kEvery == 0) most = std::max(most, spent(*db_).bits / 8);
  }
  settle();
  const double at_rest = spent(*db_).bits / 8;
  std::printf("%.0f bytes, up to %.0f\n", at_rest, most);
  EXPECT_LE(most, 1.05 * kMostBytes);
  EXPECT_GE(at_rest, 0.6 * kMostBytes);  // 0.78 was seen
}

// Nothing is known without the listener, and then all filters are equal.
TEST_F(BudgetTest, WithoutTheListenerAllAreEqual) {
  options_.listeners.clear();
  open();
  for (std::uint64_t i = 0; i < kKeys / 2; ++i) put(shuffled(i));
  settle();
  ::rocksdb::TablePropertiesCollection all;
  ASSERT_TRUE(db_->GetPropertiesOfAllTables(&all).ok());
  for (const auto& [path, table] : all) {
    // Small Ribbons are rounded up to whole words.
    const double bits = 8 * static_cast<double>(table->filter_size) / static_cast<double>(table->num_entries);
    if (table->num_entries >= 500) {
      EXPECT_NEAR(bits, kBits, 2) << table->num_entries << " keys";
    }
  }
}

TEST_F(BudgetTest, RefusesWhatIsNoBudget) {
  for (const double bits : {0.0, -1.0, 101.0, std::nan("")})
    EXPECT_THROW(rocksdb::new_filter_budget({.bits_per_key = bits}), std::invalid_argument);
}

// Tables that an absent key is looked for in vain, per lookup. Every answer is checked.
class BudgetReads : public BudgetTest {
 protected:
  template <class Key>
  double in_vain(std::uint64_t lookups, Key key) {
    ::rocksdb::SetPerfLevel(::rocksdb::PerfLevel::kEnableCount);
    ::rocksdb::get_perf_context()->Reset();
    std::string value;
    for (std::uint64_t i = 0; i < lookups; ++i) EXPECT_TRUE(db_->Get({}, key(i), &value).IsNotFound());
    const double hits = static_cast<double>(::rocksdb::get_perf_context()->bloom_sst_hit_count);
    ::rocksdb::SetPerfLevel(::rocksdb::PerfLevel::kDisable);
    return hits / static_cast<double>(lookups);
  }
  void check_keys(std::uint64_t keys) {
    std::string value;
    for (std::uint64_t i = 0; i < keys; ++i) ASSERT_TRUE(db_->Get({}, shuffled(i), &value).ok());
  }
};

// The engine's best: its Ribbon with the same bits for all, which the same tree has when nobody listens. Each flush
// waits until all compactions are done, so that both trees are equal: two levels, and three tables on level 0, one
// fewer than start a compaction.
TEST_F(BudgetReads, FewerThanWithAnEvenRibbon) {
  constexpr std::uint64_t kAsked = 100'000;
  options_.max_bytes_for_level_base = 64 << 10;
  options_.max_bytes_for_level_multiplier = 10;
  options_.write_buffer_size = 8 << 20;
  double reads[2], bits[2];
  for (const int listening : {0, 1}) {
    std::filesystem::remove_all(folder_);
    // As many bits as the even one really has.
    watch({.bits_per_key = listening == 0 ? 8 : bits[0]});
    if (listening == 0) options_.listeners.clear();
    open();
    std::uint64_t keys = 0;
    for (std::string level0 = "0"; keys < kKeys || level0 != "3";) {
      for (int i = 0; i < 400; ++i) put(shuffled(keys++));
      wait();
      ASSERT_TRUE(db_->GetProperty("rocksdb.num-files-at-level0", &level0));
    }
    reads[listening] = in_vain(kAsked, [](std::uint64_t i) { return shuffled(1'000'000 + i); });
    bits[listening] = spent(*db_).per_key();
    ASSERT_NO_FATAL_FAILURE(check_keys(keys));
    db_.reset();
  }
  std::printf("%.5f reads in vain in %.2f bits per key, even Ribbon %.5f in %.2f: %.2f times fewer\n", reads[1],
              bits[1], reads[0], bits[0], reads[0] / reads[1]);
  EXPECT_LE(bits[1], 1.02 * bits[0]);
  // 1.4 to 1.6 times as many: n = 100,000, some 1400 and 900 reads, and 5 sigma of the ratio are 0.35.
  EXPECT_GE(reads[0], 1.25 * reads[1]);
}

}  // namespace
}  // namespace perhaps
