// MurmurHash2 (32 bits) and MurmurHash64A (Appleby 2008), as used by RedisBloom, and Hadoop's variant of the first.
#pragma once
#include <cstring>

#include "perhaps/detail/bits.h"
#include "perhaps/hash.h"

namespace perhaps {

namespace detail {

// The last `left` bytes, 1 to 7, as a little-endian number. A memcpy of `left` bytes would be a function call.
inline std::uint64_t last_bytes(Bytes bytes, std::size_t left) noexcept {
  const std::byte* const end = bytes.data() + bytes.size();
  if (bytes.size() >= 8) {
    return load<std::uint64_t>(end - 8) >> (64 - 8 * left);
  }
  std::uint64_t word = 0;
  for (std::size_t i = 1; i <= left; ++i) word = word << 8 | std::to_integer<std::uint64_t>(*(end - i));
  return word;
}

}  // namespace detail

inline std::uint64_t murmur64a(Bytes bytes, std::uint64_t seed) noexcept {
  constexpr std::uint64_t m = 0xc6a4a7935bd1e995u;
  std::uint64_t h = seed ^ (bytes.size() * m);
  const std::byte* at = bytes.data();
  for (std::size_t left = bytes.size() / 8; left != 0; --left, at += 8) {
    const std::uint64_t word = detail::load<std::uint64_t>(at) * m;
    h = (h ^ ((word ^ (word >> 47)) * m)) * m;
  }
  if (const std::size_t left = bytes.size() % 8; left != 0) h = (h ^ detail::last_bytes(bytes, left)) * m;
  h = (h ^ (h >> 47)) * m;
  return h ^ (h >> 47);
}

namespace detail {

// Hashes the whole words; tail(bytes) gives the word that is XORed in for the one to three bytes after them.
template <class Tail>
std::uint32_t murmur2(Bytes bytes, std::uint32_t seed, Tail tail) noexcept {
  constexpr std::uint32_t m = 0x5bd1e995u;
  std::uint32_t h = seed ^ static_cast<std::uint32_t>(bytes.size());
  for (; bytes.size() >= 4; bytes = bytes.subspan(4)) {
    const std::uint32_t word = load<std::uint32_t>(bytes.data()) * m;
    h = h * m ^ (word ^ (word >> 24)) * m;
  }
  if (!bytes.empty()) h = (h ^ tail(bytes)) * m;
  h = (h ^ (h >> 13)) * m;
  return h ^ (h >> 15);
}

}  // namespace detail

inline std::uint32_t murmur2_32(Bytes bytes, std::uint32_t seed) noexcept {
  return detail::murmur2(bytes, seed,
                         [](Bytes last) { return detail::load_first<std::uint32_t>(last.data(), last.size()); });
}

// Hadoop reads these last bytes in reverse order and sign-extends each of them.
inline std::uint32_t murmur2_hadoop(Bytes bytes, std::uint32_t seed) noexcept {
  return detail::murmur2(bytes, seed, [](Bytes last) {
    std::uint32_t word = 0;
    for (const std::byte b : last) word = word << 8 ^ static_cast<std::uint32_t>(static_cast<std::int8_t>(b));
    return word;
  });
}

}  // namespace perhaps
