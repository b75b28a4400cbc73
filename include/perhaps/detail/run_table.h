// Slots in runs: what the table of a quotient filter (quotient.h, which explains it) and a part of a growing one
// (growing.h) have in common. They differ in their grids: how many slots a block has for its 64 buckets, where its
// words are, and whether a bucket has a slot of its own.
#pragma once
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "perhaps/detail/bits.h"

namespace perhaps::detail {

// How to find a run. Const, and safe for any bytes: whatever they say, no function leaves the blocks or loops for ever,
// and kNowhere means that the bytes contradict themselves (or, in a sound table, that its end was reached). Inlined
// always, so that they are compiled for the instructions that Bits stands for.
//
// A grid has the width of a slot; slots() per block; block_of() a slot; home_of() a bucket, the first slot that its run
// may begin in, but for what spills into its block; the places of `occupied` and `run_end` in a block, whose last byte
// is `spill`; and how many blocks there are.
template <class Grid, class Bits>
class RunTable {
 public:
  static constexpr std::uint64_t kNowhere = ~std::uint64_t{0};
  static constexpr std::uint64_t kFarSpill = 255;

  struct Run {
    std::uint64_t first;
    std::uint64_t last;
    bool found() const noexcept { return last != kNowhere; }
  };

  PERHAPS_INLINE RunTable(const Grid& grid, const std::byte* blocks) noexcept
      : grid_(grid), blocks_at_(blocks), blocks_(grid.all_blocks()) {}

  PERHAPS_INLINE const Grid& grid() const noexcept { return grid_; }
  PERHAPS_INLINE std::uint32_t width() const noexcept { return grid_.width; }
  PERHAPS_INLINE std::uint64_t slot_mask() const noexcept { return (std::uint64_t{1} << grid_.width) - 1; }
  PERHAPS_INLINE std::uint64_t blocks() const noexcept { return blocks_; }
  PERHAPS_INLINE std::uint64_t per_block() const noexcept { return grid_.slots; }
  PERHAPS_INLINE std::uint64_t slots() const noexcept { return blocks_ * per_block(); }

  // REQUIRES here and below: b < blocks(), slot < slots()
  PERHAPS_INLINE const std::byte* block(std::uint64_t b) const noexcept { return blocks_at_ + b * grid_.block_bytes; }
  PERHAPS_INLINE std::uint64_t occupied(std::uint64_t b) const noexcept {
    return load<std::uint64_t>(block(b) + grid_.occupied_at());
  }
  PERHAPS_INLINE std::uint64_t run_ends(std::uint64_t b) const noexcept {
    return load<std::uint64_t>(block(b) + grid_.run_ends_at()) & ends_mask();
  }
  PERHAPS_INLINE std::uint64_t ends_mask() const noexcept { return ~std::uint64_t{0} >> (64 - grid_.slots); }
  PERHAPS_INLINE std::uint64_t stored_spill(std::uint64_t b) const noexcept {
    return std::to_integer<std::uint64_t>(block(b)[grid_.block_bytes - 1]);
  }
  PERHAPS_INLINE std::uint64_t block_of(std::uint64_t slot) const noexcept { return grid_.block_of(slot); }
  // Of a slot of block b.
  PERHAPS_INLINE std::uint64_t in_block(std::uint64_t slot, std::uint64_t b) const noexcept {
    return grid_.in_block(slot, b);
  }
  PERHAPS_INLINE std::uint64_t slot(std::uint64_t s) const noexcept {
    const std::uint64_t b = block_of(s);
    return slot_in(block(b), in_block(s, b));
  }
  PERHAPS_INLINE std::uint64_t slot_in(const std::byte* from, std::uint64_t i) const noexcept {
    const std::uint64_t bit = i * grid_.width;
    return load<std::uint64_t>(from + bit / 8) >> bit % 8 & slot_mask();
  }

  // The d-th run end at or after slot `from`.  REQUIRES: d >= 1
  PERHAPS_INLINE std::uint64_t run_end(std::uint64_t from, std::uint64_t d) const noexcept {
    std::uint64_t b = block_of(from);
    if (b >= blocks_) return kNowhere;
    std::uint64_t word = run_ends(b) & ~std::uint64_t{0} << in_block(from, b);
    for (;;) {
      const std::uint64_t i = Bits::find(word, d - 1);
      if (i < 64) return b * per_block() + i;
      d -= Bits::popcount(word);
      if (++b == blocks_) return kNowhere;
      word = run_ends(b);
    }
  }

  PERHAPS_INLINE std::uint64_t spill(std::uint64_t b) const noexcept {
    const std::uint64_t stored = stored_spill(b);
    return stored < kFarSpill ? stored : far_spill(b);
  }
  // The spill of block b + 1, given that of b.
  PERHAPS_INLINE std::uint64_t spill_after(std::uint64_t b, std::uint64_t spill_of_b) const noexcept {
    const std::uint64_t runs = Bits::popcount(occupied(b));
    if (runs == 0) return spill_of_b > per_block() ? spill_of_b - per_block() : 0;
    const std::uint64_t end = run_end(b * per_block() + spill_of_b, runs);
    if (end == kNowhere) return kNowhere;
    return end + 1 > (b + 1) * per_block() ? end + 1 - (b + 1) * per_block() : 0;
  }

  // The run of bucket q.  REQUIRES: q is occupied
  PERHAPS_INLINE Run run_of(std::uint64_t q) const noexcept {
    const std::uint64_t b = q / 64;
    const std::uint64_t spilled = spill(b);
    if (spilled >= slots()) return {0, kNowhere};
    const std::uint64_t from = b * per_block() + spilled;
    const std::uint64_t least = std::max(grid_.home_of(q), from);
    const std::uint64_t last = run_end(from, Bits::popcount(occupied(b) << (63 - q % 64)));
    if (last == kNowhere || last < least) return {0, kNowhere};
    return {behind_run_before(last, least), last};
  }
  // The same for bucket i of a block with these `starts`, in slots of the block, if the run ends there, as most do: all
  // in one word. A run that begins behind its end contradicts itself.
  PERHAPS_INLINE static Run run_within(const Grid& grid, const std::byte* block, std::uint64_t starts,
                                       std::uint64_t i) noexcept {
    const auto spilled = std::to_integer<std::uint64_t>(block[grid.block_bytes - 1]);
    if (spilled >= grid.slots) [[unlikely]]
      return {0, kNowhere};
    const std::uint64_t all = load<std::uint64_t>(block + grid.run_ends_at()) & ~std::uint64_t{0} >> (64 - grid.slots);
    const std::uint64_t ends = all & ~std::uint64_t{0} << spilled;
    const std::uint64_t last = Bits::find(ends, Bits::popcount(starts << (63 - i)) - 1);
    if (last >= 64) [[unlikely]]
      return {0, kNowhere};
    const std::uint64_t before = ends & ((std::uint64_t{1} << last) - 1);
    const std::uint64_t least = std::max(grid.home_of(i), spilled);
    return {std::max(least, static_cast<std::uint64_t>(std::bit_width(before))), last};
  }

  // Where the run of bucket q would begin.  REQUIRES: q is not occupied
  PERHAPS_INLINE std::uint64_t place_of(std::uint64_t q) const noexcept {
    const std::uint64_t b = q / 64;
    const std::uint64_t spilled = spill(b);
    if (spilled >= slots()) return kNowhere;
    const std::uint64_t from = b * per_block() + spilled;
    const std::uint64_t runs_before = Bits::popcount(occupied(b) & ((std::uint64_t{1} << q % 64) - 1));
    if (runs_before == 0) return std::max(grid_.home_of(q), from);
    const std::uint64_t end = run_end(from, runs_before);
    return end == kNowhere ? kNowhere : std::max(grid_.home_of(q), end + 1);
  }

 private:
  [[gnu::noinline]] std::uint64_t far_spill(std::uint64_t b) const noexcept {
    std::uint64_t known = b;
    while (known > 0 && stored_spill(known) >= kFarSpill) --known;
    std::uint64_t spilled = known == 0 ? 0 : stored_spill(known);
    for (; known < b && spilled != kNowhere; ++known) spilled = spill_after(known, spilled);
    return spilled;
  }
  // One more than the last run end below `last`, if that is more than `least`.
  PERHAPS_INLINE std::uint64_t behind_run_before(std::uint64_t last, std::uint64_t least) const noexcept {
    std::uint64_t b = block_of(last);
    const std::uint64_t lowest = block_of(least);
    std::uint64_t word = run_ends(b) & ((std::uint64_t{1} << in_block(last, b)) - 1);
    while (word == 0 && b > lowest) word = run_ends(--b);
    return word == 0 ? least : std::max(least, b * per_block() + static_cast<std::uint64_t>(std::bit_width(word)));
  }

  Grid grid_;
  const std::byte* blocks_at_;
  std::uint64_t blocks_;
};

}  // namespace perhaps::detail
