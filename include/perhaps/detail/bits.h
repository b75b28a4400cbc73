// Words and bits of a table. Tables have no alignment that a caller must keep: blocks of a file lie anywhere.
#pragma once
#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace perhaps::detail {

__extension__ using Wide = unsigned __int128;

// floor(x * n / 2^64): maps a uniform x to 0..n-1 without a division, keeping order, so that halving n halves the
// result.
constexpr std::uint64_t scale(std::uint64_t x, std::uint64_t n) noexcept {
  return static_cast<std::uint64_t>((static_cast<Wide>(x) * n) >> 64);
}

// Odd multipliers that turn one 32-bit number into eight nearly independent ones (their high bits). Part of layouts.
inline constexpr std::array<std::uint32_t, 8> kBlockSalt = {0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d,
                                                            0x705495c7, 0x2df1424b, 0x9efc4947, 0x5c6bfb31};

template <class Word>
Word load(const std::byte* at) noexcept {
  Word word;
  std::memcpy(&word, at, sizeof word);
  return word;
}

template <class Word>
void store(std::byte* at, Word word) noexcept {
  std::memcpy(at, &word, sizeof word);
}

// Sets the bits of `mask`; true if any of them was 0.
template <class Word>
bool set_bits(std::byte* at, Word mask) noexcept {
  const Word before = load<Word>(at);
  store<Word>(at, before | mask);
  return (before & mask) != mask;
}

// The same from many threads.  REQUIRES: `at` is aligned to its word. A word that already has the bits is not written:
// a locked write costs some 20 cycles and takes the line away from every other core.
template <class Word>
bool set_bits_shared(std::byte* at, Word mask) noexcept {
  std::atomic_ref<Word> word(*reinterpret_cast<Word*>(at));
  if ((word.load(std::memory_order_relaxed) & mask) == mask) return false;
  return (word.fetch_or(mask, std::memory_order_relaxed) & mask) != mask;
}

template <class Word>
Word load_shared(const std::byte* at) noexcept {
  // atomic_ref<const T> is C++26; the load does not write.
  return std::atomic_ref<Word>(*reinterpret_cast<Word*>(const_cast<std::byte*>(at))).load(std::memory_order_relaxed);
}

// gcc 12 takes a function that only prefetches for one without effect, and drops calls of it that it does not inline
// early; the empty statement is an effect.
inline void prefetch_read(const std::byte* at) noexcept {
  __builtin_prefetch(at, 0, 3);
  asm volatile("" : : "r"(at));
}
inline void prefetch_write(const std::byte* at) noexcept {
  __builtin_prefetch(at, 1, 3);
  asm volatile("" : : "r"(at));
}

}  // namespace perhaps::detail
