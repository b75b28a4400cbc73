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
      source, count, answers, ahead, shape.bytes(),
      [=](std::uint64_t h) { return LineLayout::line_of(shape, h) * kLineBytes; },
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
      source, count, ahead, shape.bytes(), [=](std::uint64_t h) { return LineLayout::line_of(shape, h) * kLineBytes; },
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
      source, count, answers, ahead, shape.bytes(),
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
      source, count, ahead, shape.bytes(),
      [=](std::uint64_t h) { return BlockLayout::block_of(shape, h) * BlockLayout::kBlockBytes; },
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
// Ribbon. Keys go through three steps, kGroup of them at a time:
//   place   their blocks in the first front, and their equations
//   decode  one group later: bumped keys get their blocks behind the front; what a key wants of its two blocks
//   probe   the blocks are looked at, kAhead groups after `place`
// The blocks of a group are asked for one by one, between the steps of two others: all at once they are more than
// memory takes, and then it has nothing to do (1.4 times the time at 1e8 keys). A prefetch that finds all buffers for
// misses taken is forgotten, so a block is asked for two or three times (0.75 of the time). The columns of a key are
// multiplied in vectors of up to four.
using Lanes = hn::CappedTag<std::uint64_t, 4>;
using Halves = hn::Repartition<std::uint32_t, Lanes>;
using Lane = hn::Vec<Lanes>;
constexpr std::size_t kColumns = hn::MaxLanes(Lanes());

constexpr std::size_t kGroup = 16;
struct RibbonGroup {
  alignas(32) std::uint64_t digest[kGroup];
  alignas(32) std::uint64_t start[kGroup];
  alignas(32) std::uint64_t low[kGroup];   // the coefficients of the slots in the block; before, the codes
  alignas(32) std::uint64_t high[kGroup];  // and of those in the next; before, all
  alignas(16) std::uint32_t want[kGroup];  // fingerprint
  alignas(16) std::uint32_t care[kGroup];  // and a one for each of its bits that counts; not for Eight
  const std::byte* block[kGroup];
  const std::byte* next[kGroup];
  std::uint64_t alone;  // keys that are asked for one by one: of the dense part, or at the end of the table

  void leave_alone(std::size_t i) noexcept;
};

// What a key that is left alone reads instead of a block.
alignas(64) constexpr std::byte kZeros[8 * RibbonShape::kMaxColumns] = {};

void RibbonGroup::leave_alone(std::size_t i) noexcept {
  alone |= std::uint64_t{1} << i;
  block[i] = next[i] = kZeros;
  want[i] = care[i] = 0;
}

constexpr std::uint32_t low_bits(std::uint32_t count) noexcept {
  return static_cast<std::uint32_t>((std::uint64_t{1} << count) - 1);
}

// Columns are read eight at a time, as many as the widest blocks have: up to eight words behind a block are read, too.
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
constexpr std::uint64_t kBehindBlock = 8 * 8;
#else
constexpr std::uint64_t kBehindBlock = 0;
#endif

// Asks for a block, and for the one behind it. Blocks of eight columns are lines. Others begin anywhere, but the end of
// a block is in the line in which the next one begins.
template <class Columns>
HWY_INLINE void ribbon_ask(const std::byte* block, Columns columns) {
  for (std::size_t at = 0; at < 8 * columns; at += kLineBytes) detail::prefetch_read(block + at);
}
template <class Columns>
HWY_INLINE void ribbon_ask_next(const std::byte* next, Columns columns) {
  ribbon_ask(next, columns);
  if constexpr (!std::same_as<Columns, Eight>) detail::prefetch_read(next + 8 * columns - 1);
}

// The sign bit of each lane.
HWY_INLINE std::uint64_t sign_bits(Lane v) {
#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
  return static_cast<std::uint32_t>(_mm256_movemask_pd(_mm256_castsi256_pd(v.raw)));
#else
  std::uint8_t bits[8] = {};
  const hn::RebindToSigned<Lanes> d;
  hn::StoreMaskBits(d, hn::Lt(hn::BitCast(d, v), hn::Zero(d)), bits);
  return bits[0];
#endif
}

// A key that the first front bumps.
HWY_NOINLINE void ribbon_place_one(const RibbonShape& shape, const std::byte* table, std::size_t i,
                                   RibbonGroup* group) {
  const bool fronted = shape.starts[0] != 0;
  const std::uint64_t h = fronted ? RibbonLayout::remixed(group->digest[i]) : group->digest[i];
  const auto place = RibbonLayout::place_from(shape, table, fronted, h);
  if (place.block == nullptr) return group->leave_alone(i);
  const auto end = static_cast<std::uint64_t>(place.next() - table) + std::uint64_t{8} * place.width;
  if (end + kBehindBlock > shape.table_bytes) return group->leave_alone(i);
  group->block[i] = place.block;
  group->next[i] = place.next();
  group->low[i] = place.equation.coefficients << place.slot;
  group->high[i] = place.equation.coefficients >> 1 >> (63 - place.slot);
  group->want[i] = place.equation.fingerprint;
  group->care[i] = low_bits(place.width);
}

// `columns`: the most that a block has; of type Eight if all have eight.
template <class Source, class Columns>
PERHAPS_KERNEL_BATCH void ribbon_place(const RibbonShape& shape, const std::byte* table, Columns columns, Source source,
                                       std::size_t size, RibbonGroup* group, const RibbonGroup* asked,
                                       const RibbonGroup* again) {
  const RibbonFront front = shape.front(0, 0);
  const std::byte* const blocks = table + front.blocks_at;
  for (std::size_t i = 0; i < size; ++i) {
    if (asked != nullptr) {
      ribbon_ask(asked->block[i], columns);
      ribbon_ask(again->block[i], columns);
      ribbon_ask_next(again->next[i], columns);
    }
    const std::uint64_t h = source[i];
    const std::uint64_t start = detail::scale(h, front.starts);
    const auto [coefficients, fingerprint] = RibbonLayout::front_equation(h);
    group->digest[i] = h;
    group->start[i] = start;
    group->low[i] = static_cast<std::uint64_t>(table[start >> 9]);
    group->high[i] = coefficients;
    group->want[i] = fingerprint;
    const std::uint64_t k = start / 64;
    if constexpr (std::same_as<Columns, Eight>) {
      group->block[i] = blocks + 64 * k;
      group->next[i] = group->block[i] + 64;
    } else {
      const std::uint32_t width = shape.columns + (k >= front.narrow);
      group->block[i] = blocks + 8 * front.words(k, shape.columns);
      group->next[i] = group->block[i] + 8 * width;
      group->care[i] = low_bits(width);
    }
  }
}

// Not at once: vectors of words that were just written one by one would wait for all of them.
HWY_INLINE void ribbon_decode(const RibbonShape& shape, const std::byte* table, std::size_t size, RibbonGroup* group) {
  const Lanes d;
  std::uint64_t bumped = 0;
  for (std::size_t i = 0; i < size; i += kColumns) {
    const Lane start = hn::Load(d, group->start + i);
    const Lane code =
        hn::And(hn::Shr(hn::Load(d, group->low + i), hn::And(hn::ShiftRight<6>(start), hn::Set(d, std::uint64_t{6}))),
                hn::Set(d, std::uint64_t{3}));
    const Lane limit =
        hn::And(hn::Shr(hn::Set(d, std::uint64_t{RibbonLayout::kLargeThresholds}), hn::ShiftLeft<3>(code)),
                hn::Set(d, std::uint64_t{0xff}));
    // Below the limit: the difference is negative.
    const Lane below = hn::Sub(hn::And(start, hn::Set(d, std::uint64_t{127})), limit);
    bumped |= sign_bits(below) << i;
    const Lane coefficients = hn::Load(d, group->high + i);
    const Lane slot = hn::And(start, hn::Set(d, std::uint64_t{63}));
    hn::Store(hn::Shl(coefficients, slot), d, group->low + i);
    hn::Store(hn::Shr(hn::ShiftRight<1>(coefficients), hn::Xor(slot, hn::Set(d, std::uint64_t{63}))), d,
              group->high + i);
  }
  if (shape.starts[0] == 0) bumped = UINT64_MAX;
  bumped &= (std::uint64_t{1} << size) - 1;
  group->alone = 0;
  for (; bumped != 0; bumped &= bumped - 1) {
    ribbon_place_one(shape, table, static_cast<std::size_t>(std::countr_zero(bumped)), group);
  }
}

// The products of columns at.. of a key, not yet summed up.
HWY_INLINE Lane ribbon_products(const std::byte* block, const std::byte* next, std::uint32_t at, Lane low, Lane high) {
  const Lanes d;
  const Lane here = hn::LoadU(d, reinterpret_cast<const std::uint64_t*>(block) + at);
  const Lane there = hn::LoadU(d, reinterpret_cast<const std::uint64_t*>(next) + at);
  return hn::Xor(hn::And(here, low), hn::And(there, high));
}

#if HWY_TARGET == HWY_AVX2 || HWY_TARGET == HWY_AVX3
// Which keys of a full group have the columns first .. first + 7 that they want? Parities are folded for four keys in
// one vector: halves of 32 bits, then of 16 from two keys, then bytes from four, whose sign bits are put in the order
// of keys and columns.
template <class Columns>
HWY_INLINE std::uint64_t ribbon_equals_eight(const RibbonGroup& group, std::uint32_t first, Columns columns,
                                             const RibbonGroup* asked) {
  const Lanes d;
  const auto folded = [&](std::size_t i) HWY_ATTR {
    const Lane low = hn::Set(d, group.low[i]);
    const Lane high = hn::Set(d, group.high[i]);
    const __m256 a = _mm256_castsi256_ps(ribbon_products(group.block[i], group.next[i], first, low, high).raw);
    const __m256 b = _mm256_castsi256_ps(ribbon_products(group.block[i], group.next[i], first + 4, low, high).raw);
    return _mm256_castps_si256(_mm256_xor_ps(_mm256_shuffle_ps(a, b, 0x88), _mm256_shuffle_ps(a, b, 0xdd)));
  };
  const auto pair = [](__m256i a, __m256i b) HWY_ATTR {
    return _mm256_blend_epi16(_mm256_xor_si256(b, _mm256_srli_epi32(b, 16)),
                              _mm256_xor_si256(a, _mm256_slli_epi32(a, 16)), 0xaa);
  };
  // The bytes of a lane of 32 bits are those of keys 3, 1, 2, 0.
  const __m256i by_key =
      _mm256_broadcastsi128_si256(_mm_setr_epi8(3, 7, 11, 15, 1, 5, 9, 13, 2, 6, 10, 14, 0, 4, 8, 12));
  const __m256i by_column = _mm256_setr_epi32(0, 4, 1, 5, 2, 6, 3, 7);
  // Byte first / 8 of each of four words.
  const __m128i byte = _mm_add_epi8(_mm_set1_epi32(0x0c080400), _mm_set1_epi8(static_cast<char>(first / 8)));
  const auto bytes = [&](const std::uint32_t* words) HWY_ATTR {
    const __m128i four = _mm_load_si128(reinterpret_cast<const __m128i*>(words));
    return static_cast<std::uint32_t>(_mm_cvtsi128_si32(_mm_shuffle_epi8(four, byte)));
  };
  alignas(16) std::uint32_t wrong[kGroup / 4];
  for (std::size_t i = 0; i < kGroup; i += 4) {
    if (asked != nullptr) {
      for (std::size_t j = i; j < i + 4; ++j) {
        ribbon_ask(asked->block[j], columns);
        ribbon_ask_next(asked->next[j], columns);
      }
    }
    const __m256i two = pair(folded(i), folded(i + 1));
    const __m256i others = pair(folded(i + 2), folded(i + 3));
    __m256i sum = _mm256_blendv_epi8(_mm256_xor_si256(others, _mm256_srli_epi16(others, 8)),
                                     _mm256_xor_si256(two, _mm256_slli_epi16(two, 8)),
                                     _mm256_set1_epi16(static_cast<short>(0xff00)));
    // What comes in from the byte below stays under the bits that count.
    sum = _mm256_xor_si256(sum, _mm256_slli_epi16(sum, 4));
    sum = _mm256_xor_si256(sum, _mm256_slli_epi16(sum, 2));
    sum = _mm256_xor_si256(sum, _mm256_slli_epi16(sum, 1));
    sum = _mm256_shuffle_epi8(_mm256_permute4x64_epi64(sum, 0xd8), by_key);
    sum = _mm256_permutevar8x32_epi32(sum, by_column);
    const auto found = static_cast<std::uint32_t>(_mm256_movemask_epi8(sum));
    wrong[i / 4] = found ^ bytes(group.want + i);
    if constexpr (!std::same_as<Columns, Eight>) wrong[i / 4] &= bytes(group.care + i);
  }
  const __m128i all = _mm_load_si128(reinterpret_cast<const __m128i*>(wrong));
  return static_cast<std::uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(all, _mm_setzero_si128())));
}

template <class Columns>
HWY_INLINE std::uint64_t ribbon_equals(RibbonGroup* group, std::size_t size, Columns columns,
                                       const RibbonGroup* asked) {
  for (std::size_t i = size; i < kGroup; ++i) group->leave_alone(i);
  std::uint64_t word = ribbon_equals_eight(*group, 0, columns, asked);
  if constexpr (!std::same_as<Columns, Eight>) {
    // Of keys that are not there few have come so far.
    for (std::uint32_t first = 8; first < columns && word != 0; first += 8) {
      word &= ribbon_equals_eight(*group, first, columns, nullptr);
    }
  }
  return word;
}
#else
HWY_INLINE std::uint32_t half_sign_bits(hn::Vec<Halves> v) {
  std::uint8_t bits[8] = {};
  const hn::RebindToSigned<Halves> d;
  hn::StoreMaskBits(d, hn::Lt(hn::BitCast(d, v), hn::Zero(d)), bits);
  return bits[0];
}

// The parities of two vectors of words, one bit each.
HWY_INLINE std::uint32_t parities(Lane first, Lane second) {
  const Halves half;
  const auto a = hn::BitCast(half, first);
  const auto b = hn::BitCast(half, second);
  auto sum = hn::Xor(hn::ConcatEven(half, b, a), hn::ConcatOdd(half, b, a));
  sum = hn::Xor(sum, hn::ShiftLeft<16>(sum));
  sum = hn::Xor(sum, hn::ShiftLeft<8>(sum));
  sum = hn::Xor(sum, hn::ShiftLeft<4>(sum));
  sum = hn::Xor(sum, hn::ShiftLeft<2>(sum));
  sum = hn::Xor(sum, hn::ShiftLeft<1>(sum));
  return half_sign_bits(sum);
}

// The last vectors overlap the ones before instead of reaching beyond the block.  REQUIRES: width >= kColumns
template <class Width>
HWY_INLINE bool ribbon_equals_one(const RibbonGroup& group, std::size_t i, Width width) {
  const Lanes d;
  constexpr std::uint32_t kMask = (1u << kColumns) - 1;
  const Lane low = hn::Set(d, group.low[i]);
  const Lane high = hn::Set(d, group.high[i]);
  const auto products = [&](std::uint32_t at)
                            HWY_ATTR { return ribbon_products(group.block[i], group.next[i], at, low, high); };
  const std::uint32_t want = group.want[i];
  const std::uint32_t last = width - kColumns;
  std::uint32_t wrong = 0;
  for (std::uint32_t at = 0; at < width; at += 2 * kColumns) {
    const std::uint32_t first = std::min(at, last);
    const std::uint32_t second = std::min<std::uint32_t>(at + kColumns, last);
    wrong |=
        parities(products(first), products(second)) ^ ((want >> first & kMask) | (want >> second & kMask) << kColumns);
  }
  return wrong == 0;
}

template <class Columns>
HWY_INLINE std::uint64_t ribbon_equals(RibbonGroup* group, std::size_t size, Columns columns,
                                       const RibbonGroup* asked) {
  const auto equals = [=](std::uint64_t i, std::uint64_t) HWY_ATTR {
    if constexpr (std::same_as<Columns, Eight>) return ribbon_equals_one(*group, i, columns);
    return ribbon_equals_one(*group, i, static_cast<std::uint32_t>(std::bit_width(group->care[i])));
  };
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < size; ++i) {
    if (asked != nullptr) {
      ribbon_ask(asked->block[i], columns);
      ribbon_ask_next(asked->next[i], columns);
    }
    word = answer(equals, i, 0, word);
  }
  return reversed(word, size);
}
#endif

template <class Columns>
PERHAPS_KERNEL_BATCH std::uint64_t ribbon_probe(const RibbonShape& shape, const std::byte* table, Columns columns,
                                                std::size_t size, RibbonGroup* group, const RibbonGroup* asked) {
  std::uint64_t word = ribbon_equals(group, size, columns, asked) & ((std::uint64_t{1} << size) - 1);
  std::uint64_t alone = group->alone & ((std::uint64_t{1} << size) - 1);
  for (; alone != 0; alone &= alone - 1) {
    const auto i = static_cast<std::size_t>(std::countr_zero(alone));
    const std::uint64_t bit = std::uint64_t{1} << i;
    const bool there = RibbonLayout::may_contain<detail::isa::Portable>(shape, table, group->digest[i]);
    word = (word & ~bit) | (there ? bit : 0);
  }
  return word;
}

template <class Source, class Columns>
HWY_INLINE void ribbon_query_as(const RibbonShape& shape, const std::byte* table, Source source, std::size_t count,
                                std::uint64_t* answers, bool ahead, Columns columns) {
  constexpr std::size_t kAhead = 4;
  constexpr std::size_t kRing = 8;
  const std::size_t groups = (count + kGroup - 1) / kGroup;
  const auto size_of = [=](std::size_t g) { return std::min(kGroup, count - kGroup * g); };
  RibbonGroup ring[kRing];
  std::uint64_t word = 0;
  for (std::size_t now = 0; now < groups + kAhead; ++now) {
    const RibbonGroup* asked = nullptr;
    const RibbonGroup* again = nullptr;
    if (const std::size_t g = now - 1; g < groups) {
      RibbonGroup& group = ring[g % kRing];
      ribbon_decode(shape, table, size_of(g), &group);
      // Asked for between the steps of two others, if they are there and full.
      if (ahead && now >= kAhead && now + 1 < groups) {
        asked = &group;
        again = &ring[(g - 1) % kRing];
      } else if (ahead) {
        for (std::size_t i = 0; i < size_of(g); ++i) {
          ribbon_ask(group.block[i], columns);
          ribbon_ask_next(group.next[i], columns);
        }
      }
    }
    if (now < groups) {
      ribbon_place(shape, table, columns, source.from(kGroup * now), size_of(now), &ring[now % kRing], asked, again);
    }
    if (const std::size_t g = now - kAhead; g < groups) {
      word |= ribbon_probe(shape, table, columns, size_of(g), &ring[g % kRing], asked) << g * kGroup % 64;
      if ((g + 1) * kGroup % 64 == 0 || g + 1 == groups) answers[g * kGroup / 64] = std::exchange(word, 0);
    }
  }
}

template <class Source>
void ribbon_query(const RibbonShape& shape, const std::byte* table, Source source, std::size_t count,
                  std::uint64_t* answers, bool ahead) noexcept {
  const bool dense = shape.fronts == 0 && shape.tiny();
  const bool to_the_end = shape.front(0, 0).end + kBehindBlock > shape.table_bytes;
  if (dense || to_the_end || shape.columns < kColumns) {
    portable_ribbon(shape, table, source, count, answers, ahead);
  } else if (shape.columns == 8 && shape.wide == 0) {
    ribbon_query_as(shape, table, source, count, answers, ahead, Eight());
  } else {
    ribbon_query_as(shape, table, source, count, answers, ahead, shape.columns + (shape.wide != 0));
  }
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
