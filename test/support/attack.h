// What an adversary does who knows the hash, and what remains of it under a secret.
//
// XXH3 is a chain of steps that can all be undone as long as the key has at most 16 bytes. Of 16 bytes (lo, hi), each
// xored with a constant that follows from the seed,
//   digest = avalanche(16 + swap(lo) + hi + fold(lo * hi)),   avalanche: h ^= h >> 37, h *= odd, h ^= h >> 32
// so lo = 0 and hi = unavalanche(digest) - 16 is a key with any digest one likes: a second preimage of all 64 bits in a
// few nanoseconds. No family, size or rate helps against it.
//
// MurmurHash64A (RedisBloom) reads words k as mix(k) = (x ^ x >> 47) * m, x = k * m, and does h = (h ^ mix(k)) * m. A
// flipped top bit of h survives the product with an odd number as a flipped top bit: flipping it in mix of two
// neighbouring words changes nothing, *whatever the seed* (Aumasson, Bernstein, Bosslet 2012). RedisBloom hashes twice,
// the second time with the first hash as seed; both agree.
#pragma once
#include <array>
#include <cstring>
#include <string>
#include <string_view>

#include "perhaps/detail/bits.h"
#include "perhaps/hash.h"

namespace perhaps::test {

// x with odd * x = 1 modulo 2^64, by Newton.
constexpr std::uint64_t inverse_of(std::uint64_t odd) noexcept {
  std::uint64_t x = odd;
  for (int i = 0; i < 6; ++i) x *= 2 - odd * x;
  return x;
}

// Another key, of 16 bytes, with the digest of `victim` under Hash(seed).
inline std::string same_digest_as(std::string_view victim, std::uint64_t seed) {
  std::uint64_t h = Hash(seed)(bytes_of(victim)).value;
  h ^= h >> 32;
  h *= inverse_of(0x165667919e3779f9u);
  h ^= h >> 37;
  // What the two halves are xored with: words of XXH3's default secret, and the seed.
  constexpr std::uint64_t kLow = 0x1f67b3b7a4a44072u ^ 0x78e5c0cc4ee679cbu;
  constexpr std::uint64_t kHigh = 0x2172ffcc7dd05a82u ^ 0x8e2443f7744608b8u;
  std::array<std::byte, 16> key;
  detail::store<std::uint64_t>(key.data(), kLow + seed);
  detail::store<std::uint64_t>(key.data() + 8, (h - 16) ^ (kHigh - seed));
  return {reinterpret_cast<const char*>(key.data()), key.size()};
}

// Another key with the MurmurHash64A of `victim` under every seed.  REQUIRES: victim.size() >= 16
inline std::string same_murmur_as(std::string_view victim) {
  constexpr std::uint64_t kM = 0xc6a4a7935bd1e995u;
  std::string key(victim);
  for (std::size_t at : {0, 8}) {
    std::uint64_t k = detail::load<std::uint64_t>(reinterpret_cast<const std::byte*>(key.data()) + at);
    k *= kM;
    k = (k ^ k >> 47) * kM;
    k ^= std::uint64_t{1} << 63;
    k *= inverse_of(kM);
    k ^= k >> 47;
    k *= inverse_of(kM);
    detail::store(reinterpret_cast<std::byte*>(key.data()) + at, k);
  }
  return key;
}

}  // namespace perhaps::test
