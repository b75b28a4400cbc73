// The filter block of a LevelDB table: the filters of all its windows.
//
//   filters | u32 LE offset of each | u32 LE where the offsets begin | u8 base_lg, 11
//
// Window i has the keys of the data blocks that start at 2^base_lg * i or later, before the next window: 2 KiB of file
// for a filter. A window in which no block starts has no bytes. The number that says where the offsets begin serves as
// the end of the last filter.
#pragma once
#include "format/leveldb.h"
#include "format/table.h"

namespace perhaps::format {

class FilterBlock {
 public:
  static constexpr std::string_view kName = "leveldb-filterblock";
  static constexpr unsigned kBaseLg = 11;

  FilterBlock() = default;
  explicit FilterBlock(Bytes block) noexcept;

  std::uint64_t bytes() const noexcept { return block_.size(); }
  std::uint64_t windows() const noexcept { return offsets_.size() / 4; }
  unsigned base_lg() const noexcept { return base_lg_; }
  // Nothing where the offsets contradict each other.
  std::optional<Bytes> window(std::uint64_t i) const noexcept;
  // As LevelDB answers for a key of the data block at `block_offset`.
  bool may_contain(std::uint64_t block_offset, std::uint32_t h) const noexcept;
  bool in_any_window(std::uint32_t h) const noexcept;
  // What a writer would never write.
  std::optional<Error> damage(std::string_view format) const;

  Description describe() const;

 private:
  bool ask(std::uint64_t i, std::uint32_t h) const noexcept;

  Bytes block_;
  Bytes filters_;
  Bytes offsets_;  // without the one that ends the last filter
  unsigned base_lg_ = 0;
  bool readable_ = false;
};

// A data block: where it starts, and how many of the keys are in it.
struct DataBlock {
  std::uint64_t offset;
  std::uint64_t keys;
};
// As LevelDB writes it for these data blocks; `end` is where the last one and its trailer end.
Buffer filter_block_of(std::span<const Bytes> keys, std::span<const DataBlock> blocks, std::uint64_t end,
                       std::uint64_t bits_per_key);

}  // namespace perhaps::format
