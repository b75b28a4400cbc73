// MurmurHash3 (Appleby 2011), in the widths foreign formats use, and as two of them bend it. The seed of the wide one
// is always 0.
#pragma once
#include "perhaps/hash.h"

namespace perhaps {

struct Murmur128 {
  std::uint64_t first;
  std::uint64_t second;
};

Murmur128 murmur3_x64_128(Bytes key) noexcept;
// Cassandra's: each byte after the last 16 is sign-extended to 64 bits before it is shifted and xored in.
Murmur128 murmur3_x64_128_cassandra(Bytes key) noexcept;
// Of the key, and of the key with one byte 0x01 behind it.
std::array<std::uint64_t, 4> murmur3_x64_128_twice(Bytes key) noexcept;

std::uint32_t murmur3_x86_32(Bytes key, std::uint32_t seed) noexcept;
// Spark's: each byte after the last 4 is sign-extended to 32 bits and mixed in like a whole word.
std::uint32_t murmur3_x86_32_spark(Bytes key, std::uint32_t seed) noexcept;

}  // namespace perhaps
