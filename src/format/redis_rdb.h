// A module's value as a Redis RDB file stores it, and the envelope that DUMP puts around it.
//
//   length   00: 6 bits | 01: 14 bits, big-endian | 0x80: u32 BE | 0x81: u64 BE
//   string   a length and the bytes | 0xc0..0xc2 an integer whose decimal digits are the string |
//            0xc3, length of the LZF bytes, length of the string, LZF bytes
//   value    0x81 u64 BE type id | numbers: length 2, length n; doubles: length 4, f64 LE; length 5, string | length 0
//   DUMP     0x07 | value | u16 LE RDB version | u64 LE crc64 of everything before it
//   type id  nine characters of 6 bits (A-Z a-z 0-9 - _), then the encoding in 10 bits
#pragma once
#include "redisbloom/redisbloom.h"

namespace perhaps::redisbloom {

inline constexpr std::byte kModuleValue{7};

// REQUIRES: nine characters of the alphabet
constexpr std::uint64_t type_id(std::string_view name, std::uint64_t encoding) noexcept {
  constexpr std::string_view kAlphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  std::uint64_t id = 0;
  for (const char c : name) id = id << 6 | kAlphabet.find(c);
  return id << 10 | encoding;
}

// Past the end, or if something other than the expected type comes next, failed() becomes true and every value is 0.
class RdbReader {
 public:
  RdbReader(Bytes bytes, const Memory& memory) noexcept : in_(bytes), memory_(&memory) {}

  std::uint64_t length() noexcept;
  std::uint64_t number() noexcept { return expect(2) ? length() : 0; }
  double real() noexcept { return expect(4) ? detail::bit_cast<double>(in_.le<std::uint64_t>()) : 0; }
  Block block() noexcept;
  void give(Block block) noexcept { memory_->give(block.at); }
  bool ends() noexcept { return expect(0); }
  bool failed() const noexcept { return failed_ || in_.is_short(); }
  Bytes rest() const noexcept { return in_.rest(); }

 private:
  bool expect(std::uint64_t opcode) noexcept {
    failed_ |= length() != opcode;
    return !failed();
  }
  Block copy_of(Bytes bytes) noexcept;
  Block inflate(Bytes packed, std::uint64_t size) noexcept;

  format::Reader in_;
  const Memory* memory_;
  bool failed_ = false;
};

class RdbWriter {
 public:
  explicit RdbWriter(std::uint64_t id) { out_.le(std::uint8_t{7}).le(std::uint8_t{0x81}).be(id); }

  void number(std::uint64_t value) { length(2), length(value); }
  void real(double value) {
    length(4);
    out_.le(detail::bit_cast<std::uint64_t>(value));
  }
  void block(Block block) {
    length(5);
    length(block.size);
    out_.add(Bytes(block.at, block.size));
  }
  // Appends the end of the value, the RDB version and the checksum.
  Buffer done() &&;

 private:
  void length(std::uint64_t value);
  format::Writer out_;
};

// Removes the envelope of DUMP after checking it. Bytes without an envelope are returned unchanged.
Result<Bytes> value_of(Bytes bytes, std::string_view format);

}  // namespace perhaps::redisbloom
