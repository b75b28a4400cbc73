// Parts of a growing filter, read run by run and written slot by slot. Private: growing.cc and growing_move.cc.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>

#include "kernel/growing_steps.h"
#include "perhaps/growing.h"

namespace perhaps::growing {

using Grid = detail::GrowingGrid;
using Part = detail::GrowingPart<PortableBits>;

inline constexpr std::uint64_t kPartBuckets = std::uint64_t{1} << Grid::kPartBits;

// Some slots side by side.
struct Slots {
  const Part* part;
  std::uint64_t block;
  std::uint64_t in_block;
  std::uint64_t count;

  // REQUIRES: count > 0
  std::uint64_t next() noexcept {
    const std::uint64_t slot = part->slot_in(part->block(block), in_block);
    if (++in_block == part->per_block()) {
      ++block;
      in_block = 0;
    }
    --count;
    return slot;
  }
};

// Calls use(bucket, slots) for every run of a part, in order, until it returns false. False, too, if the part
// contradicts itself.
template <class Use>
bool for_each_run(const Part& part, Use use) {
  std::uint64_t end_block = 0;
  std::uint64_t ends = part.run_ends(0);
  std::uint64_t block = 0;  // of the first slot that is not read yet
  std::uint64_t in_block = 0;
  for (std::uint64_t b = 0; b < part.grid().part_blocks; ++b) {
    if (block < b) {
      block = b;
      in_block = 0;
    }
    for (std::uint64_t starts = part.occupied(b); starts != 0; starts &= starts - 1) {
      const auto i = static_cast<std::uint64_t>(std::countr_zero(starts));
      while (ends == 0) {
        if (++end_block == part.blocks()) return false;
        ends = part.run_ends(end_block);
      }
      const auto last = static_cast<std::uint64_t>(std::countr_zero(ends));
      ends &= ends - 1;
      if (end_block < block || (end_block == block && last < in_block)) return false;
      const std::uint64_t count = (end_block - block) * part.per_block() + last + 1 - in_block;
      if (!use(b * 64 + i, Slots{&part, block, in_block, count})) return false;
      block = end_block;
      in_block = last + 1;
      if (in_block == part.per_block()) {
        ++block;
        in_block = 0;
      }
    }
  }
  while (ends == 0 && ++end_block < part.blocks()) ends = part.run_ends(end_block);
  return ends == 0;
}

// Writes a part from slots in ascending order, into zeroed bytes.
class PartWriter {
 public:
  PartWriter(const Grid& grid, std::byte* part) noexcept : grid_(grid), part_(part) {}

  // False: it has no slot left.
  bool put(std::uint64_t bucket, std::uint64_t value, bool ends_run) noexcept {
    const std::uint64_t b = bucket / 64;
    if (b != bucket_block_) finish_buckets(b);
    const std::uint64_t i = bucket % 64;
    if ((occupied_ >> i & 1) == 0) {
      occupied_ |= std::uint64_t{1} << i;
      if (slot_block_ < b) {
        finish_slots();
        slot_block_ = b;
        next_ = 0;
      }
    }
    if (slot_block_ == grid_.all_blocks()) return false;
    values_[next_] = value;
    ends_ |= std::uint64_t{ends_run} << next_;
    if (++next_ == grid_.slots) {
      finish_slots();
      ++slot_block_;
      next_ = 0;
    }
    return true;
  }
  void finish() noexcept {
    finish_buckets(grid_.all_blocks());
    if (slot_block_ < grid_.all_blocks()) finish_slots();
  }

 private:
  std::byte* block(std::uint64_t b) noexcept { return part_ + b * grid_.block_bytes; }

  // Done with the buckets of all blocks before `to`: only now is it known how far they spill.
  void finish_buckets(std::uint64_t to) noexcept {
    while (bucket_block_ != to) {
      if (occupied_ != 0) detail::store(block(bucket_block_) + grid_.block_bytes - 9, occupied_);
      occupied_ = 0;
      if (++bucket_block_ == grid_.all_blocks()) return;
      const std::uint64_t spilled =
          slot_block_ < bucket_block_ ? 0 : (slot_block_ - bucket_block_) * grid_.slots + next_;
      block(bucket_block_)[grid_.block_bytes - 1] = static_cast<std::byte>(std::min<std::uint64_t>(spilled, 255));
    }
  }
  void finish_slots() noexcept {
    if (next_ == 0) return;
    std::byte* out = block(slot_block_);
    std::uint64_t word = 0;
    std::uint32_t fill = 0;
    for (std::uint64_t i = 0; i < next_; ++i) {
      const std::uint64_t value = values_[i];
      values_[i] = 0;
      word |= value << fill;
      fill += grid_.width;
      if (fill >= 64) {
        detail::store(out, word);
        out += 8;
        fill -= 64;
        word = fill == 0 ? 0 : value >> (grid_.width - fill);
      }
    }
    for (; fill > 0; fill -= std::min<std::uint32_t>(fill, 8), word >>= 8) *out++ = static_cast<std::byte>(word & 0xff);
    out = block(slot_block_) + grid_.slot_bytes;
    for (std::uint64_t left = ends_; left != 0; left >>= 8) *out++ = static_cast<std::byte>(left & 0xff);
    ends_ = 0;
  }

  Grid grid_;
  std::byte* part_;
  std::uint64_t bucket_block_ = 0;
  std::uint64_t occupied_ = 0;
  std::uint64_t slot_block_ = 0;
  std::uint64_t next_ = 0;  // slot of that block; those before it are in values_
  std::uint64_t ends_ = 0;
  std::array<std::uint64_t, 64> values_{};
};

}  // namespace perhaps::growing
