// The filters of RocksDB's block-based tables, for a filter policy: byte for byte what RocksDB writes.
// doc/formats/rocksdb-*.md describe the bytes; whole files are opened by format/format.h.
#pragma once
#include <memory>
#include <optional>
#include <string_view>
#include <vector>

#include "perhaps/any_filter.h"
#include "perhaps/result.h"

namespace perhaps::format::rocksdb {

// Builds a full filter from keys in the order in which they are added. A hash equal to the one before it is dropped,
// and the filter is sized for the rest.
class Builder {
 public:
  // The layouts of RocksDB: before format_version 5, since then, and the smaller ribbon.
  enum class Kind : std::uint8_t { legacy, fast_local, ribbon };
  // `bits_per_key` is rounded as RocksDB does: 1 to 100, in thousandths. (Below 0.5 RocksDB writes no filter.)
  Builder(Kind kind, double bits_per_key) noexcept : kind_(kind), bits_per_key_(bits_per_key) {}

  // The next key.
  PERHAPS_API void add(Bytes key);
  std::uint64_t keys() const noexcept { return hashes_.size(); }
  // `length`: bytes without the trailer, if optimize_filters_for_memory took them from the allocator. Rounded down to a
  // multiple of 64, or of 16 for a ribbon.
  PERHAPS_API Result<std::vector<std::byte>> finish(std::optional<std::uint64_t> length = {}) const;

 private:
  std::vector<std::byte> legacy() const;
  Result<std::vector<std::byte>> fast_local(std::optional<std::uint64_t> length) const;
  Result<std::vector<std::byte>> ribbon(std::optional<std::uint64_t> length) const;

  Kind kind_;
  double bits_per_key_;
  std::vector<std::uint64_t> hashes_;
};

// Opens a filter as its trailer describes it, over bytes that someone else keeps. An error if no RocksDB writes such a
// trailer; RocksDB's own reader would then answer *perhaps* for every key. `format` is for messages.
PERHAPS_API Result<std::shared_ptr<const AnyFilter>> open_blob(std::string_view format, Bytes blob);

// RocksDB's own estimates: the rate of its Bloom filter, and the bits per key of a ribbon of that rate, for a table
// with many keys.
PERHAPS_API double bloom_fpr(double bits_per_key) noexcept;
PERHAPS_API double ribbon_bits_per_key(double bloom_bits_per_key) noexcept;

}  // namespace perhaps::format::rocksdb
