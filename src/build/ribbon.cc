// Building and checking the tables of perhaps/ribbon.h.
#include "perhaps/ribbon.h"

#include <algorithm>
#include <array>
#include <bit>

#include "build/ribbon_solver.h"

namespace perhaps {
namespace {

using Layer = RibbonLayout::Layer;

constexpr std::uint64_t kDense = RibbonShape::dense_slots(RibbonShape::kDenseKeys);  // slots

// Where everything in a shard of so many keys lies. Integers only: the same on every machine.
struct Plan {
  std::uint32_t layers = 0;
  std::array<Layer, RibbonLayout::kMaxLayers> layer{};
  std::uint64_t dense = 0;  // slots
  std::uint64_t extra = 0;
  std::uint64_t dense_at = 0;  // words
  std::uint64_t bytes = 0;
};

constexpr std::uint64_t words_of_bits(std::uint64_t bits) { return (bits + 63) / 64; }

std::uint64_t root(std::uint64_t n) noexcept {
  std::uint64_t r = 0;
  for (std::uint64_t bit = std::uint64_t{1} << 31; bit != 0; bit /= 2) {
    if ((r + bit) * (r + bit) <= n) r += bit;
  }
  return r;
}

// Slots that stay empty in a layer of that many, with room for chance: about 12 at the two ends, 0.22 % between them,
// and three standard deviations.
std::uint64_t empty_slots(std::uint64_t slots) noexcept { return 14 + slots / 450 + root(slots) / 2; }

Plan plan_of(RibbonShape shape, std::uint64_t keys) noexcept {
  Plan plan;
  std::uint64_t left = keys;
  while (left > RibbonShape::kDenseKeys && plan.layers < RibbonLayout::kMaxLayers) {
    const std::uint64_t slots = std::min(left - left / 33, left - 32) / 64 * 64;
    plan.layer[plan.layers++].starts =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(slots - 63, UINT32_MAX / 64 * 64 - 63));
    left -= std::min(left, slots - std::min(slots, empty_slots(slots)));
  }
  left = std::min(left, RibbonShape::kDenseKeys);
  plan.dense = RibbonShape::dense_slots(left);
  plan.extra = shape.extra_slots(left);
  std::uint64_t at = (RibbonLayout::kHeadBytes + RibbonLayout::kLayerBytes * plan.layers) / 8;
  if (shape.shard_bits != 0 || keys > 8192) {
    // On a line of the table, given that the directory and whole lines of other shards are before this one.
    const std::uint64_t before = detail::directory_bytes(shape.shard_bits) / 8;
    while ((before + at) % (kLineBytes / 8) != 0) ++at;
  }
  for (std::uint32_t i = 0; i < plan.layers; ++i) {
    Layer& layer = plan.layer[i];
    // As many narrow blocks as keep the rate at or below the one that is wanted.
    __extension__ using Product = unsigned __int128;
    layer.narrow = static_cast<std::uint32_t>(
        shape.wide == 0
            ? layer.blocks()
            : static_cast<std::uint64_t>((Product{layer.starts} * ((std::uint64_t{1} << 32) - shape.wide)) >> 38));
    layer.blocks_at = static_cast<std::uint32_t>(at);
    at += layer.words(layer.blocks(), shape.columns);
    layer.codes_at = static_cast<std::uint32_t>(at);
    at += layer.code_words();
  }
  plan.dense_at = at;
  at += words_of_bits(plan.dense * shape.columns + plan.extra);
  plan.bytes = at * 8;
  if (shape.shard_bits != 0) plan.bytes = (plan.bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
  return plan;
}

// Bits [at, at + count) of `bytes`, count <= 64, all of which are inside.  REQUIRES: bytes.size() >= 8
std::uint64_t bits_at(Bytes bytes, std::uint64_t at, std::uint64_t count) noexcept {
  const std::uint64_t byte = std::min<std::uint64_t>(at / 8, bytes.size() - 8);
  const std::uint64_t shift = at - 8 * byte;
  std::uint64_t word = detail::load<std::uint64_t>(bytes.data() + byte) >> shift;
  if (shift + count > 64) word |= std::uint64_t{static_cast<unsigned char>(bytes[byte + 8])} << (64 - shift);
  return count == 64 ? word : word & ((std::uint64_t{1} << count) - 1);
}

void set_bit(std::span<std::byte> bytes, std::uint64_t at) noexcept { bytes[at / 8] |= std::byte{1} << (at % 8); }

// The dense part: where its bits begin and how many slots it has.
struct Dense {
  std::uint64_t first_bit;
  std::uint32_t slots;
  std::uint32_t extra;
  std::uint32_t seed;
  std::uint32_t extra_seed;

  std::uint64_t chunk_slots(std::uint64_t q) const noexcept { return std::min<std::uint64_t>(64, slots - 64 * q); }
  std::uint64_t column_bit(std::uint32_t columns, std::uint64_t q, std::uint32_t j) const noexcept {
    return first_bit + 64 * q * columns + j * chunk_slots(q);
  }
  std::uint64_t extra_bit(std::uint32_t columns, std::uint64_t slot) const noexcept {
    return first_bit + std::uint64_t{slots} * columns + slot;
  }
};

bool dense_equals(RibbonShape shape, Bytes bytes, const Dense& d, std::uint64_t a) noexcept {
  if (d.slots == 0) return false;
  std::array<std::uint64_t, RibbonShape::kMaxColumns> sum{};
  for (std::uint32_t q = 0; 64 * q < d.slots; ++q) {
    const std::uint64_t c = RibbonLayout::dense_coefficients(a, d.seed, q);
    for (std::uint32_t j = 0; j < shape.columns; ++j) {
      sum[j] ^= c & bits_at(bytes, d.column_bit(shape.columns, q, j), d.chunk_slots(q));
    }
  }
  const std::uint32_t fingerprint = RibbonLayout::fingerprint_of(a);
  std::uint32_t wrong = 0;
  for (std::uint32_t j = 0; j < shape.columns; ++j) wrong |= ribbon::parity(sum[j]) ^ (fingerprint >> j & 1);
  if (wrong != 0 || d.extra == 0 || !RibbonLayout::is_extra(a, d.extra_seed, shape.wide)) return wrong == 0;
  std::uint64_t extra = 0;
  for (std::uint32_t q = 0; 64 * q < d.extra; ++q) {
    extra ^= RibbonLayout::dense_coefficients(a, RibbonLayout::extra_seed(d.extra_seed), q) &
             bits_at(bytes, d.extra_bit(shape.columns, 64 * q), std::min<std::uint64_t>(64, d.extra - 64 * q));
  }
  return ribbon::parity(extra) == (fingerprint >> shape.columns & 1);
}

// A system of up to 256 equations over all of up to 256 slots.
class DenseSystem {
 public:
  explicit DenseSystem(std::uint32_t slots) : slots_(slots) {}

  bool add(std::uint64_t a, std::uint32_t seed, std::uint32_t result) noexcept {
    Row row{};
    for (std::uint32_t q = 0; 64 * q < slots_; ++q) {
      row.c[q] = RibbonLayout::dense_coefficients(a, seed, q);
      if (slots_ - 64 * q < 64) row.c[q] &= (std::uint64_t{1} << (slots_ - 64 * q)) - 1;
    }
    row.result = result;
    for (std::uint32_t q = 0; 64 * q < slots_; ++q) {
      while (row.c[q] != 0) {
        Row& at = rows_[64 * q + ribbon::first_one(row.c[q])];
        if (!at.there) {
          at = row;
          at.there = true;
          return true;
        }
        for (std::uint32_t i = q; i < 4; ++i) row.c[i] ^= at.c[i];
        row.result ^= at.result;
      }
    }
    return row.result == 0;
  }
  // The value of every slot, bit j for column j.
  std::array<std::uint32_t, kDense> solve() const noexcept {
    std::array<std::uint32_t, kDense> value{};
    for (std::uint32_t slot = slots_; slot-- > 0;) {
      const Row& row = rows_[slot];
      if (!row.there) continue;
      std::uint32_t sum = row.result;
      for (std::uint32_t q = slot / 64; q < 4; ++q) {
        for (std::uint64_t c = row.c[q]; c != 0; c &= c - 1) sum ^= value[64 * q + ribbon::first_one(c)];
      }
      value[slot] = sum;
    }
    return value;
  }

 private:
  struct Row {
    std::array<std::uint64_t, 4> c;
    std::uint32_t result;
    bool there;
  };
  std::uint32_t slots_;
  std::array<Row, kDense> rows_{};
};

constexpr std::uint32_t low_bits(std::uint32_t count) { return count == 32 ? UINT32_MAX : (1u << count) - 1; }

// Seeds are tried until the keys fit; none is left in 1e-38 of all cases.
bool solve_dense(RibbonShape shape, std::span<const std::uint64_t> mixed, Dense* d, std::span<std::byte> out) noexcept {
  if (mixed.size() > d->slots) return false;
  if (mixed.empty()) return true;
  const std::uint32_t mask = low_bits(shape.columns);
  bool solved = false;
  for (d->seed = 0; d->seed < RibbonLayout::kMaxSeeds; ++d->seed) {
    DenseSystem system(d->slots);
    solved = std::ranges::all_of(
        mixed, [&](std::uint64_t a) { return system.add(a, d->seed, RibbonLayout::fingerprint_of(a) & mask); });
    if (!solved) continue;
    const auto value = system.solve();
    for (std::uint32_t slot = 0; slot < d->slots; ++slot) {
      for (std::uint32_t j = 0; j < shape.columns; ++j) {
        if ((value[slot] >> j & 1) != 0) set_bit(out, d->column_bit(shape.columns, slot / 64, j) + slot % 64);
      }
    }
    break;
  }
  if (!solved || d->extra == 0) return solved;
  for (d->extra_seed = 0; d->extra_seed < RibbonLayout::kMaxSeeds; ++d->extra_seed) {
    DenseSystem system(d->extra);
    solved = std::ranges::all_of(mixed, [&](std::uint64_t a) {
      return !RibbonLayout::is_extra(a, d->extra_seed, shape.wide) ||
             system.add(a, RibbonLayout::extra_seed(d->extra_seed),
                        RibbonLayout::fingerprint_of(a) >> shape.columns & 1);
    });
    if (!solved) continue;
    const auto value = system.solve();
    for (std::uint32_t slot = 0; slot < d->extra; ++slot) {
      if (value[slot] != 0) set_bit(out, d->extra_bit(shape.columns, slot));
    }
    return true;
  }
  return false;
}

// The keys of a layer in the order of their starts: digests as they come, or positions x that were sorted. A layer's
// multiplier is odd, so x gives the mixed digest back.
struct FromDigests {
  unsigned shard_bits;
  std::uint64_t x(std::uint64_t h) const noexcept { return h << shard_bits; }
  std::uint64_t mixed(std::uint64_t h) const noexcept { return RibbonLayout::mixed(h, 0); }
};
struct FromPositions {
  std::uint64_t inverse;
  std::uint64_t x(std::uint64_t position) const noexcept { return position; }
  std::uint64_t mixed(std::uint64_t position) const noexcept { return position * inverse; }
};

constexpr std::uint64_t inverse_of(std::uint64_t odd) noexcept {
  std::uint64_t inverse = odd;  // right in 3 bits; each step doubles them
  for (int i = 0; i < 5; ++i) inverse *= 2 - odd * inverse;
  return inverse;
}

// Bands one layer, writes its codes and its solution; returns how many keys were bumped, whose mixed digests are then
// in `bumped`.
template <class From>
std::size_t solve_layer(RibbonShape shape, const Layer& layer, From from, std::span<const std::uint64_t> keys,
                        const ribbon::Banding<std::uint64_t>& banding, std::byte* shard,
                        std::uint64_t* bumped) noexcept {
  const std::uint32_t mask = low_bits(shape.columns + (shape.wide != 0));
  const unsigned bucket_bits = layer.bucket_bits();
  const std::uint64_t bucket_mask = (std::uint64_t{1} << bucket_bits) - 1;
  std::byte* codes = shard + std::uint64_t{layer.codes_at} * 8;
  struct Inserted {
    std::uint64_t slot;
    std::uint64_t offset;
  };
  std::array<Inserted, 256> inserted;  // a bucket's rows lie in its 128 + 63 slots
  std::size_t count = 0;
  std::size_t end = 0;
  banding.clear();
  for (std::uint64_t bucket = 0; end < keys.size(); ++bucket) {
    const std::size_t begin = end;
    while (end < keys.size() && detail::scale(from.x(keys[end]), layer.starts) >> bucket_bits == bucket) ++end;
    std::size_t rows = 0;
    unsigned code = 0;
    std::size_t first_kept = begin;
    for (std::size_t i = end; i-- > begin;) {
      const std::uint64_t start = detail::scale(from.x(keys[i]), layer.starts);
      const std::uint64_t a = from.mixed(keys[i]);
      std::uint64_t slot = 0;
      const ribbon::Added added =
          banding.add(start, RibbonLayout::coefficients_of(a), RibbonLayout::fingerprint_of(a) & mask, &slot);
      const std::uint64_t offset = start & bucket_mask;
      if (added == ribbon::Added::inserted) inserted[rows++] = {slot, offset};
      if (added != ribbon::Added::inconsistent) continue;
      const auto threshold = [&] { return layer.thresholds() >> (8 * code) & 0xff; };
      while (threshold() <= offset) ++code;
      for (; rows > 0 && inserted[rows - 1].offset < threshold(); --rows) banding.remove(inserted[rows - 1].slot);
      first_kept = i + 1;
      while (first_kept < end && (detail::scale(from.x(keys[first_kept]), layer.starts) & bucket_mask) < threshold()) {
        ++first_kept;
      }
      break;
    }
    codes[bucket / 4] |= static_cast<std::byte>(code << (bucket % 4 * 2));
    for (std::size_t i = begin; i < first_kept; ++i) bumped[count++] = from.mixed(keys[i]);
  }
  banding.solve(shape.columns, layer.narrow, shard + std::uint64_t{layer.blocks_at} * 8);
  return count;
}

bool try_seed(RibbonShape shape, const Plan& plan, std::uint32_t seed, std::span<const std::uint64_t> digests,
              std::span<std::byte> out, std::span<std::uint64_t> scratch) noexcept {
  std::ranges::fill(out, std::byte{0});
  std::uint64_t* now = scratch.data();
  std::uint64_t* next = now + digests.size();
  std::uint64_t* rows = next + digests.size();
  std::size_t left = digests.size();
  if (seed != 0 || plan.layers == 0) {
    for (std::size_t i = 0; i < left; ++i) now[i] = RibbonLayout::mixed(digests[i], seed);
  }
  for (std::uint32_t i = 0; i < plan.layers; ++i) {
    const Layer& layer = plan.layer[i];
    detail::store(out.data() + RibbonLayout::kHeadBytes + i * RibbonLayout::kLayerBytes, layer);
    const std::uint64_t slots = 64 * layer.blocks();
    const ribbon::Banding<std::uint64_t> banding{{rows, slots},
                                                 {reinterpret_cast<std::uint32_t*>(rows + slots), slots}};
    if (i == 0 && seed == 0) {
      left = solve_layer(shape, layer, FromDigests{shape.shard_bits}, digests, banding, out.data(), next);
    } else {
      const std::span<std::uint64_t> positions(now, left);
      for (std::uint64_t& p : positions) p *= RibbonLayout::kLayer[i];
      std::ranges::sort(positions);
      left = solve_layer(shape, layer, FromPositions{inverse_of(RibbonLayout::kLayer[i])}, positions, banding,
                         out.data(), next);
    }
    std::swap(now, next);
  }
  Dense dense{plan.dense_at * 64, static_cast<std::uint32_t>(plan.dense), static_cast<std::uint32_t>(plan.extra), 0, 0};
  if (!solve_dense(shape, {now, left}, &dense, out)) return false;
  out[1] = static_cast<std::byte>(plan.layers);
  out[2] = static_cast<std::byte>(dense.seed);
  out[3] = static_cast<std::byte>(dense.extra_seed);
  // Without keys it has to deny, which it does without slots.
  detail::store(out.data() + 4, static_cast<std::uint16_t>(left == 0 ? 0 : dense.slots));
  detail::store(out.data() + 6, static_cast<std::uint16_t>(left == 0 ? 0 : dense.extra));
  detail::store(out.data() + 8, static_cast<std::uint32_t>(plan.dense_at));
  detail::store(out.data() + 12, seed);
  return true;
}

Dense tiny_dense(RibbonShape shape) noexcept {
  return {16, static_cast<std::uint32_t>(RibbonShape::dense_slots(shape.keys)),
          static_cast<std::uint32_t>(shape.extra_slots(shape.keys)), 0, 0};
}

}  // namespace

std::uint64_t RibbonLayout::shard_bytes(const RibbonShape& shape, std::uint64_t keys) noexcept {
  return shape.tiny() ? shape.tiny_bytes() : plan_of(shape, keys).bytes;
}

std::uint64_t RibbonLayout::scratch_words(const RibbonShape& shape, std::uint64_t keys) noexcept {
  const Plan plan = plan_of(shape, keys);
  const std::uint64_t slots = plan.layers == 0 ? 0 : 64 * plan.layer[0].blocks();
  return 2 * keys + slots + slots / 2;
}

void RibbonLayout::solve_shard(const RibbonShape& shape, std::span<const std::uint64_t> digests,
                               std::span<std::byte> out, std::span<std::uint64_t> scratch) noexcept {
  if (shape.tiny()) {
    std::ranges::fill(out, std::byte{0});
    for (std::size_t i = 0; i < digests.size(); ++i) scratch[i] = mixed(digests[i], 0);
    Dense dense = tiny_dense(shape);
    const bool solved = solve_dense(shape, scratch.first(digests.size()), &dense, out);
    out[0] = static_cast<std::byte>(solved ? dense.seed : kMaxSeeds);
    out[1] = static_cast<std::byte>(dense.extra_seed);
    return;
  }
  const Plan plan = plan_of(shape, digests.size());
  if (try_seed(shape, plan, 0, digests, out, scratch)) return;
  std::uint64_t all = digests.size();
  for (const std::uint64_t h : digests) all = mixed(all ^ h, 0) * kLayer[0];
  for (std::uint32_t i = 0; i < 64; ++i) {
    const auto seed = static_cast<std::uint32_t>(dense_coefficients(all, i, 0) >> 32) | 1;
    if (try_seed(shape, plan, seed, digests, out, scratch)) return;
  }
  std::ranges::fill(out, std::byte{0});
  out[0] = std::byte{1};
}

bool RibbonLayout::dense(const RibbonShape& shape, const std::byte* table, std::uint64_t h) noexcept {
  if (shape.tiny()) {
    if (shape.keys == 0) return false;
    Dense d = tiny_dense(shape);
    const std::byte* only = table + detail::directory_bytes(0);
    d.seed = static_cast<std::uint32_t>(only[0]);
    d.extra_seed = static_cast<std::uint32_t>(only[1]);
    return d.seed == kMaxSeeds || dense_equals(shape, {only, shape.tiny_bytes()}, d, mixed(h, 0));
  }
  const std::byte* shard = table + shard_offset(shape, table, h);
  if (shard[0] != std::byte{0}) return true;
  const Dense d{0, detail::load<std::uint16_t>(shard + 4), detail::load<std::uint16_t>(shard + 6),
                static_cast<std::uint32_t>(shard[2]), static_cast<std::uint32_t>(shard[3])};
  const std::uint64_t bytes = words_of_bits(std::uint64_t{d.slots} * shape.columns + d.extra) * 8;
  return dense_equals(shape, {shard + std::uint64_t{detail::load<std::uint32_t>(shard + 8)} * 8, bytes}, d,
                      mixed(h, seed_of(shard)));
}

namespace {

bool check_shard(RibbonShape shape, Bytes shard) noexcept {
  if (shard.size() < RibbonLayout::kHeadBytes) return false;
  const std::uint64_t words = shard.size() / 8;
  const auto layers = static_cast<std::uint32_t>(shard[1]);
  if (layers > RibbonLayout::kMaxLayers) return false;
  if (RibbonLayout::kHeadBytes + layers * RibbonLayout::kLayerBytes > shard.size()) return false;
  for (std::uint32_t i = 0; i < layers; ++i) {
    const Layer layer = RibbonLayout::layer_at(shard.data(), i);
    if (layer.starts == 0 || layer.narrow > layer.blocks()) return false;
    if (shape.wide == 0 && layer.narrow != layer.blocks()) return false;
    if (layer.blocks_at + layer.words(layer.blocks(), shape.columns) > words) return false;
    if (layer.codes_at + layer.code_words() > words) return false;
  }
  const std::uint64_t slots = detail::load<std::uint16_t>(shard.data() + 4);
  const std::uint64_t extra = detail::load<std::uint16_t>(shard.data() + 6);
  if (slots > kDense || extra > slots || (extra != 0 && shape.wide == 0)) return false;
  return detail::load<std::uint32_t>(shard.data() + 8) + words_of_bits(slots * shape.columns + extra) <= words;
}

}  // namespace

Result<void> RibbonLayout::check(const RibbonShape& shape, Bytes table) {
  return detail::check_shards(family, shape.shard_bits, table, [&](Bytes shard) {
    return shape.tiny() ? shard.size() == shape.tiny_bytes() : check_shard(shape, shard);
  });
}

}  // namespace perhaps
