#include "format/redis_rdb.h"

#include <charconv>

#include "hash/crc64.h"

namespace perhaps::redisbloom {

// RESTORE accepts versions up to the server's own; Redis 5 has 9.
constexpr std::uint16_t kRdbVersion = 9;
constexpr std::uint64_t kEnvelope = 10;
// LZF encodes a copy of at most 264 bytes in three.
constexpr std::uint64_t kMaxInflation = 88;

std::uint64_t RdbReader::length() noexcept {
  const auto first = in_.le<std::uint8_t>();
  if (first < 0x40) return first;
  if (first < 0x80) return (first & 0x3fu) << 8 | in_.le<std::uint8_t>();
  if (first == 0x80) return in_.be<std::uint32_t>();
  if (first == 0x81) return in_.be<std::uint64_t>();
  failed_ = true;
  return 0;
}

Block RdbReader::copy_of(Bytes bytes) noexcept {
  if (failed() || bytes.empty()) return {};
  std::byte* const at = memory_->take(bytes.size());
  if (at != nullptr) std::memcpy(at, bytes.data(), bytes.size());
  return {at, bytes.size()};
}

Block RdbReader::inflate(Bytes packed, std::uint64_t size) noexcept {
  if (failed() || size == 0 || size / kMaxInflation > packed.size()) return {};
  std::byte* const out = memory_->take(size);
  if (out == nullptr) return {};
  std::uint64_t made = 0;
  format::Reader in(packed);
  while (!in.rest().empty() && !in.is_short()) {
    const auto control = in.le<std::uint8_t>();
    if (control < 32) {
      const Bytes run = in.take(control + 1u);
      if (run.empty() || run.size() > size - made) break;
      std::memcpy(out + made, run.data(), run.size());
      made += run.size();
    } else {
      std::uint64_t count = control >> 5;
      if (count == 7) count += in.le<std::uint8_t>();
      count += 2;
      const std::uint64_t back = ((control & 0x1fu) << 8 | in.le<std::uint8_t>()) + 1u;
      if (in.is_short() || back > made || count > size - made) break;
      for (; count != 0; --count, ++made) out[made] = out[made - back];  // source and target may overlap
    }
  }
  if (made == size && in.rest().empty() && !in.is_short()) return {out, size};
  memory_->give(out);
  return {};
}

Block RdbReader::block() noexcept {
  if (!expect(5)) return {};
  const unsigned first = in_.rest().empty() ? 0 : std::to_integer<unsigned>(in_.rest()[0]);
  Block block;
  if (first == 0xc3) {
    in_.take(1);
    const std::uint64_t packed = length();
    const std::uint64_t size = length();
    block = inflate(in_.take(packed), size);
  } else if (first >= 0xc0 && first <= 0xc2) {
    // Redis stores a string as an integer if it is the decimal form of one, and a table may happen to be.
    in_.take(1);
    const std::int32_t value = first == 0xc0   ? static_cast<std::int8_t>(in_.le<std::uint8_t>())
                               : first == 0xc1 ? static_cast<std::int16_t>(in_.le<std::uint16_t>())
                                               : static_cast<std::int32_t>(in_.le<std::uint32_t>());
    char text[16];
    const char* const end = std::to_chars(text, text + sizeof text, value).ptr;
    block = copy_of(std::as_bytes(std::span(text, static_cast<std::size_t>(end - text))));
  } else {
    block = copy_of(in_.take(length()));
  }
  failed_ |= block.at == nullptr;
  return block;
}

void RdbWriter::length(std::uint64_t value) {
  if (value < 0x40) {
    out_.le(static_cast<std::uint8_t>(value));
  } else if (value < 0x4000) {
    out_.be(static_cast<std::uint16_t>(0x4000 | value));
  } else if (value <= UINT32_MAX) {
    out_.le(std::uint8_t{0x80}).be(static_cast<std::uint32_t>(value));
  } else {
    out_.le(std::uint8_t{0x81}).be(value);
  }
}

Buffer RdbWriter::done() && {
  length(0);
  out_.le(kRdbVersion);
  Buffer bytes = std::move(out_).done();
  const std::uint64_t crc = crc64_redis(bytes);
  bytes.resize(bytes.size() + sizeof crc);
  detail::store(bytes.data() + bytes.size() - sizeof crc, crc);
  return bytes;
}

Result<Bytes> value_of(Bytes bytes, std::string_view format) {
  if (bytes.empty() || bytes.front() != kModuleValue) return bytes;
  if (bytes.size() <= 1 + kEnvelope)
    return format::bad(Errc::truncated, format, "a dump of only ", bytes.size(), " bytes");
  format::Reader end(bytes.last(8));
  // 0 means that the server wrote no checksum.
  const auto crc = end.le<std::uint64_t>();
  if (crc != 0 && crc != crc64_redis(bytes.first(bytes.size() - 8)))
    return format::bad(Errc::bad_checksum, format, "the checksum of the dump is wrong");
  return bytes.subspan(1, bytes.size() - 1 - kEnvelope);
}

}  // namespace perhaps::redisbloom
