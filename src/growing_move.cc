// How a growing filter grows: a part moves to its new place, with larger blocks, or split into twice the buckets.
#include <algorithm>
#include <bit>
#include <cstring>
#include <memory>
#include <new>

#include "growing_parts.h"

namespace perhaps {
namespace {

using namespace growing;

// Copies `count` bits to a place behind which nothing is written yet, up to 8 bytes beyond it: zeros are left there.
void copy_bits(const std::byte* from, std::uint64_t from_bit, std::byte* to, std::uint64_t to_bit,
               std::uint64_t count) noexcept {
  from += from_bit / 8;
  to += to_bit / 8;
  to_bit %= 8;
  // To a whole byte first.
  const std::uint64_t first = std::min(count, 8 - to_bit);
  const std::uint64_t bits = detail::load<std::uint64_t>(from) >> from_bit % 8 & below_bit(first);
  *to++ |= static_cast<std::byte>(bits << to_bit & 0xff);
  from_bit = from_bit % 8 + first;
  from += from_bit / 8;
  from_bit %= 8;
  count -= first;
  const auto word = [&] {
    return detail::load<std::uint64_t>(from) >> from_bit | detail::load<std::uint64_t>(from + 1) << (8 - from_bit);
  };
  for (; count >= 64; count -= 64, from += 8, to += 8) detail::store(to, word());
  if (count != 0) detail::store(to, word() & below_bit(count));
}

// The run ends of a part that is being written: some of them from slot `at` on.
class EndsWriter {
 public:
  explicit EndsWriter(const Grid& grid) noexcept : grid_(grid) {}

  // False: behind the last block.
  bool put(std::uint64_t at, std::uint64_t ends) noexcept {
    const std::uint64_t b = grid_.block_of(at);
    const std::uint64_t in_block = at - b * grid_.slots;
    const std::uint64_t fit = grid_.slots - in_block;
    if (b >= grid_.all_blocks()) return false;
    of_block_[b] |= (fit < 64 ? ends & below_bit(fit) : ends) << in_block;
    const std::uint64_t rest = fit < 64 ? ends >> fit : 0;
    if (rest == 0) return true;
    if (b + 1 == grid_.all_blocks()) return false;
    of_block_[b + 1] |= rest;
    return true;
  }
  std::uint64_t operator[](std::uint64_t b) const noexcept { return of_block_[b]; }

 private:
  Grid grid_;
  std::array<std::uint64_t, Grid::kBlocksPerPart + 8> of_block_{};
};

// Copies slots from one part to another: strings of bits that end where a block does.
class SlotCopier {
 public:
  SlotCopier(const Part& from, const Grid& to, std::byte* into) noexcept : from_(from), to_(to), into_(into) {}

  void copy(std::uint64_t from, std::uint64_t to, std::uint64_t count) noexcept {
    std::uint64_t from_block = from_.block_of(from);
    std::uint64_t to_block = to_.block_of(to);
    from -= from_block * from_.per_block();
    to -= to_block * to_.slots;
    while (count != 0) {
      const std::uint64_t now = std::min({count, from_.per_block() - from, to_.slots - to});
      std::byte* const block = into_ + to_block * to_.block_bytes;
      if (from_.grid().width == to_.width) {
        copy_bits(from_.block(from_block), from * to_.width, block, to * to_.width, now * to_.width);
      } else {
        widen(from_.block(from_block), from, block, to, now);
      }
      count -= now;
      from += now;
      to += now;
      if (from == from_.per_block()) {
        ++from_block;
        from = 0;
      }
      if (to == to_.slots) {
        ++to_block;
        to = 0;
      }
    }
  }

 private:
  // Fingerprints begin at the highest bit. Whole bytes are written as soon as they are known.
  void widen(const std::byte* from, std::uint64_t at, std::byte* to, std::uint64_t to_at,
             std::uint64_t count) const noexcept {
    const std::uint32_t more = to_.width - from_.grid().width;
    std::uint64_t fill = to_at * to_.width % 8;
    to += to_at * to_.width / 8;
    std::uint64_t word = std::to_integer<std::uint64_t>(*to) & below_bit(fill);
    for (std::uint64_t i = 0; i < count; ++i) {
      word |= from_.slot_in(from, at + i) << more << fill;
      fill += to_.width;
      detail::store(to, word);
      to += fill / 8;
      word = fill < 64 ? word >> fill / 8 * 8 : 0;
      fill %= 8;
    }
  }

  const Part& from_;
  Grid to_;
  std::byte* into_;
};

// A part whose blocks become larger, and perhaps its slots: what belongs to a block is copied as a whole. False if the
// part contradicts itself.
bool enlarge(const Part& part, const Grid& to, std::byte* into) noexcept {
  const Grid& from = part.grid();
  EndsWriter run_ends(to);
  SlotCopier slots(part, to, into);
  std::array<std::uint64_t, Grid::kBlocksPerPart + 8> spills{};
  std::uint64_t next_from = 0;
  std::uint64_t next_to = 0;
  std::uint64_t end_block = 0;
  std::uint64_t ends = part.run_ends(0);
  for (std::uint64_t b = 0; b < part.blocks(); ++b) {
    next_from = std::max(next_from, b * from.slots);
    next_to = std::max(next_to, b * to.slots);
    spills[b] = next_to - b * to.slots;
    if (b >= from.part_blocks) continue;
    std::uint64_t behind = next_from;
    for (std::uint64_t runs = growing::PortableBits::popcount(part.occupied(b)); runs != 0;) {
      while (ends == 0) {
        if (++end_block == part.blocks()) return false;
        ends = part.run_ends(end_block);
      }
      const std::uint64_t here = growing::PortableBits::popcount(ends);
      const std::uint64_t last = runs < here ? growing::PortableBits::select(ends, runs - 1)
                                             : static_cast<std::uint64_t>(std::bit_width(ends)) - 1;
      const std::uint64_t taken = ends & (below_bit(last) << 1 | 1);
      const auto first = static_cast<std::uint64_t>(std::countr_zero(taken));
      ends ^= taken;
      runs -= std::min(runs, here);
      const std::uint64_t first_end = end_block * from.slots + first;
      if (first_end < behind || !run_ends.put(first_end - next_from + next_to, taken >> first)) return false;
      behind = end_block * from.slots + last + 1;
    }
    const std::uint64_t count = behind - next_from;
    if (next_to + count > to.all_blocks() * to.slots) return false;
    slots.copy(next_from, next_to, count);
    next_from += count;
    next_to += count;
  }
  while (ends == 0 && ++end_block < part.blocks()) ends = part.run_ends(end_block);
  if (ends != 0) return false;
  // Last, as the copies are a few bytes too long.
  for (std::uint64_t b = 0; b < part.blocks(); ++b) {
    std::byte* const block = into + b * to.block_bytes;
    detail::store(block + to.slot_bytes, run_ends[b]);
    detail::store(block + to.block_bytes - 9, b < from.part_blocks ? part.occupied(b) : 0);
    block[to.block_bytes - 1] = static_cast<std::byte>(std::min<std::uint64_t>(spills[b], 255));
  }
  return true;
}

// The runs of a part in a step that doubles the buckets; `added` counts copies.
class Mover {
 public:
  Mover(const Grid& from, const Grid& to, std::byte* parts) noexcept
      : from_(from),
        to_(to),
        writers_{PartWriter(to, parts), PartWriter(to, parts + (has_two() ? to.part_bytes : 0))} {}

  bool has_two() const noexcept { return to_.part_blocks == from_.part_blocks; }
  std::uint64_t added() const noexcept { return added_; }

  // The first bit of each fingerprint says which of two buckets is its own. Fingerprints that are used up come first
  // among those that begin with 1, and belong to both.
  bool split(std::uint64_t bucket, Slots slots) noexcept {
    const std::uint64_t top = std::uint64_t{1} << (from_.width - 1);
    // Nearly all runs are short and have none that is used up.
    constexpr std::size_t kShort = 8;
    std::array<std::uint64_t, kShort + 1> few;
    if (slots.count <= kShort) {
      const auto count = static_cast<std::size_t>(slots.count);
      bool any_used_up = false;
      Slots s = slots;
      for (std::size_t i = 0; i < count; ++i) any_used_up |= (few[i] = s.next()) == top;
      if (!any_used_up) {
        for (std::size_t i = 0; i < count; ++i) {
          const std::uint64_t high = few[i] > top;
          const bool ends_run = i + 1 == count || (few[i + 1] > top) != high;
          if (!put(2 * bucket + high, shortened(few[i]), ends_run)) return false;
        }
        return true;
      }
    }
    std::uint64_t low = 0;
    std::uint64_t used_up = 0;
    for (Slots s = slots; s.count != 0;) {
      const std::uint64_t slot = s.next();
      low += slot < top;
      used_up += slot == top;
    }
    const std::uint64_t high = slots.count - low - used_up;
    added_ += used_up;
    if (!put_all(2 * bucket, slots, low, used_up)) return false;
    for (std::uint64_t i = 0; i < low + used_up; ++i) slots.next();
    return put_all(2 * bucket + 1, slots, high, used_up);
  }
  void finish() noexcept {
    writers_[0].finish();
    if (has_two()) writers_[1].finish();
  }

 private:
  // A slot without the first bit of its fingerprint.
  std::uint64_t shortened(std::uint64_t slot) const noexcept {
    const std::uint64_t rest = slot << 1 & from_.slot_mask();
    return to_.width >= from_.width ? rest << (to_.width - from_.width) : rest >> (from_.width - to_.width);
  }
  bool put(std::uint64_t bucket, std::uint64_t value, bool ends_run) noexcept {
    return writers_[has_two() ? bucket / kPartBuckets : 0].put(has_two() ? bucket % kPartBuckets : bucket, value,
                                                               ends_run);
  }
  // The next `count` slots without their first bits, and among them so many that are used up.
  bool put_all(std::uint64_t bucket, Slots slots, std::uint64_t count, std::uint64_t used_up) noexcept {
    PartWriter& writer = writers_[has_two() ? bucket / kPartBuckets : 0];
    const std::uint64_t q = has_two() ? bucket % kPartBuckets : bucket;
    const std::uint64_t end = std::uint64_t{1} << (to_.width - 1);
    while (count + used_up != 0) {
      std::uint64_t value = end;
      if (count != 0) {
        Slots after = slots;
        value = shortened(after.next());
        if (used_up == 0 || value < end) {
          slots = after;
          --count;
        } else {
          value = end;
          --used_up;
        }
      } else {
        --used_up;
      }
      if (!writer.put(q, value, count + used_up == 0)) return false;
    }
    return true;
  }

  Grid from_;
  Grid to_;
  std::array<PartWriter, 2> writers_;
  std::uint64_t added_ = 0;
};

}  // namespace

bool growing::move_part(const GrowingShape& shape, std::byte* table) noexcept {
  const Grid before = shape.grid_before();
  const Grid now = shape.grid();
  const Head head{table};
  // Hostile bytes may say anything.
  const std::uint64_t index = std::min(head.waiting(), before.parts) - 1;
  std::byte* const old_part = table + GrowingShape::kHeadBytes + index * before.part_bytes;
  const std::uint64_t new_bytes = now.part_bytes * (now.parts / before.parts);
  std::byte* const new_part = table + GrowingShape::kHeadBytes + index * new_bytes;
  const auto size = static_cast<std::size_t>(before.part_bytes);
  const std::unique_ptr<std::byte[]> copy(new (std::nothrow) std::byte[size]);
  if (copy == nullptr) return false;
  std::memcpy(copy.get(), old_part, size);
  std::memset(old_part, 0, size);
  std::memset(new_part, 0, static_cast<std::size_t>(new_bytes));
  Mover mover(before, now, new_part);
  const Part part(before, copy.get());
  const bool only_larger = before.bucket_bits == now.bucket_bits;
  const bool moved =
      only_larger
          ? enlarge(part, now, new_part)
          : for_each_run(part, [&](std::uint64_t bucket, const Slots& slots) { return mover.split(bucket, slots); });
  if (!moved) {
    std::memset(new_part, 0, static_cast<std::size_t>(new_bytes));
    std::memcpy(old_part, copy.get(), size);
    return false;
  }
  if (!only_larger) mover.finish();
  head.set_waiting(index);
  head.set_used(head.used() + mover.added());
  return true;
}

}  // namespace perhaps
