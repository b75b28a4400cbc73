// MurmurHash2 (32 bits) and MurmurHash64A (Appleby 2008), as RedisBloom uses them, and the first as Hadoop bends it.
#pragma once
#include <cstring>

#include "perhaps/hash.h"

namespace perhaps {

namespace detail {

// The last `left` bytes, 1 to 7, as a little-endian number. Not memcpy: it would be a call.
inline std::uint64_t last_bytes(Bytes bytes, std::size_t left) noexcept {
  const std::byte* const end = bytes.data() + bytes.size();
  std::uint64_t word = 0;
  if (bytes.size() >= 8) {
    std::memcpy(&word, end - 8, 8);
    return word >> (64 - 8 * left);
  }
  for (std::size_t i = 1; i <= left; ++i) word = word << 8 | std::to_integer<std::uint64_t>(*(end - i));
  return word;
}

}  // namespace detail

inline std::uint64_t murmur64a(Bytes bytes, std::uint64_t seed) noexcept {
  constexpr std::uint64_t m = 0xc6a4a7935bd1e995u;
  std::uint64_t h = seed ^ (bytes.size() * m);
  const std::byte* at = bytes.data();
  for (std::size_t left = bytes.size() / 8; left != 0; --left, at += 8) {
    std::uint64_t word;
    std::memcpy(&word, at, 8);
    word *= m;
    h = (h ^ ((word ^ (word >> 47)) * m)) * m;
  }
  if (const std::size_t left = bytes.size() % 8; left != 0) h = (h ^ detail::last_bytes(bytes, left)) * m;
  h = (h ^ (h >> 47)) * m;
  return h ^ (h >> 47);
}

namespace detail {

// Of the whole words; the one to three bytes after them are xored in as `tail`.
template <class Tail>
std::uint32_t murmur2(Bytes bytes, std::uint32_t seed, Tail tail) noexcept {
  constexpr std::uint32_t m = 0x5bd1e995u;
  std::uint32_t h = seed ^ static_cast<std::uint32_t>(bytes.size());
  for (; bytes.size() >= 4; bytes = bytes.subspan(4)) {
    std::uint32_t word;
    std::memcpy(&word, bytes.data(), 4);
    word *= m;
    h = h * m ^ (word ^ (word >> 24)) * m;
  }
  if (!bytes.empty()) h = (h ^ tail(bytes)) * m;
  h = (h ^ (h >> 13)) * m;
  return h ^ (h >> 15);
}

}  // namespace detail

inline std::uint32_t murmur2_32(Bytes bytes, std::uint32_t seed) noexcept {
  return detail::murmur2(bytes, seed, [](Bytes last) {
    std::uint32_t word = 0;
    std::memcpy(&word, last.data(), last.size());
    return word;
  });
}

// Hadoop takes those last bytes the other way round, and sign-extends each of them.
inline std::uint32_t murmur2_hadoop(Bytes bytes, std::uint32_t seed) noexcept {
  return detail::murmur2(bytes, seed, [](Bytes last) {
    std::uint32_t word = 0;
    for (const std::byte b : last) word = word << 8 ^ static_cast<std::uint32_t>(static_cast<std::int8_t>(b));
    return word;
  });
}

}  // namespace perhaps
