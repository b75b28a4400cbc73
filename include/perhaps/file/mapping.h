// The bytes of a file, mapped: read without a copy, and paged in as they are used.
//
//   auto file = Mapping::open("na-1-big-Filter.db");
//   auto opened = format::open({.bytes = file->bytes(), .file_name = "na-1-big-Filter.db"});
//
// Replace a mapped file only by renaming another one over it, as everything here does: whoever truncates it kills its
// readers (SIGBUS).
#pragma once
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "perhaps/hash.h"
#include "perhaps/result.h"

namespace perhaps {

// The bytes of one file; movable, and unmapped when it is destroyed.
class Mapping {
 public:
  // How the bytes will be read, or that they are also written. Only `writable` is more than advice to the kernel.
  enum class Access : std::uint8_t { normal, sequential, random, writable };

  Mapping() = default;  // of no bytes
  // A regular file, whole. An empty one is a Mapping of no bytes; a folder, a pipe or a device is an Error.
  PERHAPS_API static Result<Mapping> open(const std::string& path, Access access = Access::normal);
  // The first `size` bytes of an open file, which may be closed afterwards. `name` is for messages.
  PERHAPS_API static Result<Mapping> of(int descriptor, std::uint64_t size, Access access, const std::string& name);

  Mapping(Mapping&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Mapping& operator=(Mapping other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~Mapping() {
    if (data_ != nullptr) unmap();
  }

  // All of them, in place.
  Bytes bytes() const& noexcept { return {data_, size_}; }
  Bytes bytes() const&& = delete;  // The bytes go with the Mapping.
  // The same, to be written to.  REQUIRES: Access::writable
  std::span<std::byte> writable_bytes() & noexcept { return {data_, size_}; }

  // Tells the kernel how the bytes will be read from now on.
  PERHAPS_API void expect(Access access) noexcept;
  // Gives back the pages that lie within `part`, but keeps the one in which it ends. They are read again on demand.
  // REQUIRES: `part` is within bytes()
  PERHAPS_API void drop(Bytes part) const noexcept;

 private:
  Mapping(std::byte* data, std::size_t size) noexcept : data_(data), size_(size) {}
  PERHAPS_API void unmap() noexcept;

  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace perhaps
