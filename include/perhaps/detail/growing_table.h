// The shape of a growing filter (growing.h), and where things are in its table.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "perhaps/detail/bits.h"
#include "perhaps/detail/run_table.h"
#include "perhaps/result.h"
#include "perhaps/sizing.h"

namespace perhaps {

namespace detail {

// How blocks of one step lie in the table. Arithmetic only: any step and any width are safe.
struct GrowingGrid {
  static constexpr std::uint32_t kStepsPerDoubling = 16;
  static constexpr std::uint32_t kLeastBucketBits = 6;
  static constexpr std::uint32_t kPartBits = 15;  // of the number of a bucket in its part
  static constexpr std::uint64_t kBlocksPerPart = 512;
  static constexpr auto kInverse = [] {
    std::array<std::uint32_t, kStepsPerDoubling> inverse{};
    for (std::uint32_t i = 0; i < kStepsPerDoubling; ++i) {
      inverse[i] = static_cast<std::uint32_t>(((std::uint64_t{1} << 32) + 33 + 2 * i) / (34 + 2 * i));
    }
    return inverse;
  }();

  std::uint32_t bucket_bits;
  std::uint32_t width;          // of a slot
  std::uint32_t slots;          // per block of 64 buckets, 34 to 64
  std::uint32_t slot_bytes;     // of a block: its slots, rounded up to bytes
  std::uint32_t block_bytes;    // with run ends, occupied and spill
  std::uint32_t block_of_slot;  // ceil(2^32 / slots), instead of a division
  std::uint64_t part_blocks;    // without the spare ones
  std::uint64_t part_bytes;
  std::uint64_t parts;

  constexpr GrowingGrid(std::uint32_t step, std::uint32_t slot_bits) noexcept
      : bucket_bits(bits_of(step)),
        width(slot_bits),
        slots(34 + 2 * (step % kStepsPerDoubling)),
        slot_bytes((slots * width + 7) / 8),
        block_bytes(slot_bytes + (slots + 7) / 8 + 9),
        block_of_slot(kInverse[step % kStepsPerDoubling]),
        part_blocks(bucket_bits < kPartBits ? std::uint64_t{1} << (bucket_bits - 6) : kBlocksPerPart),
        part_bytes(all_blocks() * block_bytes),
        parts(bucket_bits < kPartBits ? 1 : std::uint64_t{1} << (bucket_bits - kPartBits)) {}

  static constexpr std::uint32_t bits_of(std::uint32_t step) noexcept {
    return kLeastBucketBits + step / kStepsPerDoubling;
  }
  // Behind the buckets of a part, for its last runs: at the highest load the backlog at the end exceeds k slots with
  // probability e^(-k / 8), and in small tables it is a matter of 8 standard deviations. Tables of full parts may have
  // grown far: if each bucket of a block has a copy of a fingerprint that is used up, it has 60 slots too many.
  constexpr std::uint64_t spare_blocks() const noexcept {
    return part_blocks <= 16 ? 1 : part_blocks <= 64 ? 2 : part_blocks <= 128 ? 3 : part_blocks <= 256 ? 4 : 8;
  }
  constexpr std::uint64_t all_blocks() const noexcept { return part_blocks + spare_blocks(); }
  // Slots, without those of spare blocks.
  constexpr std::uint64_t all_slots() const noexcept { return std::uint64_t{slots} << (bucket_bits - 6); }
  // 15/16 of them: above that a part is moved to the next step.
  constexpr std::uint64_t room() const noexcept { return all_slots() / 16 * 15 + all_slots() % 16 * 15 / 16; }
  constexpr std::uint64_t bytes() const noexcept { return parts * part_bytes; }
  constexpr std::uint64_t slot_mask() const noexcept { return (std::uint64_t{1} << width) - 1; }

  // Of a part. Its buckets have no slots of their own: runs fill a block from the front.
  constexpr std::uint64_t block_of(std::uint64_t slot) const noexcept { return slot * block_of_slot >> 32; }
  constexpr std::uint64_t in_block(std::uint64_t slot, std::uint64_t b) const noexcept { return slot - b * slots; }
  static constexpr std::uint64_t home_of(std::uint64_t) noexcept { return 0; }
  constexpr std::uint64_t occupied_at() const noexcept { return block_bytes - 9; }
  constexpr std::uint64_t run_ends_at() const noexcept { return slot_bytes; }
};

}  // namespace detail

struct GrowingShape {
  static constexpr std::uint64_t kHeadBytes = 64;
  static constexpr std::uint32_t kMaxSlotBits = 56;     // a slot, wherever it begins in a byte, is in one 8-byte load
  static constexpr std::uint32_t kMaxFingerprint = 63;  // bits: bucket and what a slot can hold
  static constexpr std::uint32_t kMaxStep = 703;        // 2^49 buckets

  std::uint32_t first = 0;  // 1 + the step that it was made for; 0: nobody knows how many keys will come
  std::uint32_t step = 0;   // what it grows to: 2^(6 + step / 16) buckets in blocks of 34 + 2 (step % 16) slots
  std::uint64_t rate = 92233720368547758;  // the false-positive rate that it keeps, times 2^63
  std::uint32_t width = 18;                // bits of a slot, 2 to kMaxSlotBits
  std::uint32_t width_before = 18;         // of the step before, in parts that have not been moved yet

  // Made for `request.keys`, with half of the rate for these, and an eighth of it at most for each doubling after that.
  // For 0 keys it starts with nothing. With bits_per_key or max_bytes, the lowest rate that fits.
  PERHAPS_API static GrowingShape for_keys(const Request& request);
  // The rate after so many keys, if all of them came one by one.
  PERHAPS_API double fpr(double keys) const;
  // Erase has nothing to compare that a query does not.
  double wrong_erase(double keys) const { return fpr(keys); }
  // Of the next step, or nothing where the bits of a digest end.
  PERHAPS_API std::optional<GrowingShape> next() const;

  // The step that parts are moved to, and that which they come from.
  constexpr detail::GrowingGrid grid() const noexcept { return {step, width}; }
  constexpr detail::GrowingGrid grid_before() const noexcept { return {step == 0 ? 0 : step - 1, width_before}; }
  // Fingerprints that it takes before it needs more memory. If there are several parts, the next step must begin while
  // those that wait for their turn still have room.
  constexpr std::uint64_t capacity() const noexcept { return grid().parts > 1 ? grid_before().room() : grid().room(); }
  // A small table that doubles may need less, as spare blocks are smaller then, but only once its part is moved.
  constexpr std::uint64_t bytes() const noexcept {
    return kHeadBytes + std::max(grid().bytes(), grid_before().bytes());
  }
  // Every number is in its range: probes stay in the table, whatever it holds.
  constexpr bool valid() const noexcept {
    if (step > kMaxStep || first > kMaxStep + 1 || rate < 1 || rate >> 63 != 0) return false;
    const auto before = grid_before();
    const auto now = grid();
    return good(now) && good(before) && (before.parts == 1 || before.bytes() <= now.bytes());
  }
  // What a file stores; from() reads it.
  std::vector<std::uint64_t> numbers() const { return {first, step, rate}; }
  // Buckets, slots per block, bits per slot and the rate that it keeps.
  PERHAPS_API Facts facts() const;
  PERHAPS_API static Result<GrowingShape> from(std::span<const std::uint64_t> numbers);
  friend bool operator==(const GrowingShape&, const GrowingShape&) = default;

 private:
  static constexpr bool good(const detail::GrowingGrid& grid) noexcept {
    return grid.width >= 2 && grid.width <= kMaxSlotBits && grid.bucket_bits + grid.width - 1 <= kMaxFingerprint;
  }
};

namespace detail {

// Does the fingerprint in a slot agree with that of a key, as far as it goes? The lowest set bit of a slot ends its
// fingerprint; `sought` has all of its bits and a 0 there. An unused slot agrees with everything.
PERHAPS_INLINE bool agree(std::uint64_t slot, std::uint64_t sought) noexcept {
  return (slot ^ sought) <= (slot ^ (slot - 1));
}

// The runs of one part of a table, and where they leave room. Slots are numbered through the part.
template <class Bits>
class GrowingPart : public RunTable<GrowingGrid, Bits> {
  using Base = RunTable<GrowingGrid, Bits>;

 public:
  using Base::blocks;
  using Base::kNowhere;
  using Base::occupied;
  using Base::per_block;
  using Base::run_end;
  using Base::slots;
  using Base::spill;
  using Base::stored_spill;

  PERHAPS_INLINE GrowingPart(const GrowingGrid& grid, const std::byte* part) noexcept : Base(grid, part) {}

  // Slots are in use without a gap from the first one of block b on: the first that is not, or the boundary at which
  // what belongs to the next block begins. With kUnused, the next one behind that boundary which is not in use.
  template <bool kUnused>
  PERHAPS_INLINE std::uint64_t first_behind(std::uint64_t b) const noexcept {
    for (; b < blocks(); ++b) {
      if (b + 1 < blocks() && stored_spill(b + 1) != 0) continue;
      const std::uint64_t spilled = spill(b);
      if (spilled >= slots()) return kNowhere;
      const std::uint64_t runs = Bits::popcount(occupied(b));
      std::uint64_t behind = b * per_block() + spilled;
      if (runs != 0) {
        const std::uint64_t end = run_end(behind, runs);
        if (end == kNowhere) return kNowhere;
        behind = end + 1;
      }
      if (behind > (b + 1) * per_block()) return kNowhere;
      if (!kUnused || behind < (b + 1) * per_block()) return behind;
    }
    return kNowhere;
  }
};

// Where a digest belongs.
struct GrowingSpot {
  std::uint64_t mixed;
  std::uint64_t offset;  // of the block
  std::uint64_t now;     // 0: in a part that has not been moved yet
};

PERHAPS_INLINE std::uint64_t growing_waiting(const std::byte* table) noexcept {
  return load<std::uint64_t>(table + 16);
}
// What a key's slot would hold, without the bit that ends it.
PERHAPS_INLINE std::uint64_t growing_sought(const GrowingGrid& grid, std::uint64_t mixed) noexcept {
  return mixed << grid.bucket_bits >> (65 - grid.width) << 1;
}
PERHAPS_INLINE bool growing_moved(std::uint32_t bits_before, std::uint64_t waiting, std::uint64_t mixed) noexcept {
  return mixed >> (64 - bits_before) >> GrowingGrid::kPartBits >= waiting;
}
PERHAPS_INLINE std::uint64_t growing_offset(const GrowingGrid& grid, std::uint64_t mixed) noexcept {
  const std::uint64_t b = mixed >> (64 - grid.bucket_bits) >> 6;
  return GrowingShape::kHeadBytes + b / GrowingGrid::kBlocksPerPart * grid.part_bytes +
         b % GrowingGrid::kBlocksPerPart * grid.block_bytes;
}

// Both steps of a table that is being moved, and when its parts are: what a batch computes once.
struct GrowingGrids {
  GrowingGrid of[2];  // before, now
  std::uint64_t capacity;
  // The first part moves at so many slots in use, and another one whenever so many more are; a single part at once.
  std::uint64_t first_move = 0;
  std::uint64_t next_move = 0;

  PERHAPS_INLINE explicit GrowingGrids(const GrowingShape& shape) noexcept
      : of{shape.grid_before(), shape.grid()}, capacity(of[1].parts > 1 ? of[0].room() : of[1].room()) {
    if (of[0].parts == 1 || shape.step < 2) return;
    first_move = GrowingGrid(shape.step - 2, 2).room();
    next_move = (of[0].room() - first_move) >> (of[0].bucket_bits - GrowingGrid::kPartBits);
  }

  // Must a part move before the next insert?  REQUIRES: waiting != 0
  PERHAPS_INLINE bool is_due(std::uint64_t used, std::uint64_t waiting) const noexcept {
    return used >= first_move + next_move * (of[0].parts - waiting);
  }
  PERHAPS_INLINE GrowingSpot spot_of(std::uint64_t mixed, std::uint64_t waiting) const noexcept {
    const std::uint64_t now = growing_moved(of[0].bucket_bits, waiting, mixed);
    return {mixed, growing_offset(of[now], mixed), now};
  }
};

}  // namespace detail

}  // namespace perhaps
