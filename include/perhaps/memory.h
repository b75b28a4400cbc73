// The memory of a filter that owns its bits: zeroed, aligned to a cache line, and on huge pages once it is large.
//
// A random probe into a table of hundreds of megabytes misses the TLB as well as the cache. From kHugeFrom bytes on the
// memory is mapped at a 2 MiB boundary and huge pages are requested (madvise); where the system declines, nothing
// but speed is lost. Whoever wants another allocator takes an XSpan over memory of their own.
//
// Memory that grows is mapped from kMapFrom bytes on, and growing moves pages instead of bytes: whoever inserts into a
// growing filter does not wait for a copy. New pages are small ones, since the system zeroes a page when it is first
// touched, and a huge one takes up to some milliseconds of one insert.
#pragma once
#include <cstddef>
#include <cstdint>
#include <new>
#include <span>
#include <utility>

#include "perhaps/detail/config.h"

namespace perhaps {

// The largest size of one object: 2 GiB on a 32-bit machine. Larger requests must not wrap around.
inline constexpr std::uint64_t kMaxMemory = PTRDIFF_MAX;
// `bytes` as a size of memory. Throws std::bad_alloc if it is more than kMaxMemory.
inline std::size_t memory_size(std::uint64_t bytes) {
  if (bytes > kMaxMemory) throw std::bad_alloc();
  return static_cast<std::size_t>(bytes);
}

class Memory {
 public:
  static constexpr std::uint64_t kHugeFrom = std::uint64_t{4} << 20;   // bytes
  static constexpr std::uint64_t kMapFrom = std::uint64_t{256} << 10;  // bytes, once it grows

  Memory() = default;
  // Zeroed. Throws std::bad_alloc.
  PERHAPS_API explicit Memory(std::uint64_t bytes);
  PERHAPS_API Memory(const Memory& other);
  // A moved-from Memory is empty.
  Memory(Memory&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)),
        size_(std::exchange(other.size_, 0)),
        mapped_(std::exchange(other.mapped_, 0)) {}
  Memory& operator=(Memory other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(mapped_, other.mapped_);
    return *this;
  }
  ~Memory() { release(); }

  // Keeps the contents up to `bytes` bytes; new bytes are zero. Mapped memory that shrinks stays where it is. If it
  // throws std::bad_alloc, nothing has changed.
  PERHAPS_API void resize(std::uint64_t bytes);

  // All of it, as a pointer and a size, or as a span.
  std::byte* data() noexcept { return data_; }
  const std::byte* data() const noexcept { return data_; }
  std::uint64_t size() const noexcept { return size_; }
  std::span<std::byte> bytes() noexcept { return {data_, static_cast<std::size_t>(size_)}; }
  std::span<const std::byte> bytes() const noexcept { return {data_, static_cast<std::size_t>(size_)}; }

 private:
  PERHAPS_API void release() noexcept;
  void grow(std::uint64_t bytes);

  std::byte* data_ = nullptr;
  std::uint64_t size_ = 0;
  std::uint64_t mapped_ = 0;  // bytes that are mapped, in whole pages; 0: on the heap
};

}  // namespace perhaps
