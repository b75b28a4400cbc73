// Words and bits of a table. Tables have no alignment that a caller must keep: blocks of a file lie anywhere. Words are
// little-endian in a table; this file is the only one that knows the byte order of the machine.
#pragma once
#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "perhaps/detail/config.h"

namespace perhaps::detail {

// An unsigned integer of 128 bits for compilers that have none: what 32-bit targets use instead of `unsigned __int128`.
// Only the operations that the library needs.
struct WordPair {
  std::uint64_t low;
  std::uint64_t high;

  WordPair() = default;
  constexpr WordPair(std::uint64_t value) noexcept : low(value), high(0) {}
  constexpr WordPair(std::uint64_t low_word, std::uint64_t high_word) noexcept : low(low_word), high(high_word) {}
  explicit constexpr operator std::uint64_t() const noexcept { return low; }

  friend constexpr bool operator==(WordPair a, WordPair b) noexcept { return a.low == b.low && a.high == b.high; }
  friend constexpr WordPair operator&(WordPair a, WordPair b) noexcept { return {a.low & b.low, a.high & b.high}; }
  friend constexpr WordPair operator|(WordPair a, WordPair b) noexcept { return {a.low | b.low, a.high | b.high}; }
  friend constexpr WordPair operator^(WordPair a, WordPair b) noexcept { return {a.low ^ b.low, a.high ^ b.high}; }
  constexpr WordPair operator~() const noexcept { return {~low, ~high}; }
  // REQUIRES: by < 128
  constexpr WordPair operator<<(unsigned by) const noexcept {
    if (by == 0) return *this;
    return by < 64 ? WordPair(low << by, high << by | low >> (64 - by)) : WordPair(0, low << (by - 64));
  }
  constexpr WordPair operator>>(unsigned by) const noexcept {
    if (by == 0) return *this;
    return by < 64 ? WordPair(low >> by | high << (64 - by), high >> by) : WordPair(high >> (by - 64), 0);
  }
  friend constexpr WordPair operator+(WordPair a, WordPair b) noexcept {
    const std::uint64_t sum = a.low + b.low;
    return {sum, a.high + b.high + (sum < a.low)};
  }
  friend constexpr WordPair operator-(WordPair a, WordPair b) noexcept {
    return {a.low - b.low, a.high - b.high - (a.low < b.low)};
  }
  friend constexpr WordPair operator*(WordPair a, WordPair b) noexcept {
    const std::uint64_t a0 = a.low & 0xffffffff, a1 = a.low >> 32, b0 = b.low & 0xffffffff, b1 = b.low >> 32;
    const std::uint64_t bottom = a0 * b0;
    const std::uint64_t cross = a1 * b0 + (bottom >> 32);  // at most 2^64 - 2^32: no carry
    const std::uint64_t middle = a0 * b1 + (cross & 0xffffffff);
    return {middle << 32 | (bottom & 0xffffffff),
            a1 * b1 + (cross >> 32) + (middle >> 32) + a.low * b.high + a.high * b.low};
  }
  constexpr WordPair& operator&=(WordPair other) noexcept { return *this = *this & other; }
  constexpr WordPair& operator^=(WordPair other) noexcept { return *this = *this ^ other; }
  constexpr WordPair& operator+=(WordPair other) noexcept { return *this = *this + other; }
  constexpr WordPair& operator>>=(unsigned by) noexcept { return *this = *this >> by; }
};

#if defined(__SIZEOF_INT128__) && !defined(__wasm__)  // whose products of 128 bits are calls
__extension__ using Wide = unsigned __int128;
#else
using Wide = WordPair;
#endif

// floor(x * n / 2^64): maps a uniform x to 0..n-1 without a division, keeping order, so that halving n halves the
// result.
constexpr std::uint64_t scale(std::uint64_t x, std::uint64_t n) noexcept {
  return static_cast<std::uint64_t>((static_cast<Wide>(x) * n) >> 64);
}
// The high word of a * b xored with the low one.
constexpr std::uint64_t folded_product(std::uint64_t a, std::uint64_t b) noexcept {
  const Wide product = static_cast<Wide>(a) * b;
  return static_cast<std::uint64_t>(product >> 64) ^ static_cast<std::uint64_t>(product);
}

// Odd multipliers that turn one 32-bit number into eight nearly independent ones (their high bits). Part of layouts.
inline constexpr std::array<std::uint32_t, 8> kBlockSalt = {0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d,
                                                            0x705495c7, 0x2df1424b, 0x9efc4947, 0x5c6bfb31};

// detail::bit_cast, which libc++ has only since version 14.
template <class To, class From>
constexpr To bit_cast(const From& from) noexcept {
  static_assert(sizeof(To) == sizeof(From));
  return __builtin_bit_cast(To, from);
}

// What tables are made of. Not structures, whose bytes are the compiler's affair.
template <class W>
concept TableWord = std::unsigned_integral<W> || std::same_as<W, Wide> || std::same_as<W, WordPair>;

// The bytes of a word in reverse order.
template <TableWord Word>
constexpr Word byte_swapped(Word word) noexcept {
  if constexpr (sizeof(Word) == 1) {
    return word;
  } else if constexpr (sizeof(Word) == 2) {
    return __builtin_bswap16(word);
  } else if constexpr (sizeof(Word) == 4) {
    return __builtin_bswap32(word);
  } else if constexpr (sizeof(Word) == 8) {
    return __builtin_bswap64(word);
  } else {
    static_assert(sizeof(Word) == 16);
    return static_cast<Word>(__builtin_bswap64(static_cast<std::uint64_t>(word))) << 64 |
           __builtin_bswap64(static_cast<std::uint64_t>(word >> 64));
  }
}

// From the byte order of the machine to little-endian, or back. Nothing on a little-endian machine.
template <TableWord Word>
constexpr Word little_endian(Word word) noexcept {
  if constexpr (std::endian::native == std::endian::little) {
    return word;
  } else {
    return byte_swapped(word);
  }
}

template <TableWord Word>
Word load(const std::byte* at) noexcept {
  Word word;
  std::memcpy(&word, at, sizeof word);
  return little_endian(word);
}

// A word of which only the first `size` bytes are there; the others are zero.  REQUIRES: size <= sizeof(Word)
template <TableWord Word>
Word load_first(const std::byte* at, std::size_t size) noexcept {
  Word word = 0;
  std::memcpy(&word, at, size);
  return little_endian(word);
}

template <TableWord Word>
void store(std::byte* at, Word word) noexcept {
  word = little_endian(word);
  std::memcpy(at, &word, sizeof word);
}

// Sets the bits of `mask`; true if any of them was 0.
template <class Word>
bool set_bits(std::byte* at, Word mask) noexcept {
  const Word before = load<Word>(at);
  store<Word>(at, before | mask);
  return (before & mask) != mask;
}

// The same from many threads.  REQUIRES: `at` is aligned to its size. A word that already has the bits is not written:
// a locked write costs some 20 cycles and takes the line away from every other core. Builtins, because libc++ has no
// std::atomic_ref before version 19.
template <class Word>
bool set_bits_shared(std::byte* at, Word mask) noexcept {
  auto* const word = reinterpret_cast<Word*>(at);
  mask = little_endian(mask);
  if ((__atomic_load_n(word, __ATOMIC_RELAXED) & mask) == mask) return false;
  return (__atomic_fetch_or(word, mask, __ATOMIC_RELAXED) & mask) != mask;
}

template <class Word>
Word load_shared(const std::byte* at) noexcept {
  return little_endian(__atomic_load_n(reinterpret_cast<const Word*>(at), __ATOMIC_RELAXED));
}

// gcc 12 takes a function that only prefetches for one without effect, and drops calls of it that it does not inline
// early; the empty statement is an effect. WebAssembly has no such instruction: there the addresses are not computed.
#if defined(__wasm__)
inline void prefetch_read(const std::byte*) noexcept {}
inline void prefetch_write(const std::byte*) noexcept {}
#else
inline void prefetch_read(const std::byte* at) noexcept {
  __builtin_prefetch(at, 0, 3);
  asm volatile("" : : "r"(at));
}
inline void prefetch_write(const std::byte* at) noexcept {
  __builtin_prefetch(at, 1, 3);
  asm volatile("" : : "r"(at));
}
#endif

}  // namespace perhaps::detail
