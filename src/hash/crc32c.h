// LevelDB and RocksDB store a CRC-32C masked like this, because the checksum of bytes that contain their own checksum
// would be predictable.
#pragma once
#include "hash/crc32.h"

namespace perhaps {

constexpr std::uint32_t masked_crc(std::uint32_t crc) noexcept { return (crc >> 15 | crc << 17) + 0xa282ead8u; }

}  // namespace perhaps
