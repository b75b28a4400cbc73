// Decompresses Snappy blocks: index blocks may be compressed. Follows the published description of the format:
//   varint uncompressed size | elements, each with a tag byte whose low two bits are 0 for a literal, and 1, 2 or 3 for
//   a copy with 1, 2 or 4 bytes of offset
#pragma once
#include "format/codec.h"

namespace perhaps::format {

// Nothing if the bytes are not such a block. A copy produces at most 64 bytes from at least two, so a block expands at
// most about 32 times; a larger size is refused before memory is allocated.
inline std::optional<Buffer> snappy_uncompressed(Bytes bytes) {
  Reader in(bytes);
  const std::uint64_t size = in.varint();
  if (in.is_short() || size > std::uint64_t{32} * bytes.size()) return {};
  Buffer out;
  out.reserve(memory_size(size));
  while (!in.rest().empty()) {
    const auto tag = in.le<std::uint8_t>();
    const std::uint32_t above = tag >> 2;
    if ((tag & 3) == 0) {
      std::uint64_t length = above;
      if (above >= 60) {
        length = 0;
        for (std::uint32_t i = 0; i < above - 59; ++i) length |= std::uint64_t{in.le<std::uint8_t>()} << 8 * i;
      }
      const Bytes literal = in.take(length + 1);
      if (in.is_short() || literal.size() > size - out.size()) return {};
      out.insert(out.end(), literal.begin(), literal.end());
      continue;
    }
    std::uint64_t length = above + 1;
    std::uint64_t offset = 0;
    if ((tag & 3) == 1) {
      length = 4 + (above & 7);
      offset = std::uint64_t{above >> 3} << 8 | in.le<std::uint8_t>();
    } else {
      offset = (tag & 3) == 2 ? in.le<std::uint16_t>() : in.le<std::uint32_t>();
    }
    if (in.is_short() || offset == 0 || offset > out.size() || length > size - out.size()) return {};
    // Byte by byte, because a copy may overlap its own output.
    for (std::uint64_t i = 0; i < length; ++i) out.push_back(out[out.size() - offset]);
  }
  if (out.size() != size) return {};
  return out;
}

}  // namespace perhaps::format
