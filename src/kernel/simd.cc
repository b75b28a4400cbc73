// The line and block kernels, written once with Highway and compiled for every instruction set it knows.
#include "kernel/table.h"
#include "perhaps/block_bloom.h"
#include "perhaps/cuckoo.h"
#include "perhaps/line_bloom.h"
#include "perhaps/ribbon.h"

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

#include "kernel/loops.inc"

using Words = hn::CappedTag<std::uint32_t, 8>;  // half a line, or a block
using Signed = hn::CappedTag<std::int32_t, 8>;
constexpr std::size_t kWidth = hn::MaxLanes(Words());

alignas(32) constexpr std::array<std::uint32_t, 8> kSalt = detail::kBlockSalt;
alignas(32) constexpr std::int32_t kLane[8] = {0, 1, 2, 3, 4, 5, 6, 7};

// x * salt for the lanes from `lane` on.
HWY_INLINE auto products(std::uint32_t x, std::size_t lane) {
  const Words d;
  return hn::Mul(hn::Set(d, x), hn::Load(d, kSalt.data() + lane));
}

// The bit that the top five bits of each product name.
template <class V>
HWY_INLINE auto bits(V product) {
  return hn::Shl(hn::Set(Words(), std::uint32_t{1}), hn::ShiftRight<27>(product));
}

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

using Eight = std::integral_constant<std::uint32_t, 8>;

template <class D, class V>
HWY_INLINE bool all_zero([[maybe_unused]] D d, V v) {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  return _mm256_testz_si256(v.raw, v.raw) != 0;  // one test and its flag, where Eq and AllTrue take three steps
#else
  return hn::AllTrue(d, hn::Eq(v, hn::Zero(d)));
#endif
}

// Are all bits of `want` in `have`? With half a line in one register this is one test and its carry.
template <class V>
HWY_INLINE bool covers(V have, V want) {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  return _mm256_testc_si256(have.raw, want.raw) != 0;
#else
  return all_zero(Words(), hn::AndNot(have, want));
#endif
}

// The probed bits that are not set, for the lanes from `lane` on. `probes` is a constant of the compiler for eight, the
// common case, which needs no lane masks.
template <class Probes>
HWY_INLINE auto line_missing(const std::uint32_t* line, std::uint64_t h, std::size_t lane, Probes probes) {
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

template <class Source, class Probes>
HWY_INLINE void line_query_as(LineShape shape, const std::byte* table, Source source, std::size_t count,
                              std::uint64_t* answers, bool ahead, Probes probes) {
  query_loop(
      source, count, answers, ahead, [=](std::uint64_t h) { return LineLayout::line_of(shape, h) * kLineBytes; },
      [=](std::uint64_t where) { detail::prefetch_read(table + where); },
      [=](std::uint64_t where, std::uint64_t h) HWY_ATTR {
        const Words d;
        const auto* line = reinterpret_cast<const std::uint32_t*>(table + where);
        if constexpr (kWidth == 8 && std::same_as<Probes, Eight>) {
          const auto product = products(static_cast<std::uint32_t>(h), 0);
          return covers(hn::IfThenElse(is_odd(product), hn::LoadU(d, line + 8), hn::LoadU(d, line)), bits(product));
        }
        auto missing = hn::Zero(d);
        for (std::size_t lane = 0; lane < 8; lane += kWidth)
          missing = hn::Or(missing, line_missing(line, h, lane, probes));
        return all_zero(d, missing);
      });
}

template <class Source, class Probes>
HWY_INLINE void line_insert_as(LineShape shape, std::byte* table, Source source, std::size_t count, bool ahead,
                               Probes probes) {
  insert_loop(
      source, count, ahead, [=](std::uint64_t h) { return LineLayout::line_of(shape, h) * kLineBytes; },
      [=](std::uint64_t where) { detail::prefetch_write(table + where); },
      [=](std::uint64_t where, std::uint64_t h) HWY_ATTR {
        const Words d;
        auto* line = reinterpret_cast<std::uint32_t*>(table + where);
        const auto set = [&](std::uint32_t* at, auto mask)
                             HWY_ATTR { hn::StoreU(hn::Or(hn::LoadU(d, at), mask), d, at); };
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
      });
}

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

template <class Source>
void block_query(BlockShape shape, const std::byte* table, Source source, std::size_t count, std::uint64_t* answers,
                 bool ahead) noexcept {
  query_loop(
      source, count, answers, ahead,
      [=](std::uint64_t h) { return BlockLayout::block_of(shape, h) * BlockLayout::kBlockBytes; },
      [=](std::uint64_t where) { detail::prefetch_read(table + where); },
      [=](std::uint64_t where, std::uint64_t h) HWY_ATTR {
        const Words d;
        const auto* block = reinterpret_cast<const std::uint32_t*>(table + where);
        if constexpr (kWidth == 8) return covers(hn::LoadU(d, block), bits(products(static_cast<std::uint32_t>(h), 0)));
        auto missing = hn::Zero(d);
        for (std::size_t at = 0; at < 8; at += kWidth) {
          missing =
              hn::Or(missing, hn::AndNot(hn::LoadU(d, block + at), bits(products(static_cast<std::uint32_t>(h), at))));
        }
        return all_zero(d, missing);
      });
}

template <class Source>
void block_insert(BlockShape shape, std::byte* table, Source source, std::size_t count, bool ahead) noexcept {
  insert_loop(
      source, count, ahead, [=](std::uint64_t h) { return BlockLayout::block_of(shape, h) * BlockLayout::kBlockBytes; },
      [=](std::uint64_t where) { detail::prefetch_write(table + where); },
      [=](std::uint64_t where, std::uint64_t h) HWY_ATTR {
        const Words d;
        auto* block = reinterpret_cast<std::uint32_t*>(table + where);
        for (std::size_t at = 0; at < 8; at += kWidth) {
          hn::StoreU(hn::Or(hn::LoadU(d, block + at), bits(products(static_cast<std::uint32_t>(h), at))), d,
                     block + at);
        }
      });
}

inline void portable_ribbon(const RibbonShape& shape, const std::byte* table, Digests source, std::size_t count,
                            std::uint64_t* answers, bool ahead) noexcept {
  kPortable.ribbon_query(shape, table, source, count, answers, ahead);
}
inline void portable_ribbon(const RibbonShape& shape, const std::byte* table, Integers source, std::size_t count,
                            std::uint64_t* answers, bool ahead) noexcept {
  kPortable.ribbon_query_integers(shape, table, source, count, answers, ahead);
}
#if HWY_TARGET == HWY_SCALAR
template <class Source>
void ribbon_query(const RibbonShape& shape, const std::byte* table, Source source, std::size_t count,
                  std::uint64_t* answers, bool ahead) noexcept {
  portable_ribbon(shape, table, source, count, answers, ahead);
}
#else
// Ribbon: columns in vectors of up to four words; two vectors at a time are folded into one of half words. The last
// vectors overlap the ones before instead of reaching beyond the block, so that no table needs padding and the number
// of steps does not depend on the block's width.
using Columns = hn::CappedTag<std::uint64_t, 4>;
using Halves = hn::Repartition<std::uint32_t, Columns>;
constexpr std::size_t kColumns = hn::MaxLanes(Columns());

// The products of columns at.., folded into the low half of each lane.
HWY_INLINE auto ribbon_sums(const std::byte* block, const std::byte* next, std::uint32_t at, std::uint64_t low,
                            std::uint64_t high) {
  const Columns d;
  const auto here = hn::LoadU(d, reinterpret_cast<const std::uint64_t*>(block) + at);
  const auto there = hn::LoadU(d, reinterpret_cast<const std::uint64_t*>(next) + at);
  const auto sum = hn::Xor(hn::And(here, hn::Set(d, low)), hn::And(there, hn::Set(d, high)));
  return hn::BitCast(Halves(), hn::Xor(sum, hn::ShiftRight<32>(sum)));
}

template <class V>
HWY_INLINE std::uint32_t sign_bits(V v) {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  return static_cast<std::uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(v.raw)));
#else
  std::uint8_t bits[8] = {};
  hn::StoreMaskBits(
      Halves(),
      hn::MaskFromVec(hn::BitCast(Halves(), hn::BroadcastSignBit(hn::BitCast(hn::RebindToSigned<Halves>(), v)))), bits);
  return bits[0];
#endif
}

template <class Pairs>
HWY_INLINE bool ribbon_equals(const std::byte* block, std::uint32_t width, unsigned slot, std::uint64_t coefficients,
                              std::uint32_t fingerprint, Pairs pairs) {
  const Halves half;
  constexpr std::uint32_t kMask = (1u << kColumns) - 1;
  const std::uint64_t low = coefficients << slot;
  const std::uint64_t high = coefficients >> 1 >> (63 - slot);
  const std::byte* next = slot == 0 ? block : block + 8 * width;
  const auto last = static_cast<std::uint32_t>(width - kColumns);
  std::uint32_t wrong = 0;
  for (std::uint32_t pair = 0; pair < pairs; ++pair) {
    const std::uint32_t first = std::min(static_cast<std::uint32_t>(2 * pair * kColumns), last);
    const std::uint32_t second = std::min(static_cast<std::uint32_t>((2 * pair + 1) * kColumns), last);
    auto sum =
        hn::ConcatEven(half, ribbon_sums(block, next, second, low, high), ribbon_sums(block, next, first, low, high));
    sum = hn::Xor(sum, hn::ShiftLeft<16>(sum));
    sum = hn::Xor(sum, hn::ShiftLeft<8>(sum));
    sum = hn::Xor(sum, hn::ShiftLeft<4>(sum));
    sum = hn::Xor(sum, hn::ShiftLeft<2>(sum));
    sum = hn::Xor(sum, hn::ShiftLeft<1>(sum));
    wrong |= sign_bits(sum) ^ ((fingerprint >> first & kMask) | (fingerprint >> second & kMask) << kColumns);
  }
  return wrong == 0;
}

template <class Source, class Pairs>
HWY_INLINE void ribbon_query_as(const RibbonShape& shape, const std::byte* table, Source source, std::size_t count,
                                std::uint64_t* answers, bool ahead, Pairs pairs) {
  query_loop(
      source, count, answers, ahead,
      [=](std::uint64_t h) { return RibbonLayout::place_in_shard(shape, table, h).packed; },
      [=](std::uint64_t where) {
        if (where != RibbonLayout::Place::kDense) RibbonLayout::prefetch_place(shape, table, {where});
      },
      [=](std::uint64_t where, std::uint64_t h) HWY_ATTR {
        if (where == RibbonLayout::Place::kDense) return RibbonLayout::dense(shape, table, h);
        const RibbonLayout::Place place{where};
        const std::uint64_t a = RibbonLayout::mixed_at(shape, table, place, h);
        return ribbon_equals(table + place.byte(), place.width(shape), place.slot(), RibbonLayout::coefficients_of(a),
                             RibbonLayout::fingerprint_of(a), pairs);
      });
}

template <class Source>
void ribbon_query(const RibbonShape& shape, const std::byte* table, Source source, std::size_t count,
                  std::uint64_t* answers, bool ahead) noexcept {
  if (shape.tiny() || shape.columns < kColumns) return portable_ribbon(shape, table, source, count, answers, ahead);
  const auto pairs =
      static_cast<std::uint32_t>((shape.columns + (shape.wide != 0) + 2 * kColumns - 1) / (2 * kColumns));
  pairs == 1 ? ribbon_query_as(shape, table, source, count, answers, ahead, std::integral_constant<std::uint32_t, 1>())
             : ribbon_query_as(shape, table, source, count, answers, ahead, pairs);
}
#endif

// A cuckoo place is eight multiplications of 32 bits, which vectors have: a quarter of the time of the scalar form.
// Tables of 2^32 buckets and more take that.
void cuckoo_place(const CuckooShape& shape, const std::uint64_t* digests, CuckooPlaces* out) noexcept {
#if HWY_TARGET == HWY_SCALAR
  kPortable.cuckoo_place(shape, digests, out);
#else
  if (shape.buckets >> 32 != 0) return kPortable.cuckoo_place(shape, digests, out);
  const hn::CappedTag<std::uint64_t, 8> d;
  using V = decltype(hn::Zero(d));
  const hn::Repartition<std::uint32_t, decltype(d)> d32;
  const hn::Repartition<std::int64_t, decltype(d)> signs;
  // Of the lower halves.
  const auto mul = [=](V a, V b) HWY_ATTR { return hn::MulEven(hn::BitCast(d32, a), hn::BitCast(d32, b)); };
  const std::uint64_t bits = shape.fingerprint_bits;
  const V buckets = hn::Set(d, shape.buckets);
  const V values = hn::Set(d, (std::uint64_t{1} << bits) - 1);
  const V width = hn::Set(d, bits);
  const V salt = hn::Set(d, std::uint64_t{CuckooLayout::kFingerprint});
  const V mix0 = hn::Set(d, std::uint64_t{CuckooLayout::kMix[0]});
  const V mix1 = hn::Set(d, std::uint64_t{CuckooLayout::kMix[1]});
  const V one = hn::Set(d, std::uint64_t{1});
  const auto store = [=](V bucket, std::uint64_t* to) HWY_ATTR {
    const V offset = mul(bucket, width);
    hn::Store(bits % 2 == 0 ? hn::ShiftRight<1>(offset) : offset, d, to);
  };
  for (std::size_t i = 0; i < 64; i += hn::Lanes(d)) {
    const V h = hn::LoadU(d, digests + i);
    const V high = hn::ShiftRight<32>(h);
    const V fingerprint = hn::Add(one, hn::ShiftRight<32>(mul(mul(hn::Xor(h, high), salt), values)));
    const V first = hn::ShiftRight<32>(hn::Add(mul(high, buckets), hn::ShiftRight<32>(mul(h, buckets))));
    const V z = mul(fingerprint, mix0);
    const V shifted = hn::BitCast(d, hn::ShiftRight<15>(hn::BitCast(d32, z)));
    const V sum = hn::ShiftRight<32>(mul(mul(hn::Xor(z, shifted), mix1), buckets));
    const V other = hn::Sub(sum, first);
    const V negative = hn::BitCast(d, hn::BroadcastSignBit(hn::BitCast(signs, other)));
    hn::Store(fingerprint, d, out->fingerprint + i);
    store(first, out->first + i);
    store(hn::Add(other, hn::And(negative, buckets)), out->second + i);
  }
#endif
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
constinit const Row kRow = {isa_name(),
                            line_query<Digests>,
                            line_query<Integers>,
                            line_insert<Digests>,
                            line_insert<Integers>,
                            block_query<Digests>,
                            block_query<Integers>,
                            block_insert<Digests>,
                            block_insert<Integers>,
                            ribbon_query<Digests>,
                            ribbon_query<Integers>,
                            cuckoo_place,
                            HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3};

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
