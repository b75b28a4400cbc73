// Building the table of a ribbon (perhaps/ribbon.h), for filters and maps: `Keys` says what its equations say
// (ribbon_band.h).
#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "build/ribbon_band.h"
#include "build/ribbon_dense.h"
#include "kernel/instruction_set.h"
#include "perhaps/ribbon.h"

namespace perhaps::ribbon {

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

Plan plan_of(const RibbonShape& shape, std::uint64_t keys) noexcept;
// Of a table without fronts and layers.
Dense tiny_dense(const RibbonShape& shape) noexcept;

constexpr std::uint64_t inverse_of(std::uint64_t odd) noexcept {
  std::uint64_t inverse = odd;  // right in 3 bits; each step doubles them
  for (int i = 0; i < 5; ++i) inverse *= 2 - odd * inverse;
  return inverse;
}

// Scratch memory is counted in words. A row is not always two of them: 64-bit integers may be aligned to 4 bytes.
template <class Keys>
using Slot = Row<std::uint64_t, typename Keys::Result>;
template <class Keys>
constexpr std::uint64_t words_of_rows(std::uint64_t rows) noexcept {
  return (rows * sizeof(Slot<Keys>) + 7) / 8;
}
template <class Keys>
constexpr std::uint64_t words_of_keys(std::uint64_t keys) noexcept {
  return keys * sizeof(typename Keys::Record) / 8;
}
// The loops for them.
template <class Keys>
const auto& solver() noexcept {
  if constexpr (std::same_as<Keys, Fingerprints>) {
    return kernel::active().ribbon_solver;
  } else if constexpr (std::same_as<Keys, Values<std::uint64_t>>) {
    return kernel::active().ribbon_map_solver;
  } else {
    return kernel::active().ribbon_wide_map_solver;
  }
}

// A shard, the plan for it, and memory to work in.
template <class Keys>
struct Work {
  using Record = typename Keys::Record;
  Keys of;
  Plan plan;
  std::span<const Record> digests;
  std::span<std::byte> out;
  Slot<Keys>* rows;
  Record* left;  // the keys that no layer has so far, mixed
  std::size_t left_count;

  template <class Band, class From>
  void band(const RibbonShape& shape, std::uint32_t i, From from, std::span<const Record> keys,
            void (*band_all)(Band&) noexcept) noexcept {
    const Layer& layer = plan.layer[i];
    Band band(of, layer, from, keys, out.data() + std::uint64_t{layer.codes_at} * 8, rows, left);
    band_all(band);
    left_count = band.bumped_count();
    const Banding<std::uint64_t, typename Keys::Result> banding{{rows, static_cast<std::size_t>(64 * layer.blocks())}};
    banding.solve(shape.columns, layer.narrow, out.data() + std::uint64_t{layer.blocks_at} * 8);
  }
};

template <class Keys>
bool try_seed(const RibbonShape& shape, Work<Keys>& work, std::uint32_t seed) noexcept {
  const Plan& plan = work.plan;
  const std::span<std::byte> out = work.out;
  std::uint32_t next = 0;
  if (plan.layers != 0 && seed == 0) {
    work.band(shape, next++, FromDigests{}, work.digests, solver<Keys>().band_digests);
  } else {
    work.left_count = work.digests.size();
    for (std::size_t i = 0; i < work.left_count; ++i) {
      const auto& key = work.digests[i];
      work.left[i] = Keys::renamed(key, RibbonLayout::mixed(build::digest_of(key), seed));
    }
  }
  for (; next < plan.layers; ++next) {
    const std::uint64_t factor = RibbonLayout::kLayer[next];
    const std::span positions(work.left, work.left_count);
    for (auto& p : positions) p = Keys::renamed(p, build::digest_of(p) * factor);
    std::sort(positions.begin(), positions.end());
    work.band(shape, next, FromPositions{inverse_of(factor)}, positions, solver<Keys>().band_positions);
  }
  Dense dense{plan.dense_at * 64, static_cast<std::uint32_t>(plan.dense), static_cast<std::uint32_t>(plan.extra), 0, 0};
  if (!solve_dense<Keys>(shape, work.of, {work.left, work.left_count}, &dense, out)) return false;
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

// Without a seed there was no solution. False: nor with any of those tried.
template <class Keys>
bool start_over(const RibbonShape& shape, Work<Keys>& work) noexcept {
  std::uint64_t all = work.digests.size();
  for (const auto& key : work.digests) {
    all = RibbonLayout::mixed(all ^ build::digest_of(key), 0) * RibbonLayout::kLayer[0];
  }
  for (std::uint32_t i = 0; i < 64; ++i) {
    const auto seed = static_cast<std::uint32_t>(RibbonLayout::dense_coefficients(all, i, 0) >> 32) | 1;
    std::fill(work.out.begin(), work.out.end(), std::byte{0});
    if (try_seed(shape, work, seed)) return true;
  }
  std::fill(work.out.begin(), work.out.end(), std::byte{0});
  work.out[0] = std::byte{1};
  return false;
}

// RibbonLayout::build_front for such keys; `Run` is a StaticRun of their records.
template <class Keys, class Run>
void build_front(const RibbonShape& shape, Keys of, std::byte* table, unsigned run_bits, std::span<const Run> runs,
                 StaticScratch& scratch) {
  constexpr std::size_t kRunsTogether = RibbonLayout::kRunsTogether;
  using Record = typename Keys::Record;
  const RibbonFront front = shape.front(0, 0);
  const std::uint64_t starts = front.starts >> run_bits;
  const std::uint64_t last_run = (std::uint64_t{1} << run_bits) - 1;
  const Layer layer{static_cast<std::uint32_t>(starts), 0, 0, 0};
  struct RunWork {
    std::size_t taken;
    Slot<Keys>* rows;
    Record* left;
    std::optional<FrontBand<Keys>> band;
  };
  std::array<RunWork, kRunsTogether> works;
  FrontBands<Keys> bands;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const auto [number, digests, left] = runs[i];
    RunWork& work = works[i];
    std::byte* const codes = table + front.codes_at + number * (starts / (4 * RibbonFront::kBucket));
    // Ribbons do not reach from run to run: the last bucket is bumped, except the last of all.
    work.taken = digests.size();
    if (number != last_run) {
      const std::uint64_t last = starts - RibbonFront::kBucket;
      const auto end = std::partition_point(digests.begin(), digests.end(), [&](const Record& r) {
        return detail::scale(build::digest_of(r) << run_bits, starts) < last;
      });
      work.taken = static_cast<std::size_t>(end - digests.begin());
      codes[last / (4 * RibbonFront::kBucket)] |= std::byte{3 << 6};
    }
    const std::uint64_t left_at = words_of_rows<Keys>(starts + 64);
    const auto room = scratch.room<std::uint64_t>(i, left_at + words_of_keys<Keys>(digests.size()));
    work.rows = reinterpret_cast<Slot<Keys>*>(room.data());
    work.left = reinterpret_cast<Record*>(room.data() + left_at);
    bands.runs[i] =
        &work.band.emplace(of, layer, FromFront{run_bits}, digests.first(work.taken), codes, work.rows, work.left);
  }
  if (runs.size() == kRunsTogether) {
    solver<Keys>().band_fronts(bands);
  } else {
    for (std::size_t i = 0; i < runs.size(); ++i) solver<Keys>().band_front(*bands.runs[i]);
  }
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const auto [number, digests, left] = runs[i];
    const RunWork& work = works[i];
    const std::uint64_t first = number * (starts / 64);
    const std::uint64_t blocks = starts / 64 + (number == last_run ? 1 : 0);
    const Banding<std::uint64_t, typename Keys::Result> banding{{work.rows, static_cast<std::size_t>(64 * blocks)}};
    banding.solve(shape.columns, front.narrow - std::min(front.narrow, first),
                  table + front.blocks_at + 8 * front.words(first, shape.columns));
    const std::span<const Record> bumped(work.left, work.band->bumped_count());
    left->reserve(bumped.size() + digests.size() - work.taken);
    left->assign(bumped.begin(), bumped.end());
    const auto others = digests.subspan(work.taken);
    left->insert(left->end(), others.begin(), others.end());
  }
}

// RibbonLayout::build_shard for such keys. False: there was no solution, and the shard says `every`.
template <class Keys>
bool build_shard(const RibbonShape& shape, Keys of, std::span<const typename Keys::Record> digests,
                 std::span<std::byte> out, StaticScratch& scratch) {
  using Record = typename Keys::Record;
  if (shape.tiny()) {
    const auto all = scratch.room<Record>(0, digests.size());
    std::transform(digests.begin(), digests.end(), all.begin(),
                   [](const Record& r) { return Keys::renamed(r, RibbonLayout::mixed(build::digest_of(r), 0)); });
    Dense dense = tiny_dense(shape);
    const bool solved = solve_dense<Keys>(shape, of, all, &dense, out);
    out[0] = static_cast<std::byte>(solved ? dense.seed : RibbonLayout::kMaxSeeds);
    out[1] = static_cast<std::byte>(dense.extra_seed);
    return solved;
  }
  const Plan plan = plan_of(shape, digests.size());
  const std::uint64_t slots = plan.layers == 0 ? 0 : 64 * plan.layer[0].blocks();
  const std::uint64_t left_at = words_of_rows<Keys>(slots);
  const auto room = scratch.room<std::uint64_t>(0, left_at + words_of_keys<Keys>(digests.size()));
  Work<Keys> work{of,
                  plan,
                  digests,
                  out,
                  reinterpret_cast<Slot<Keys>*>(room.data()),
                  reinterpret_cast<Record*>(room.data() + left_at),
                  0};
  return try_seed(shape, work, 0) || start_over(shape, work);
}

// Whatever the bytes say, a probe of a table that passes stays inside it.
Result<void> check(std::string_view family, const RibbonShape& shape, Bytes table);

}  // namespace perhaps::ribbon
