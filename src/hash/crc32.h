// CRC-32 with the polynomials of IEEE 802.3 (zlib) and of Castagnoli (iSCSI), reflected; eight bytes per step.
#pragma once
#include "perhaps/hash.h"

namespace perhaps {

std::uint32_t crc32(Bytes bytes) noexcept;
std::uint32_t crc32c(Bytes bytes) noexcept;

}  // namespace perhaps
