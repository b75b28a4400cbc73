// Range filters of tables: collected as their properties, queried by scans.
#include <rocksdb/comparator.h>

#include <algorithm>
#include <cmath>
#include <new>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

#include "perhaps/range.h"
#include "perhaps_rocksdb_ranges.h"

namespace perhaps::rocksdb {
namespace {

using ::rocksdb::Slice;
using ::rocksdb::Status;
using ::rocksdb::TableProperties;
using ::rocksdb::UserCollectedProperties;

Bytes bytes_in(const Slice& slice) noexcept { return bytes_of(std::string_view(slice.data(), slice.size())); }

// RocksDB is not exception-safe: if memory runs out there is no filter, and the table is always read.
class Collector final : public ::rocksdb::TablePropertiesCollector {
 public:
  explicit Collector(const RangeOptions& options) : options_(options) {}

  Status AddUserKey(const Slice& key, const Slice&, ::rocksdb::EntryType type, ::rocksdb::SequenceNumber,
                    std::uint64_t) override {
    if (type == ::rocksdb::kEntryRangeDeletion) usable_ = false;
    if (!usable_) return Status::OK();
    try {
      // Versions of a key follow each other.
      if (!ends_.empty() && last() == key) return Status::OK();
      text_.append(key.data(), key.size());
      ends_.push_back(text_.size());
    } catch (const std::bad_alloc&) {
      drop();
    }
    return Status::OK();
  }

  Status Finish(UserCollectedProperties* properties) override {
    if (!usable_) return Status::OK();
    try {
      const RangeFilter filter = built();
      const Bytes bytes = filter.bytes();
      properties->emplace(kRangeProperty, std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()));
      filter_bytes_ = bytes.size();
    } catch (const std::bad_alloc&) {
      drop();
    }
    return Status::OK();
  }

  UserCollectedProperties GetReadableProperties() const override {
    return {{kRangeProperty, std::to_string(ends_.size()) + " keys, " + std::to_string(filter_bytes_) + " bytes"}};
  }
  const char* Name() const override { return "perhaps.RangeCollector"; }

 private:
  Slice last() const noexcept {
    const std::uint64_t from = ends_.size() < 2 ? 0 : ends_[ends_.size() - 2];
    return {text_.data() + from, text_.size() - from};
  }
  void drop() noexcept {
    usable_ = false;
    text_ = {};
    ends_ = {};
  }
  RangeFilter built() const {
    std::vector<Bytes> keys;
    keys.reserve(ends_.size());
    std::uint64_t from = 0;
    for (const std::uint64_t end : ends_) {
      keys.push_back(bytes_of(std::string_view(text_).substr(from, end - from)));
      from = end;
    }
    RangeRequest request{.bits_per_key = options_.bits_per_key, .code_bits = options_.code_bits};
    if (request.code_bits == 0) {
      const double places = std::log2(std::max(1.0, static_cast<double>(keys.size()))) + options_.bits_per_key - 2;
      request.code_bits = static_cast<std::uint32_t>(std::clamp(places, 1.0, 64.0));
    }
    return RangeFilter::of(std::span<const Bytes>(keys), request);
  }

  RangeOptions options_;
  bool usable_ = true;
  std::string text_;                 // of the keys, one after the other
  std::vector<std::uint64_t> ends_;  // in text_
  std::uint64_t filter_bytes_ = 0;
};

class Factory final : public ::rocksdb::TablePropertiesCollectorFactory {
 public:
  explicit Factory(const RangeOptions& options) : options_(options) {}
  ::rocksdb::TablePropertiesCollector* CreateTablePropertiesCollector(Context) override {
    return new Collector(options_);
  }
  const char* Name() const override { return "perhaps.RangeCollectorFactory"; }

 private:
  RangeOptions options_;
};

}  // namespace

std::shared_ptr<::rocksdb::TablePropertiesCollectorFactory> range_collector_factory(const RangeOptions& options) {
  if (!(options.bits_per_key > 2 && options.bits_per_key <= 64) || options.code_bits > 64) {
    throw std::invalid_argument("perhaps: no such range filter: " + std::to_string(options.bits_per_key) +
                                " bits per key, codes of " + std::to_string(options.code_bits) + " bits");
  }
  return std::make_shared<Factory>(options);
}

bool table_may_hold(const TableProperties& table, const Slice& lower, const Slice& upper) noexcept {
  if (table.num_range_deletions != 0 || table.comparator_name != ::rocksdb::BytewiseComparator()->Name()) return true;
  const auto& properties = table.user_collected_properties;
  const auto found = properties.find(kRangeProperty);
  if (found == properties.end()) return true;
  try {
    const auto filter = RangeView::over(bytes_of(found->second));
    if (!filter || filter->coding() != RangeView::Coding::text) return true;
    const auto codes = filter->codes_before(bytes_in(lower), bytes_in(upper));
    return codes && filter->may_contain_any(*codes);
  } catch (const std::bad_alloc&) {  // of the check of the code
    return true;
  }
}

std::function<bool(const TableProperties&)> table_filter_for(std::string lower, std::string upper) {
  return [lower = std::move(lower), upper = std::move(upper)](const TableProperties& table) {
    return table_may_hold(table, lower, upper);
  };
}

namespace {

// From 11.9 on the option is a pointer, and the filter must outlive the iterator.
template <class Option, class Filter>
void set_filter(Option& option, const Filter& filter) {
  if constexpr (std::is_pointer_v<Option>) {
    option = &filter;
  } else {
    option = filter;
  }
}

}  // namespace

void RangeScan::limit(::rocksdb::ReadOptions& read) const {
  read.iterate_lower_bound = &lower_bound_;
  read.iterate_upper_bound = &upper_bound_;
  set_filter(read.table_filter, filter_);
}

}  // namespace perhaps::rocksdb
