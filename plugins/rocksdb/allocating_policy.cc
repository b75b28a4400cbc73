// Which of RocksDB's built-in filters for which level. Public classes only.
#include <algorithm>
#include <cassert>
#include <cmath>
#include <stdexcept>

#include "perhaps/engine/allocate.h"
#include "perhaps/format/rocksdb.h"
#include "policy_names.h"

namespace perhaps::rocksdb {
namespace {

constexpr double kMinBits = 1;  // RocksDB rounds up to it
constexpr double kMaxBits = 60;

// Of f, which falls, where it is `wanted`.
template <class F>
double where(F f, double wanted, double low, double high) {
  for (int i = 0; i < 60; ++i) {
    const double middle = (low + high) / 2;
    (f(middle) > wanted ? low : high) = middle;
  }
  return high;
}

LevelPlan plan_of(double fpr, bool ribbon) {
  LevelPlan level{.ribbon = ribbon};
  if (fpr > format::rocksdb::bloom_fpr(kMinBits)) return level;
  // To the thousandth, as RocksDB does.
  level.bloom_bits = std::round(1000 * where(format::rocksdb::bloom_fpr, fpr, kMinBits, kMaxBits)) / 1000;
  level.fpr = format::rocksdb::bloom_fpr(level.bloom_bits);
  level.bits_per_key = ribbon ? format::rocksdb::ribbon_bits_per_key(level.bloom_bits) : level.bloom_bits;
  return level;
}

double bytes_of_plan(const std::vector<LevelPlan>& levels, const Budget& budget) {
  double bytes = 0;
  for (std::size_t i = 0; i < levels.size(); ++i)
    bytes += levels[i].bits_per_key / 8 * static_cast<double>(budget.keys[i]);
  return bytes;
}

class AllocatingPolicy final : public ::rocksdb::FilterPolicy {
 public:
  explicit AllocatingPolicy(const Budget& budget) : budget_(budget) {
    for (const LevelPlan& level : plan_levels(budget)) {
      if (level.bloom_bits == 0) {
        levels_.emplace_back();
      } else if (level.ribbon) {
        levels_.emplace_back(::rocksdb::NewRibbonFilterPolicy(level.bloom_bits, -1));
      } else {
        levels_.emplace_back(::rocksdb::NewBloomFilterPolicy(level.bloom_bits));
      }
    }
  }

  const char* Name() const override { return kAllocatingName; }
  const char* CompatibilityName() const override { return any_->CompatibilityName(); }
  std::string GetId() const override { return id_of(budget_); }

  ::rocksdb::FilterBitsBuilder* GetBuilderWithContext(const ::rocksdb::FilterBuildingContext& context) const override {
    const int last = static_cast<int>(levels_.size()) - 1;
    // An ingested table has no level yet, and goes down as far as it can.
    const int level = context.level_at_creation < 0 ? last : std::min(context.level_at_creation, last);
    const auto& policy = levels_[static_cast<std::size_t>(level)];
    return policy ? policy->GetBuilderWithContext(context) : nullptr;
  }
  // Any built-in policy reads the filters of all of them.
  ::rocksdb::FilterBitsReader* GetFilterBitsReader(const ::rocksdb::Slice& contents) const override {
    return any_->GetFilterBitsReader(contents);
  }

 private:
  Budget budget_;
  std::vector<PolicyPtr> levels_;  // null: no filter
  PolicyPtr any_{::rocksdb::NewBloomFilterPolicy(10)};
};

}  // namespace

std::vector<LevelPlan> plan_levels(const Budget& budget) {
  if (!valid(budget)) throw std::invalid_argument("perhaps: no such budget: " + id_of(budget));
  std::vector<Level> tree;
  for (std::size_t i = 0; i < budget.keys.size(); ++i) {
    tree.push_back({.keys = budget.keys[i],
                    .cost = i == 0 ? budget.level0_tables : 1,
                    .family = i < budget.ribbon_from ? Kind::line : Kind::ribbon});
  }
  const auto levels = LevelBudget::over(std::move(tree));
  assert(levels);
  // Our curves say how to share, RocksDB's what that takes: its Ribbon is some 5 % larger than ours.
  const auto plan_in = [&](double bytes) {
    const auto shares = levels->best(static_cast<std::uint64_t>(bytes)).levels;
    std::vector<LevelPlan> plan;
    for (std::size_t i = 0; i < shares.size(); ++i) plan.push_back(plan_of(shares[i].fpr, i >= budget.ribbon_from));
    return plan;
  };
  const auto limit = static_cast<double>(std::min(budget.bytes, std::uint64_t{1} << 62));
  double fits = 0, exceeds = 2 * limit + 1;
  for (int i = 0; i < 40; ++i) {
    const double middle = (fits + exceeds) / 2;
    (bytes_of_plan(plan_in(middle), budget) <= limit ? fits : exceeds) = middle;
  }
  auto plan = plan_in(fits);
  // A level that is meant to be empty: as the next one below it that is not.
  for (std::size_t i = plan.size(); i-- > 0;) {
    if (budget.keys[i] == 0 && i + 1 < plan.size()) plan[i] = plan[i + 1];
  }
  return plan;
}

PolicyPtr new_allocating_policy(const Budget& budget) { return std::make_unique<AllocatingPolicy>(budget); }

}  // namespace perhaps::rocksdb
