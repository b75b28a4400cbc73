// The filters of a RocksDB block-based table: what is read from the table to query them, and the order in which RocksDB
// adds keys and prefixes.
#pragma once
#include "format/rocksdb.h"
#include "format/table.h"

namespace perhaps::format::rocksdb {

// Which part of a key is its prefix. `rocksdb.FixedPrefix.8` applies to keys of at least 8 bytes,
// `rocksdb.CappedPrefix.8` also to shorter ones.
struct Prefix {
  std::uint64_t size = 0;
  bool capped = false;

  // From the extractor's name, or from the form in option strings: "fixed:8", "capped:8".
  static std::optional<Prefix> of(std::string_view name) noexcept;
  bool in_domain(Bytes key) const noexcept { return capped || key.size() >= size; }
  Bytes operator()(Bytes key) const noexcept { return key.first(std::min<std::uint64_t>(size, key.size())); }
};

// What the properties of a table say about its filters.
struct Properties {
  std::string policy;      // "bloomfilter", "ribbonfilter"; empty if the table does not say
  std::string comparator;  // empty if the table does not say
  std::string extractor;
  bool whole_keys = true;
  bool prefixes = false;
  bool index_has_user_keys = false;
  bool index_has_deltas = false;
  std::optional<std::uint64_t> filter_entries;
  std::optional<std::uint64_t> entries;
};

struct Partition {
  Handle at;
  std::shared_ptr<const AnyFilter> filter;
};

// The filter of one table, found and checked.
struct TableFilter {
  enum class Kind : std::uint8_t { none, full, partitioned };
  Footer footer;
  Properties properties;
  Kind kind = Kind::none;
  bool packed = false;                // by our own policy (packed.h)
  Index index;                        // for a partitioned filter
  std::uint64_t index_bytes = 0;      // of that
  std::vector<Partition> partitions;  // only one for a full filter
  std::vector<std::string> notes;

  static Result<TableFilter> read(const Source& source);
};

// Adds keys and prefixes to a Builder as RocksDB 6.19 to 9.5 does. To partition the filter, call cut() wherever RocksDB
// cut the index.
class TableBuilder {
 public:
  struct Options {
    Builder::Kind kind = Builder::Kind::fast_local;
    double bits_per_key = 10;
    bool whole_keys = true;
    std::optional<Prefix> prefix{};
  };
  explicit TableBuilder(Options options) noexcept : options_(options), builder_(options.kind, options.bits_per_key) {}

  void add(Bytes key);
  // Ends a partition. `next` is the key that will be added next.
  Result<Buffer> cut(Bytes next, std::optional<std::uint64_t> length = {});
  Result<Buffer> finish(std::optional<std::uint64_t> length = {}) const { return builder_.finish(length); }
  std::uint64_t keys() const noexcept { return builder_.keys(); }

 private:
  void add_prefix(Bytes prefix);

  Options options_;
  Builder builder_;
  // What was added last. At the end of a partition only the two has_last_ flags are reset.
  Buffer last_key_, last_prefix_;
  bool has_last_key_ = false;
  bool has_last_prefix_ = false;
  bool in_domain_ = false;  // of the previous key
};

}  // namespace perhaps::format::rocksdb
