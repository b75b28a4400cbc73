// Bytes of a pipe or of a compressed file, as they come. gzip, zstd, xz, bzip2 and lz4 are told by their first bytes.
#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "file/descriptor.h"
#include "perhaps/hash.h"

namespace perhaps::cli {

enum class Packing : std::uint8_t { none, gzip, zstd, xz, bzip2, lz4 };
inline constexpr std::size_t kMagic = 10;  // bytes that tell
Packing packing_of(Bytes start) noexcept;

class Reader {
 public:
  Reader(std::string name, Descriptor file) : name_(std::move(name)), file_(std::move(file)) { fill(); }
  Reader(Reader&&) = default;
  virtual ~Reader() = default;
  // Up to out.size() bytes, 0 at the end.
  virtual std::size_t read(std::span<std::byte> out);
  Bytes peek() const noexcept { return raw_; }
  std::uint64_t stored() const noexcept { return stored_; }

 protected:
  // Reads more into raw_ once it is empty; false at the end.
  bool fill();

  std::string name_;
  Bytes raw_;

 private:
  std::size_t read_raw(std::span<std::byte> out);

  Descriptor file_;
  std::vector<std::byte> buffer_;
  std::uint64_t stored_ = 0;
  bool started_ = false;
};

// What the bytes of `plain` unpack to, or `plain` itself.
std::unique_ptr<Reader> unpacked(std::unique_ptr<Reader> plain);

}  // namespace perhaps::cli
