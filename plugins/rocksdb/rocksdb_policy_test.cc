// Promise: no key of a filter is denied, one by one or in a batch, whatever the family, the number of keys and the
// bits per key; in the bytes of RocksDB's own Bloom filter the rate is at most a third of its, or 1.15 times it with
// "line"; the compatible mode writes RocksDB's bytes; damaged filters stay within their bytes and reserved ones
// answer *perhaps*; policies can be made by name; a plan keeps its budget and wastes less than half of what even shares
// do. Would notice: a missing key, a worse rate, a byte that differs, a *no* of reserved bytes, a name that is lost,
// a plan that is too large.
#include <gtest/gtest.h>
#include <rocksdb/convenience.h>
#include <rocksdb/table.h>

#include <cmath>
#include <cstdio>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "filter_bits.h"
#include "perhaps/any_filter.h"
#include "perhaps_rocksdb.h"
#include "support/keys.h"

namespace perhaps {
namespace {

using rocksdb::PolicyPtr;
using ::rocksdb::Slice;

std::vector<std::string> keys_of(std::uint64_t seed, std::size_t count) {
  std::vector<std::string> keys;
  for (std::size_t i = 0; i < count; ++i) keys.push_back("key" + std::to_string(test::Stream{seed}.at(i)));
  return keys;
}

std::string filter_of(const PolicyPtr& policy, const std::vector<std::string>& keys, std::uint32_t format_version = 5) {
  ::rocksdb::BlockBasedTableOptions options;
  options.format_version = format_version;
  const ::rocksdb::FilterBuildingContext context(options);
  const std::unique_ptr<::rocksdb::FilterBitsBuilder> builder(policy->GetBuilderWithContext(context));
  // The second one: a builder is used for one partition after the other.
  std::unique_ptr<const char[]> bytes;
  builder->AddKey("a key of the partition before");
  builder->Finish(&bytes);
  for (const std::string& key : keys) builder->AddKey(key);
  EXPECT_EQ(builder->EstimateEntriesAdded(), keys.size());
  ::rocksdb::Status status;
  std::string filter = builder->Finish(&bytes, &status).ToString();
  EXPECT_TRUE(status.ok() && builder->MaybePostVerify(filter).ok());
  return filter;
}

std::uint64_t hits(const PolicyPtr& policy, const std::string& filter, const std::vector<std::string>& keys) {
  const std::unique_ptr<::rocksdb::FilterBitsReader> reader(policy->GetFilterBitsReader(filter));
  std::vector<Slice> slices(keys.begin(), keys.end());
  std::vector<Slice*> pointers;
  for (Slice& slice : slices) pointers.push_back(&slice);
  const auto answers = std::make_unique<bool[]>(keys.size());
  constexpr std::size_t kMaxAtOnce = 32;  // RocksDB has room for no more
  for (std::size_t i = 0; i < keys.size(); i += kMaxAtOnce) {
    const auto count = static_cast<int>(std::min(kMaxAtOnce, keys.size() - i));
    reader->MayMatch(count, pointers.data() + i, answers.get() + i);
  }
  std::uint64_t found = 0;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    found += answers[i];
    EXPECT_EQ(reader->MayMatch(slices[i]), answers[i]) << "alone and in a batch, key " << i;
  }
  return found;
}

TEST(RocksDbPolicy, DeniesNoKey) {
  std::vector<rocksdb::Options> all = {{.family = Kind::dense}, {.bits_per_key = 3},
                                       {.bits_per_key = 0.5},   {.bits_per_key = 30},
                                       {.compatible = true},    {.family = Kind::ribbon, .compatible = true}};
  for (const Family& family : families()) {
    if (family.packs && (family.sets_bits || !family.inserts)) all.push_back({.family = family.kind});
  }
  for (const auto& options : all) {
    const PolicyPtr policy = rocksdb::new_filter_policy(options);
    for (const std::size_t count : {0u, 1u, 2u, 63u, 64u, 65u, 300u, 5000u}) {
      const auto keys = keys_of(count, count);
      ASSERT_EQ(hits(policy, filter_of(policy, keys), keys), count) << policy->GetId();
    }
  }
}

TEST(RocksDbPolicy, RatesBesideFastLocalBloom) {
  constexpr std::size_t kKeys = 200'000, kAsked = 400'000;
  const auto keys = keys_of(1, kKeys), absent = keys_of(2, kAsked);
  for (const double bits : {6.0, 8.0, 10.0, 12.0, 16.0, 20.0}) {
    const PolicyPtr stock(::rocksdb::NewBloomFilterPolicy(bits));
    const std::string stock_filter = filter_of(stock, keys);
    const auto theirs = static_cast<double>(hits(stock, stock_filter, absent));
    struct {
      Kind family;
      double times;
    } const bounds[] = {{rocksdb::Options().family, 0.34}, {Kind::line, 1.15}};
    for (const auto& [family, times] : bounds) {
      const PolicyPtr policy = rocksdb::new_filter_policy({.bits_per_key = bits, .family = family});
      const std::string filter = filter_of(policy, keys);
      const auto ours = static_cast<double>(hits(policy, filter, absent));
      std::printf("%4.0f bits per key, %-5s %6.3f %% in %.3f bits; RocksDB %6.3f %%\n", bits,
                  std::string(name_of(family)).c_str(), 100 * ours / kAsked,
                  8.0 * static_cast<double>(filter.size()) / kKeys, 100 * theirs / kAsked);
      EXPECT_LE(filter.size(), stock_filter.size() + 64);
      EXPECT_LE(ours, times * theirs + 5 * std::sqrt(ours + theirs + 1));  // n = 400,000, z = 5
    }
  }
}

TEST(RocksDbPolicy, CompatibleBytesAreRocksDbs) {
  for (const double bits : {0.7, 5.0, 9.9, 10.0, 17.25}) {
    for (const std::size_t count : {0u, 1u, 100u, 700u, 5000u}) {
      const auto keys = keys_of(7, count);
      const PolicyPtr bloom(::rocksdb::NewBloomFilterPolicy(bits));
      const PolicyPtr ribbon(::rocksdb::NewRibbonFilterPolicy(bits, -1));
      const PolicyPtr our_bloom = rocksdb::new_filter_policy({.bits_per_key = bits, .compatible = true});
      const PolicyPtr our_ribbon =
          rocksdb::new_filter_policy({.bits_per_key = bits, .family = Kind::ribbon, .compatible = true});
      EXPECT_EQ(filter_of(our_bloom, keys), filter_of(bloom, keys)) << bits << " bits, " << count << " keys";
      EXPECT_EQ(filter_of(our_bloom, keys, 4), filter_of(bloom, keys, 4)) << bits << " bits, " << count << " keys";
      EXPECT_EQ(filter_of(our_ribbon, keys), filter_of(ribbon, keys)) << bits << " bits, " << count << " keys";
      EXPECT_STREQ(our_bloom->CompatibilityName(), bloom->CompatibilityName());
    }
  }
}

TEST(RocksDbPolicy, AnyBytesCanBeAsked) {
  const auto keys = keys_of(3, 100);
  for (const auto& options :
       {rocksdb::Options{}, rocksdb::Options{.family = Kind::line}, rocksdb::Options{.family = Kind::ribbon},
        rocksdb::Options{.compatible = true}, rocksdb::Options{.family = Kind::ribbon, .compatible = true}}) {
    const PolicyPtr policy = rocksdb::new_filter_policy(options);
    const std::string whole = filter_of(policy, keys_of(4, 700));
    for (std::size_t size = 0; size < whole.size(); size += size < 80 ? 1 : 37) {
      hits(policy, whole.substr(0, size), keys);
      hits(policy, whole.substr(whole.size() - size), keys);
    }
    for (std::uint64_t i = 0; i < 3000; ++i) {
      std::string damaged = i % 2 == 0 ? whole : whole.substr(whole.size() - 1 - i % 100);
      for (std::uint64_t j = 0; j < 4; ++j) {
        const std::uint64_t r = test::Stream{i}.at(j);
        damaged[damaged.size() - 1 - r % std::min<std::size_t>(damaged.size(), 12)] = static_cast<char>(r >> 32);
      }
      hits(policy, damaged, {"a", "b"});
    }
  }
  // Reserved by each format.
  EXPECT_EQ(hits(rocksdb::new_filter_policy(), std::string(1000, '\x50'), keys), keys.size());
  EXPECT_EQ(hits(rocksdb::new_filter_policy({.compatible = true}), std::string(1000, '\xf0'), keys), keys.size());
  EXPECT_EQ(hits(rocksdb::new_filter_policy({.compatible = true}), std::string(6, '\0'), keys), keys.size());
}

TEST(RocksDbPolicy, ByName) {
  rocksdb::register_policies();
  rocksdb::register_policies();
  const rocksdb::Budget budget{.bytes = 1 << 20, .keys = {0, 1000, 1'000'000}, .level0_tables = 2.5, .ribbon_from = 2};
  const std::string ids[] = {rocksdb::new_filter_policy()->GetId(),
                             rocksdb::new_filter_policy({.bits_per_key = 6.125, .family = Kind::dense})->GetId(),
                             rocksdb::new_filter_policy({.family = Kind::ribbon, .compatible = true})->GetId(),
                             rocksdb::new_allocating_policy(budget)->GetId(),
                             rocksdb::new_filter_budget({.bits_per_key = 9.5, .ribbon = false})->policy()->GetId()};
  EXPECT_EQ(ids[0], "perhaps:dense:10");
  EXPECT_EQ(ids[1], "perhaps:dense:6.125");
  EXPECT_EQ(ids[2], "perhaps:ribbon:10:compatible");
  EXPECT_EQ(ids[3], "perhaps.allocating:1048576:2.5:2:0,1000,1000000");
  EXPECT_EQ(ids[4], "perhaps.budget:9.5:bloom");
  const ::rocksdb::ConfigOptions config;
  std::shared_ptr<const ::rocksdb::FilterPolicy> made;
  for (const std::string& id : ids) {
    ASSERT_TRUE(::rocksdb::FilterPolicy::CreateFromString(config, id, &made).ok()) << id;
    EXPECT_EQ(made->GetId(), id);
  }
  ASSERT_TRUE(::rocksdb::FilterPolicy::CreateFromString(config, "perhaps", &made).ok());
  EXPECT_EQ(made->GetId(), ids[0]);
  for (const char* wrong : {"perhaps:lime", "perhaps:line:", "perhaps:line:-1", "perhaps:line:nan", "perhaps:line:10:",
                            "perhaps:line:10:compatible:", "perhaps:lime:10:compatible", "perhaps.allocating:1",
                            "perhaps.allocating:1:1:1:", "perhaps.allocating:1:1:1:0", "perhaps.allocating:1:1:1:-4",
                            "perhaps:line:101", "perhaps:line:1e300", "perhaps.budget:10", "perhaps.budget:0:ribbon",
                            "perhaps.budget:10:fuse", "perhaps.allocating:1:1:1:18446744073709551615"}) {
    EXPECT_FALSE(::rocksdb::FilterPolicy::CreateFromString(config, wrong, &made).ok()) << wrong;
    // Where RocksDB reads the options of a table it ignores that, but it does not open a database with them.
    ::rocksdb::Options options;
    (void)::rocksdb::GetOptionsFromString(
        config, {}, "block_based_table_factory={filter_policy=" + std::string(wrong) + "}", &options);
    options.create_if_missing = true;
    ::rocksdb::DB* db = nullptr;
    const auto status = ::rocksdb::DB::Open(options, ::testing::TempDir() + "perhaps-refused", &db);
    EXPECT_TRUE(status.IsInvalidArgument()) << wrong << ": " << status.ToString();
    EXPECT_NE(status.ToString().find(wrong), std::string::npos) << status.ToString();
    delete db;
  }
  ::rocksdb::BlockBasedTableOptions table;
  ASSERT_TRUE(::rocksdb::GetBlockBasedTableOptionsFromString(
                  config, {}, "filter_policy=perhaps:dense:6.125;block_size=1234", &table)
                  .ok());
  EXPECT_EQ(table.filter_policy->GetId(), ids[1]);
}

// Without this refusal, a database would silently have no filters.
TEST(RocksDbPolicy, RefusesWhatItCannotMake) {
  EXPECT_THROW(rocksdb::new_filter_policy({.family = Kind::scalable}), std::invalid_argument);
  // What erases or forgets spends bits on it: at 10 bits per key counting has a rate of 31 %, window of 13 %.
  for (const Kind kind : {Kind::counting, Kind::cuckoo, Kind::quotient, Kind::growing, Kind::window}) {
    try {
      rocksdb::new_filter_policy({.family = kind});
      ADD_FAILURE() << name_of(kind);
    } catch (const std::invalid_argument& error) {
      EXPECT_NE(std::string_view(error.what()).find(name_of(kind)), std::string_view::npos) << error.what();
    }
  }
  for (const double bits : {0.0, -1.0, 101.0, std::nan("")})
    EXPECT_THROW(rocksdb::new_filter_policy({.bits_per_key = bits}), std::invalid_argument);
  EXPECT_THROW(rocksdb::new_allocating_policy({.bytes = 1000}), std::invalid_argument);
  EXPECT_THROW(rocksdb::new_allocating_policy({.bytes = 1000, .keys = {10, UINT64_MAX}}), std::invalid_argument);
  EXPECT_THROW(rocksdb::new_allocating_policy({.bytes = 1000, .keys = {10}, .level0_tables = -1}),
               std::invalid_argument);
}

// detect_filter_construct_corruption: a filter that denies one of its keys is found before it is written.
TEST(RocksDbPolicy, VerifiesWhatItBuiltIfAsked) {
  const auto keys = keys_of(3, 1000);
  for (const bool detect : {false, true}) {
    for (const Kind family : {Kind::dense, Kind::line}) {
      const PolicyPtr policy = rocksdb::new_filter_policy({.family = family});
      ::rocksdb::BlockBasedTableOptions table;
      table.detect_filter_construct_corruption = detect;
      const std::unique_ptr<::rocksdb::FilterBitsBuilder> builder(
          policy->GetBuilderWithContext(::rocksdb::FilterBuildingContext(table)));
      for (const bool broken : {false, true}) {
        for (const std::string& key : keys) builder->AddKey(key);
        EXPECT_EQ(builder->EstimateEntriesAdded(), keys.size());
        std::unique_ptr<const char[]> buffer;
        std::string filter = builder->Finish(&buffer).ToString();
        EXPECT_EQ(builder->EstimateEntriesAdded(), 0u);
        if (broken) std::fill(filter.begin(), filter.begin() + static_cast<std::ptrdiff_t>(filter.size() / 2), '\0');
        EXPECT_EQ(builder->MaybePostVerify(filter).IsCorruption(), detect && broken) << name_of(family);
      }
    }
  }
}

TEST(RocksDbPolicy, PlansKeepTheirBudget) {
  const std::vector<std::uint64_t> keys = {0, 10'000, 100'000, 1'000'000, 10'000'000};
  const double all = 11'110'000;
  const auto sums = [&](const std::vector<rocksdb::LevelPlan>& plan) {
    struct {
      double bits = 0, wasted = 0;
    } sum;
    for (std::size_t i = 1; i < plan.size(); ++i) {
      sum.bits += plan[i].bits_per_key * static_cast<double>(keys[i]) / all;
      sum.wasted += plan[i].fpr;
    }
    return sum;
  };
  const double even = 4 * 0.0095;  // RocksDB's Bloom filter at 10 bits per key
  for (const double bits : {2.0, 5.0, 7.0, 10.0, 15.0}) {
    for (const std::uint32_t ribbon_from : {1u, 4u, 9u}) {
      const auto plan = rocksdb::plan_levels(
          {.bytes = static_cast<std::uint64_t>(bits * all / 8), .keys = keys, .ribbon_from = ribbon_from});
      ASSERT_EQ(plan.size(), keys.size());
      EXPECT_LE(sums(plan).bits, bits + 0.001);
      EXPECT_GE(sums(plan).bits, bits - 0.1);
      for (std::size_t i = 1; i + 1 < plan.size(); ++i) EXPECT_LE(plan[i].fpr, plan[i + 1].fpr * 1.001);
      EXPECT_EQ(plan[0].fpr, plan[1].fpr) << "an empty level is as the one below it";
      EXPECT_TRUE(bits < 10 || sums(plan).wasted < even / 2);
      EXPECT_TRUE(bits < 7 || ribbon_from > 1 || sums(plan).wasted < even);
    }
  }
  // Without memory there are no filters, with little of it only small levels have one.
  for (const auto& level : rocksdb::plan_levels({.bytes = 0, .keys = keys})) EXPECT_EQ(level.bloom_bits, 0);
  const auto little = rocksdb::plan_levels({.bytes = 100'000, .keys = keys});
  EXPECT_EQ(little[4].bloom_bits, 0);
  EXPECT_GT(little[1].bloom_bits, 5);
  // An endless budget gives no fewer bits.
  for (const auto& level : rocksdb::plan_levels({.bytes = UINT64_MAX, .keys = keys})) EXPECT_GT(level.bloom_bits, 20);
}

}  // namespace
}  // namespace perhaps
