// The plan of a growing filter: how long the fingerprints of new keys are, step by step.
#include <algorithm>
#include <cassert>
#include <cmath>
#include <cstdio>
#include <string>

#include "perhaps/growing.h"
#include "sizing/shape_error.h"

namespace perhaps {
namespace {

using Grid = detail::GrowingGrid;

// What a filter is made for if nobody knows how many keys will come: at most 1260. Before that it has longer
// fingerprints than it would need, after that the plan begins.
constexpr std::uint32_t kUnknownStart = 84;
// And they have at least so many bits, bucket included. A fingerprint of 21 bits, which the rate of the first 1260 keys
// asks for at 1 %, fills four whole blocks with copies after 23 doublings, at 2.4e8 keys: then a part whose last blocks
// these are has no place for them.
constexpr std::uint32_t kUnknownBits = 25;
// The length changes in this step of a doubling, from which on a block has 44 slots: with fewer of them the bits of its
// buckets weigh more, and all slots can do with one bit less, as older fingerprints have just lost one.
constexpr std::uint32_t kStepOfChange = 5;
// For so many steps the plan spends 77 % of the rate, for as many more the rest: 22 doublings lead from nothing to 4e9
// keys, 44 to more than digests can tell apart.
constexpr std::uint32_t kPlanned = 22 * Grid::kStepsPerDoubling;

std::uint64_t room(std::uint32_t step) { return Grid(step, 2).room(); }

// Rates are numbers of 2^-63, and everything is done in integers: files depend on it.
class Plan {
 public:
  Plan(std::uint32_t first, std::uint64_t rate) noexcept
      : rate_(rate), start_(first == 0 ? kUnknownStart : first - 1), at_first_(first == 0 ? rate / 16 : rate / 2) {
    keys_ = room(start_);
    if (first == 0) bits_ = kUnknownBits;
    choose(first == 0 ? 0 : start_, start_, at_first_);
  }

  // Bits of new keys up to the step end(), and what all keys until then add up to.
  std::uint32_t bits() const noexcept { return bits_; }
  std::uint32_t end() const noexcept { return end_; }
  std::uint64_t keys_before() const noexcept { return before_; }
  std::uint64_t spent_before() const noexcept { return spent_before_; }

  // The next length.
  void advance() noexcept {
    const std::uint32_t from = end_ + 1;
    std::uint32_t to = from / Grid::kStepsPerDoubling * Grid::kStepsPerDoubling + kStepOfChange - 1;
    if (to < from) to += Grid::kStepsPerDoubling;
    before_ = room(end_);
    keys_ = room(to) - before_;
    choose(from, to, at_first_ + share(to - start_));
  }

 private:
  // Of the rate that is left for growing, after so many steps.
  std::uint64_t share(std::uint32_t steps) const noexcept {
    const std::uint64_t left = rate_ - at_first_;
    const std::uint64_t percents = steps <= kPlanned ? 77 * steps : 77 * kPlanned + 23 * (steps - kPlanned);
    return left / (100 * kPlanned) * std::min<std::uint64_t>(percents, 100 * kPlanned);
  }
  void choose(std::uint32_t from, std::uint32_t to, std::uint64_t budget) noexcept {
    const std::uint32_t most =
        std::min(GrowingShape::kMaxFingerprint, Grid::bits_of(from) + GrowingShape::kMaxSlotBits - 1);
    bits_ = std::min(std::max(bits_, Grid::bits_of(to) + 1), GrowingShape::kMaxFingerprint);
    while (bits_ < most && (keys_ >= std::uint64_t{1} << bits_ || spent_ + (keys_ << (63 - bits_)) > budget)) ++bits_;
    spent_before_ = spent_;
    spent_ = std::min(spent_ + (keys_ << (63 - bits_)), std::uint64_t{1} << 63);
    end_ = to;
  }

  std::uint64_t rate_;
  std::uint32_t start_;
  std::uint64_t at_first_;
  std::uint64_t keys_ = 0;
  std::uint64_t before_ = 0;
  std::uint64_t spent_ = 0;
  std::uint64_t spent_before_ = 0;
  std::uint32_t bits_ = 0;
  std::uint32_t end_ = 0;
};

// Bits of keys that are inserted in that step.
std::uint32_t bits_in(std::uint32_t first, std::uint64_t rate, std::uint32_t step) noexcept {
  Plan plan(first, rate);
  while (plan.end() < step) plan.advance();
  return plan.bits();
}

GrowingShape shaped(std::uint32_t first, std::uint32_t step, std::uint64_t rate) noexcept {
  GrowingShape shape;
  shape.first = first;
  shape.step = step;
  shape.rate = rate;
  shape.width = bits_in(first, rate, step) + 1 - Grid::bits_of(step);
  const std::uint32_t before = step == 0 ? 0 : step - 1;
  shape.width_before = bits_in(first, rate, before) + 1 - Grid::bits_of(before);
  return shape;
}

std::uint32_t step_for(std::uint64_t keys) noexcept {
  GrowingShape shape;
  while (shape.step < GrowingShape::kMaxStep && shape.capacity() < keys) ++shape.step;
  return shape.step;
}

// Slots as wide as fit, but 2 bits in any case, and the rate that the plan would use them for.
GrowingShape within(std::uint64_t keys, double bytes) noexcept {
  const std::uint32_t step = step_for(keys);
  const std::uint32_t bucket_bits = Grid::bits_of(step);
  std::uint32_t width = std::min(GrowingShape::kMaxSlotBits, GrowingShape::kMaxFingerprint + 1 - bucket_bits);
  const auto needed = [&] { return static_cast<double>(GrowingShape::kHeadBytes + Grid(step, width).bytes()); };
  while (width > 2 && needed() > bytes) --width;
  const std::uint64_t most = (std::uint64_t{1} << 63) - 1;
  const std::uint64_t half =
      room(step) >= std::uint64_t{1} << (bucket_bits + width - 2) ? most / 2 : room(step) << (64 - bucket_bits - width);
  return shaped(step + 1, step, half * 2);
}

}  // namespace

GrowingShape GrowingShape::for_keys(const Request& r) {
  if (r.max_bytes != 0) return within(r.keys, static_cast<double>(r.max_bytes));
  if (r.bits_per_key != 0) return within(r.keys, static_cast<double>(r.keys) * r.bits_per_key / 8);
  assert(r.fpr > 0 && r.fpr < 1);
  const auto rate = static_cast<std::uint64_t>(std::clamp(r.fpr, 1e-12, 0.999) * 0x1p63);
  if (r.keys == 0) return shaped(0, 0, rate);
  const std::uint32_t step = step_for(r.keys);
  return shaped(step + 1, step, rate);
}

double GrowingShape::fpr(double keys) const {
  Plan plan(first, rate);
  while (plan.end() < kMaxStep && static_cast<double>(room(plan.end())) < keys) plan.advance();
  const double here = std::max(keys - static_cast<double>(plan.keys_before()), 0.0);
  const double sum = static_cast<double>(plan.spent_before()) * 0x1p-63 + std::ldexp(here, -int(plan.bits()));
  return std::min(sum, 1.0);
}

std::optional<GrowingShape> GrowingShape::next() const {
  if (step >= kMaxStep) return std::nullopt;
  const GrowingShape shape = shaped(first, step + 1, rate);
  if (!shape.valid()) return std::nullopt;
  return shape;
}

Facts GrowingShape::facts() const {
  char limit[32];
  std::snprintf(limit, sizeof limit, "%.6g", static_cast<double>(rate) * 0x1p-63);
  const detail::GrowingGrid now = grid();
  return {{"buckets", std::to_string(std::uint64_t{1} << now.bucket_bits)},
          {"bits", std::to_string(width) + " per slot"},
          {"parts", std::to_string(now.parts)},
          {"fpr limit", limit}};
}

Result<GrowingShape> GrowingShape::from(std::span<const std::uint64_t> numbers) {
  if (numbers.size() != 3) return wrong_count("growing", 3, numbers.size());
  if (numbers[0] > kMaxStep + 1) return out_of_range("growing", "as the first step, 704 at most expected", numbers[0]);
  if (numbers[1] > kMaxStep) return out_of_range("growing", "steps, 703 at most expected", numbers[1]);
  if (numbers[2] < 1 || numbers[2] >> 63 != 0) return out_of_range("growing", "as a rate times 2^63", numbers[2]);
  if (numbers[0] > numbers[1] + 1)
    return out_of_range("growing", "as the first step: it is above the step", numbers[0]);
  const GrowingShape shape =
      shaped(static_cast<std::uint32_t>(numbers[0]), static_cast<std::uint32_t>(numbers[1]), numbers[2]);
  if (!shape.valid()) return out_of_range("growing", "steps: too many for the bits of a digest", numbers[1]);
  return shape;
}

}  // namespace perhaps
