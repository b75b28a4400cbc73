// CRC-32C (Castagnoli, the polynomial of iSCSI), and the mask under which LevelDB and RocksDB store it: the checksum of
// bytes that hold a checksum would otherwise be predictable.
#pragma once
#include <array>

#include "perhaps/hash.h"

namespace perhaps {
namespace detail {

inline constexpr std::array<std::uint32_t, 256> kCrc32c = [] {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t i = 0; i < 256; ++i) {
    std::uint32_t r = i;
    for (int bit = 0; bit < 8; ++bit) r = r >> 1 ^ ((r & 1) != 0 ? 0x82f63b78u : 0u);
    table[i] = r;
  }
  return table;
}();

}  // namespace detail

inline std::uint32_t crc32c(Bytes bytes) noexcept {
  std::uint32_t r = ~0u;
  for (const std::byte b : bytes) r = r >> 8 ^ detail::kCrc32c[(r ^ std::to_integer<std::uint32_t>(b)) & 0xff];
  return ~r;
}

constexpr std::uint32_t masked_crc(std::uint32_t crc) noexcept { return (crc >> 15 | crc << 17) + 0xa282ead8u; }

}  // namespace perhaps
