// The one place that depends on what the *including* file is compiled for. Batch calls are dispatched at run time; a
// single lookup is inlined (a call through a pointer measured 1.4 to 1.7 times the inlined probe), so it can only use
// what the compiler was told it may use: -mavx2 or -march=... gives the AVX2 form, anything else the portable
// reference. The ribbon has a form for SSE2, too, which every x86-64 has.
//
// `Here` is a template argument of every inline probe, so that a probe compiled for AVX2 and one that is not are
// different functions to the linker. That holds for probes. Any other inline function, std::vector's as well, may carry
// AVX2 code when it is compiled with -mavx2 and be merged with its namesake: a program that must start on older
// machines compiles all of its files without it, and has the speed where it counts from the dispatched batch calls.
#pragma once
#include <cstddef>
#include <cstdint>

#include "perhaps/detail/config.h"

#if defined(__AVX2__)
#include <immintrin.h>
#elif defined(__SSE2__)
#include <emmintrin.h>
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

#if defined(__AVX2__)
struct Avx2 {
  // With p = x * salt_j >> 26: is bit p / 2 of word j (p even) or word j + 8 (p odd) of the line set, for all j?
  static bool line_covers(const std::byte* line, std::uint32_t x, const std::uint32_t* salt) noexcept {
    const auto* halves = reinterpret_cast<const __m256*>(line);
    const __m256i product = products(x, salt);
    const __m256i odd = _mm256_slli_epi32(product, 5);  // the lowest bit of p becomes the sign
    const __m256 words =
        _mm256_blendv_ps(_mm256_loadu_ps(reinterpret_cast<const float*>(halves)),
                         _mm256_loadu_ps(reinterpret_cast<const float*>(halves + 1)), _mm256_castsi256_ps(odd));
    return _mm256_testc_si256(_mm256_castps_si256(words), top_five(product)) != 0;
  }

  // Are all bits of eight 32-bit lane masks, 1 << (x * salt_i >> 27), set in the 32-byte block?
  static bool block_covers(const std::byte* block, std::uint32_t x, const std::uint32_t* salt) noexcept {
    const __m256i have = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(block));
    return _mm256_testc_si256(have, top_five(products(x, salt))) != 0;
  }

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
  static __m256i products(std::uint32_t x, const std::uint32_t* salt) noexcept {
    return _mm256_mullo_epi32(_mm256_set1_epi32(static_cast<int>(x)),
                              _mm256_loadu_si256(reinterpret_cast<const __m256i*>(salt)));
  }
  static __m256i top_five(__m256i product) noexcept {
    return _mm256_sllv_epi32(_mm256_set1_epi32(1), _mm256_srli_epi32(product, 27));
  }
};
using Here = Avx2;
#elif defined(__SSE2__)
struct Sse2 {
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
using Here = Sse2;
#else
using Here = Portable;
#endif

}  // namespace perhaps::detail::isa
