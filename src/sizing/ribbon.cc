// The maths of perhaps/ribbon.h: rate -> columns, and what they cost.
#include <algorithm>
#include <cassert>
#include <cmath>

#include "build/ribbon_plan.h"
#include "perhaps/ribbon.h"
#include "sizing/shape_error.h"

namespace perhaps {
namespace {

// Runs of 2^17 to 2^18 keys.
constexpr unsigned kRunKeysBits = 18;
// So few keys have no front: its buckets are too coarse for them.
constexpr std::uint64_t kNoFront = 32768;
// The front has 1/33 fewer starts than keys.
constexpr std::uint64_t kOverload = 33;

// log2(1 / rate) in steps of 2^-32 of a column; the rate falls with it.
constexpr std::uint64_t kColumn = std::uint64_t{1} << 32;

RibbonShape with_width(std::uint64_t keys, std::uint32_t columns, std::uint32_t wide) {
  RibbonShape shape;
  shape.keys = keys;
  shape.columns = columns;
  shape.wide = wide;
  // By chance the builder finds a little more or less that a front leaves.
  shape.rest = keys;
  for (std::uint64_t left = keys;;) {
    const std::uint32_t before = shape.fronts;
    const unsigned run_bits = shape.add_front(left);
    if (shape.fronts == before) break;
    const std::uint64_t starts = shape.starts[before];
    left -= std::min(left, starts - (detail::empty_slots(starts >> run_bits) << run_bits));
  }
  shape.table_bytes =
      shape.front_bytes() + detail::directory_bytes(0) + RibbonLayout::shard_bytes(shape.behind(), shape.rest);
  return shape;
}

RibbonShape with_columns(std::uint64_t keys, std::uint64_t columns) {
  columns = std::clamp(columns, kColumn, RibbonShape::kMaxColumns * kColumn);
  return with_width(keys, static_cast<std::uint32_t>(columns / kColumn), static_cast<std::uint32_t>(columns % kColumn));
}

}  // namespace

RibbonShape RibbonShape::for_keys(const Request& request) {
  double bytes = static_cast<double>(request.max_bytes);
  if (bytes == 0) bytes = static_cast<double>(request.keys) * request.bits_per_key / 8;
  if (bytes == 0) {
    assert(request.fpr > 0 && request.fpr < 1);
    if (!(request.fpr > 0)) return with_columns(request.keys, UINT64_MAX);
    const double whole = std::clamp(std::floor(-std::log2(request.fpr)), 1.0, 32.0);
    // 2^-whole * (1 - wide / 2) = fpr
    const double wide = std::clamp(2 * (1 - std::ldexp(request.fpr, static_cast<int>(whole))), 0.0, 1.0);
    return with_columns(request.keys, static_cast<std::uint64_t>(whole) * kColumn +
                                          static_cast<std::uint64_t>(std::ceil(std::ldexp(wide, 32))));
  }
  std::uint64_t fits = kColumn;
  std::uint64_t too_large = RibbonShape::kMaxColumns * kColumn + 1;
  while (too_large - fits > 1) {
    const std::uint64_t middle = fits + (too_large - fits) / 2;
    (static_cast<double>(with_columns(request.keys, middle).table_bytes) <= bytes ? fits : too_large) = middle;
  }
  return with_columns(request.keys, fits);
}

double RibbonShape::fpr(double n) const {
  return n == 0 ? 0 : std::ldexp(1 - std::ldexp(static_cast<double>(wide), -33), -static_cast<int>(columns));
}

unsigned RibbonShape::add_front(std::uint64_t n) noexcept {
  rest = n;
  if (n <= kNoFront || fronts == kMaxFronts) return 0;
  rest = 0;
  unsigned run_bits = 0;
  while (n >> run_bits > std::uint64_t{1} << kRunKeysBits && run_bits < kMaxShardBits) ++run_bits;
  const std::uint64_t each = n >> run_bits;
  // The codes of a run fill bytes, so that runs can be built at once.
  const std::uint64_t unit = run_bits == 0 ? RibbonFront::kBucket : 4 * RibbonFront::kBucket;
  starts[fronts++] = (each - each / kOverload - 64) / unit * unit << run_bits;
  return run_bits;
}

// Without fronts, those that small sets have, as few as can be: in many places they are stored beside the table.
std::vector<std::uint64_t> RibbonShape::numbers() const {
  std::vector<std::uint64_t> all = {keys, columns, wide, fronts, table_bytes};
  if (fronts != 0) all.push_back(rest);
  for (std::uint32_t i = 0; i < fronts; ++i) all.push_back(starts[i]);
  return all;
}

Facts RibbonShape::facts() const {
  return {{"columns", std::to_string(columns + wide / 4294967296.0)}, {"fronts", std::to_string(fronts)}};
}

Result<RibbonShape> RibbonShape::from(std::span<const std::uint64_t> numbers) {
  return detail::ribbon_from(RibbonLayout::family, numbers, kMaxColumns);
}

RibbonShape detail::ribbon_of(std::uint64_t keys, std::uint32_t columns) { return with_width(keys, columns, 0); }

Result<RibbonShape> detail::ribbon_from(std::string_view family, std::span<const std::uint64_t> numbers,
                                        std::uint32_t max_columns) {
  const std::uint64_t fronts = numbers.size() < 4 ? 0 : numbers[3];
  if (fronts > RibbonShape::kMaxFronts) return out_of_range(family, "fronts", fronts);
  const std::uint64_t count = fronts == 0 ? 5 : 6 + fronts;
  if (numbers.size() != count) return wrong_count(family, count, numbers.size());
  const auto outside = [&](std::size_t i, const char* what) { return out_of_range(family, what, numbers[i]); };
  if (numbers[1] < 1 || numbers[1] > max_columns) return outside(1, "columns");
  if (numbers[2] > UINT32_MAX || (numbers[2] != 0 && numbers[1] == max_columns)) {
    return outside(2, "as share of wide keys");
  }
  RibbonShape shape;
  shape.keys = numbers[0];
  shape.columns = static_cast<std::uint32_t>(numbers[1]);
  shape.wide = static_cast<std::uint32_t>(numbers[2]);
  shape.table_bytes = numbers[4];
  shape.rest = fronts == 0 ? shape.keys : numbers[5];
  shape.fronts = static_cast<std::uint32_t>(fronts);
  for (std::size_t i = 0; i < fronts; ++i) {
    shape.starts[i] = numbers[6 + i];
    if (shape.starts[i] > RibbonShape::kMaxStarts || shape.starts[i] % RibbonFront::kBucket != 0)
      return outside(6 + i, "starts");
  }
  if (!shape.valid(max_columns)) return outside(4, "table bytes");
  return shape;
}

}  // namespace perhaps
