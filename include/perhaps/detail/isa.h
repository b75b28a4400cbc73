// The one place that asks what the *including* file is compiled for. Batch calls are dispatched at run time; a single
// lookup is inlined (a call through a pointer measured 1.4 to 1.7 times the inlined probe), so it can only use what the
// compiler was told it may use: -mavx2 or -march=... gives the AVX2 form, anything else the portable reference.
//
// `Here` is a template argument of every inline probe, so that a probe compiled for AVX2 and one that is not are
// different functions to the linker. That holds for probes. Any other inline function, std::vector's as well, may carry
// AVX2 code when it is compiled with -mavx2 and be merged with its namesake: a program that must start on older
// machines compiles all of its files without it, and has the speed where it counts from the dispatched batch calls.
#pragma once
#include <cstddef>
#include <cstdint>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

namespace perhaps::detail::isa {

struct Portable {};

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

 private:
  static __m256i products(std::uint32_t x, const std::uint32_t* salt) noexcept {
    return _mm256_mullo_epi32(_mm256_set1_epi32(static_cast<int>(x)),
                              _mm256_loadu_si256(reinterpret_cast<const __m256i*>(salt)));
  }
  static __m256i top_five(__m256i product) noexcept {
    return _mm256_sllv_epi32(_mm256_set1_epi32(1), _mm256_srli_epi32(product, 27));
  }
};
using Here = Avx2;
#else
using Here = Portable;
#endif

}  // namespace perhaps::detail::isa
