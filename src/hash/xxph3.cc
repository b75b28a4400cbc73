#include "hash/xxph3.h"

#include <array>

#include "perhaps/detail/bits.h"

namespace perhaps {
namespace {

using detail::folded_product;
using detail::load;

constexpr std::uint64_t kP1 = 0x9e3779b185ebca87, kP2 = 0xc2b2ae3d27d4eb4f, kP3 = 0x165667b19e3779f9,
                        kP4 = 0x85ebca77c2b2ae63, kP5 = 0x27d4eb2f165667c5;
constexpr std::uint32_t kQ1 = 0x9e3779b1, kQ2 = 0x85ebca77, kQ3 = 0xc2b2ae3d;

// The default secret of XXH3.
constexpr std::uint8_t kSecret[192] = {
    0xb8, 0xfe, 0x6c, 0x39, 0x23, 0xa4, 0x4b, 0xbe, 0x7c, 0x01, 0x81, 0x2c, 0xf7, 0x21, 0xad, 0x1c, 0xde, 0xd4,
    0x6d, 0xe9, 0x83, 0x90, 0x97, 0xdb, 0x72, 0x40, 0xa4, 0xa4, 0xb7, 0xb3, 0x67, 0x1f, 0xcb, 0x79, 0xe6, 0x4e,
    0xcc, 0xc0, 0xe5, 0x78, 0x82, 0x5a, 0xd0, 0x7d, 0xcc, 0xff, 0x72, 0x21, 0xb8, 0x08, 0x46, 0x74, 0xf7, 0x43,
    0x24, 0x8e, 0xe0, 0x35, 0x90, 0xe6, 0x81, 0x3a, 0x26, 0x4c, 0x3c, 0x28, 0x52, 0xbb, 0x91, 0xc3, 0x00, 0xcb,
    0x88, 0xd0, 0x65, 0x8b, 0x1b, 0x53, 0x2e, 0xa3, 0x71, 0x64, 0x48, 0x97, 0xa2, 0x0d, 0xf9, 0x4e, 0x38, 0x19,
    0xef, 0x46, 0xa9, 0xde, 0xac, 0xd8, 0xa8, 0xfa, 0x76, 0x3f, 0xe3, 0x9c, 0x34, 0x3f, 0xf9, 0xdc, 0xbb, 0xc7,
    0xc7, 0x0b, 0x4f, 0x1d, 0x8a, 0x51, 0xe0, 0x4b, 0xcd, 0xb4, 0x59, 0x31, 0xc8, 0x9f, 0x7e, 0xc9, 0xd9, 0x78,
    0x73, 0x64, 0xea, 0xc5, 0xac, 0x83, 0x34, 0xd3, 0xeb, 0xc3, 0xc5, 0x81, 0xa0, 0xff, 0xfa, 0x13, 0x63, 0xeb,
    0x17, 0x0d, 0xdd, 0x51, 0xb7, 0xf0, 0xda, 0x49, 0xd3, 0x16, 0x55, 0x26, 0x29, 0xd4, 0x68, 0x9e, 0x2b, 0x16,
    0xbe, 0x58, 0x7d, 0x47, 0xa1, 0xfc, 0x8f, 0xf8, 0xb8, 0xd1, 0x7a, 0xd0, 0x31, 0xce, 0x45, 0xcb, 0x3a, 0x8f,
    0x95, 0x16, 0x04, 0x28, 0xaf, 0xd7, 0xfb, 0xca, 0xbb, 0x4b, 0x40, 0x7e,
};

std::uint64_t secret(std::size_t at) noexcept {
  return load<std::uint64_t>(reinterpret_cast<const std::byte*>(kSecret) + at);
}

std::uint64_t avalanche(std::uint64_t h) noexcept {
  h = (h ^ h >> 37) * kP3;
  return h ^ h >> 32;
}

// Mixes 16 bytes of the key with 16 bytes of the secret.
std::uint64_t mix(const std::byte* data, std::size_t at) noexcept {
  return folded_product(load<std::uint64_t>(data) ^ secret(at), load<std::uint64_t>(data + 8) ^ secret(at + 8));
}

std::uint64_t up_to_16(const std::byte* d, std::size_t n) noexcept {
  if (n > 8) {
    const std::uint64_t low = load<std::uint64_t>(d) ^ secret(0);
    const std::uint64_t high = load<std::uint64_t>(d + n - 8) ^ secret(8);
    return avalanche(n + low + high + folded_product(low, high));
  }
  if (n >= 4) {
    const std::uint64_t both = load<std::uint32_t>(d) | std::uint64_t{load<std::uint32_t>(d + n - 4)} << 32;
    const std::uint64_t keyed = both ^ secret(0);
    const std::uint64_t mixed = n + (keyed ^ keyed >> 51) * kQ1;
    return avalanche((mixed ^ mixed >> 47) * kP2);
  }
  // RocksDB's change: the preview returned 0 for empty keys.
  if (n == 0) return folded_product(secret(0), kP2);
  const auto byte = [&](std::size_t i) { return std::to_integer<std::uint32_t>(d[i]); };
  const std::uint32_t all = byte(0) | byte(n / 2) << 8 | byte(n - 1) << 16 | static_cast<std::uint32_t>(n) << 24;
  return avalanche((all ^ static_cast<std::uint32_t>(secret(0))) * kP1);
}

// From both ends inwards.
std::uint64_t up_to_128(const std::byte* d, std::size_t n) noexcept {
  std::uint64_t h = n * kP1;
  for (std::size_t i = (n - 1) / 32 + 1; i-- > 0;)
    h += mix(d + 16 * i, 32 * i) + mix(d + n - 16 * (i + 1), 32 * i + 16);
  return avalanche(h);
}

std::uint64_t up_to_240(const std::byte* d, std::size_t n) noexcept {
  std::uint64_t h = n * kP1;
  for (std::size_t i = 0; i < 8; ++i) h += mix(d + 16 * i, 16 * i);
  h = avalanche(h);
  for (std::size_t i = 8; i < n / 16; ++i) h += mix(d + 16 * i, 16 * (i - 8) + 3);
  return avalanche(h + mix(d + n - 16, 119));
}

std::uint64_t longer(const std::byte* d, std::size_t n) noexcept {
  constexpr std::size_t kStripe = 64, kStripes = 16;
  std::array<std::uint64_t, 8> lanes = {kQ3, kP1, kP2, kP3, kP4, kQ2, kP5, kQ1};
  const auto stripe = [&](const std::byte* data, std::size_t at) {
    for (std::size_t i = 0; i < 8; ++i) {
      const auto word = load<std::uint64_t>(data + 8 * i);
      const std::uint64_t keyed = word ^ secret(at + 8 * i);
      lanes[i] += word + (keyed & 0xffffffff) * (keyed >> 32);
    }
  };
  const std::size_t whole = n / kStripe;
  for (std::size_t j = 0; j < whole; ++j) {
    stripe(d + kStripe * j, 8 * (j % kStripes));
    if (j % kStripes + 1 != kStripes) continue;
    for (std::size_t i = 0; i < 8; ++i) lanes[i] = (lanes[i] ^ lanes[i] >> 47 ^ secret(128 + 8 * i)) * kQ1;
  }
  if (n % kStripe != 0) stripe(d + n - kStripe, 121);
  std::uint64_t h = n * kP1;
  for (std::size_t i = 0; i < 4; ++i)
    h += folded_product(lanes[2 * i] ^ secret(11 + 16 * i), lanes[2 * i + 1] ^ secret(19 + 16 * i));
  return avalanche(h);
}

}  // namespace

std::uint64_t xxph3(Bytes bytes) noexcept {
  const std::size_t n = bytes.size();
  if (n <= 16) return up_to_16(bytes.data(), n);
  if (n <= 128) return up_to_128(bytes.data(), n);
  return n <= 240 ? up_to_240(bytes.data(), n) : longer(bytes.data(), n);
}

}  // namespace perhaps
