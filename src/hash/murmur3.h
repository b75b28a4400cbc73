// MurmurHash3 (Appleby 2011) in the widths that foreign formats use, with the variants of two of them. The 128-bit hash
// always has seed 0.
#pragma once
#include "perhaps/hash.h"

namespace perhaps {

struct Murmur128 {
  std::uint64_t first;
  std::uint64_t second;
};

Murmur128 murmur3_x64_128(Bytes key) noexcept;
// Cassandra's variant: each byte after the last whole block of 16 is sign-extended to 64 bits before it is shifted and
// XORed in.
Murmur128 murmur3_x64_128_cassandra(Bytes key) noexcept;
// The hash of the key, and that of the key followed by a byte 0x01.
std::array<std::uint64_t, 4> murmur3_x64_128_twice(Bytes key) noexcept;

std::uint32_t murmur3_x86_32(Bytes key, std::uint32_t seed) noexcept;
// Spark's variant: each byte after the last whole word of 4 is sign-extended to 32 bits and mixed in like a whole word.
std::uint32_t murmur3_x86_32_spark(Bytes key, std::uint32_t seed) noexcept;

}  // namespace perhaps
