// Building and checking the tables of perhaps/ribbon.h.
#include "perhaps/ribbon.h"

#include <algorithm>
#include <array>
#include <optional>

#include "build/ribbon_band.h"
#include "build/ribbon_dense.h"
#include "build/ribbon_plan.h"
#include "kernel/instruction_set.h"

namespace perhaps {
namespace {

using Layer = RibbonLayout::Layer;

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

Plan plan_of(RibbonShape shape, std::uint64_t keys) noexcept {
  Plan plan;
  std::uint64_t left = keys;
  while (left > RibbonShape::kDenseKeys && plan.layers < RibbonLayout::kMaxLayers) {
    const std::uint64_t slots = std::min(left - left / 33, left - 32) / 64 * 64;
    plan.layer[plan.layers++].starts =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(slots - 63, UINT32_MAX / 64 * 64 - 63));
    left -= std::min(left, slots - std::min(slots, detail::empty_slots(slots)));
  }
  left = std::min(left, RibbonShape::kDenseKeys);
  plan.dense = RibbonShape::dense_slots(left);
  plan.extra = shape.extra_slots(left);
  std::uint64_t at = (RibbonLayout::kHeadBytes + RibbonLayout::kLayerBytes * plan.layers) / 8;
  for (std::uint32_t i = 0; i < plan.layers; ++i) {
    Layer& layer = plan.layer[i];
    layer.narrow = static_cast<std::uint32_t>(RibbonFront::narrow_blocks(layer.starts, shape.wide, layer.blocks()));
    layer.blocks_at = static_cast<std::uint32_t>(at);
    at += layer.words(layer.blocks(), shape.columns);
    layer.codes_at = static_cast<std::uint32_t>(at);
    at += layer.code_words();
  }
  plan.dense_at = at;
  plan.bytes = 8 * (at + words_of_bits(plan.dense * shape.columns + plan.extra));
  return plan;
}

constexpr std::uint64_t inverse_of(std::uint64_t odd) noexcept {
  std::uint64_t inverse = odd;  // right in 3 bits; each step doubles them
  for (int i = 0; i < 5; ++i) inverse *= 2 - odd * inverse;
  return inverse;
}

// Scratch memory is counted in words. A row is not always two of them: 64-bit integers may be aligned to 4 bytes.
constexpr std::uint64_t words_of_rows(std::uint64_t rows) noexcept { return (rows * sizeof(ribbon::Slot) + 7) / 8; }

// A shard, the plan for it, and memory to work in.
struct Work {
  Plan plan;
  std::span<const std::uint64_t> digests;
  std::span<std::byte> out;
  ribbon::Slot* rows;
  std::uint64_t* left;  // the keys that no layer has so far, mixed
  std::size_t left_count;

  template <class Band, class From>
  void band(const RibbonShape& shape, std::uint32_t i, From from, std::span<const std::uint64_t> keys,
            void (*band_all)(Band&) noexcept) noexcept {
    const Layer& layer = plan.layer[i];
    Band band(shape, layer, from, keys, out.data() + std::uint64_t{layer.codes_at} * 8, rows, left);
    band_all(band);
    left_count = band.bumped_count();
    const ribbon::Banding<std::uint64_t> banding{{rows, static_cast<std::size_t>(64 * layer.blocks())}};
    banding.solve(shape.columns, layer.narrow, out.data() + std::uint64_t{layer.blocks_at} * 8);
  }
};

bool try_seed(RibbonShape shape, Work& work, std::uint32_t seed) noexcept {
  const Plan& plan = work.plan;
  const std::span<std::byte> out = work.out;
  std::uint32_t next = 0;
  if (plan.layers != 0 && seed == 0) {
    work.band(shape, next++, ribbon::FromDigests{}, work.digests, kernel::active().ribbon_band_digests);
  } else {
    work.left_count = work.digests.size();
    for (std::size_t i = 0; i < work.left_count; ++i) work.left[i] = RibbonLayout::mixed(work.digests[i], seed);
  }
  for (; next < plan.layers; ++next) {
    const std::uint64_t factor = RibbonLayout::kLayer[next];
    const std::span<std::uint64_t> positions(work.left, work.left_count);
    for (std::uint64_t& p : positions) p *= factor;
    std::sort(positions.begin(), positions.end());
    work.band(shape, next, ribbon::FromPositions{inverse_of(factor)}, positions,
              kernel::active().ribbon_band_positions);
  }
  ribbon::Dense dense{plan.dense_at * 64, static_cast<std::uint32_t>(plan.dense),
                      static_cast<std::uint32_t>(plan.extra), 0, 0};
  if (!ribbon::solve_dense(shape, {work.left, work.left_count}, &dense, out)) return false;
  for (std::uint32_t i = 0; i < plan.layers; ++i) {
    std::byte* const at = out.data() + RibbonLayout::kHeadBytes + i * RibbonLayout::kLayerBytes;
    detail::store(at, plan.layer[i].starts);
    detail::store(at + 4, plan.layer[i].narrow);
    detail::store(at + 8, plan.layer[i].blocks_at);
    detail::store(at + 12, plan.layer[i].codes_at);
  }
  out[1] = static_cast<std::byte>(plan.layers);
  out[2] = static_cast<std::byte>(dense.seed);
  out[3] = static_cast<std::byte>(dense.extra_seed);
  // Without keys it has to deny, which it does without slots.
  detail::store(out.data() + 4, static_cast<std::uint16_t>(work.left_count == 0 ? 0 : dense.slots));
  detail::store(out.data() + 6, static_cast<std::uint16_t>(work.left_count == 0 ? 0 : dense.extra));
  detail::store(out.data() + 8, static_cast<std::uint32_t>(plan.dense_at));
  detail::store(out.data() + 12, seed);
  return true;
}

// Without a seed there was no solution.
void start_over(RibbonShape shape, Work& work) noexcept {
  std::uint64_t all = work.digests.size();
  for (const std::uint64_t h : work.digests) all = RibbonLayout::mixed(all ^ h, 0) * RibbonLayout::kLayer[0];
  for (std::uint32_t i = 0; i < 64; ++i) {
    const auto seed = static_cast<std::uint32_t>(RibbonLayout::dense_coefficients(all, i, 0) >> 32) | 1;
    std::fill(work.out.begin(), work.out.end(), std::byte{0});
    if (try_seed(shape, work, seed)) return;
  }
  std::fill(work.out.begin(), work.out.end(), std::byte{0});
  work.out[0] = std::byte{1};
}

ribbon::Dense tiny_dense(RibbonShape shape) noexcept {
  return {16, static_cast<std::uint32_t>(RibbonShape::dense_slots(shape.rest)),
          static_cast<std::uint32_t>(shape.extra_slots(shape.rest)), 0, 0};
}

}  // namespace

std::uint64_t RibbonLayout::shard_bytes(const RibbonShape& shape, std::uint64_t keys) noexcept {
  return shape.tiny() ? shape.tiny_bytes() : plan_of(shape, keys).bytes;
}

void RibbonLayout::build_front(const RibbonShape& shape, std::byte* table, unsigned run_bits,
                               std::span<const StaticRun> runs, StaticScratch& scratch) {
  const RibbonFront front = shape.front(0, 0);
  const std::uint64_t starts = front.starts >> run_bits;
  const std::uint64_t last_run = (std::uint64_t{1} << run_bits) - 1;
  const Layer layer{static_cast<std::uint32_t>(starts), 0, 0, 0};
  struct Work {
    std::size_t taken;
    ribbon::Slot* rows;
    std::span<std::uint64_t> left;
    std::optional<ribbon::FrontBand> band;
  };
  std::array<Work, kRunsTogether> works;
  ribbon::FrontBands bands;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const auto [number, digests, left] = runs[i];
    Work& work = works[i];
    std::byte* const codes = table + front.codes_at + number * (starts / (4 * RibbonFront::kBucket));
    // Ribbons do not reach from run to run: the last bucket is bumped, except the last of all.
    work.taken = digests.size();
    if (number != last_run) {
      const std::uint64_t last = starts - RibbonFront::kBucket;
      const auto end = std::partition_point(
          digests.begin(), digests.end(), [&](std::uint64_t h) { return detail::scale(h << run_bits, starts) < last; });
      work.taken = static_cast<std::size_t>(end - digests.begin());
      codes[last / (4 * RibbonFront::kBucket)] |= std::byte{3 << 6};
    }
    const auto room = scratch.room<std::uint64_t>(i, words_of_rows(starts + 64) + digests.size());
    work.rows = reinterpret_cast<ribbon::Slot*>(room.data());
    work.left = room.last(digests.size());
    bands.runs[i] = &work.band.emplace(shape, layer, ribbon::FromFront{run_bits}, digests.first(work.taken), codes,
                                       work.rows, work.left.data());
  }
  if (runs.size() == kRunsTogether) {
    kernel::active().ribbon_band_fronts(bands);
  } else {
    for (std::size_t i = 0; i < runs.size(); ++i) kernel::active().ribbon_band_front(*bands.runs[i]);
  }
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const auto [number, digests, left] = runs[i];
    const Work& work = works[i];
    const std::uint64_t first = number * (starts / 64);
    const std::uint64_t blocks = starts / 64 + (number == last_run ? 1 : 0);
    const ribbon::Banding<std::uint64_t> banding{{work.rows, static_cast<std::size_t>(64 * blocks)}};
    banding.solve(shape.columns, front.narrow - std::min(front.narrow, first),
                  table + front.blocks_at + 8 * front.words(first, shape.columns));
    const auto bumped = work.left.first(work.band->bumped_count());
    left->reserve(bumped.size() + digests.size() - work.taken);
    left->assign(bumped.begin(), bumped.end());
    const auto others = digests.subspan(work.taken);
    left->insert(left->end(), others.begin(), others.end());
  }
}

void RibbonLayout::build_shard(const RibbonShape& shape, std::span<const std::uint64_t> digests,
                               std::span<std::byte> out, StaticScratch& scratch) {
  if (shape.tiny()) {
    const auto all = scratch.room<std::uint64_t>(0, digests.size());
    std::transform(digests.begin(), digests.end(), all.begin(), [](std::uint64_t h) { return mixed(h, 0); });
    ribbon::Dense dense = tiny_dense(shape);
    const bool solved = ribbon::solve_dense(shape, all, &dense, out);
    out[0] = static_cast<std::byte>(solved ? dense.seed : kMaxSeeds);
    out[1] = static_cast<std::byte>(dense.extra_seed);
    return;
  }
  const Plan plan = plan_of(shape, digests.size());
  const std::uint64_t slots = plan.layers == 0 ? 0 : 64 * plan.layer[0].blocks();
  const auto room = scratch.room<std::uint64_t>(0, words_of_rows(slots) + digests.size());
  Work work{
      plan, digests, out, reinterpret_cast<ribbon::Slot*>(room.data()), room.data() + room.size() - digests.size(), 0};
  if (!try_seed(shape, work, 0)) start_over(shape, work);
}

ribbon::DenseLookup::DenseLookup(const RibbonShape& shape, const std::byte* table, std::uint32_t i,
                                 std::uint64_t h) noexcept {
  for (; i < shape.fronts; ++i) h = RibbonLayout::remixed(h);
  const std::byte* const shard = table + shape.front_bytes() + detail::directory_bytes(0);
  if (shape.tiny()) {
    if (shape.rest == 0) return;
    bytes = Bytes(shard, shape.tiny_bytes());
    dense = tiny_dense(shape);
    dense.seed = static_cast<std::uint32_t>(shard[0]);
    dense.extra_seed = static_cast<std::uint32_t>(shard[1]);
    every = dense.seed == RibbonLayout::kMaxSeeds;
    mixed = RibbonLayout::mixed(h, 0);
    return;
  }
  every = shard[0] != std::byte{0};
  dense = {0, detail::load<std::uint16_t>(shard + 4), detail::load<std::uint16_t>(shard + 6),
           static_cast<std::uint32_t>(shard[2]), static_cast<std::uint32_t>(shard[3])};
  bytes = Bytes(shard + std::uint64_t{detail::load<std::uint32_t>(shard + 8)} * 8,
                words_of_bits(std::uint64_t{dense.slots} * shape.columns + dense.extra) * 8);
  mixed = RibbonLayout::mixed(h, RibbonLayout::seed_of(shard));
}

bool RibbonLayout::dense(const RibbonShape& shape, const std::byte* table, std::uint32_t i, std::uint64_t h) noexcept {
  return ribbon::DenseLookup(shape, table, i, h).answer(shape);
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
  if (slots > ribbon::kDense || extra > slots || (extra != 0 && shape.wide == 0)) return false;
  return detail::load<std::uint32_t>(shard.data() + 8) + words_of_bits(slots * shape.columns + extra) <= words;
}

}  // namespace

Result<void> RibbonLayout::check(const RibbonShape& shape, Bytes table) {
  // Whatever a front says, it is inside: the shape has its size.
  return detail::check_shards(family, 0, table.subspan(shape.front_bytes()), [&](Bytes shard) {
    return shape.tiny() ? shard.size() == shape.tiny_bytes() : check_shard(shape, shard);
  });
}

}  // namespace perhaps
