// One memory budget over the levels of an LSM tree (Dayan, Athanassoulis, Idreos, "Monkey", SIGMOD 2017).
//
//   LevelBudget tree = *LevelBudget::over({{.keys = 1'000'000}, {.keys = 10'000'000}, {.keys = 100'000'000}});
//   tree.best(128 << 20).levels[0].bits_per_key
//
// A lookup of an absent key queries the filter of every level, and reads a table in vain for each that says *perhaps*:
//
//   wasted = sum over levels of cost_i * fpr_i(bits_i)                    is minimised, while
//   bytes  = sum over levels of keys_i * bits_i / 8  <=  budget
//
// The same bits per key everywhere is wrong: in a tree of ratio 10 nine tenths of the memory then go to the last level,
// whose false positives cost no more than those of the first. At the optimum another byte saves as much on every level:
// cost_i * fpr_i'(bits_i) / keys_i is one number for all of them. With the textbook's fpr = 0.6185^bits that is
// fpr_i ~ keys_i / cost_i, each level 1.44 * log2(ratio) bits per key below the one before it, and if memory is short
// the last levels have no filter at all. Here the curves are those of the families (sizing.h), with whole lines and
// blocks. Each level climbs the lower convex hull of its curve, always where the next step saves most for its bytes.
// Curves are not convex where the number of probes changes, so then every two levels exchange bytes for as long as that
// helps; what is left over goes to the level that gains most by it.
//
// A level with a smaller family (ribbon: built once, slower to build and to query) leaves more for the others. The last
// levels hold most of the keys and are rewritten least, so that is where it pays.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "perhaps/detail/config.h"
#include "perhaps/family.h"
#include "perhaps/result.h"

namespace perhaps {

// One level of a tree.
struct Level {
  std::uint64_t keys = 0;  // in all of its tables
  // Of answering *perhaps* for an absent key, in any unit: the number of filters of the level that a lookup queries (1,
  // or the number of tables if they overlap), times the cost of such a read, times the share of lookups that come this
  // far and do not find their key here (1 if all keys are absent).
  double cost = 1;
  Kind family = Kind::line;  // one that is sized by bits per key: not scalable
};

// A budget that was spread.
struct Allocation {
  // What one level gets.
  struct Share {
    std::uint64_t bytes = 0;
    double bits_per_key = 0;  // 0: no filter
    double fpr = 1;
  };
  std::vector<Share> levels;
  std::uint64_t bytes = 0;
  double wasted = 0;  // useless reads per lookup, if costs are counts
};

// The levels of a tree, ready to be given a budget.
class LevelBudget {
 public:
  // Refuses a family that is not sized by bits per key, a cost below zero, and more than kMaxKeys keys.
  PERHAPS_API static Result<LevelBudget> over(std::vector<Level> levels);

  // As they were given.
  std::span<const Level> levels() const noexcept { return levels_; }
  // The least waste in `bytes` bytes.
  PERHAPS_API Allocation best(std::uint64_t bytes) const;
  // The same bits per key on every level, which is the default of engines.
  PERHAPS_API Allocation even(std::uint64_t bytes) const;
  // The fewest bytes that waste no more than `wasted`, up to kMaxBits bits per key.
  PERHAPS_API Allocation smallest(double wasted) const;

  static constexpr double kMaxBits = 32;                             // per key, that smallest() considers
  static constexpr std::uint64_t kMaxKeys = std::uint64_t{1} << 56;  // in all levels: their bytes are 64-bit numbers

 private:
  struct Point {
    std::uint64_t bytes;
    double fpr;
  };
  using Curve = std::vector<Point>;  // from no filter on: more and more bytes, lower and lower rates
  static std::vector<std::size_t> hull_of(const Curve& curve);
  // Where each level stands on its curve.
  using Places = std::vector<std::size_t>;
  void climb(Places& places, std::uint64_t& left) const;
  bool exchange(Places& places, std::uint64_t& left, std::size_t from, std::size_t to) const;
  Allocation sum_of(std::vector<Allocation::Share> shares) const;

  std::vector<Level> levels_;
  std::vector<Curve> curves_;
};

}  // namespace perhaps
