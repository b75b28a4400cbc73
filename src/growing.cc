// What growing filters do with whole tables: count, check, merge.
#include "perhaps/growing.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>

#include "growing_parts.h"
#include "kernel/instruction_set.h"

namespace perhaps {
namespace {

using namespace growing;

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
  // More than the part has room for: the numbers of a table that contradicts itself would lead far.
  const std::uint64_t most = to.all_blocks() * to.slots;
  for (std::uint64_t bucket = from; bucket <= (behind - 1) >> more; ++bucket) {
    const std::uint64_t q = bucket % kPartBuckets;
    if ((part.occupied(q / 64) >> q % 64 & 1) == 0) continue;
    const auto run = part.run_of(q);
    if (!run.found()) return false;
    for (std::uint64_t s = run.first; s <= run.last; ++s) {
      const std::uint64_t slot = part.slot(s);
      if (slot == 0 || out.size() > most) return false;
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
