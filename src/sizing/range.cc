// The shape of a range filter: how large a universe, how many bits of it in the lows.
#include <algorithm>
#include <bit>
#include <cmath>

#include "perhaps/range.h"

namespace perhaps {
namespace {

constexpr std::uint64_t kRootOfTwo = 0xb504f333f9de6484u;  // 2^63.5

// The head, four parts that are rounded up to words, and the word at the end.
constexpr double kOverhead = RangeShape::kHeadBytes + 4 * 8 + 8;

constexpr std::uint64_t words(std::uint64_t bits) noexcept { return (bits + 63) / 64 * 8; }

constexpr bool is_half(std::uint32_t half_bits) noexcept {
  return half_bits % 2 == 0 ? half_bits <= RangeShape::kMaxHalfBits : half_bits <= RangeShape::kMaxOddHalfBits;
}

// Calls try_one(shape) for every width of the lows.
template <class Try>
void for_each_width(std::uint64_t keys, Try try_one) {
  for (std::uint32_t half_bits = 0; half_bits <= RangeShape::kMaxHalfBits; ++half_bits) {
    if (is_half(half_bits)) try_one(RangeShape{.keys = keys, .universe = 1, .half_bits = half_bits});
  }
}

}  // namespace

std::uint64_t RangeShape::radix() const noexcept {
  return half_bits % 2 == 0 ? std::uint64_t{1} << half_bits / 2 : kRootOfTwo >> (63 - half_bits / 2);
}

bool RangeShape::valid() const noexcept {
  return keys <= kMaxKeys && universe >= 1 && universe <= kMaxUniverse && keys <= universe && is_half(half_bits);
}

std::uint32_t RangeShape::width() const noexcept {
  return static_cast<std::uint32_t>(std::bit_width(keys + buckets()));
}
std::uint64_t RangeShape::bucket_directory_bytes() const noexcept {
  return words((buckets() - 1) / kEachBucket * width());
}
std::uint64_t RangeShape::key_directory_bytes() const noexcept {
  return keys == 0 ? 0 : words((keys - 1) / kEachKey * width());
}
std::uint64_t RangeShape::upper_bytes() const noexcept { return words(keys + buckets()); }
std::uint64_t RangeShape::lows_bytes() const noexcept {
  return half_bits % 2 == 0 ? words(keys * (half_bits / 2)) : words((keys + 1) / 2 * half_bits);
}
std::uint64_t RangeShape::bytes() const noexcept {
  return kHeadBytes + bucket_directory_bytes() + key_directory_bytes() + upper_bytes() + lows_bytes() + 8;
}

double RangeShape::fpr(double range_size) const noexcept {
  return std::min(1.0, static_cast<double>(keys) * range_size / static_cast<double>(universe) *
                           (1 + static_cast<double>(universe) * 0x1p-64));
}

RangeShape RangeShape::smallest(std::uint64_t keys, std::uint64_t universe) {
  RangeShape best;
  std::uint64_t least = UINT64_MAX;
  for_each_width(keys, [&](RangeShape shape) {
    shape.universe = universe;
    if (shape.buckets() > kMaxKeys) return;
    if (const std::uint64_t bytes = shape.bytes(); bytes < least) least = bytes, best = shape;
  });
  return best;
}

RangeShape RangeShape::for_keys(const RangeRequest& request) {
  const std::uint64_t keys = std::min(request.keys, kMaxKeys);
  const auto at_most = [](double places) {
    return places >= static_cast<double>(kMaxUniverse) ? kMaxUniverse : static_cast<std::uint64_t>(places);
  };
  if (request.max_bytes == 0 && request.bits_per_key == 0) {
    // places with keys * size / places * (1 + places / 2^64) <= fpr, and at least one place for each key
    const double wanted =
        static_cast<double>(std::max<std::uint64_t>(keys, 1)) * static_cast<double>(request.range_size);
    const double left = request.fpr - wanted * 0x1p-64;
    const std::uint64_t places = left > 0 ? at_most(std::ceil(wanted / left)) : kMaxUniverse;
    return smallest(keys, std::max({std::uint64_t{1}, keys, places}));
  }
  RangeShape best = smallest(keys, std::max<std::uint64_t>(keys, 1));
  const double room = request.max_bytes != 0 ? 8 * (static_cast<double>(request.max_bytes) - kOverhead)
                                             : request.bits_per_key * static_cast<double>(keys);
  for_each_width(keys, [&](RangeShape shape) {
    // What each key and each bucket takes: the best shapes have no more than two buckets per key, which says how wide
    // the entries of the directories are. Whole numbers, because a logarithm is not the same on every machine.
    const auto width = static_cast<double>(std::bit_width(3 * keys));
    const double bits_each = static_cast<double>(shape.half_bits) / 2 + 1 + width / kEachKey;
    const double buckets = (room - bits_each * static_cast<double>(keys)) / (1 + width / kEachBucket);
    if (!(buckets >= 1)) return;
    shape.universe = at_most(buckets * static_cast<double>(shape.radix()));
    if (shape.valid() && shape.universe > best.universe) best = shape;
  });
  return best;
}

}  // namespace perhaps
