// 64-bit FNV-1a and FNV-1 (Fowler, Noll, Vo), and the finaliser of SplitMix64 (Steele, Lea, Flood 2014).
#pragma once
#include "perhaps/hash.h"

namespace perhaps {

inline constexpr std::uint64_t kFnvBasis = 0xcbf29ce484222325u;
inline constexpr std::uint64_t kFnvPrime = 0x100000001b3u;

// XORs a byte in, then multiplies.
inline std::uint64_t fnv1a_64(Bytes bytes) noexcept {
  std::uint64_t h = kFnvBasis;
  for (const std::byte b : bytes) h = (h ^ std::to_integer<std::uint64_t>(b)) * kFnvPrime;
  return h;
}

// Multiplies, then XORs a byte in.
inline std::uint64_t fnv1_64(Bytes bytes) noexcept {
  std::uint64_t h = kFnvBasis;
  for (const std::byte b : bytes) h = h * kFnvPrime ^ std::to_integer<std::uint64_t>(b);
  return h;
}

constexpr std::uint64_t splitmix64(std::uint64_t x) noexcept {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

}  // namespace perhaps
