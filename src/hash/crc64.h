// The CRC-64 at the end of a Redis dump: polynomial 0xad93d23594c935a9 (Jones), reflected, initial value 0, not
// inverted.
#pragma once
#include <array>

#include "perhaps/hash.h"

namespace perhaps {
namespace detail {

// Made when it is first needed, as those of crc32.cc.
inline std::array<std::uint64_t, 256> make_crc64_table() noexcept {
  constexpr std::uint64_t kReflected = 0x95ac9329ac4bc9b5u;
  std::array<std::uint64_t, 256> table{};
  for (std::uint64_t byte = 0; byte < 256; ++byte) {
    std::uint64_t crc = byte;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kReflected : 0);
    table[byte] = crc;
  }
  return table;
}

}  // namespace detail

inline std::uint64_t crc64_redis(Bytes bytes) noexcept {
  static const std::array<std::uint64_t, 256> kTable = detail::make_crc64_table();
  std::uint64_t crc = 0;
  for (const std::byte b : bytes) crc = kTable[(crc ^ std::to_integer<std::uint64_t>(b)) & 0xff] ^ (crc >> 8);
  return crc;
}

}  // namespace perhaps
