// The CRC-64 at the end of a Redis dump: polynomial 0xad93d23594c935a9 (Jones), reflected, initial value 0, not
// inverted.
#pragma once
#include <array>

#include "perhaps/hash.h"

namespace perhaps {
namespace detail {

constexpr std::array<std::uint64_t, 256> make_crc64_table() noexcept {
  constexpr std::uint64_t kReflected = 0x95ac9329ac4bc9b5u;
  std::array<std::uint64_t, 256> table{};
  for (std::uint64_t byte = 0; byte < 256; ++byte) {
    std::uint64_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kReflected : 0);
    table[byte] = crc;
  }
  return table;
}
inline constexpr std::array<std::uint64_t, 256> kCrc64Table = make_crc64_table();

}  // namespace detail

inline std::uint64_t crc64_redis(Bytes bytes) noexcept {
  std::uint64_t crc = 0;
  for (const std::byte b : bytes)
    crc = detail::kCrc64Table[(crc ^ std::to_integer<std::uint64_t>(b)) & 0xff] ^ (crc >> 8);
  return crc;
}

}  // namespace perhaps
