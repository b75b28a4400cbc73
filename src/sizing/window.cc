// The model of the window filter (window.h) and the choice of a shape by it.
#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>

#include "perhaps/window.h"
#include "sizing/model.h"

namespace perhaps {
namespace {

using namespace model;

// Inclusion-exclusion over the lanes of one row, as in bloom.cc. Long double: the terms are of order one and cancel.
double row_fpr(double lines, std::uint32_t probes, double keys) {
  long double rate = 0;
  for (std::uint32_t set = 0; set < 1u << probes; ++set) {
    long double miss = 1;
    long double sign = 1;
    for (std::uint32_t lane = 0; lane < probes; ++lane) {
      if ((set >> lane & 1) == 0) continue;
      const auto width = WindowLayout::lane_begin(lane + 1, probes) - WindowLayout::lane_begin(lane, probes);
      miss *= 1 - 1.0L / width;
      sign = -sign;
    }
    rate += sign * std::exp(keys * std::log1p(-(1 - miss) / lines));
  }
  return static_cast<double>(std::clamp(rate, 0.0L, 1.0L));
}

// A row is a cache miss more for each key. It must save this share of the memory.
constexpr double kRowIsWorth = 1.06;

WindowShape sized(const Request& r) {
  const double keys = static_cast<double>(std::max<std::uint64_t>(r.keys, 1));
  WindowShape best;
  double best_cost = kInfinity;
  const bool by_memory = r.max_bytes != 0 || r.bits_per_key != 0;
  const double bytes = r.max_bytes != 0 ? static_cast<double>(r.max_bytes) : std::ceil(keys * r.bits_per_key / 8);
  const double fpr = by_memory ? 0 : std::clamp(r.fpr, 1e-12, 0.999);
  assert(by_memory || (r.fpr > 0 && r.fpr < 1));
  double worth = 1;
  for (std::uint32_t rows = 1; rows <= WindowShape::kMaxRows; ++rows, worth *= kRowIsWorth) {
    for (std::uint32_t probes = 1; probes <= WindowShape::kMaxProbes; ++probes) {
      WindowShape shape{.rows = rows, .probes = probes};
      double cost = 0;
      if (by_memory) {
        const double lines = std::floor((bytes - static_cast<double>(WindowShape::kHeadBytes)) / (64.0 * rows));
        if (lines < 1 && rows > 1) break;
        shape.lines = static_cast<std::uint64_t>(std::clamp(lines, 1.0, static_cast<double>(WindowShape::kMaxLines)));
        cost = shape.fpr(keys * worth);
      } else {
        const std::uint64_t most =
            std::min(WindowShape::kMaxLines, static_cast<std::uint64_t>(std::min(best_cost / worth / rows, 1e15)) + 1);
        const auto good = [&](std::uint64_t lines) {
          shape.lines = lines;
          return shape.fpr(keys) <= fpr;
        };
        if (!good(most)) continue;
        shape.lines = first_good(1, most, good);
        cost = static_cast<double>(shape.lines * rows) * worth;
      }
      if (cost < best_cost) best_cost = cost, best = shape;
    }
  }
  if (best_cost == kInfinity)  // more keys than the largest filter is good for
    best = {.lines = WindowShape::kMaxLines, .rows = WindowShape::kMaxRows, .probes = 4};
  return best;
}

}  // namespace

double WindowShape::generation_fpr(double keys) const {
  return std::pow(row_fpr(static_cast<double>(lines), probes, keys), rows);
}

double WindowShape::fpr(double keys) const {
  return -std::expm1(static_cast<double>(kRemembered) * std::log1p(-generation_fpr(keys / kWindow))) +
         equal_digests(keys);
}

double WindowShape::keys_for(double wanted) const {
  return keys_until(wanted, [this](double keys) { return fpr(keys); });
}

WindowShape WindowShape::for_keys(const Request& request) {
  const std::uint64_t step = std::max<std::uint64_t>(1, request.keys / kWindow + (request.keys % kWindow != 0));
  // Generations are whole: the rate is that of the keys that are really remembered.
  Request whole = request;
  if (request.max_bytes == 0 && request.bits_per_key == 0) whole.keys = WindowShape{.step = step}.window();
  WindowShape shape = sized(whole);
  shape.step = step;
  return shape;
}

WindowShape WindowShape::for_ticks(std::uint64_t ticks, const Request& request) {
  WindowShape shape = sized(request);
  shape.step = std::max<std::uint64_t>(1, ticks / kWindow + (ticks % kWindow != 0));
  shape.by_time = 1;
  return shape;
}

Facts WindowShape::facts() const {
  return {{"window", std::to_string(window()) + (by_time != 0 ? " ticks" : " keys")},
          {"lines", std::to_string(rows) + " rows of " + std::to_string(lines)}};
}

Result<WindowShape> WindowShape::from(std::span<const std::uint64_t> numbers) {
  const auto bad = [](const char* what) { return Error{Errc::bad_parameter, std::string("window: ") + what}; };
  if (numbers.size() != 5) return bad("there must be five parameters");
  if (numbers[0] < 1 || numbers[0] > kMaxLines) return bad("lines must be 1 to 2^50");
  if (numbers[1] < 1 || numbers[1] > kMaxRows) return bad("rows must be 1 to 8");
  if (numbers[2] < 1 || numbers[2] > kMaxProbes) return bad("probes must be 1 to 7");
  if (numbers[3] < 1) return bad("a generation must be 1 or more keys or ticks");
  if (numbers[4] > 1) return bad("by_time must be 0 or 1");
  return WindowShape{numbers[0], static_cast<std::uint32_t>(numbers[1]), static_cast<std::uint32_t>(numbers[2]),
                     numbers[3], static_cast<std::uint32_t>(numbers[4])};
}

}  // namespace perhaps
