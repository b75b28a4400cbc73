// The batch kernels of the line filter (perhaps/line_bloom.h).
#include "perhaps/line_bloom.h"

#include "kernel/instruction_set.h"
#include "kernel/targets.h"

#if PERHAPS_SIMD
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/line.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#if PERHAPS_ON_TARGET
HWY_BEFORE_NAMESPACE();
namespace perhaps::kernel::HWY_NAMESPACE {
namespace {

#include "kernel/lanes.inc"

using Eight = std::integral_constant<std::uint32_t, 8>;
alignas(32) constexpr std::int32_t kLane[8] = {0, 1, 2, 3, 4, 5, 6, 7};

// Which of a lane's two words is meant: the sixth bit from the top.
template <class V>
HWY_INLINE auto is_odd(V product) {
  const Words d;
  return hn::MaskFromVec(hn::BitCast(d, hn::BroadcastSignBit(hn::BitCast(Signed(), hn::ShiftLeft<5>(product)))));
}

// All ones in the lanes that a round of `probes` from `start` on probes.
HWY_INLINE auto probed(std::size_t lane, std::uint32_t start, std::uint32_t probes) {
  const Signed s;
  const auto turn =
      hn::And(hn::Sub(hn::Load(s, kLane + lane), hn::Set(s, static_cast<std::int32_t>(start))), hn::Set(s, 7));
  return hn::BitCast(Words(), hn::VecFromMask(s, hn::Lt(turn, hn::Set(s, static_cast<std::int32_t>(probes)))));
}

// The probed bits that are not set, for the lanes from `lane` on. `probes` is a compile-time constant for eight, the
// common case, which needs no lane masks.
template <class Probes>
HWY_INLINE auto missing_in(const std::uint32_t* line, std::uint64_t h, std::size_t lane, Probes probes) {
  const Words d;
  const auto even = hn::LoadU(d, line + lane);
  const auto odd = hn::LoadU(d, line + 8 + lane);
  const auto first = products(static_cast<std::uint32_t>(h), lane);
  auto missing = hn::AndNot(hn::IfThenElse(is_odd(first), odd, even), bits(first));
  if (probes < 8) missing = hn::And(missing, probed(lane, LineLayout::start_of(h), probes));
  if (probes > 8) {
    const auto second = products(LineLayout::second_round_of(h), lane);
    const auto also = hn::AndNot(hn::IfThenElse(is_odd(second), odd, even), bits(second));
    missing = hn::Or(missing, hn::And(also, probed(lane, LineLayout::start_of(h), probes - 8)));
  }
  return missing;
}

template <class Probes>
HWY_INLINE void query_as(LineShape shape, const std::byte* table, const detail::Batch<>& batch, std::uint64_t* answers,
                         Probes probes) {
  const auto covered = [=](std::uint64_t where, std::uint64_t h) HWY_ATTR {
    const Words d;
    const auto* line = reinterpret_cast<const std::uint32_t*>(table + where);
    if constexpr (kWidth == 8 && std::same_as<Probes, Eight>) {
      const auto product = products(static_cast<std::uint32_t>(h), 0);
      return covers(hn::IfThenElse(is_odd(product), hn::LoadU(d, line + 8), hn::LoadU(d, line)), bits(product));
    }
    auto missing = hn::Zero(d);
    for (std::size_t lane = 0; lane < 8; lane += kWidth) missing = hn::Or(missing, missing_in(line, h, lane, probes));
    return all_zero(d, missing);
  };
  detail::query_keys<64, Outline>(
      batch, answers, shape.bytes(),
      detail::Steps{[=](std::uint64_t h) { return LineLayout::line_of(shape, h) * kLineBytes; },
                    [=](std::uint64_t where) { detail::prefetch_read(table + where); }, covered});
}

template <class Probes>
HWY_INLINE std::size_t insert_as(LineShape shape, std::byte* table, const detail::Batch<>& batch, Probes probes) {
  const auto insert = [=](std::uint64_t where, std::uint64_t h) HWY_ATTR {
    const Words d;
    auto* line = reinterpret_cast<std::uint32_t*>(table + where);
    const auto set = [&](std::uint32_t* at, auto mask) HWY_ATTR { hn::StoreU(hn::Or(hn::LoadU(d, at), mask), d, at); };
    for (std::size_t lane = 0; lane < 8; lane += kWidth) {
      const auto first = products(static_cast<std::uint32_t>(h), lane);
      auto mask = bits(first);
      if (probes < 8) mask = hn::And(mask, probed(lane, LineLayout::start_of(h), probes));
      auto even = hn::IfThenZeroElse(is_odd(first), mask);
      auto odd = hn::IfThenElseZero(is_odd(first), mask);
      if (probes > 8) {
        const auto second = products(LineLayout::second_round_of(h), lane);
        mask = hn::And(bits(second), probed(lane, LineLayout::start_of(h), probes - 8));
        even = hn::Or(even, hn::IfThenZeroElse(is_odd(second), mask));
        odd = hn::Or(odd, hn::IfThenElseZero(is_odd(second), mask));
      }
      set(line + lane, even);
      set(line + 8 + lane, odd);
    }
  };
  return detail::insert_keys<64, Outline>(
      batch, shape.bytes(),
      detail::Steps{[=](std::uint64_t h) { return LineLayout::line_of(shape, h) * kLineBytes; },
                    [=](std::uint64_t where) { detail::prefetch_write(table + where); }, insert});
}

void query(const LineShape& shape, const std::byte* table, const detail::Batch<>& batch,
           std::uint64_t* answers) noexcept {
  shape.probes == 8 ? query_as(shape, table, batch, answers, Eight())
                    : query_as(shape, table, batch, answers, shape.probes);
}
std::size_t insert(const LineShape& shape, std::byte* table, const detail::Batch<>& batch) noexcept {
  return shape.probes == 8 ? insert_as(shape, table, batch, Eight()) : insert_as(shape, table, batch, shape.probes);
}

void simd_kernels(InstructionSet& set) {
  set.line_query = query;
  set.line_insert = insert;
}

}  // namespace
}  // namespace perhaps::kernel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
#endif

#if !PERHAPS_SIMD || HWY_ONCE
namespace perhaps::kernel {
namespace {

void portable_kernels(InstructionSet& set) {
  set.line_query = detail::query_by_key<LineLayout, 64>;
  set.line_insert = detail::insert_by_key<LineLayout, 64>;
}

}  // namespace

void line_kernels(Target target, InstructionSet& set) { PERHAPS_FOR_TARGET(target, set) }

}  // namespace perhaps::kernel
#endif
