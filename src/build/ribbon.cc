// Building and checking the tables of perhaps/ribbon.h.
#include "perhaps/ribbon.h"

#include "build/ribbon_plan.h"
#include "build/ribbon_table.h"

namespace perhaps {
namespace ribbon {

Plan plan_of(const RibbonShape& shape, std::uint64_t keys) noexcept {
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

Dense tiny_dense(const RibbonShape& shape) noexcept {
  return {16, static_cast<std::uint32_t>(RibbonShape::dense_slots(shape.rest)),
          static_cast<std::uint32_t>(shape.extra_slots(shape.rest)), 0, 0};
}

namespace {

bool check_shard(const RibbonShape& shape, Bytes shard) noexcept {
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

DenseLookup::DenseLookup(const RibbonShape& shape, const std::byte* table, std::uint32_t i, std::uint64_t h) noexcept {
  if (shape.rest == 0) return;
  for (; i < shape.fronts; ++i) h = RibbonLayout::remixed(h);
  const std::byte* const shard = table + shape.front_bytes() + detail::directory_bytes(0);
  if (shape.tiny()) {
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

Result<void> check(std::string_view family, const RibbonShape& shape, Bytes table) {
  // Probes of a front stay inside whatever it says: the shape has its size.
  return detail::check_shards(family, 0, table.subspan(shape.front_bytes()), [&](Bytes shard) {
    return shape.tiny() ? shard.size() == shape.tiny_bytes() : check_shard(shape, shard);
  });
}

}  // namespace ribbon

namespace {

ribbon::Fingerprints fingerprints(const RibbonShape& shape) noexcept {
  return {ribbon::low_bits(shape.columns + (shape.wide != 0))};
}

}  // namespace

std::uint64_t RibbonLayout::shard_bytes(const RibbonShape& shape, std::uint64_t keys) noexcept {
  return shape.tiny() ? shape.tiny_bytes() : ribbon::plan_of(shape, keys).bytes;
}

void RibbonLayout::build_front(const RibbonShape& shape, std::byte* table, unsigned run_bits,
                               std::span<const StaticRun> runs, StaticScratch& scratch) {
  ribbon::build_front(shape, fingerprints(shape), table, run_bits, runs, scratch);
}

void RibbonLayout::build_shard(const RibbonShape& shape, std::span<const std::uint64_t> digests,
                               std::span<std::byte> out, StaticScratch& scratch) {
  ribbon::build_shard(shape, fingerprints(shape), digests, out, scratch);
}

bool RibbonLayout::dense(const RibbonShape& shape, const std::byte* table, std::uint32_t i, std::uint64_t h) noexcept {
  return ribbon::DenseLookup(shape, table, i, h).answer(shape);
}

Result<void> RibbonLayout::check(const RibbonShape& shape, Bytes table) { return ribbon::check(family, shape, table); }

}  // namespace perhaps
