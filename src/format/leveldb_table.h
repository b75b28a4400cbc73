// The filter block of a LevelDB table: the filters of all its windows.
//
//   filters | u32 LE offset of each | u32 LE where the offsets begin | u8 base_lg, 11
//
// The filter of window i holds the keys of the data blocks that start in the file at 2^base_lg * i or later, but before
// 2^base_lg * (i + 1): one filter for 2 KiB of file. If no block starts in a window, its filter has no bytes. The
// number that says where the offsets begin is also the end of the last filter.
#pragma once
#include "format/leveldb.h"
#include "format/table.h"

namespace perhaps::format {

class FilterBlock {
 public:
  static constexpr std::string_view kName = "leveldb-filterblock";
  static constexpr unsigned kBaseLg = 11;
  // What a window holds: LevelDB's own filter, or that of our plug-in (packed.h).
  enum class Windows : std::uint8_t { bloom, packed };

  FilterBlock() = default;
  explicit FilterBlock(Bytes block, Windows kind = Windows::bloom) noexcept;

  // Of a key, for these windows.
  std::uint64_t hash_of(Bytes key) const noexcept;

  std::uint64_t bytes() const noexcept { return block_.size(); }
  std::uint64_t windows() const noexcept { return offsets_.size() / 4; }
  unsigned base_lg() const noexcept { return base_lg_; }
  // The filter of window i; nothing if its offsets contradict each other.
  std::optional<Bytes> window(std::uint64_t i) const noexcept;
  // LevelDB's answer for a key whose data block would be the one at `block_offset`.
  bool may_contain(std::uint64_t block_offset, std::uint64_t h) const noexcept;
  bool in_any_window(std::uint64_t h) const noexcept;
  // Anything that a writer would never write.
  std::optional<Error> damage(std::string_view format) const;

  Description describe() const;

 private:
  // What describe() adds up over the windows.
  struct Sums;
  void add_bloom(Bytes blob, Sums& sums, Description& d) const;
  void add_packed(Bytes blob, Sums& sums, Description& d) const;
  bool window_may_contain(std::uint64_t i, std::uint64_t h) const noexcept;

  Bytes block_;
  Bytes filters_;
  Bytes offsets_;  // without the end of the last filter
  unsigned base_lg_ = 0;
  Windows kind_ = Windows::bloom;
  bool readable_ = false;
};

// Where a data block starts, and how many of the keys it holds.
struct DataBlock {
  std::uint64_t offset;
  std::uint64_t keys;
};
// The filter block that LevelDB writes for these data blocks; `end` is where the trailer of the last one ends.
Buffer filter_block_of(std::span<const Bytes> keys, std::span<const DataBlock> blocks, std::uint64_t end,
                       std::uint64_t bits_per_key);

}  // namespace perhaps::format
