#include "perhaps/window.h"

#include <bit>
#include <cmath>
#include <limits>

namespace perhaps {
namespace {

using L = WindowLayout;

// The distinct keys that would set `share` of the bits of a row.
double keys_at(WindowShape shape, double share) {
  double touch = 0;  // the share of a line's cells that one key sets, averaged as a miss: lanes differ by one cell
  for (std::uint32_t i = 0; i < shape.probes; ++i) {
    const double width = L::lane_begin(i + 1, shape.probes) - L::lane_begin(i, shape.probes);
    touch += 1 / width / shape.probes;
  }
  if (share >= 1) return std::numeric_limits<double>::infinity();
  return std::log1p(-share) / std::log1p(-touch / static_cast<double>(shape.lines));
}

}  // namespace

WindowState state_of(WindowShape shape, Bytes table) {
  assert(table.size() >= shape.bytes());
  WindowState state;
  state.generation = L::generation_of(table.data());
  state.epoch = detail::load<std::uint64_t>(table.data() + L::kEpoch);
  double none = 0;  // log of: no generation answers
  for (std::uint64_t age = 0; age < 8; ++age) {
    const std::byte* at = table.data() + L::kInserted + 8 * ((state.generation - age) % 8);
    state.inserted[age] = detail::load<std::uint64_t>(at);
    if (state.inserted[age] != 0) none += std::log1p(-shape.generation_fpr(static_cast<double>(state.inserted[age])));
  }
  state.fpr = std::abs(std::expm1(none));  // of an empty one 0, not -0
  return state;
}

Condition condition_of(WindowShape shape, Bytes table) {
  assert(table.size() >= shape.bytes());
  const std::uint64_t generation = L::generation_of(table.data());
  std::array<double, 8> all_rows;
  std::array<double, 8> ones{};
  all_rows.fill(1);
  const double lines = static_cast<double>(shape.lines);
  for (std::uint32_t row = 0; row < shape.rows; ++row) {
    std::array<double, 8> rate{};
    for (std::uint64_t n = 0; n < shape.lines; ++n) {
      const std::byte* line = table.data() + WindowShape::kHeadBytes + (row * shape.lines + n) * kLineBytes;
      const std::uint32_t live = L::live(generation, line[L::kStamp]);
      std::array<double, 8> product;
      product.fill(1);
      for (std::uint32_t lane = 0; lane < shape.probes; ++lane) {
        const std::uint32_t begin = L::lane_begin(lane, shape.probes);
        const std::uint32_t end = L::lane_begin(lane + 1, shape.probes);
        std::array<std::uint32_t, 8> set{};
        for (std::uint32_t cell = begin; cell < end; ++cell) {
          const std::uint32_t bits = static_cast<std::uint32_t>(line[cell]) & live;
          for (std::uint32_t p = 0; p < 8; ++p) set[p] += bits >> p & 1;
        }
        for (std::uint32_t p = 0; p < 8; ++p) {
          product[p] *= static_cast<double>(set[p]) / (end - begin);
          ones[p] += set[p];
        }
      }
      for (std::uint32_t p = 0; p < 8; ++p) rate[p] += product[p] / lines;
    }
    for (std::uint32_t p = 0; p < 8; ++p) all_rows[p] *= rate[p];
  }
  Condition c;
  double none = 0;
  for (std::uint32_t p = 0; p < 8; ++p) {
    const double share = ones[p] / (lines * shape.rows * L::kCells);
    c.fill += share / 8;
    c.keys += keys_at(shape, share);
    none += std::log1p(-std::min(all_rows[p], 1 - 0x1p-53));
  }
  c.fpr = std::abs(std::expm1(none));
  return c;
}

}  // namespace perhaps
