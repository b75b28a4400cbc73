#include "sizing/fuse.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>

#include "sizing/shape_error.h"

namespace perhaps {
namespace sizing {
namespace {

// Measured, at each size: the number of segments with which the fewest slots let 97 of 100 sets of random keys peel at
// the first try, and those slots (60 sets at 2^20 keys, 1000 and more below 10^4). Up to 12,000 keys (arity 3) or 1,400
// (arity 4) more than `arity` segments cost more than they gain; past that the best number grows with the cube
// root of the keys or so, and is not critical: 1.4 times as many need 0.1 to 0.3 % more slots. Between the sizes, 95 of
// 100 sets or more peel at the first try at every size (test/soak/fuse_soak.cc). The last entry holds for all above.
constexpr std::uint64_t kPer = 4096;
struct Knot {
  std::uint32_t keys;
  std::uint32_t segments;  // for that many keys and more
  std::uint32_t slots;     // for kPer keys
};

constexpr Knot kKnots3[] = {{1, 1, 12288},       {2, 1, 18432},       {4, 1, 20480},        {8, 1, 14336},
                            {16, 1, 10900},      {32, 1, 9000},       {64, 1, 7300},        {128, 1, 6150},
                            {256, 1, 5600},      {512, 1, 5350},      {1024, 1, 5230},      {2048, 1, 5160},
                            {4096, 1, 5110},     {8192, 1, 5080},     {12000, 1, 5072},     {14000, 30, 5072},
                            {16384, 37, 5025},   {32768, 46, 4925},   {65536, 64, 4825},    {131072, 80, 4755},
                            {262144, 100, 4700}, {524288, 128, 4660}, {1048576, 150, 4622}, {2097152, 200, 4610}};
constexpr Knot kKnots4[] = {
    {1, 1, 16384},       {2, 1, 24576},       {4, 1, 20480},       {8, 1, 11500},        {16, 1, 8900},
    {32, 1, 7400},       {64, 1, 6500},       {128, 1, 6020},      {256, 1, 5780},       {512, 1, 5600},
    {1024, 1, 5530},     {1448, 23, 5470},    {2048, 26, 5370},    {2896, 26, 5250},     {4096, 37, 5130},
    {5792, 37, 5050},    {8192, 46, 4940},    {16384, 52, 4815},   {32768, 64, 4700},    {65536, 80, 4610},
    {131072, 110, 4525}, {262144, 130, 4465}, {524288, 150, 4412}, {1048576, 190, 4375}, {2097152, 230, 4355}};

}  // namespace

detail::FuseGeometry fuse_geometry(std::uint32_t arity, std::uint64_t keys) noexcept {
  const std::span<const Knot> knots = arity == 3 ? std::span<const Knot>(kKnots3) : std::span<const Knot>(kKnots4);
  keys = std::max<std::uint64_t>(keys, 1);
  std::size_t i = 0;
  while (i + 1 < knots.size() && knots[i + 1].keys <= keys) ++i;
  // Between two knots on the straight line, which lies above the curve.
  std::uint64_t slots = knots[i].slots;
  if (i + 1 < knots.size()) {
    const std::uint64_t step = knots[i + 1].keys - knots[i].keys;
    const std::uint64_t into = keys - knots[i].keys;
    slots = (slots * (step - into) + knots[i + 1].slots * into + step - 1) / step;
  }
  const std::uint64_t segments = knots[i].segments + arity - 1;
  const std::uint64_t length = (keys * slots + kPer * segments - 1) / (kPer * segments);
  return {knots[i].segments, static_cast<std::uint32_t>(length), 0};
}

}  // namespace sizing

namespace {

constexpr std::uint64_t kShardKeys = std::uint64_t{1} << 20;
constexpr std::uint64_t kMaxKeys = std::uint64_t{1} << 48;  // of which no table's size overflows

// The size if keys fall on the shards evenly.
std::uint64_t expected_bytes(const FuseShape& shape) noexcept {
  const std::uint64_t shards = std::uint64_t{1} << shape.shard_bits;
  const std::uint64_t each = shape.keys >> shape.shard_bits;
  const std::uint64_t more = shape.keys & (shards - 1);  // shards that have one key more
  return detail::directory_bytes(shape.shard_bits) + (shards - more) * FuseLayout::shard_bytes(shape, each) +
         more * FuseLayout::shard_bytes(shape, each + 1);
}

}  // namespace

FuseShape FuseShape::for_keys(const FuseRequest& request) {
  assert(request.arity == 3 || request.arity == 4);
  FuseShape shape;
  shape.arity = request.arity == 4 ? 4 : 3;
  shape.keys = std::min(request.keys, kMaxKeys);
  while (shape.shard_bits < kMaxShardBits && shape.keys >> shape.shard_bits >= kShardKeys) ++shape.shard_bits;
  if (request.max_bytes != 0 || request.bits_per_key != 0) {
    // A thousandth to spare, because keys do not fall on the shards evenly.
    const double most = request.max_bytes != 0
                            ? static_cast<double>(request.max_bytes)
                            : request.bits_per_key * static_cast<double>(std::max<std::uint64_t>(shape.keys, 1)) / 8;
    const auto fits = [&](std::uint32_t width) {
      shape.bits = width;
      return static_cast<double>(expected_bytes(shape)) * (shape.shard_bits == 0 ? 1 : 1.001) <= most;
    };
    std::uint32_t best = 1;
    while (best < kMaxBits && fits(best + 1)) ++best;
    shape.bits = best;
  } else {
    shape.bits = 1;
    while (shape.bits < kMaxBits && shape.fpr(0) > request.fpr) ++shape.bits;
  }
  shape.table_bytes = expected_bytes(shape);
  return shape;
}

double FuseShape::fpr(double) const { return std::ldexp(1.0, -static_cast<int>(bits)); }

std::vector<std::uint64_t> FuseShape::numbers() const { return {arity, bits, shard_bits, keys, table_bytes}; }

Facts FuseShape::facts() const {
  return {{"arity", std::to_string(arity)},
          {"bits", std::to_string(bits) + " per slot"},
          {"shards", std::to_string(std::uint64_t{1} << shard_bits)}};
}

Result<FuseShape> FuseShape::from(std::span<const std::uint64_t> numbers) {
  if (numbers.size() != 5) return wrong_count("fuse", 5, numbers.size());
  if (numbers[0] != 3 && numbers[0] != 4) return out_of_range("fuse", "slots a key", numbers[0]);
  if (numbers[1] < 1 || numbers[1] > kMaxBits) return out_of_range("fuse", "bits per slot", numbers[1]);
  if (numbers[2] > kMaxShardBits) return out_of_range("fuse", "bits of shards", numbers[2]);
  FuseShape shape;
  shape.arity = static_cast<std::uint32_t>(numbers[0]);
  shape.bits = static_cast<std::uint32_t>(numbers[1]);
  shape.shard_bits = static_cast<std::uint32_t>(numbers[2]);
  shape.keys = numbers[3];
  shape.table_bytes = numbers[4];
  if (!shape.valid()) return out_of_range("fuse", "bytes of table", numbers[4]);
  return shape;
}

}  // namespace perhaps
