// The batch kernel of the ribbon filter (perhaps/ribbon.h).
#include "perhaps/ribbon.h"

#include <utility>

#include "kernel/instruction_set.h"
#include "kernel/targets.h"

#if PERHAPS_SIMD
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/ribbon.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#if PERHAPS_ON_TARGET
HWY_BEFORE_NAMESPACE();
namespace perhaps::kernel::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

using Eight = std::integral_constant<std::uint32_t, 8>;

// Keys go through three steps, kGroup of them at a time:
//   place   their blocks in the first front, and their equations
//   decode  one group later: bumped keys get their blocks behind the front; what a key wants of its two blocks
//   probe   the blocks are looked at, kAhead groups after `place`
// The blocks of a group are prefetched one by one, between the steps of two others: all at once they are more than
// memory takes, and then it has nothing to do (1.4 times the time at 1e8 keys). A prefetch is dropped when all
// line-fill buffers are busy, so a block is prefetched two or three times (0.75 of the time). The columns of a key are
// multiplied in vectors of up to four. That is a pipeline of three steps, for which the loop of detail/batch.h has only
// two.
using Lanes = hn::CappedTag<std::uint64_t, 4>;
using Halves = hn::Repartition<std::uint32_t, Lanes>;
using Lane = hn::Vec<Lanes>;
constexpr std::size_t kColumns = hn::MaxLanes(Lanes());

constexpr std::size_t kGroup = 16;
struct Group {
  alignas(32) std::uint64_t digest[kGroup];
  alignas(32) std::uint64_t start[kGroup];
  alignas(32) std::uint64_t low[kGroup];   // the coefficients of the slots in the block; before, the codes
  alignas(32) std::uint64_t high[kGroup];  // and of those in the next; before, all
  alignas(16) std::uint32_t want[kGroup];  // fingerprint
  alignas(16) std::uint32_t care[kGroup];  // and a one for each of its bits that counts; not for Eight
  const std::byte* block[kGroup];
  const std::byte* next[kGroup];
  std::uint64_t alone;  // keys that are looked up one by one: of the dense part, or at the end of the table

  void leave_alone(std::size_t i) noexcept;
};

// What a key that is left alone reads instead of a block.
alignas(64) constexpr std::byte kZeros[8 * RibbonShape::kMaxColumns] = {};

void Group::leave_alone(std::size_t i) noexcept {
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

// Prefetches a block, and the one behind it. Blocks of eight columns are lines. Others begin anywhere, but the end of
// a block is in the line in which the next one begins.
template <class Columns>
HWY_INLINE void ask(const std::byte* block, Columns columns) {
  for (std::size_t at = 0; at < 8 * columns; at += kLineBytes) detail::prefetch_read(block + at);
}
template <class Columns>
HWY_INLINE void ask_next(const std::byte* next, Columns columns) {
  ask(next, columns);
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
HWY_NOINLINE void place_one(const RibbonShape& shape, const std::byte* table, std::size_t i, Group* group) {
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
HWY_NOINLINE void place(const RibbonShape& shape, const std::byte* table, Columns columns, Source source,
                        std::size_t size, Group* group, const Group* asked, const Group* again) {
  const RibbonFront front = shape.front(0, 0);
  const std::byte* const blocks = table + front.blocks_at;
  for (std::size_t i = 0; i < size; ++i) {
    if (asked != nullptr) {
      ask(asked->block[i], columns);
      ask(again->block[i], columns);
      ask_next(again->next[i], columns);
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
HWY_INLINE void decode(const RibbonShape& shape, const std::byte* table, std::size_t size, Group* group) {
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
    place_one(shape, table, static_cast<std::size_t>(std::countr_zero(bumped)), group);
  }
}

// The products of columns at.. of a key, not yet summed up.
HWY_INLINE Lane products(const std::byte* block, const std::byte* next, std::uint32_t at, Lane low, Lane high) {
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
HWY_INLINE std::uint64_t equals_eight(const Group& group, std::uint32_t first, Columns columns, const Group* asked) {
  const Lanes d;
  const auto folded = [&](std::size_t i) HWY_ATTR {
    const Lane low = hn::Set(d, group.low[i]);
    const Lane high = hn::Set(d, group.high[i]);
    const __m256 a = _mm256_castsi256_ps(products(group.block[i], group.next[i], first, low, high).raw);
    const __m256 b = _mm256_castsi256_ps(products(group.block[i], group.next[i], first + 4, low, high).raw);
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
        ask(asked->block[j], columns);
        ask_next(asked->next[j], columns);
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
HWY_INLINE std::uint64_t equals(Group* group, std::size_t size, Columns columns, const Group* asked) {
  for (std::size_t i = size; i < kGroup; ++i) group->leave_alone(i);
  std::uint64_t word = equals_eight(*group, 0, columns, asked);
  if constexpr (!std::same_as<Columns, Eight>) {
    // Few absent keys survive eight columns.
    for (std::uint32_t first = 8; first < columns && word != 0; first += 8) {
      word &= equals_eight(*group, first, columns, nullptr);
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
HWY_INLINE bool equals_one(const Group& group, std::size_t i, Width width) {
  const Lanes d;
  constexpr std::uint32_t kMask = (1u << kColumns) - 1;
  const Lane low = hn::Set(d, group.low[i]);
  const Lane high = hn::Set(d, group.high[i]);
  const auto sums = [&](std::uint32_t at) HWY_ATTR { return products(group.block[i], group.next[i], at, low, high); };
  const std::uint32_t want = group.want[i];
  const std::uint32_t last = width - kColumns;
  std::uint32_t wrong = 0;
  for (std::uint32_t at = 0; at < width; at += 2 * kColumns) {
    const std::uint32_t first = std::min(at, last);
    const std::uint32_t second = std::min<std::uint32_t>(at + kColumns, last);
    wrong |= parities(sums(first), sums(second)) ^ ((want >> first & kMask) | (want >> second & kMask) << kColumns);
  }
  return wrong == 0;
}

template <class Columns>
HWY_INLINE std::uint64_t equals(Group* group, std::size_t size, Columns columns, const Group* asked) {
  const auto equals = [=](std::uint64_t i, std::uint64_t) HWY_ATTR {
    if constexpr (std::same_as<Columns, Eight>) return equals_one(*group, i, columns);
    return equals_one(*group, i, static_cast<std::uint32_t>(std::bit_width(group->care[i])));
  };
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < size; ++i) {
    if (asked != nullptr) {
      ask(asked->block[i], columns);
      ask_next(asked->next[i], columns);
    }
    word = detail::answer(equals, i, 0, word);
  }
  return detail::reversed(word, size);
}
#endif

template <class Columns>
HWY_NOINLINE std::uint64_t probe(const RibbonShape& shape, const std::byte* table, Columns columns, std::size_t size,
                                 Group* group, const Group* asked) {
  std::uint64_t word = equals(group, size, columns, asked) & ((std::uint64_t{1} << size) - 1);
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
HWY_INLINE void query_as(const RibbonShape& shape, const std::byte* table, Source source, std::size_t count, bool ahead,
                         std::uint64_t* answers, Columns columns) {
  constexpr std::size_t kAhead = 4;
  constexpr std::size_t kRing = 8;
  const std::size_t groups = (count + kGroup - 1) / kGroup;
  const auto size_of = [=](std::size_t g) { return std::min(kGroup, count - kGroup * g); };
  Group ring[kRing];
  std::uint64_t word = 0;
  for (std::size_t now = 0; now < groups + kAhead; ++now) {
    const Group* asked = nullptr;
    const Group* again = nullptr;
    if (const std::size_t g = now - 1; g < groups) {
      Group& group = ring[g % kRing];
      decode(shape, table, size_of(g), &group);
      // Prefetched between the steps of two others, if they are there and full.
      if (ahead && now >= kAhead && now + 1 < groups) {
        asked = &group;
        again = &ring[(g - 1) % kRing];
      } else if (ahead) {
        for (std::size_t i = 0; i < size_of(g); ++i) {
          ask(group.block[i], columns);
          ask_next(group.next[i], columns);
        }
      }
    }
    if (now < groups) {
      place(shape, table, columns, source.from(kGroup * now), size_of(now), &ring[now % kRing], asked, again);
    }
    if (const std::size_t g = now - kAhead; g < groups) {
      word |= probe(shape, table, columns, size_of(g), &ring[g % kRing], asked) << g * kGroup % 64;
      if ((g + 1) * kGroup % 64 == 0 || g + 1 == groups) answers[g * kGroup / 64] = std::exchange(word, 0);
    }
  }
}

void query(const RibbonShape& shape, const std::byte* table, const detail::Batch<>& batch,
           std::uint64_t* answers) noexcept {
  const bool dense = shape.fronts == 0 && shape.tiny();
  const bool to_the_end = shape.front(0, 0).end + kBehindBlock > shape.table_bytes;
  if (dense || to_the_end || shape.columns < kColumns) {
    return detail::query_by_key<RibbonLayout, 64>(shape, table, batch, answers);
  }
  detail::with_source(batch, [&](auto source) HWY_ATTR {
    if (shape.columns == 8 && shape.wide == 0) {
      query_as(shape, table, source, batch.count, batch.ahead, answers, Eight());
    } else {
      query_as(shape, table, source, batch.count, batch.ahead, answers, shape.columns + (shape.wide != 0));
    }
  });
}

void simd_kernels(InstructionSet& set) { set.ribbon_query = query; }

}  // namespace
}  // namespace perhaps::kernel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
#endif

#if !PERHAPS_SIMD || HWY_ONCE
namespace perhaps::kernel {
namespace {

void portable_kernels(InstructionSet& set) { set.ribbon_query = detail::query_by_key<RibbonLayout, 64>; }

}  // namespace

void ribbon_kernels(Target target, InstructionSet& set) { PERHAPS_FOR_TARGET(target, set) }

}  // namespace perhaps::kernel
#endif
