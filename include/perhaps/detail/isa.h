// The one place that asks what the *including* file is compiled for. Batch calls are dispatched at run time; a single
// lookup is inlined (a call through a pointer measured 1.4 to 1.7 times the inlined probe), so it can only use what the
// compiler was told it may use: -mavx2 or -march=... gives the AVX2 form, anything else the portable reference.
//
// `Here` is a template argument of every inline probe, so that files compiled with different flags instantiate
// different functions and the linker never merges them.
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
  // Are all bits of eight 64-bit lane masks, 1 << (x >> shift_i & 63) for shift 58, 52 .. 16, set in the 64-byte line?
  static bool line_covers(const std::byte* line, std::uint64_t x) noexcept {
    const __m256i fields = _mm256_set1_epi64x(static_cast<long long>(x));
    const __m256i six_bits = _mm256_set1_epi64x(63);
    const __m256i one = _mm256_set1_epi64x(1);
    const __m256i low = _mm256_sllv_epi64(
        one, _mm256_and_si256(_mm256_srlv_epi64(fields, _mm256_setr_epi64x(58, 52, 46, 40)), six_bits));
    const __m256i high = _mm256_sllv_epi64(
        one, _mm256_and_si256(_mm256_srlv_epi64(fields, _mm256_setr_epi64x(34, 28, 22, 16)), six_bits));
    const auto* lanes = reinterpret_cast<const __m256i*>(line);
    const __m256i missing_low = _mm256_andnot_si256(_mm256_loadu_si256(lanes), low);
    const __m256i missing_high = _mm256_andnot_si256(_mm256_loadu_si256(lanes + 1), high);
    const __m256i missing = _mm256_or_si256(missing_low, missing_high);
    return _mm256_testz_si256(missing, missing) != 0;
  }

  // Are all bits of eight 32-bit lane masks, 1 << (x * salt_i >> 27), set in the 32-byte block?
  static bool block_covers(const std::byte* block, std::uint32_t x, const std::uint32_t* salt) noexcept {
    const __m256i salts = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(salt));
    const __m256i bit = _mm256_srli_epi32(_mm256_mullo_epi32(_mm256_set1_epi32(static_cast<int>(x)), salts), 27);
    const __m256i mask = _mm256_sllv_epi32(_mm256_set1_epi32(1), bit);
    return _mm256_testc_si256(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(block)), mask) != 0;
  }
};
using Here = Avx2;
#else
using Here = Portable;
#endif

}  // namespace perhaps::detail::isa
