// Bits per key for tables that are queried unequally often.
//
// A table of n keys that the share w of all lookups queries has the demand d = w / n. Of all ways to spend a number of
// bits
//
//   wasted = sum over tables of w * fpr(bits)        is least where        -fpr'(bits) = price / d
//
// with one price for all tables. If every lookup queries each level once, a table of a level of N keys has d = 1 / N
// whatever its size, and this is Monkey's allocation (allocate.h); each table of level 0, which all lookups query, is a
// level of its own.
#pragma once
#include <map>
#include <vector>

namespace perhaps::rocksdb {

// One size of a built-in filter.
struct Rate {
  double bits = 0;        // per key, that it takes
  double fpr = 1;         // for absent keys
  double bloom_bits = 0;  // RocksDB's parameter for it. 0: no filter
};

// What the sizes of a built-in filter are worth.
class Curve {
 public:
  explicit Curve(bool ribbon);
  // Bits per key at which a further one saves `slope`. The curve itself has straight parts (a Ribbon of 7.3 bits is one
  // of 7 beside one of 8), on which any number of bits has the same slope. Here a chord over one bit counts at its
  // middle, and between two middles the logarithm of the slope falls evenly: at most 6 % from the curve.
  double at(double slope) const;
  // The largest filter of no more than `bits` per key.
  const Rate& within(double bits) const;

 private:
  struct Chord {
    double middle;     // bits
    double log_slope;  // falling
  };
  std::vector<Rate> rates_;
  std::vector<Chord> chords_;  // of the convex hull
};

// How many keys of each demand there are, to an eighth of an octave.
class Demands {
 public:
  void add(double keys, double demand);
  // That all keys take at this price.
  double bits(const Curve& curve, double price) const;
  // The lowest price at which they take no more than `bits`.
  double price(const Curve& curve, double bits) const;

 private:
  std::map<int, double> keys_;
};

}  // namespace perhaps::rocksdb
