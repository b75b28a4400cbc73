// One memory budget over the levels of an LSM tree (Dayan, Athanassoulis, Idreos, "Monkey", SIGMOD 2017).
//
//   LevelBudget tree = *LevelBudget::over({{.keys = 1'000'000}, {.keys = 10'000'000}, {.keys = 100'000'000}});
//   tree.best(128 << 20).levels[0].bits_per_key
//
// A lookup of an absent key asks the filter of every level, and reads a table in vain for each that says *perhaps*:
//
//   wasted = sum over levels of cost_i * fpr_i(bits_i)                    to be least, while
//   bytes  = sum over levels of keys_i * bits_i / 8  <=  budget
//
// The same bits a key everywhere is wrong: in a tree of ratio 10 nine tenths of the memory then go to the last level,
// whose false positives are no dearer than those of the first. The best is where another byte saves as much on every
// level: cost_i * fpr_i'(bits_i) / keys_i is one number for all of them. With the textbook's fpr = 0.6185^bits that is
// fpr_i ~ keys_i / cost_i, each level 1.44 * log2(ratio) bits a key below the one before it, and the last levels, if
// memory is short, have no filter at all. Here the curves are those of the families (sizing.h), whole lines and blocks
// included. Each level climbs the lower convex hull of its curve, always where the next step saves most for its bytes.
// Curves are not convex where the number of probes changes, so then every two levels exchange bytes for as long as that
// helps; what is left over goes to the level that gains most by it.
//
// A level with a smaller family (ribbon: built once, slower to build and to ask) leaves more for the others. The last
// levels hold most of the keys and are rewritten least, so that is where it pays.
#pragma once
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "perhaps/detail/config.h"
#include "perhaps/result.h"

namespace perhaps {

struct Level {
  std::uint64_t keys = 0;  // in all of its tables
  // Of answering *perhaps* for a key that is not there, in any unit. It counts how many filters of the level a lookup
  // asks (1, or the number of tables where they overlap), what such a read costs, and what share of the lookups come
  // this far and do not find their key here: 1 if all keys are absent.
  double cost = 1;
  std::string_view family = "line";  // of any_filter.h, but scalable
};

struct Allocation {
  struct Share {
    std::uint64_t bytes = 0;
    double bits_per_key = 0;  // 0: no filter
    double fpr = 1;
  };
  std::vector<Share> levels;
  std::uint64_t bytes = 0;
  double wasted = 0;  // reads in vain a lookup, if costs are counts
};

class LevelBudget {
 public:
  // Refuses an unknown family, a cost below zero, and more than kMostKeys keys.
  PERHAPS_API static Result<LevelBudget> over(std::vector<Level> levels);

  std::span<const Level> levels() const noexcept { return levels_; }
  // The least waste in `bytes` bytes.
  PERHAPS_API Allocation best(std::uint64_t bytes) const;
  // The same bits a key on every level: what engines do unless told.
  PERHAPS_API Allocation even(std::uint64_t bytes) const;
  // The fewest bytes that waste no more than `wasted`, up to kMostBits bits a key.
  PERHAPS_API Allocation smallest(double wasted) const;

  static constexpr double kMostBits = 32;
  static constexpr std::uint64_t kMostKeys = std::uint64_t{1} << 56;  // in all levels: their bytes are 64-bit numbers

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
