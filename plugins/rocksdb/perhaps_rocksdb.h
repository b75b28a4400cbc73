// Filters of this library for RocksDB.
//
//   table_options.filter_policy = perhaps::rocksdb::new_filter_policy();             // ours, 10 bits per key
//   table_options.filter_policy = perhaps::rocksdb::new_allocating_policy(budget);   // RocksDB's own, level by level
//
// Our filters serve whole and partitioned filter blocks, keys and prefixes, Get and MultiGet. They have a name of their
// own: a stock RocksDB ignores them, and reads the same database correctly without them. Each says what it is, so
// family and bits_per_key may change from one opening of the database to the next. A damaged filter answers *perhaps*.
//
// The default family is Kind::dense (packed.h), which is a ribbon except in small pieces. Compared with RocksDB's
// FastLocalBloom in the same bytes, 10 bits per key (the databases of `perhaps bench lsm` with 5e5 keys; bare probes in
// batches of 32):
//
//              rate       one probe    MultiGets of absent keys
//   dense      0.13 times   26 ns      1.09 times; 1.00 with all data in the block cache
//   fuse       0.6          14         1.05; its fingerprints have whole bits, so that it takes 9.3 of the 10
//   line       1.08          9         1.02
//   theirs     1            14         1
//
// A block that is not read is worth more than a faster probe, so dense is the default. Kind::line is the fastest to
// build and to query.
//
// RocksDB does not publish the classes that build and query a filter: filter_bits.h restates them, for RocksDB 7.0 to
// 11.9. With other versions there is no new_filter_policy. The allocating policy uses published classes only: any
// RocksDB from 7.0 on.
//
// Of RocksDB's options for filters, detect_filter_construct_corruption is honoured: every key is looked up in the
// filter that was built. optimize_filters_for_memory has no effect: a filter has the bytes that bits_per_key says, not
// those of the allocator's next size. The memory of construction, 8 bytes per key and the filter, is not charged to the
// block cache: the class that would do it is not published.
#pragma once
#include <rocksdb/filter_policy.h>
#include <rocksdb/listener.h>
#include <rocksdb/version.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "perhaps/family.h"

// Whether there is a new_filter_policy.
#define PERHAPS_ROCKSDB_VERSION (ROCKSDB_MAJOR * 100 + ROCKSDB_MINOR)
#define PERHAPS_ROCKSDB_FILTERS (PERHAPS_ROCKSDB_VERSION >= 700 && PERHAPS_ROCKSDB_VERSION <= 1109)

namespace perhaps::rocksdb {

using PolicyPtr = std::unique_ptr<const ::rocksdb::FilterPolicy>;  // also what a shared_ptr takes

struct Options {
  double bits_per_key = 10;  // a prefix counts as a key
  // Kind::dense or one that packs (engine/packed.h) and neither erases nor forgets: a table never changes, and the bits
  // for that would be wasted.
  Kind family = Kind::dense;
  // Writes the bytes of RocksDB's built-in filters under their name: stock programs use ours, and this policy reads all
  // kinds of theirs. Kind::ribbon becomes Standard128Ribbon, with bits_per_key those of a Bloom filter of the same
  // rate; every other family becomes FastLocalBloom. Below half a bit per key there is no filter.
  bool compatible = false;

  static constexpr double kMaxBits = 100;  // as RocksDB's own
};

#if PERHAPS_ROCKSDB_FILTERS
// Throws std::invalid_argument unless 0 < bits_per_key <= kMaxBits and the family is one of those, and
// std::runtime_error if the program is linked with another RocksDB than it was compiled for.
PolicyPtr new_filter_policy(const Options& options = {});
#endif

// The memory of all filters together, and the tree it is spread over (allocate.h).
struct Budget {
  std::uint64_t bytes = 0;
  // Of levels 0, 1, 2 .. when they are full; deeper levels and ingested files count as the last. Give 0 for levels that
  // stay empty, as the first ones do with level_compaction_dynamic_level_bytes.
  std::vector<std::uint64_t> keys = {};
  double level0_tables = 4;  // that a lookup queries: level0_file_num_compaction_trigger
  // Ribbon from this level on, Bloom before it: a third less memory for three times the time to build.
  std::uint32_t ribbon_from = 1;
};
struct LevelPlan {
  bool ribbon = false;
  double bloom_bits = 0;    // RocksDB's own parameter: bits per key of a Bloom filter of this rate. 0: no filter
  double bits_per_key = 0;  // what it takes
  double fpr = 1;
};
// One for each of budget.keys. Throws std::invalid_argument, as the policy does, unless there are 1 to
// LevelBudget::kMaxKeys keys in all and the number of tables is not below zero.
std::vector<LevelPlan> plan_levels(const Budget& budget);
// RocksDB's own Bloom and Ribbon filters, with the bits per key that the plan gives to the level a table is written to.
// Stock programs use them, and they are rewritten with the tables: a new budget takes effect compaction by compaction.
PolicyPtr new_allocating_policy(const Budget& budget);

// A budget for the filters of a database whose tree is not known beforehand.
struct FilterBudgetOptions {
  double bits_per_key = 10;               // of all tables together, for each entry in them
  std::uint64_t most_bytes = UINT64_MAX;  // and never more than these
  bool ribbon = true;                     // RocksDB's Ribbon filters, or its Bloom filters, which are built faster
};
// Keeps the filters of a database within a budget while its tree grows, shrinks and moves, by watching it. One for each
// database, which may be opened again with it:
//
//   const auto budget = perhaps::rocksdb::new_filter_budget({.bits_per_key = 10});
//   table_options.filter_policy = budget->policy();
//   options.listeners.push_back(budget);
//
// Let K be the entries of the tables that are alive (TableProperties::num_entries of DB::GetPropertiesOfAllTables) and
// F the bytes of their filters (filter_size). The budget holds if
//
//   F <= 1.05 * min(bits_per_key * K / 8, most_bytes)
//
// at every moment, also while flushes and compactions run: RocksDB exchanges the tables of a job all at once when it is
// done. At rest F is at least 0.95 times the minimum, unless that is most_bytes. Each column family has this budget to
// itself. The filters are RocksDB's own, and stock programs use them. Their sizes follow the tree as it is: fewer bits
// per key for large levels, more for small ones (Monkey, allocate.h).
//
// What it cannot do: a compaction that removes many keys takes their allowance from tables that it does not
// rewrite; in a queue of keys that are put and deleted, F was 1.056 times the minimum for a moment, once in 100
// runs. A table keeps its filter until a compaction rewrites it. If the tree has more than 8 * most_bytes /
// bits_per_key entries, tables that were never rewritten have more than is left for later ones. Filters that the
// budget did not size (ingested files, DB::CompactFiles, tables of another policy, all tables of a database without
// the listener) have bits_per_key, or what they came with, until they are rewritten; the others make up for them.
class FilterBudget : public ::rocksdb::EventListener {
 public:
  // For BlockBasedTableOptions. Without this object among the listeners, all filters have bits_per_key.
  virtual std::shared_ptr<const ::rocksdb::FilterPolicy> policy() const = 0;
  // Reads the sizes of the filters that a column family has. That of the default one is done before the first flush or
  // compaction; in others, filters from before the database was opened count as bits_per_key until they are rewritten
  // or this is called.
  virtual void learn(::rocksdb::DB& db, ::rocksdb::ColumnFamilyHandle& family) = 0;
};
// Throws std::invalid_argument unless 0 < bits_per_key <= Options::kMaxBits.
std::shared_ptr<FilterBudget> new_filter_budget(const FilterBudgetOptions& options = {});

// Once in a process, before options are read from text: then RocksDB can make these policies by name, and finds them
// again in an OPTIONS file. Text that begins with one of these names but cannot be parsed makes a policy that
// refuses: RocksDB ignores such errors where it reads table options, and there would silently be no filters; with that
// policy DB::Open fails and says why.
//   perhaps   perhaps:FAMILY   perhaps:FAMILY:BITS_PER_KEY   perhaps:FAMILY:BITS_PER_KEY:compatible
//   perhaps.allocating:BYTES:LEVEL0_TABLES:RIBBON_FROM:KEYS,KEYS..
//   perhaps.budget:BITS_PER_KEY:ribbon   perhaps.budget:BITS_PER_KEY:bloom
// A budget has no listener when it is made from text, so that all its filters have BITS_PER_KEY.
void register_policies();

}  // namespace perhaps::rocksdb
