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

// XXH3 of 17 to 32 bytes, the length of most names, addresses and identifiers, with what depends on the seed alone
// computed once per column: 2.2 ns per key instead of 2.4.
class OfTwoLanes {
 public:
  static bool takes(std::size_t size) noexcept { return size - 17 < 16; }
  explicit OfTwoLanes(std::uint64_t seed) noexcept
      : masks_{word(XXH3_kSecret) + seed, word(XXH3_kSecret + 8) - seed, word(XXH3_kSecret + 16) + seed,
               word(XXH3_kSecret + 24) - seed} {}

  // REQUIRES: takes(size)
  std::uint64_t operator()(const void* data, std::size_t size) const noexcept {
    const auto* const first = static_cast<const xxh_u8*>(data);
    const xxh_u8* const last = first + size - 16;
    const std::uint64_t sum = size * XXH_PRIME64_1 +
                              detail::folded_product(word(first) ^ masks_[0], word(first + 8) ^ masks_[1]) +
                              detail::folded_product(word(last) ^ masks_[2], word(last + 8) ^ masks_[3]);
    return XXH3_avalanche(sum);
  }

 private:
  static std::uint64_t word(const xxh_u8* at) noexcept { return XXH_readLE64(at); }
  std::array<std::uint64_t, 4> masks_;
};

template <class K>
void hash_all(const Hash& hash, std::span<const K> keys, std::span<Digest<Hash>> out) noexcept {
  const std::uint64_t seed = hash.seed();
  const OfTwoLanes of_two_lanes(seed);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const auto* const data = keys[i].data();
    const std::size_t size = keys[i].size();
    std::uint64_t digest;
    if (OfTwoLanes::takes(size)) [[likely]] {
      digest = of_two_lanes(data, size);
    } else {
      digest = xxh3(data, size, seed);
    }
    out[i] = Digest<Hash>::made_by(hash, digest);
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
