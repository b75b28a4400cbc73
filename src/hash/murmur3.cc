#include "hash/murmur3.h"

#include <bit>
#include <cstring>

#include "perhaps/detail/bits.h"

namespace perhaps {
namespace {

constexpr std::uint64_t kA = 0x87c37b91114253d5u;
constexpr std::uint64_t kB = 0x4cf5ad432745937fu;

std::uint64_t mixed_first(std::uint64_t k) noexcept { return std::rotl(k * kA, 31) * kB; }
std::uint64_t mixed_second(std::uint64_t k) noexcept { return std::rotl(k * kB, 33) * kA; }

std::uint64_t avalanche(std::uint64_t h) noexcept {
  h = (h ^ h >> 33) * 0xff51afd7ed558ccdu;
  h = (h ^ h >> 33) * 0xc4ceb9fe1a85ec53u;
  return h ^ h >> 33;
}

void add_block(Murmur128& h, const std::byte* block) noexcept {
  h.first = (std::rotl(h.first ^ mixed_first(detail::load<std::uint64_t>(block)), 27) + h.second) * 5 + 0x52dce729;
  h.second =
      (std::rotl(h.second ^ mixed_second(detail::load<std::uint64_t>(block + 8)), 31) + h.first) * 5 + 0x38495ab5;
}

Murmur128 of_blocks(Bytes key) noexcept {
  Murmur128 h{0, 0};
  for (; key.size() >= 16; key = key.subspan(16)) add_block(h, key.data());
  return h;
}

// k1 and k2 are the last 0 to 15 bytes of a key of `size` bytes, padded with zeros. Mixing in a zero changes nothing.
Murmur128 finished(Murmur128 h, std::uint64_t size, std::uint64_t k1, std::uint64_t k2) noexcept {
  h.second ^= mixed_second(k2) ^ size;
  h.first ^= mixed_first(k1) ^ size;
  h.first += h.second;
  h.second += h.first;
  h.first = avalanche(h.first);
  h.second = avalanche(h.second);
  h.first += h.second;
  h.second += h.first;
  return h;
}

Murmur128 finished(Murmur128 h, std::uint64_t size, const std::array<std::byte, 16>& tail) noexcept {
  return finished(h, size, detail::load<std::uint64_t>(tail.data()), detail::load<std::uint64_t>(tail.data() + 8));
}

std::array<std::byte, 16> tail_of(Bytes key) noexcept {
  std::array<std::byte, 16> tail{};
  const Bytes last = key.last(key.size() % 16);
  if (!last.empty()) std::memcpy(tail.data(), last.data(), last.size());
  return tail;
}

std::uint32_t with_word(std::uint32_t h, std::uint32_t k) noexcept {
  h ^= std::rotl(k * 0xcc9e2d51u, 15) * 0x1b873593u;
  return std::rotl(h, 13) * 5 + 0xe6546b64u;
}

std::uint32_t of_words(Bytes key, std::uint32_t h) noexcept {
  for (; key.size() >= 4; key = key.subspan(4)) h = with_word(h, detail::load<std::uint32_t>(key.data()));
  return h;
}

std::uint32_t finished(std::uint32_t h, std::uint64_t size) noexcept {
  h ^= static_cast<std::uint32_t>(size);
  h = (h ^ h >> 16) * 0x85ebca6bu;
  h = (h ^ h >> 13) * 0xc2b2ae35u;
  return h ^ h >> 16;
}

}  // namespace

Murmur128 murmur3_x64_128(Bytes key) noexcept { return finished(of_blocks(key), key.size(), tail_of(key)); }

Murmur128 murmur3_x64_128_cassandra(Bytes key) noexcept {
  std::array<std::uint64_t, 2> words{};
  const Bytes tail = key.last(key.size() % 16);
  for (std::size_t i = 0; i < tail.size(); ++i) {
    const auto extended = static_cast<std::uint64_t>(std::int64_t{static_cast<std::int8_t>(tail[i])});
    words[i / 8] ^= extended << (i % 8 * 8);
  }
  return finished(of_blocks(key), key.size(), words[0], words[1]);
}

std::array<std::uint64_t, 4> murmur3_x64_128_twice(Bytes key) noexcept {
  Murmur128 blocks = of_blocks(key);
  std::array<std::byte, 16> tail = tail_of(key);
  const Murmur128 alone = finished(blocks, key.size(), tail);
  tail[key.size() % 16] = std::byte{1};
  if (key.size() % 16 == 15) {
    add_block(blocks, tail.data());
    tail = {};
  }
  const Murmur128 longer = finished(blocks, key.size() + 1, tail);
  return {alone.first, alone.second, longer.first, longer.second};
}

std::uint32_t murmur3_x86_32(Bytes key, std::uint32_t seed) noexcept {
  std::uint32_t h = of_words(key, seed);
  std::uint32_t k = 0;
  const Bytes tail = key.last(key.size() % 4);
  for (std::size_t i = 0; i < tail.size(); ++i) k |= std::to_integer<std::uint32_t>(tail[i]) << (8 * i);
  h ^= std::rotl(k * 0xcc9e2d51u, 15) * 0x1b873593u;
  return finished(h, key.size());
}

std::uint32_t murmur3_x86_32_spark(Bytes key, std::uint32_t seed) noexcept {
  std::uint32_t h = of_words(key, seed);
  for (const std::byte b : key.last(key.size() % 4))
    h = with_word(h, static_cast<std::uint32_t>(std::int32_t{static_cast<std::int8_t>(b)}));
  return finished(h, key.size());
}

}  // namespace perhaps
