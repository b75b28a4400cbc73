// Finds and counts separators at several bytes a cycle. Key lists are made of short lines, where a call of memchr for
// each line costs more than the line: 64 bytes become one bit mask instead, and the mask is walked. SSE2, which every
// x86-64 has, compares sixteen bytes at a time; elsewhere eight are compared in one word.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "little_endian.h"
#include "perhaps/hash.h"
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace perhaps::cli {

// The highest bit of each byte that is the separator, from eight bytes at p: what every machine has.
constexpr std::uint64_t separators_in_8(const std::byte* p, std::byte separator) noexcept {
  constexpr std::uint64_t kOnes = 0x0101010101010101u, kLow = 0x7f * kOnes;
  const std::uint64_t differs =
      load_little_endian<std::uint64_t>(p) ^ std::to_integer<std::uint64_t>(separator) * kOnes;
  return ~(((differs & kLow) + kLow) | differs | kLow);
}
// As separators_in_64. The product moves the bits of eight bytes side by side.
constexpr std::uint64_t separators_by_word(const std::byte* p, std::byte separator) noexcept {
  std::uint64_t mask = 0;
  for (unsigned i = 0; i < 64; i += 8)
    mask |= ((separators_in_8(p + i, separator) >> 7) * 0x0102040810204080u >> 56) << i;
  return mask;
}
// Checked wherever this is compiled, though x86 does not run it: bytes that differ in one bit, and all others.
static_assert([] {
  for (unsigned separator : {0u, 10u, 127u, 128u, 255u}) {
    for (unsigned first = 0; first < 256; first += 64) {
      std::byte text[64] = {};
      std::uint64_t expected = 0;
      for (unsigned i = 0; i < 64; ++i) {
        text[i] = static_cast<std::byte>(i % 5 == 0 ? separator : i % 5 == 1 ? separator ^ 1u << i % 8 : first + i);
        expected |= std::uint64_t{text[i] == static_cast<std::byte>(separator)} << i;
      }
      if (separators_by_word(text, static_cast<std::byte>(separator)) != expected) return false;
    }
  }
  return true;
}());

// Bit i is set if p[i] == separator.  REQUIRES: 64 readable bytes
inline std::uint64_t separators_in_64(const std::byte* p, std::byte separator) noexcept {
#if defined(__SSE2__)
  const __m128i wanted = _mm_set1_epi8(static_cast<char>(separator));
  std::uint64_t mask = 0;
  for (int i = 0; i < 4; ++i) {
    const __m128i text = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p) + i);
    mask |= std::uint64_t{static_cast<std::uint32_t>(_mm_movemask_epi8(_mm_cmpeq_epi8(text, wanted)))} << (16 * i);
  }
  return mask;
#else
  return separators_by_word(p, separator);
#endif
}

inline std::uint64_t count_separators(Bytes text, std::byte separator) noexcept {
  std::uint64_t count = 0;
  const std::byte* p = text.data();
  const std::byte* const end = p + text.size();
#if defined(__SSE2__)
  // Sixteen counters of one byte, emptied before they can overflow; SSE2 has no population count.
  const __m128i wanted = _mm_set1_epi8(static_cast<char>(separator));
  while (end - p >= 16) {
    __m128i counters = _mm_setzero_si128();
    for (int round = 0; round < 255 && end - p >= 16; ++round, p += 16) {
      const __m128i text16 = _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
      counters = _mm_sub_epi8(counters, _mm_cmpeq_epi8(text16, wanted));
    }
    std::uint64_t sums[2];
    _mm_storeu_si128(reinterpret_cast<__m128i*>(sums), _mm_sad_epu8(counters, _mm_setzero_si128()));
    count += sums[0] + sums[1];
  }
#else
  for (; end - p >= 8; p += 8) count += static_cast<std::uint64_t>(std::popcount(separators_in_8(p, separator)));
#endif
  for (; p != end; ++p) count += *p == separator;
  return count;
}

// Takes records off the front of `text`, without their separators; a last record needs none. At most `most` records.
inline std::size_t split_records(Bytes& text, std::byte separator, Bytes* out, std::size_t most) noexcept {
  const std::byte* start = text.data();
  const std::byte* p = start;
  const std::byte* const end = start + text.size();
  std::size_t n = 0;
  while (end - p >= 64 && n + 64 <= most) {
    for (std::uint64_t mask = separators_in_64(p, separator); mask != 0; mask &= mask - 1) {
      const std::byte* const at = p + std::countr_zero(mask);
      out[n++] = {start, at};
      start = at + 1;
    }
    p += 64;
  }
  // Near the end of the text or of `out`.
  while (start != end && n < most) {
    const auto* at = p < end ? static_cast<const std::byte*>(
                                   std::memchr(p, static_cast<int>(separator), static_cast<std::size_t>(end - p)))
                             : nullptr;
    if (at == nullptr) at = end;
    out[n++] = {start, at};
    start = at == end ? end : at + 1;
    p = start;
    if (n + 64 <= most && end - p >= 64) break;  // a long record brought us here: back to the fast loop, next call
  }
  text = {start, end};
  return n;
}

}  // namespace perhaps::cli
