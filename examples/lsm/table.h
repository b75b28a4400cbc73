// A sorted table: rows in data blocks, and behind them the filter block.
//
//   file   | data block 0 | data block 1 | .. | filter block (perhaps/engine/filter_block.h) |
//   block  kBlockRows rows of | bytes of the key 4 | 0: deleted, or 1 + bytes of the value 4 | key | value |
//
// The index, the first key of each data block, is in memory. The filter is there too, whole, or its pieces are read
// when they are needed and then kept.
#pragma once
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "disk.h"
#include "perhaps/engine/filter_block.h"
#include "perhaps/quotient.h"

namespace lsm {

// A key and what it was set to; no value: it was deleted, and hides older rows.
struct Row {
  std::string key;
  std::optional<std::string> value;
};

// Whether all of a table's filter is read when the table is opened.
enum class Loading { on_open, lazily };

class Table {
 public:
  static constexpr std::size_t kBlockRows = 16;

  // REQUIRES: rows in the order of their keys, each key once, and there is one
  Table(Disk& disk, std::span<const Row> rows, const perhaps::FilterBlockOptions& options,
        Loading loading = Loading::on_open);
  ~Table();
  Table(const Table&) = delete;  // the filter refers to its bytes

  // Whether its range of keys covers the key.
  bool covers(std::string_view key) const { return first_ <= key && key <= last_; }
  std::string_view first() const { return first_; }
  std::string_view last() const { return last_; }

  // Of the whole table, unless there is one for each data block; then read() asks it.
  const perhaps::FilterBlock& filter() const { return filter_; }
  // One data block is read, if no filter of its own denies it. `bytes` grows by what was read.
  std::optional<Row> read(std::string_view key, std::uint64_t& bytes) const;
  std::vector<Row> rows() const;

  std::uint64_t row_count() const { return row_count_; }
  std::uint64_t filter_bytes() const { return filter_bytes_; }
  // A quotient filter of the keys, which can be merged with that of another table.
  const perhaps::Quotient& fingerprints() const { return fingerprints_; }

  const Reads& data_reads() const { return data_reads_; }
  const Reads& filter_reads() const { return filter_reads_; }

 private:
  struct Block {
    std::string first;  // key
    std::uint64_t offset;
    std::uint64_t size;
  };
  void open_filter(Loading loading);

  Disk& disk_;
  Disk::File file_ = 0;
  std::vector<Block> index_;
  std::string first_, last_;  // keys
  std::uint64_t row_count_;
  std::uint64_t filter_offset_ = 0;
  std::uint64_t filter_bytes_ = 0;
  std::map<std::uint64_t, perhaps::Bytes> pieces_;  // those that were loaded, by offset
  perhaps::FilterBlock filter_;
  perhaps::Quotient fingerprints_;
  mutable Reads data_reads_;
  Reads filter_reads_;
};

// Room for so many keys. All of these shapes tell the same 2^24 fingerprints apart, so their filters can be merged.
perhaps::QuotientShape fingerprint_shape(std::uint64_t keys);

}  // namespace lsm
