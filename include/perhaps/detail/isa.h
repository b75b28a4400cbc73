// The one place that depends on what the *including* file is compiled for. Batch calls are dispatched at run time as a
// whole. Single lookups and inserts use what the compiler was told it may use: with -mavx2 or -march=... the AVX2 form
// is inlined. Other x86 builds test the flag that the compiler's start-up code keeps (one load and a branch that is
// always predicted) and call the AVX2 form in the library, or inline that for SSE2. A lookup in a line filter by that
// call takes 1.9 and 2.6 ns at 1e5 and 1e6 keys, SSE2 inlined 2.7 and 3.5, AVX2 inlined 1.3 and 1.7, the portable form
// 13 and 26 (gcc 12 -O2, Zen 5). (AVX2 functions in this header would do as well, but <immintrin.h> doubles the time to
// compile it.) arm64 inlines NEON. All others use the portable reference.
//
// `Here` is a template argument of every inline probe, so that a probe compiled for AVX2 and one that is not are
// different functions to the linker. That holds for probes. Any other inline function, std::vector's as well, may carry
// AVX2 code when it is compiled with -mavx2 and be merged with its namesake: a program that must start on older
// machines compiles all of its files without it, and has the speed where it counts from the dispatched batch calls.
#pragma once
#include <cstddef>
#include <cstdint>

#include "perhaps/detail/bits.h"

// The library and the tests define PERHAPS_AVX2_FORMS to have the AVX2 functions without -mavx2.
#if defined(__AVX2__) || defined(PERHAPS_AVX2_FORMS)
#include <immintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__aarch64__) && defined(__ARM_NEON) && !defined(__ARM_BIG_ENDIAN)
#include <arm_neon.h>
#define PERHAPS_NEON 1
#endif

namespace perhaps::detail::isa {

struct Portable {};

// Counting in words. This is the portable form; x86 before 2008 has no instruction for either.
template <class Isa>
struct WordBits {
  static std::uint64_t popcount(std::uint64_t word) noexcept { return ones_of_bytes(word) * kBytes >> 56; }

  // The position of the rank-th set bit, from 0; 64 if there are fewer.
  static std::uint64_t find(std::uint64_t word, std::uint64_t rank) noexcept {
    return rank < popcount(word) ? select(word, rank) : 64;
  }
  // REQUIRES: rank < popcount(word)
  static std::uint64_t select(std::uint64_t word, std::uint64_t rank) noexcept {
    // Byte i of `ones`: how many bits are set in bytes 0..i. None is above 64, so bit 7 of a byte is free for the
    // borrow of a comparison with `rank`, and the bytes not above `rank` are those before the one that has the bit.
    const std::uint64_t ones = ones_of_bytes(word) * kBytes;
    const std::uint64_t not_above = ((rank * kBytes | kHighs) - ones) & kHighs;
    const std::uint64_t shift = (not_above >> 7) * kBytes >> 53 & ~std::uint64_t{7};
    const std::uint64_t byte = word >> shift & 0xff;
    rank -= (ones << 8) >> shift & 0xff;
    // The same once more inside the byte, its eight bits spread over eight bytes.
    const std::uint64_t spread = (byte * kBytes & 0x8040201008040201u) + 0x7f7f7f7f7f7f7f7fu;
    const std::uint64_t up_to = ((spread & kHighs) >> 7) * kBytes;
    return shift + (((((rank * kBytes | kHighs) - up_to) & kHighs) >> 7) * kBytes >> 56);
  }

 private:
  static constexpr std::uint64_t kBytes = 0x0101010101010101u;
  static constexpr std::uint64_t kHighs = 0x8080808080808080u;
  static std::uint64_t ones_of_bytes(std::uint64_t word) noexcept {
    word -= word >> 1 & 0x5555555555555555u;
    word = (word & 0x3333333333333333u) + (word >> 2 & 0x3333333333333333u);
    return (word + (word >> 4)) & 0x0f0f0f0f0f0f0f0fu;
  }
};

// Do `width` columns have the parities that the fingerprint says? `parities(i, j)`: of columns i .. i + 3 and
// j .. j + 3, one bit each.  REQUIRES: width >= 4. The last four overlap those before.
template <class Parities>
[[gnu::always_inline]] inline bool ribbon_columns_equal(std::uint32_t width, std::uint32_t fingerprint,
                                                        Parities parities) noexcept {
  const auto equal = [&](std::uint32_t first, std::uint32_t second) __attribute__((always_inline)) {
    return parities(first, second) == ((fingerprint >> first & 15) | (fingerprint >> second & 15) << 4);
  };
  const std::uint32_t last = width - 4;
  if (width <= 8) return equal(0, last);
  bool all = true;
  for (std::uint32_t at = 0; at < width; at += 8) all &= equal(at < last ? at : last, at + 4 < last ? at + 4 : last);
  return all;
}

// A key of the line filter with any number of probes, 1 to 16 (line_bloom.h).
struct LinePart {
  std::uint64_t digest;
  std::uint32_t probes;

  // The numbers that the two rounds multiply, and the lane that a part of a round begins at.
  constexpr std::uint32_t first() const noexcept { return static_cast<std::uint32_t>(digest); }
  constexpr std::uint32_t second() const noexcept {
    return static_cast<std::uint32_t>(digest * 0xe7037ed1a0b428dbu >> 32);
  }
  constexpr std::uint32_t start() const noexcept { return first() * 0x9e3779b1u >> 29; }
};

#if defined(__x86_64__) || defined(__i386__)
// As those of OfEight, below.  REQUIRES: this machine has AVX2
PERHAPS_API bool avx2_line_covers(const std::byte* line, std::uint32_t x) noexcept;
PERHAPS_API bool avx2_line_covers(const std::byte* line, LinePart part) noexcept;
PERHAPS_API bool avx2_line_insert(std::byte* line, std::uint32_t x) noexcept;
PERHAPS_API bool avx2_line_insert(std::byte* line, LinePart part) noexcept;
PERHAPS_API bool avx2_block_covers(const std::byte* block, std::uint32_t x) noexcept;
PERHAPS_API bool avx2_block_insert(std::byte* block, std::uint32_t x) noexcept;
#endif

// The steps of the line and the block filter on eight words of 32 bits: half a line, or a block. `V` has the operations
// of one instruction set.
//   line_covers, block_covers    are all bits of the key set?
//   line_insert, block_insert    set them; true if any of them was 0
// `x`: eight probes, the common case.
template <class V>
struct OfEight {
  PERHAPS_INLINE static bool line_covers(const std::byte* line, std::uint32_t x) noexcept {
    const auto product = V::products(x);
    return V::none(V::clear(V::choose(V::is_odd(product), V::load(line + 32), V::load(line)), V::bits(product)));
  }
  PERHAPS_INLINE static bool line_covers(const std::byte* line, LinePart part) noexcept {
    const Halves bits = halves(part);
    return V::none(V::either(V::clear(V::load(line), bits.even), V::clear(V::load(line + 32), bits.odd)));
  }
  PERHAPS_INLINE static bool block_covers(const std::byte* block, std::uint32_t x) noexcept {
    return V::none(V::clear(V::load(block), V::bits(V::products(x))));
  }
  PERHAPS_INLINE static bool line_insert(std::byte* line, std::uint32_t x) noexcept {
    const auto product = V::products(x);
    return set(line, halves(product, V::bits(product)));
  }
  PERHAPS_INLINE static bool line_insert(std::byte* line, LinePart part) noexcept { return set(line, halves(part)); }
  PERHAPS_INLINE static bool block_insert(std::byte* block, std::uint32_t x) noexcept {
    const auto bits = V::bits(V::products(x));
    const auto before = V::load(block);
    V::store(block, V::either(before, bits));
    return !V::none(V::clear(before, bits));
  }

 private:
  using Eight = typename V::Eight;
  struct Halves {
    Eight even;
    Eight odd;
  };
  PERHAPS_INLINE static Halves halves(Eight product, Eight bits) noexcept {
    const Eight is_odd = V::is_odd(product);
    return {V::clear(is_odd, bits), V::both(is_odd, bits)};
  }
  PERHAPS_INLINE static Halves halves(LinePart part) noexcept {
    const auto round = [=](std::uint32_t x, std::uint32_t probes) __attribute__((always_inline)) {
      const auto product = V::products(x);
      return halves(product, V::both(V::bits(product), V::probed(part.start(), probes)));
    };
    const Halves first = round(part.first(), part.probes);
    if (part.probes <= 8) return first;
    const Halves second = round(part.second(), part.probes - 8);
    return {V::either(first.even, second.even), V::either(first.odd, second.odd)};
  }
  PERHAPS_INLINE static bool set(std::byte* line, Halves bits) noexcept {
    const auto even = V::load(line);
    const auto odd = V::load(line + 32);
    V::store(line, V::either(even, bits.even));
    V::store(line + 32, V::either(odd, bits.odd));
    return !V::none(V::either(V::clear(even, bits.even), V::clear(odd, bits.odd)));
  }
};

#if defined(__AVX2__) || defined(PERHAPS_AVX2_FORMS)
// The same for AVX2, by itself: a template cannot be compiled for another instruction set than its file, and the
// library compiles these for everyone (src/kernel/single.cc). Files compiled for AVX2 inline them.
#if defined(__AVX2__)
#define PERHAPS_AVX2 [[gnu::always_inline]] static
#else
#define PERHAPS_AVX2 [[gnu::target("avx2")]] static
#endif
#define PERHAPS_AVX2_PART [[gnu::target("avx2"), gnu::always_inline]] static
struct Avx2Eight {
  PERHAPS_AVX2 bool line_covers(const std::byte* line, std::uint32_t x) noexcept {
    const __m256i product = products(x);
    // The sixth bit from the top becomes the sign, which chooses one of a lane's two words.
    const __m256i words = choose(_mm256_slli_epi32(product, 5), load(line + 32), load(line));
    return _mm256_testc_si256(words, bits(product)) != 0;
  }
  PERHAPS_AVX2 bool line_covers(const std::byte* line, LinePart part) noexcept {
    const Halves want = halves(part);
    return (_mm256_testc_si256(load(line), want.even) & _mm256_testc_si256(load(line + 32), want.odd)) != 0;
  }
  PERHAPS_AVX2 bool block_covers(const std::byte* block, std::uint32_t x) noexcept {
    return _mm256_testc_si256(load(block), bits(products(x))) != 0;
  }
  PERHAPS_AVX2 bool line_insert(std::byte* line, std::uint32_t x) noexcept {
    const __m256i product = products(x);
    return set(line, halves(product, bits(product)));
  }
  PERHAPS_AVX2 bool line_insert(std::byte* line, LinePart part) noexcept { return set(line, halves(part)); }
  PERHAPS_AVX2 bool block_insert(std::byte* block, std::uint32_t x) noexcept {
    const __m256i want = bits(products(x));
    const __m256i before = load(block);
    store(block, _mm256_or_si256(before, want));
    return _mm256_testc_si256(before, want) == 0;
  }

 private:
  struct Halves {
    __m256i even;
    __m256i odd;
  };
  PERHAPS_AVX2_PART __m256i load(const std::byte* at) noexcept {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(at));
  }
  PERHAPS_AVX2_PART void store(std::byte* at, __m256i words) noexcept {
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(at), words);
  }
  PERHAPS_AVX2_PART __m256i all(std::uint32_t x) noexcept { return _mm256_set1_epi32(static_cast<int>(x)); }
  PERHAPS_AVX2_PART __m256i choose(__m256i by_sign, __m256i yes, __m256i no) noexcept {
    return _mm256_castps_si256(
        _mm256_blendv_ps(_mm256_castsi256_ps(no), _mm256_castsi256_ps(yes), _mm256_castsi256_ps(by_sign)));
  }
  PERHAPS_AVX2_PART __m256i products(std::uint32_t x) noexcept {
    return _mm256_mullo_epi32(all(x), _mm256_loadu_si256(reinterpret_cast<const __m256i*>(kBlockSalt.data())));
  }
  PERHAPS_AVX2_PART __m256i bits(__m256i product) noexcept {
    return _mm256_sllv_epi32(all(1), _mm256_srli_epi32(product, 27));
  }
  PERHAPS_AVX2_PART __m256i probed(std::uint32_t start, std::uint32_t probes) noexcept {
    const __m256i lane = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    return _mm256_cmpgt_epi32(all(probes), _mm256_and_si256(_mm256_sub_epi32(lane, all(start)), all(7)));
  }
  PERHAPS_AVX2_PART Halves halves(__m256i product, __m256i want) noexcept {
    const __m256i is_odd = _mm256_srai_epi32(_mm256_slli_epi32(product, 5), 31);
    return {_mm256_andnot_si256(is_odd, want), _mm256_and_si256(is_odd, want)};
  }
  PERHAPS_AVX2_PART Halves halves(LinePart part) noexcept {
    __m256i product = products(part.first());
    const Halves first = halves(product, _mm256_and_si256(bits(product), probed(part.start(), part.probes)));
    if (part.probes <= 8) return first;
    product = products(part.second());
    const Halves second = halves(product, _mm256_and_si256(bits(product), probed(part.start(), part.probes - 8)));
    return {_mm256_or_si256(first.even, second.even), _mm256_or_si256(first.odd, second.odd)};
  }
  PERHAPS_AVX2_PART bool set(std::byte* line, Halves want) noexcept {
    const __m256i even = load(line);
    const __m256i odd = load(line + 32);
    store(line, _mm256_or_si256(even, want.even));
    store(line + 32, _mm256_or_si256(odd, want.odd));
    return (_mm256_testc_si256(even, want.even) & _mm256_testc_si256(odd, want.odd)) == 0;
  }
};
#undef PERHAPS_AVX2
#undef PERHAPS_AVX2_PART
#endif

#if defined(__AVX2__)
struct Avx2 : Avx2Eight {
  // Are the dot products of `low` with the block's columns and of `high` with those of the next, added up, the bits of
  // the fingerprint?  REQUIRES: width >= 4
  [[gnu::always_inline]] static bool ribbon_equals(const std::byte* block, const std::byte* next, std::uint32_t width,
                                                   std::uint64_t low, std::uint64_t high,
                                                   std::uint32_t fingerprint) noexcept {
    const __m256i lows = _mm256_set1_epi64x(static_cast<long long>(low));
    const __m256i highs = _mm256_set1_epi64x(static_cast<long long>(high));
    const auto products = [&](std::uint32_t at) __attribute__((always_inline)) {
      const __m256i here = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(block + std::uint64_t{8} * at));
      const __m256i there = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(next + std::uint64_t{8} * at));
      return _mm256_castsi256_ps(_mm256_xor_si256(_mm256_and_si256(here, lows), _mm256_and_si256(there, highs)));
    };
    return ribbon_columns_equal(
        width, fingerprint, [&](std::uint32_t i, std::uint32_t j) __attribute__((always_inline)) {
          return parities(products(i), products(j));
        });
  }

 private:
  // The parities of four words and four more, one bit each. (Looking up nibbles takes fewer steps, but constants that
  // gcc 12 does not keep in registers.)
  [[gnu::always_inline]] static std::uint32_t parities(__m256 a, __m256 b) noexcept {
    const __m256 folded = _mm256_xor_ps(_mm256_shuffle_ps(a, b, 0x88), _mm256_shuffle_ps(a, b, 0xdd));
    __m256i sum = _mm256_permute4x64_epi64(_mm256_castps_si256(folded), 0xd8);
#if defined(__VPCLMULQDQ__)
    // Bit i of the product without carries is the sum of bits i - 31 .. i.
    const __m256i ones = _mm256_set1_epi64x(0xffffffff);
    const __m256 even = _mm256_castsi256_ps(_mm256_clmulepi64_epi128(sum, ones, 0x00));
    const __m256 odd = _mm256_castsi256_ps(_mm256_clmulepi64_epi128(sum, ones, 0x01));
    return static_cast<std::uint32_t>(_mm256_movemask_ps(_mm256_shuffle_ps(even, odd, 0x44)));
#else
    sum = _mm256_xor_si256(sum, _mm256_slli_epi32(sum, 16));
    sum = _mm256_xor_si256(sum, _mm256_slli_epi32(sum, 8));
    sum = _mm256_xor_si256(sum, _mm256_slli_epi32(sum, 4));
    sum = _mm256_xor_si256(sum, _mm256_slli_epi32(sum, 2));
    sum = _mm256_xor_si256(sum, _mm256_slli_epi32(sum, 1));
    return static_cast<std::uint32_t>(_mm256_movemask_ps(_mm256_castsi256_ps(sum)));
#endif
  }
};
#endif

#if defined(__SSE2__)
struct Sse2Eight {
  struct Eight {
    __m128i low;
    __m128i high;
  };
  PERHAPS_INLINE static Eight load(const std::byte* at) noexcept {
    return {_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)),
            _mm_loadu_si128(reinterpret_cast<const __m128i*>(at + 16))};
  }
  PERHAPS_INLINE static void store(std::byte* at, Eight words) noexcept {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(at), words.low);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(at + 16), words.high);
  }
  PERHAPS_INLINE static Eight both(Eight a, Eight b) noexcept {
    return {_mm_and_si128(a.low, b.low), _mm_and_si128(a.high, b.high)};
  }
  PERHAPS_INLINE static Eight either(Eight a, Eight b) noexcept {
    return {_mm_or_si128(a.low, b.low), _mm_or_si128(a.high, b.high)};
  }
  // b without the bits of a
  PERHAPS_INLINE static Eight clear(Eight a, Eight b) noexcept {
    return {_mm_andnot_si128(a.low, b.low), _mm_andnot_si128(a.high, b.high)};
  }
  PERHAPS_INLINE static bool none(Eight a) noexcept {
    return _mm_movemask_epi8(_mm_cmpeq_epi32(_mm_or_si128(a.low, a.high), _mm_setzero_si128())) == 0xffff;
  }
  // There is no multiplication of four words, only of two: with the salts two by two, and the low halves of two pairs
  // of products gathered.
  PERHAPS_INLINE static Eight products(std::uint32_t x) noexcept {
    const __m128i factor = _mm_set1_epi32(static_cast<int>(x));
    const auto two = [=](std::size_t at) __attribute__((always_inline)) {
      return _mm_castsi128_ps(_mm_mul_epu32(factor, _mm_set_epi64x(kBlockSalt[at + 1], kBlockSalt[at])));
    };
    return {_mm_castps_si128(_mm_shuffle_ps(two(0), two(2), 0x88)),
            _mm_castps_si128(_mm_shuffle_ps(two(4), two(6), 0x88))};
  }
  // The bit that the top five bits of each product name. There is no shift by a number for each word: 2^n is the
  // floating-point number of exponent n, turned into an integer. 2^31 is out of range, which gives 0x80000000: right.
  PERHAPS_INLINE static Eight bits(Eight product) noexcept {
    const auto power = [](__m128i of) __attribute__((always_inline)) {
      const __m128i exponent = _mm_and_si128(_mm_srli_epi32(of, 4), _mm_set1_epi32(31 << 23));
      return _mm_cvttps_epi32(_mm_castsi128_ps(_mm_add_epi32(exponent, _mm_set1_epi32(127 << 23))));
    };
    return {power(product.low), power(product.high)};
  }
  // All ones where the sixth bit from the top is set: the second of a lane's two words.
  PERHAPS_INLINE static Eight is_odd(Eight product) noexcept {
    return {_mm_srai_epi32(_mm_slli_epi32(product.low, 5), 31), _mm_srai_epi32(_mm_slli_epi32(product.high, 5), 31)};
  }
  PERHAPS_INLINE static Eight choose(Eight mask, Eight yes, Eight no) noexcept {
    return either(both(mask, yes), clear(mask, no));
  }
  // All ones in the lanes of a round of `probes` that begins at lane `start`.
  PERHAPS_INLINE static Eight probed(std::uint32_t start, std::uint32_t probes) noexcept {
    const auto four = [=](__m128i lane) __attribute__((always_inline)) {
      const __m128i turn =
          _mm_and_si128(_mm_sub_epi32(lane, _mm_set1_epi32(static_cast<int>(start))), _mm_set1_epi32(7));
      return _mm_cmpgt_epi32(_mm_set1_epi32(static_cast<int>(probes)), turn);
    };
    return {four(_mm_setr_epi32(0, 1, 2, 3)), four(_mm_setr_epi32(4, 5, 6, 7))};
  }
};

struct Sse2 : OfEight<Sse2Eight> {
  // As that of Avx2.
  [[gnu::always_inline]] static bool ribbon_equals(const std::byte* block, const std::byte* next, std::uint32_t width,
                                                   std::uint64_t low, std::uint64_t high,
                                                   std::uint32_t fingerprint) noexcept {
    const __m128i lows = _mm_set1_epi64x(static_cast<long long>(low));
    const __m128i highs = _mm_set1_epi64x(static_cast<long long>(high));
    const auto products = [&](std::uint32_t at) __attribute__((always_inline)) {
      const __m128i here = _mm_loadu_si128(reinterpret_cast<const __m128i*>(block + std::uint64_t{8} * at));
      const __m128i there = _mm_loadu_si128(reinterpret_cast<const __m128i*>(next + std::uint64_t{8} * at));
      return _mm_castsi128_ps(_mm_xor_si128(_mm_and_si128(here, lows), _mm_and_si128(there, highs)));
    };
    // Four columns, folded to the upper 16 of 32 bits each.
    const auto four = [&](std::uint32_t at) __attribute__((always_inline)) {
      const __m128 a = products(at);
      const __m128 b = products(at + 2);
      const __m128i folded = _mm_castps_si128(_mm_xor_ps(_mm_shuffle_ps(a, b, 0x88), _mm_shuffle_ps(a, b, 0xdd)));
      return _mm_srai_epi32(_mm_xor_si128(folded, _mm_slli_epi32(folded, 16)), 16);
    };
    return ribbon_columns_equal(
        width, fingerprint, [&](std::uint32_t i, std::uint32_t j) __attribute__((always_inline)) {
          __m128i sum = _mm_packs_epi32(four(i), four(j));
          sum = _mm_xor_si128(sum, _mm_slli_epi16(sum, 8));
          sum = _mm_xor_si128(sum, _mm_slli_epi16(sum, 4));
          sum = _mm_xor_si128(sum, _mm_slli_epi16(sum, 2));
          sum = _mm_xor_si128(sum, _mm_slli_epi16(sum, 1));
          return static_cast<std::uint32_t>(_mm_movemask_epi8(_mm_packs_epi16(sum, _mm_setzero_si128())));
        });
  }
};
#endif

#if defined(PERHAPS_NEON)
struct NeonEight {
  struct Eight {
    uint32x4_t low;
    uint32x4_t high;
  };
  PERHAPS_INLINE static Eight load(const std::byte* at) noexcept {
    const auto* bytes = reinterpret_cast<const std::uint8_t*>(at);
    return {vreinterpretq_u32_u8(vld1q_u8(bytes)), vreinterpretq_u32_u8(vld1q_u8(bytes + 16))};
  }
  PERHAPS_INLINE static void store(std::byte* at, Eight words) noexcept {
    auto* bytes = reinterpret_cast<std::uint8_t*>(at);
    vst1q_u8(bytes, vreinterpretq_u8_u32(words.low));
    vst1q_u8(bytes + 16, vreinterpretq_u8_u32(words.high));
  }
  PERHAPS_INLINE static Eight both(Eight a, Eight b) noexcept {
    return {vandq_u32(a.low, b.low), vandq_u32(a.high, b.high)};
  }
  PERHAPS_INLINE static Eight either(Eight a, Eight b) noexcept {
    return {vorrq_u32(a.low, b.low), vorrq_u32(a.high, b.high)};
  }
  PERHAPS_INLINE static Eight clear(Eight a, Eight b) noexcept {
    return {vbicq_u32(b.low, a.low), vbicq_u32(b.high, a.high)};
  }
  PERHAPS_INLINE static bool none(Eight a) noexcept { return vmaxvq_u32(vorrq_u32(a.low, a.high)) == 0; }
  PERHAPS_INLINE static Eight products(std::uint32_t x) noexcept {
    return {vmulq_n_u32(vld1q_u32(kBlockSalt.data()), x), vmulq_n_u32(vld1q_u32(kBlockSalt.data() + 4), x)};
  }
  PERHAPS_INLINE static Eight bits(Eight product) noexcept {
    const auto power = [](uint32x4_t of) __attribute__((always_inline)) {
      return vshlq_u32(vdupq_n_u32(1), vreinterpretq_s32_u32(vshrq_n_u32(of, 27)));
    };
    return {power(product.low), power(product.high)};
  }
  PERHAPS_INLINE static Eight is_odd(Eight product) noexcept {
    const uint32x4_t sixth = vdupq_n_u32(1u << 26);
    return {vtstq_u32(product.low, sixth), vtstq_u32(product.high, sixth)};
  }
  PERHAPS_INLINE static Eight choose(Eight mask, Eight yes, Eight no) noexcept {
    return {vbslq_u32(mask.low, yes.low, no.low), vbslq_u32(mask.high, yes.high, no.high)};
  }
  PERHAPS_INLINE static Eight probed(std::uint32_t start, std::uint32_t probes) noexcept {
    static constexpr std::uint32_t kLane[8] = {0, 1, 2, 3, 4, 5, 6, 7};
    const auto four = [=](const std::uint32_t* lane) __attribute__((always_inline)) {
      const uint32x4_t turn = vandq_u32(vsubq_u32(vld1q_u32(lane), vdupq_n_u32(start)), vdupq_n_u32(7));
      return vcltq_u32(turn, vdupq_n_u32(probes));
    };
    return {four(kLane), four(kLane + 4)};
  }
};
struct Neon : OfEight<NeonEight> {};
#undef PERHAPS_NEON
using Here = Neon;
#elif defined(__AVX2__)
using Here = Avx2;
#elif defined(__SSE2__)
// AVX2 if this machine has it. Until the start-up code of the compiler has run, it seems to have none.
struct Either : Sse2 {
  PERHAPS_INLINE static bool line_covers(const std::byte* line, auto key) noexcept {
    return has_avx2() ? avx2_line_covers(line, key) : Sse2::line_covers(line, key);
  }
  PERHAPS_INLINE static bool block_covers(const std::byte* block, std::uint32_t x) noexcept {
    return has_avx2() ? avx2_block_covers(block, x) : Sse2::block_covers(block, x);
  }
  PERHAPS_INLINE static bool line_insert(std::byte* line, auto key) noexcept {
    return has_avx2() ? avx2_line_insert(line, key) : Sse2::line_insert(line, key);
  }
  PERHAPS_INLINE static bool block_insert(std::byte* block, std::uint32_t x) noexcept {
    return has_avx2() ? avx2_block_insert(block, x) : Sse2::block_insert(block, x);
  }

 private:
  PERHAPS_INLINE static bool has_avx2() noexcept { return __builtin_expect(__builtin_cpu_supports("avx2") != 0, 1); }
};
using Here = Either;
#else
using Here = Portable;
#endif

}  // namespace perhaps::detail::isa
