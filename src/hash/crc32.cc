#include "hash/crc32.h"

#include "perhaps/detail/bits.h"

namespace perhaps {
namespace {

// tables[j][b]: the contribution of byte b if j more bytes follow it.
using Tables = std::array<std::array<std::uint32_t, 256>, 8>;

// Made when they are first needed: 16 KB that do not compress would be a tenth of what a browser loads.
Tables tables_of(std::uint32_t polynomial) noexcept {
  Tables tables{};
  for (std::uint32_t b = 0; b < 256; ++b) {
    std::uint32_t crc = b;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? polynomial : 0);
    tables[0][b] = crc;
  }
  for (std::size_t j = 1; j < 8; ++j) {
    for (std::size_t b = 0; b < 256; ++b) tables[j][b] = tables[j - 1][b] >> 8 ^ tables[0][tables[j - 1][b] & 0xff];
  }
  return tables;
}

std::uint32_t of(const Tables& tables, Bytes bytes) noexcept {
  std::uint32_t crc = ~0u;
  for (; bytes.size() >= 8; bytes = bytes.subspan(8)) {
    const std::uint64_t word = detail::load<std::uint64_t>(bytes.data()) ^ crc;
    crc = 0;
    for (std::size_t i = 0; i < 8; ++i) crc ^= tables[7 - i][word >> (8 * i) & 0xff];
  }
  for (const std::byte b : bytes) crc = crc >> 8 ^ tables[0][(crc ^ std::to_integer<std::uint32_t>(b)) & 0xff];
  return ~crc;
}

}  // namespace

std::uint32_t crc32(Bytes bytes) noexcept {
  static const Tables kIeee = tables_of(0xedb88320u);
  return of(kIeee, bytes);
}
std::uint32_t crc32c(Bytes bytes) noexcept {
  static const Tables kCastagnoli = tables_of(0x82f63b78u);
  return of(kCastagnoli, bytes);
}

}  // namespace perhaps
