// The line and block kernels, written once with Highway and compiled for every instruction set it knows.
#include "kernel/table.h"
#include "perhaps/block_bloom.h"
#include "perhaps/line_bloom.h"

// SSSE3 adds nothing over SSE4 here, nor VBMI over AVX-512; SVE has no fixed width to cut a line into.
#define HWY_DISABLED_TARGETS (HWY_SSSE3 | HWY_AVX3_DL | HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/simd.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace perhaps::kernel::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using Wide = hn::CappedTag<std::uint64_t, 8>;
using WideSigned = hn::CappedTag<std::int64_t, 8>;
using Narrow = hn::CappedTag<std::uint32_t, 8>;

constexpr std::size_t kWide = hn::MaxLanes(Wide());
constexpr std::size_t kNarrow = hn::MaxLanes(Narrow());

alignas(64) constexpr std::uint64_t kShift[8] = {58, 52, 46, 40, 34, 28, 22, 16};
alignas(64) constexpr std::int64_t kLane[8] = {0, 1, 2, 3, 4, 5, 6, 7};
alignas(32) constexpr std::array<std::uint32_t, 8> kSalt = BlockLayout::kSalt;

// One round of eight probes: bit (x >> shift) mod 64 of each lane from `lane` on.
HWY_INLINE auto round_mask(std::uint64_t x, std::size_t lane) {
  const Wide d;
  const auto field = hn::And(hn::Shr(hn::Set(d, x), hn::Load(d, kShift + lane)), hn::Set(d, 63));
  return hn::Shl(hn::Set(d, std::uint64_t{1}), field);
}

// The same for the first `probes` lanes from `start` on, in turn.
HWY_INLINE auto part_mask(std::uint64_t x, std::size_t lane, std::uint64_t start, std::uint32_t probes) {
  const Wide d;
  const WideSigned s;
  const auto turn =
      hn::And(hn::Sub(hn::Load(s, kLane + lane), hn::Set(s, static_cast<std::int64_t>(start))), hn::Set(s, 7));
  const auto probed = hn::Lt(turn, hn::Set(s, static_cast<std::int64_t>(probes)));
  return hn::And(round_mask(x, lane), hn::BitCast(d, hn::VecFromMask(s, probed)));
}

HWY_INLINE auto line_mask(std::uint64_t x, std::uint64_t x2, std::size_t lane, std::uint32_t probes) {
  const std::uint64_t start = x >> 13 & 7;
  if (probes < 8) return part_mask(x, lane, start, probes);
  if (probes == 8) return round_mask(x, lane);
  return hn::Or(round_mask(x, lane), part_mask(x2, lane, start, probes - 8));
}

// `probes` is a constant of the compiler for eight, the common case, which needs no lane masks.
template <class Source, class Probes>
HWY_INLINE void line_query_as(LineShape shape, const std::byte* table, Source source, std::size_t count,
                              std::uint64_t* answers, bool ahead, Probes probes) {
  query_loop(
      source, count, answers, ahead, [=](std::uint64_t h) { LineLayout::prefetch(shape, table, h); },
      [=](std::uint64_t h) HWY_ATTR {
        const Wide d;
        const auto* line = reinterpret_cast<const std::uint64_t*>(table + LineLayout::line_of(shape, h) * kLineBytes);
        const std::uint64_t x = h * LineLayout::kSpread;
        const std::uint64_t x2 = x * LineLayout::kSecondRound;
        auto missing = hn::Zero(d);
        for (std::size_t lane = 0; lane < 8; lane += kWide) {
          missing = hn::Or(missing, hn::AndNot(hn::LoadU(d, line + lane), line_mask(x, x2, lane, probes)));
        }
        return hn::AllTrue(d, hn::Eq(missing, hn::Zero(d)));
      });
}

template <class Source, class Probes>
HWY_INLINE void line_insert_as(LineShape shape, std::byte* table, Source source, std::size_t count, bool ahead,
                               Probes probes) {
  insert_loop(
      source, count, ahead,
      [=](std::uint64_t h) { detail::prefetch_write(table + LineLayout::line_of(shape, h) * kLineBytes); },
      [=](std::uint64_t h) HWY_ATTR {
        const Wide d;
        auto* line = reinterpret_cast<std::uint64_t*>(table + LineLayout::line_of(shape, h) * kLineBytes);
        const std::uint64_t x = h * LineLayout::kSpread;
        const std::uint64_t x2 = x * LineLayout::kSecondRound;
        for (std::size_t lane = 0; lane < 8; lane += kWide) {
          hn::StoreU(hn::Or(hn::LoadU(d, line + lane), line_mask(x, x2, lane, probes)), d, line + lane);
        }
      });
}

using Eight = std::integral_constant<std::uint32_t, 8>;

template <class Source>
void line_query(LineShape shape, const std::byte* table, Source source, std::size_t count, std::uint64_t* answers,
                bool ahead) noexcept {
  shape.probes == 8 ? line_query_as(shape, table, source, count, answers, ahead, Eight())
                    : line_query_as(shape, table, source, count, answers, ahead, shape.probes);
}

template <class Source>
void line_insert(LineShape shape, std::byte* table, Source source, std::size_t count, bool ahead) noexcept {
  shape.probes == 8 ? line_insert_as(shape, table, source, count, ahead, Eight())
                    : line_insert_as(shape, table, source, count, ahead, shape.probes);
}

HWY_INLINE auto block_mask(std::uint64_t h, std::size_t word) {
  const Narrow d;
  const auto product = hn::Mul(hn::Set(d, static_cast<std::uint32_t>(h)), hn::Load(d, kSalt.data() + word));
  return hn::Shl(hn::Set(d, std::uint32_t{1}), hn::ShiftRight<27>(product));
}

template <class Source>
void block_query(BlockShape shape, const std::byte* table, Source source, std::size_t count, std::uint64_t* answers,
                 bool ahead) noexcept {
  query_loop(
      source, count, answers, ahead, [=](std::uint64_t h) { BlockLayout::prefetch(shape, table, h); },
      [=](std::uint64_t h) HWY_ATTR {
        const Narrow d;
        const auto* block =
            reinterpret_cast<const std::uint32_t*>(table + BlockLayout::block_of(shape, h) * BlockLayout::kBlockBytes);
        auto missing = hn::Zero(d);
        for (std::size_t at = 0; at < 8; at += kNarrow) {
          missing = hn::Or(missing, hn::AndNot(hn::LoadU(d, block + at), block_mask(h, at)));
        }
        return hn::AllTrue(d, hn::Eq(missing, hn::Zero(d)));
      });
}

template <class Source>
void block_insert(BlockShape shape, std::byte* table, Source source, std::size_t count, bool ahead) noexcept {
  insert_loop(
      source, count, ahead,
      [=](std::uint64_t h) {
        detail::prefetch_write(table + BlockLayout::block_of(shape, h) * BlockLayout::kBlockBytes);
      },
      [=](std::uint64_t h) HWY_ATTR {
        const Narrow d;
        auto* block =
            reinterpret_cast<std::uint32_t*>(table + BlockLayout::block_of(shape, h) * BlockLayout::kBlockBytes);
        for (std::size_t at = 0; at < 8; at += kNarrow) {
          hn::StoreU(hn::Or(hn::LoadU(d, block + at), block_mask(h, at)), d, block + at);
        }
      });
}

}  // namespace

constexpr const char* isa_name() {
  switch (HWY_TARGET) {
    case HWY_SSE4:
      return "sse4";
    case HWY_AVX2:
      return "avx2";
    case HWY_AVX3:
      return "avx512";
    case HWY_NEON:
      return "neon";
    default:
      return "baseline";
  }
}
extern const Row kRow;
constinit const Row kRow = {
    isa_name(),           line_query<Digests>,   line_query<Integers>,  line_insert<Digests>,  line_insert<Integers>,
    block_query<Digests>, block_query<Integers>, block_insert<Digests>, block_insert<Integers>};

}  // namespace perhaps::kernel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <vector>

namespace perhaps::kernel {

void add_simd_rows(std::vector<const Row*>& rows) {
  const auto add_if = [&, here = hwy::SupportedTargets()](std::int64_t target, const Row& row) {
    if ((here & target) != 0) rows.push_back(&row);
  };
#if HWY_TARGETS & HWY_SSE4
  add_if(HWY_SSE4, N_SSE4::kRow);
#endif
#if HWY_TARGETS & HWY_AVX2
  add_if(HWY_AVX2, N_AVX2::kRow);
#endif
#if HWY_TARGETS & HWY_AVX3
  add_if(HWY_AVX3, N_AVX3::kRow);
#endif
#if HWY_TARGETS & HWY_NEON
  add_if(HWY_NEON, N_NEON::kRow);
#endif
}

}  // namespace perhaps::kernel
#endif
