// Range filters (perhaps/range.h) in RocksDB: tables that have no key in the range of a scan are not read.
//
//   options.table_properties_collector_factories.push_back(perhaps::rocksdb::range_collector_factory());
//   ..
//   const perhaps::rocksdb::RangeScan scan("user42/2024-05-01", "user42/2024-05-02");   // the second is not included
//   ::rocksdb::ReadOptions read;
//   scan.limit(read);                              // both bounds, and which tables to leave out
//   std::unique_ptr<::rocksdb::Iterator> it(db->NewIterator(read));
//   for (it->SeekToFirst(); it->Valid(); it->Next()) ..
//
// RocksDB's own filters serve Get and, with a prefix extractor, seeks inside one prefix. A scan between two keys reads
// a block of each table whose first and last key lie around it, though most of them have nothing there. Here each table
// carries a range filter of its user keys as a property, and ReadOptions::table_filter queries it.
//
// Nothing is hidden. What a scan returns for a key depends on the entries of that key in all tables and on the range
// tombstones that cover it. Every entry counts as a key of the filter, whatever its type: values, deletions, single
// deletions, merge operands, blob indexes. So a table that is left out has no entry for any key of the range, and
// no tombstone that would have covered an older value. A table with range tombstones has no filter and is never
// left out, nor is one without the property (written before, or by someone else), with damaged bytes, or of an order
// other than BytewiseComparator's. The scan must stay inside the range for which tables were left out, which is why
// limit() sets the bounds of the iterator as well.
//
// The filter lies in the properties, which RocksDB holds in memory for every open table: bits_per_key of the user keys.
// While a table is written, its user keys are kept in memory. Public classes only: RocksDB from 7.0 on.
#pragma once
#include <rocksdb/options.h>
#include <rocksdb/slice.h>
#include <rocksdb/table_properties.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace perhaps::rocksdb {

struct RangeOptions {
  double bits_per_key = 16;
  // As RangeRequest::code_bits. 0: as many as the filter tells apart without collisions, log2(keys of the table) +
  // bits_per_key - 2. That is best for scans that are wide beside the gaps between keys. Ranges of few successive keys
  // right beside others need all 64, and at most 2^(bits_per_key - 2) / 100 keys in a range.
  std::uint32_t code_bits = 0;
};

// The property that holds the filter: the table of RangeView::over.
inline constexpr char kRangeProperty[] = "perhaps.range1";

// For Options::table_properties_collector_factories, of databases and of SstFileWriter. Throws std::invalid_argument
// unless 2 < bits_per_key <= 64 and code_bits <= 64.
std::shared_ptr<::rocksdb::TablePropertiesCollectorFactory> range_collector_factory(const RangeOptions& options = {});

// False: the table has no entry with a key from `lower` up to but without `upper`, and no range tombstone.
bool table_may_hold(const ::rocksdb::TableProperties& table, const ::rocksdb::Slice& lower,
                    const ::rocksdb::Slice& upper) noexcept;
// The same as a ReadOptions::table_filter.  REQUIRES: the iterator has these bounds, or tighter ones
std::function<bool(const ::rocksdb::TableProperties&)> table_filter_for(std::string lower, std::string upper);

// The keys from `lower` up to but without `upper`, for iterators.
class RangeScan {
 public:
  RangeScan(std::string lower, std::string upper)
      : lower_(std::move(lower)),
        upper_(std::move(upper)),
        lower_bound_(lower_),
        upper_bound_(upper_),
        filter_(table_filter_for(lower_, upper_)) {}
  RangeScan(const RangeScan&) = delete;
  RangeScan& operator=(const RangeScan&) = delete;

  // Sets iterate_lower_bound, iterate_upper_bound and table_filter. *this must outlive the iterator.
  void limit(::rocksdb::ReadOptions& read) const;

 private:
  const std::string lower_;
  const std::string upper_;
  const ::rocksdb::Slice lower_bound_;
  const ::rocksdb::Slice upper_bound_;
  const std::function<bool(const ::rocksdb::TableProperties&)> filter_;
};

}  // namespace perhaps::rocksdb
