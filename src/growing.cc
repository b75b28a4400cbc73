// What growing filters do with whole parts and tables: move, count, check, merge.
#include "perhaps/growing.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <memory>
#include <new>
#include <string>

#include "kernel/growing_steps.h"
#include "kernel/instruction_set.h"

namespace perhaps {
namespace {

using Grid = detail::GrowingGrid;
using Part = detail::GrowingPart<growing::PortableBits>;
using growing::below_bit;
using growing::Head;

constexpr std::uint64_t kPartBuckets = std::uint64_t{1} << Grid::kPartBits;

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

// Copies `count` bits to a place behind which nothing is written yet, up to 8 bytes beyond it: zeros are left there.
void copy_bits(const std::byte* from, std::uint64_t from_bit, std::byte* to, std::uint64_t to_bit,
               std::uint64_t count) noexcept {
  constexpr std::uint64_t kAtOnce = 56;
  from += from_bit / 8;
  from_bit %= 8;
  to += to_bit / 8;
  to_bit %= 8;
  // To a whole byte first.
  std::uint64_t now = std::min(count, 8 - to_bit);
  const std::uint64_t first = detail::load<std::uint64_t>(from) >> from_bit & below_bit(now);
  *to = static_cast<std::byte>(std::to_integer<std::uint64_t>(*to) | first << to_bit);
  for (;;) {
    count -= now;
    if (count == 0) return;
    to += now == kAtOnce ? 7 : 1;
    from_bit += now;
    from += from_bit / 8;
    from_bit %= 8;
    now = std::min(count, kAtOnce);
    detail::store(to, detail::load<std::uint64_t>(from) >> from_bit & below_bit(now));
  }
}

// The run ends of a part that is being written: some of them from slot `at` on.
class EndsWriter {
 public:
  explicit EndsWriter(const Grid& grid) noexcept : grid_(grid) {}

  // False: behind the last block.
  bool put(std::uint64_t at, std::uint64_t ends) noexcept {
    const std::uint64_t b = at * grid_.block_of_slot >> 32;
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
    std::uint64_t to_block = to * to_.block_of_slot >> 32;
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

// Calls use(grid, part, bucket number of its first bucket) for the parts of a table, in order.
template <class Use>
bool for_each_part(const GrowingShape& shape, const std::byte* table, Use use) {
  const Grid before = shape.grid_before();
  const Grid now = shape.grid();
  const std::uint64_t waiting = std::min(detail::growing_waiting(table), before.parts);
  const std::byte* const parts = table + GrowingShape::kHeadBytes;
  for (std::uint64_t i = 0; i < waiting; ++i) {
    if (!use(before, parts + i * before.part_bytes, i * kPartBuckets)) return false;
  }
  for (std::uint64_t i = waiting * (now.parts / before.parts); i < now.parts; ++i) {
    if (waiting == before.parts) break;
    if (!use(now, parts + i * now.part_bytes, i * kPartBuckets)) return false;
  }
  return true;
}

std::uint32_t bits_left(const Grid& grid, std::uint64_t slot) noexcept {
  return grid.width - 1 - static_cast<std::uint32_t>(std::countr_zero(slot));
}

Error contradiction() { return Error{Errc::bad_parameter, "growing: the table contradicts itself"}; }
Error piled_up() { return Error{Errc::full, "growing: more copies of a key than a part can hold"}; }

bool is_zero(const std::byte* from, const std::byte* to) noexcept {
  return std::all_of(from, to, [](std::byte b) { return b == std::byte{0}; });
}

// The slots of one table that belong into one part of a larger one.
struct Sought {
  std::uint64_t bucket;
  std::uint64_t value;
  friend bool operator<(const Sought& a, const Sought& b) {
    return a.bucket != b.bucket ? a.bucket < b.bucket : a.value < b.value;
  }
};
bool collect(const GrowingShape& shape, const std::byte* table, const Grid& to, std::uint64_t first,
             std::vector<Sought>& out) {
  const std::uint64_t behind = first + std::min(kPartBuckets, std::uint64_t{1} << to.bucket_bits);
  const Grid grid = GrowingLayout::grid_of(shape, table, first << (64 - to.bucket_bits));
  const std::uint32_t more = to.bucket_bits - grid.bucket_bits;
  const std::uint64_t from = first >> more;
  const Part part(grid, GrowingLayout::part_of(grid, table, from));
  for (std::uint64_t bucket = from; bucket <= (behind - 1) >> more; ++bucket) {
    const std::uint64_t q = bucket % kPartBuckets;
    if ((part.occupied(q / 64) >> q % 64 & 1) == 0) continue;
    const auto run = part.run_of(q);
    if (!run.found()) return false;
    for (std::uint64_t s = run.first; s <= run.last; ++s) {
      const std::uint64_t slot = part.slot(s);
      if (slot == 0) return false;
      const std::uint32_t left = bits_left(grid, slot);
      const std::uint64_t prefix = bucket << left | slot >> (grid.width - left);
      if (left < more) {
        const std::uint64_t copies = std::uint64_t{1} << (more - left);
        const std::uint64_t end = std::min(behind, (prefix + 1) * copies);
        for (std::uint64_t b = std::max(first, prefix * copies); b < end; ++b) {
          out.push_back({b - first, std::uint64_t{1} << (to.width - 1)});
        }
        continue;
      }
      const std::uint64_t b = prefix >> (left - more);
      if (b < first || b >= behind) continue;
      const std::uint32_t kept = std::min(left - more, to.width - 1);
      const std::uint64_t rest = (prefix & below_bit(left - more)) >> (left - more - kept);
      out.push_back({b - first, (rest << 1 | 1) << (to.width - 1 - kept)});
    }
  }
  return true;
}

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

Inserted GrowingLayout::insert(const Shape& shape, std::byte* table, std::uint64_t h) noexcept {
  return kernel::active().growing_insert_one(shape, table, mixed(h));
}
Erased GrowingLayout::erase(const Shape& shape, std::byte* table, std::uint64_t h) noexcept {
  return kernel::active().growing_erase_one(shape, table, mixed(h));
}
void GrowingLayout::query(const Shape& shape, const std::byte* table, const detail::Batch<>& batch,
                          std::uint64_t* answers) noexcept {
  kernel::active().growing_query(shape, table, batch, answers);
}
std::size_t GrowingLayout::insert(const Shape& shape, std::byte* table, const detail::Batch<>& batch) noexcept {
  return kernel::active().growing_insert(shape, table, batch);
}

std::uint64_t GrowingLayout::count(const Shape& shape, const std::byte* table, std::uint64_t h) noexcept {
  const std::uint64_t m = mixed(h);
  const Grid grid = grid_of(shape, table, m);
  const std::uint64_t bucket = m >> (64 - grid.bucket_bits);
  const std::uint64_t q = bucket % kPartBuckets;
  const Part part(grid, part_of(grid, table, bucket));
  if ((part.occupied(q / 64) >> q % 64 & 1) == 0) return 0;
  const auto run = part.run_of(q);
  if (!run.found()) return 0;
  const std::uint64_t sought = detail::growing_sought(grid, m);
  std::uint64_t agreeing = 0;
  for (std::uint64_t s = run.first; s <= run.last; ++s) agreeing += detail::agree(part.slot(s), sought);
  return agreeing;
}

std::optional<GrowingShape> GrowingLayout::larger(const Shape& shape, const std::byte* table) noexcept {
  const std::uint64_t used = detail::load<std::uint64_t>(table + 8);
  // Copies that fill a part are no reason to grow a table that has room.
  if (detail::growing_waiting(table) != 0 || used < shape.grid().all_slots() / 5 * 4) return std::nullopt;
  return shape.next();
}

void GrowingLayout::extend(const Shape& shape, const Shape&, std::byte* table) noexcept {
  Head{table}.set_waiting(shape.grid().parts);
}

Result<void> GrowingLayout::check(const Shape& shape, Bytes table) {
  const Grid now = shape.grid();
  const std::uint64_t keys = GrowingLayout::keys(shape, table.data());
  const std::uint64_t used = detail::load<std::uint64_t>(table.data() + 8);
  const std::uint64_t waiting = detail::growing_waiting(table.data());
  if (used > now.parts * now.all_blocks() * now.slots) {
    return Error{Errc::bad_parameter, "growing: " + std::to_string(used) + " slots in use, more than there are"};
  }
  if (keys > used)
    return Error{Errc::bad_parameter, "growing: " + std::to_string(keys) + " keys, more than slots in use"};
  if (waiting > (shape.step == 0 ? 0 : shape.grid_before().parts)) {
    return Error{Errc::bad_parameter, "growing: " + std::to_string(waiting) + " parts wait, more than there are"};
  }
  return {};
}

Result<void> GrowingLayout::verify(const Shape& shape, Bytes table) {
  if (auto head = check(shape, table); !head) return head;
  std::uint64_t used = 0;
  std::vector<std::byte> again;
  const bool sound = for_each_part(shape, table.data(), [&](const Grid& grid, const std::byte* bytes, std::uint64_t) {
    again.assign(static_cast<std::size_t>(grid.part_bytes), std::byte{0});
    PartWriter writer(grid, again.data());
    const Part part(grid, bytes);
    const bool read = for_each_run(part, [&](std::uint64_t bucket, Slots slots) {
      used += slots.count;
      std::uint64_t before = 1;  // what is not used is 0
      while (slots.count != 0) {
        const std::uint64_t value = slots.next();
        if (value < before || !writer.put(bucket, value, slots.count == 0)) return false;
        before = value;
      }
      return true;
    });
    if (!read) return false;
    writer.finish();
    return std::equal(again.begin(), again.end(), bytes);
  });
  if (!sound || used != detail::load<std::uint64_t>(table.data() + 8)) return contradiction();
  const Grid before = shape.grid_before();
  const Grid now = shape.grid();
  const std::uint64_t waiting = detail::growing_waiting(table.data());
  const std::byte* const parts = table.data() + Shape::kHeadBytes;
  const std::byte* const gap = parts + waiting * before.part_bytes;
  const std::byte* const gap_end = parts + waiting * (now.parts / before.parts) * now.part_bytes;
  const std::byte* const end = table.data() + shape.bytes();
  if (!is_zero(table.data() + 24, parts) || (waiting != 0 && gap < gap_end && !is_zero(gap, gap_end)) ||
      (waiting == 0 && !is_zero(parts + now.bytes(), end))) {
    return contradiction();
  }
  return {};
}

Result<GrowingShape> GrowingLayout::union_shape(const Shape& a, const std::byte* table_a, const Shape& b,
                                                const std::byte* table_b) {
  // How many fingerprints there are of each length, bucket included: those that are shorter than the bucket in the new
  // table are copied.
  std::array<std::uint64_t, 65> of_length{};
  std::uint64_t all = 0;
  for (const auto& [shape, table] : {std::pair(&a, table_a), std::pair(&b, table_b)}) {
    const bool sound = for_each_part(*shape, table, [&](const Grid& grid, const std::byte* bytes, std::uint64_t) {
      return for_each_run(Part(grid, bytes), [&](std::uint64_t, Slots slots) {
        all += slots.count;
        while (slots.count != 0) {
          const std::uint64_t slot = slots.next();
          if (slot == 0) return false;
          ++of_length[grid.bucket_bits + bits_left(grid, slot)];
        }
        return true;
      });
    });
    if (!sound) return contradiction();
  }
  // The stricter promise, and at least as many buckets as both.
  Shape shape = a.rate <= b.rate ? a : b;
  for (std::optional<Shape> next = shape; next; next = shape.next()) {
    shape = *next;
    if (shape.step < a.step || shape.step < b.step) continue;
    const std::uint32_t bucket_bits = shape.grid().bucket_bits;
    std::uint64_t needed = 0;
    for (std::uint32_t bits = 0; bits <= 64; ++bits) {
      if (of_length[bits] == 0) continue;
      const std::uint32_t doublings = bits < bucket_bits ? bucket_bits - bits : 0;
      if (doublings >= 40 || of_length[bits] > (all * 8 + (1 << 20)) >> doublings) {
        return Error{Errc::full, "growing: the older filter is too small to be merged into one of " +
                                     std::to_string(all) + " keys"};
      }
      needed += of_length[bits] << doublings;
    }
    if (shape.capacity() >= needed) return shape;
  }
  return Error{Errc::full, "growing: the bits of a digest are too few for " + std::to_string(all) + " keys"};
}

Result<void> GrowingLayout::merge(const Shape& a, const std::byte* table_a, const Shape& b, const std::byte* table_b,
                                  const Shape& shape, std::byte* into) {
  const Grid grid = shape.grid();
  std::vector<Sought> slots;
  std::uint64_t used = 0;
  for (std::uint64_t i = 0; i < grid.parts; ++i) {
    slots.clear();
    if (!collect(a, table_a, grid, i * kPartBuckets, slots) || !collect(b, table_b, grid, i * kPartBuckets, slots)) {
      return contradiction();
    }
    std::sort(slots.begin(), slots.end());
    PartWriter writer(grid, into + Shape::kHeadBytes + i * grid.part_bytes);
    for (std::size_t s = 0; s < slots.size(); ++s) {
      const bool ends_run = s + 1 == slots.size() || slots[s + 1].bucket != slots[s].bucket;
      if (!writer.put(slots[s].bucket, slots[s].value, ends_run)) return piled_up();
    }
    writer.finish();
    used += slots.size();
  }
  const Head head{into};
  head.set_keys(keys(a, table_a) + keys(b, table_b));
  head.set_used(used);
  return {};
}

Condition condition_of(const GrowingShape& shape, Bytes table) {
  double fpr = 0;
  for_each_part(shape, table.data(), [&](const Grid& grid, const std::byte* bytes, std::uint64_t) {
    double sum = 0;
    for_each_run(Part(grid, bytes), [&](std::uint64_t, Slots slots) {
      double here = 0;
      for (std::uint64_t before = 0; slots.count != 0;) {
        const std::uint64_t slot = slots.next();
        if (slot != before) here += slot == 0 ? 1 : std::ldexp(1.0, -static_cast<int>(bits_left(grid, slot)));
        before = slot;
      }
      sum += std::min(here, 1.0);
      return true;
    });
    fpr += std::ldexp(sum, -static_cast<int>(grid.bucket_bits));
    return true;
  });
  const Grid now = shape.grid();
  const auto used = static_cast<double>(detail::load<std::uint64_t>(table.data() + 8));
  return {.fill = used / static_cast<double>(now.all_slots()),
          .fpr = std::min(fpr, 1.0),
          .keys = static_cast<double>(GrowingLayout::keys(shape, table.data()))};
}

}  // namespace perhaps
