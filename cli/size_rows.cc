#include "size_rows.h"

#include <cmath>

#include "perhaps/counting_bloom.h"

namespace perhaps::cli {
namespace {

// Where a search for a number of keys, lines or bits ends.
constexpr std::uint64_t kMax = std::uint64_t{1} << 56;

// The largest n from 1 on for which `holds`, which is true up to there; 0 if it is not even true for 1.
template <class Holds>
std::uint64_t largest(Holds holds) {
  std::uint64_t low = 0;
  std::uint64_t high = 1;
  while (high < kMax && holds(high)) low = high, high *= 2;
  while (high - low > 1) {
    const std::uint64_t middle = low + (high - low) / 2;
    (holds(middle) ? low : high) = middle;
  }
  return low;
}

// `shape_of(n)` has n lines, or bits, and the number of probes that is given.
template <class ShapeOf>
std::optional<FamilySize> with_probes(Kind kind, const Request& request, double unit_bits, ShapeOf shape_of) {
  if (!shape_of(1).valid()) return std::nullopt;
  const auto keys = static_cast<double>(request.keys);
  std::uint64_t units = 0;
  if (request.max_bytes != 0) {
    units = static_cast<std::uint64_t>(8 * static_cast<double>(request.max_bytes) / unit_bits);
  } else if (request.bits_per_key != 0) {
    units = static_cast<std::uint64_t>(std::ceil(keys * request.bits_per_key / unit_bits));
  } else {
    units = largest([&](std::uint64_t n) { return shape_of(n).fpr(keys) > request.fpr; }) + 1;
  }
  if (units == 0 || units >= kMax / 2) return std::nullopt;
  const auto shape = shape_of(units);
  return FamilySize{.kind = kind,
                    .bytes = shape.bytes(),
                    .bits = static_cast<std::uint64_t>(static_cast<double>(units) * unit_bits),
                    .probes = shape.probes,
                    .fpr = shape.fpr(keys)};
}

std::optional<FamilySize> sized(Kind kind, const Request& request, std::uint32_t probes) {
  if (probes != 0 && kind == Kind::classic)
    return with_probes(kind, request, 1, [&](std::uint64_t n) { return BloomShape{.bits = n, .probes = probes}; });
  if (probes != 0 && kind == Kind::line)
    return with_probes(kind, request, 512, [&](std::uint64_t n) { return LineShape{.lines = n, .probes = probes}; });
  if (probes != 0 && kind == Kind::counting)
    return with_probes(kind, request, 512,
                       [&](std::uint64_t n) { return CountingShape{.lines = n, .probes = probes}; });
  const auto size = size_of(kind, request);
  if (!size || (probes != 0 && size->probes != probes)) return std::nullopt;
  if (request.max_bytes != 0 && size->bytes > request.max_bytes) return std::nullopt;  // its smallest is too large
  return *size;
}

}  // namespace

std::optional<SizeRow> size_row(const SizeQuestion& options, const Family& family) {
  Request request{
      .keys = options.keys, .fpr = options.fpr, .bits_per_key = options.bits_per_key, .max_bytes = options.max_bytes};
  if (options.finds_keys() && options.bits_per_key != 0) {
    request.keys = static_cast<std::uint64_t>(8 * static_cast<double>(options.max_bytes) / options.bits_per_key);
    request.bits_per_key = 0;
  } else if (options.finds_keys()) {
    request.max_bytes = 0;
    request.keys = largest([&](std::uint64_t keys) {
      request.keys = keys;
      const auto size = sized(family.kind, request, options.probes);
      return size && size->bytes <= options.max_bytes && size->fpr <= 1.01 * options.fpr;
    });
  } else if (options.keys == 0) {
    request.keys = kTypicalKeys;
  }
  if (request.keys == 0 || (options.finds_keys() && request.keys + 1 >= kMax)) return std::nullopt;
  const auto size = sized(family.kind, request, options.probes);
  if (!size) return std::nullopt;
  const bool by_rate = request.max_bytes == 0 && request.bits_per_key == 0;
  if (by_rate && size->fpr > 2 * request.fpr) return std::nullopt;  // it cannot keep the rate
  const SizeRow row{&family, request.keys, *size};
  if (row.above() < 0) return std::nullopt;  // impossible: its largest table does not hold so many keys
  return row;
}

}  // namespace perhaps::cli
