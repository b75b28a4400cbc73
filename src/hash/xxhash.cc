// xxHash: the default hash (XXH3), the checksum of our own file format, and the functions that foreign formats use.
// Only this file includes xxHash, and inlines it, so that short keys do not pay for a second call.
#define XXH_INLINE_ALL
#include <xxhash.h>

#include <array>
#include <new>

#include "hash/checksum.h"
#include "hash/xxh64.h"
#include "perhaps/hash.h"

namespace perhaps {
namespace {

// XXH3 derives 192 bytes from a seed that is not 0 whenever a key has more than 240 bytes. Those of the default seed
// are derived once.
std::uint64_t xxh3_long(const void* data, std::size_t size) noexcept {
  static const auto kSecret = [] {
    std::array<char, XXH_SECRET_DEFAULT_SIZE> secret;
    XXH3_generateSecret_fromSeed(secret.data(), Hash::kDefaultSeed);
    return secret;
  }();
  return XXH3_64bits_withSecretandSeed(data, size, kSecret.data(), kSecret.size(), Hash::kDefaultSeed);
}

std::uint64_t xxh3(const void* data, std::size_t size, std::uint64_t seed) noexcept {
  if (size > XXH3_MIDSIZE_MAX && seed == Hash::kDefaultSeed) return xxh3_long(data, size);
  return XXH3_64bits_withSeed(data, size, seed);
}

template <class K>
void hash_all(const Hash& hash, std::span<const K> keys, std::span<Digest<Hash>> out) noexcept {
  for (std::size_t i = 0; i < keys.size(); ++i) {
    out[i] = Digest<Hash>::made_by(hash, xxh3(keys[i].data(), keys[i].size(), hash.seed()));
  }
}

}  // namespace

Digest<Hash> Hash::operator()(Bytes key) const noexcept {
  return Digest<Hash>::made_by(*this, xxh3(key.data(), key.size(), seed_));
}

void Hash::many(std::span<const Bytes> keys, std::span<Digest<Hash>> out) const noexcept { hash_all(*this, keys, out); }

void Hash::many(std::span<const std::string_view> keys, std::span<Digest<Hash>> out) const noexcept {
  hash_all(*this, keys, out);
}

Checksum::Checksum() noexcept {
  static_assert(sizeof(XXH3_state_t) <= sizeof state_ && alignof(XXH3_state_t) <= alignof(Checksum));
  XXH3_64bits_reset(new (state_.data()) XXH3_state_t);
}

void Checksum::add(Bytes bytes) noexcept {
  XXH3_64bits_update(reinterpret_cast<XXH3_state_t*>(state_.data()), bytes.data(), bytes.size());
}

std::uint64_t Checksum::value() const noexcept {
  return XXH3_64bits_digest(reinterpret_cast<const XXH3_state_t*>(state_.data()));
}

std::uint64_t xxh64(Bytes bytes, std::uint64_t seed) noexcept { return XXH64(bytes.data(), bytes.size(), seed); }
std::uint32_t xxh32(Bytes bytes, std::uint32_t seed) noexcept { return XXH32(bytes.data(), bytes.size(), seed); }

}  // namespace perhaps
