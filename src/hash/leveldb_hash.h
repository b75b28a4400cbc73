// The 32-bit hash of LevelDB and of old RocksDB filters, a variant of MurmurHash. The two systems differ in the last
// one to three bytes of a key: LevelDB treats them as unsigned, RocksDB sign-extends them. So keys with such a byte >=
// 0x80 hash differently.
#pragma once
#include <bit>

#include "perhaps/detail/bits.h"
#include "perhaps/hash.h"

namespace perhaps {
namespace detail {

template <class Tail>
std::uint32_t leveldb_murmur(Bytes bytes, std::uint32_t seed) noexcept {
  constexpr std::uint32_t kMultiplier = 0xc6a4a793;
  const auto size = static_cast<std::uint32_t>(bytes.size());
  std::uint32_t h = seed ^ (size * kMultiplier);
  std::size_t at = 0;
  for (; at + 4 <= bytes.size(); at += 4) {
    h = (h + load<std::uint32_t>(bytes.data() + at)) * kMultiplier;
    h ^= h >> 16;
  }
  if (at == bytes.size()) return h;
  for (unsigned shift = 0; at < bytes.size(); ++at, shift += 8)
    h += static_cast<std::uint32_t>(static_cast<Tail>(bytes[at])) << shift;
  h *= kMultiplier;
  return h ^ h >> 24;
}

}  // namespace detail

inline constexpr std::uint32_t kLevelDbBloomSeed = 0xbc9f1d34;

inline std::uint32_t leveldb_hash(Bytes bytes, std::uint32_t seed = kLevelDbBloomSeed) noexcept {
  return detail::leveldb_murmur<std::uint8_t>(bytes, seed);
}
inline std::uint32_t rocksdb_hash(Bytes bytes, std::uint32_t seed = kLevelDbBloomSeed) noexcept {
  return detail::leveldb_murmur<std::int8_t>(bytes, seed);
}

}  // namespace perhaps
