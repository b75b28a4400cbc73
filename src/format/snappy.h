// Reads Snappy blocks, which index blocks may be. Written to the published description of the format:
//   varint uncompressed size | elements: a tag byte, whose low two bits say what it is: 0 a literal, 1, 2 or 3 a copy
//   with 1, 2 or 4 bytes of offset
#pragma once
#include "format/codec.h"

namespace perhaps::format {

// Nothing if the bytes are no such block. A copy of at most 64 bytes takes two, so nothing expands more than 32 times
// (and a little); a size beyond that is refused before memory is taken.
inline std::optional<Buffer> snappy_uncompressed(Bytes bytes) {
  Reader in(bytes);
  const std::uint64_t size = in.varint();
  if (in.is_short() || size > 32 * bytes.size()) return {};
  Buffer out;
  out.reserve(size);
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
    // Byte by byte: a copy may reach into what it writes.
    for (std::uint64_t i = 0; i < length; ++i) out.push_back(out[out.size() - offset]);
  }
  if (out.size() != size) return {};
  return out;
}

}  // namespace perhaps::format
