// The maths of perhaps/ribbon.h: rate -> columns, and what they cost.
#include <algorithm>
#include <cassert>
#include <cmath>

#include "numbers.h"
#include "perhaps/ribbon.h"

namespace perhaps {
namespace {

// Shards of 2^17 to 2^18 keys.
constexpr unsigned kShardKeysBits = 18;

// log2(1 / rate) in steps of 2^-32 of a column; the rate falls with it.
constexpr std::uint64_t kColumn = std::uint64_t{1} << 32;

RibbonShape with_columns(std::uint64_t keys, std::uint64_t columns) {
  RibbonShape shape;
  shape.keys = keys;
  columns = std::clamp(columns, kColumn, RibbonShape::kMaxColumns * kColumn);
  shape.columns = static_cast<std::uint32_t>(columns / kColumn);
  shape.wide = static_cast<std::uint32_t>(columns % kColumn);
  while (keys >> shape.shard_bits > std::uint64_t{1} << kShardKeysBits && shape.shard_bits < kMaxShardBits) {
    ++shape.shard_bits;
  }
  // Shards differ by chance; the builder puts the true size here.
  const std::uint64_t shards = std::uint64_t{1} << shape.shard_bits;
  shape.table_bytes =
      detail::directory_bytes(shape.shard_bits) + shards * RibbonLayout::shard_bytes(shape, keys >> shape.shard_bits);
  return shape;
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

std::vector<std::uint64_t> RibbonShape::numbers() const { return {keys, columns, wide, shard_bits, table_bytes}; }

Result<RibbonShape> RibbonShape::from(std::span<const std::uint64_t> numbers) {
  if (numbers.size() != 5) return wrong_count(RibbonLayout::family, 5, numbers.size());
  const auto outside = [&](std::size_t i, const char* what) {
    return out_of_range(RibbonLayout::family, what, numbers[i]);
  };
  if (numbers[1] < 1 || numbers[1] > kMaxColumns) return outside(1, "columns");
  if (numbers[2] > UINT32_MAX || (numbers[2] != 0 && numbers[1] == kMaxColumns))
    return outside(2, "as share of wide keys");
  if (numbers[3] > kMaxShardBits) return outside(3, "shard bits");
  const RibbonShape shape{numbers[0], static_cast<std::uint32_t>(numbers[1]), static_cast<std::uint32_t>(numbers[2]),
                          static_cast<std::uint32_t>(numbers[3]), numbers[4]};
  if (!shape.valid()) return outside(4, "table bytes");
  return shape;
}

}  // namespace perhaps
