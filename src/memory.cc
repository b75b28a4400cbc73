#include "perhaps/memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>

namespace perhaps {
namespace {

constexpr std::uint64_t kHugePage = std::uint64_t{2} << 20;
constexpr std::uint64_t kPage = std::uint64_t{64} << 10;  // the largest that systems have; most have 4 KiB

// WebAssembly has neither pages nor a way to give back a part of a mapping.
#if defined(__EMSCRIPTEN__)
constexpr bool kMaps = false;
#else
constexpr bool kMaps = true;
#endif

std::uint64_t round_up(std::uint64_t size, std::uint64_t unit) noexcept { return (size + unit - 1) / unit * unit; }

// Zero pages at a huge-page boundary: maps one huge page too much and gives back what is left over on both sides.
std::byte* map_pages(std::uint64_t length) {
  void* start = mmap(nullptr, length + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED) throw std::bad_alloc();
  auto* const first = static_cast<std::byte*>(start);
  const std::uint64_t before =
      round_up(reinterpret_cast<std::uintptr_t>(first), kHugePage) - reinterpret_cast<std::uintptr_t>(first);
  if (before != 0) munmap(first, before);
  if (before != kHugePage) munmap(first + before + length, kHugePage - before);
  return first + before;
}

}  // namespace

Memory::Memory(std::uint64_t bytes) : size_(bytes) {
  if (bytes == 0) return;
  if (bytes > kMaxMemory - 2 * kHugePage) throw std::bad_alloc();
  if (kMaps && bytes >= kHugeFrom) {
    // What does not fill a huge page at the end gets small ones. Advice: where it is refused, only speed is lost. For
    // all of it, since the system can move one area as a whole, and not two with different advice.
    mapped_ = round_up(bytes, kPage);
    data_ = map_pages(mapped_);
    madvise(data_, mapped_, MADV_HUGEPAGE);
    return;
  }
  const std::uint64_t length = round_up(bytes, kLineBytes);
  data_ = static_cast<std::byte*>(std::aligned_alloc(kLineBytes, length));
  if (data_ == nullptr) throw std::bad_alloc();
  std::memset(data_, 0, length);
}

Memory::Memory(const Memory& other) : Memory(other.size_) {
  if (size_ != 0) std::memcpy(data_, other.data_, size_);
}

void Memory::resize(std::uint64_t bytes) {
  if (mapped_ != 0 && bytes >= kMapFrom && bytes <= size_) {
    const std::uint64_t kept = round_up(bytes, kPage);
    if (kept < mapped_) munmap(data_ + kept, mapped_ - kept);
    mapped_ = kept;
    size_ = bytes;
    return;
  }
  if (kMaps && bytes > size_ && bytes >= (size_ == 0 ? kHugeFrom : kMapFrom)) return grow(bytes);
  Memory other(bytes);
  if (bytes != 0 && size_ != 0) std::memcpy(other.data_, data_, std::min(bytes, size_));
  *this = std::move(other);
}

// Into a mapping, if it is not in one yet.
void Memory::grow(std::uint64_t bytes) {
  if (size_ == 0) {
    *this = Memory(bytes);
    return;
  }
  if (bytes > kMaxMemory - 2 * kHugePage) throw std::bad_alloc();
  Memory other;
  other.mapped_ = round_up(bytes, kPage);
  other.data_ = map_pages(other.mapped_);
  other.size_ = bytes;
#if defined(MREMAP_FIXED) && !defined(__EMSCRIPTEN__)
  if (mapped_ != 0) {
    // The pages move, not what they hold: both ends are huge-page boundaries, so whole tables of pages do. In the new
    // place they and those behind them are one area: so the next move finds one, too.
    madvise(data_, mapped_, MADV_NOHUGEPAGE);
    if (mremap(data_, mapped_, other.mapped_, MREMAP_MAYMOVE | MREMAP_FIXED, other.data_) != MAP_FAILED) {
      // Behind the last byte may be what was there before it shrank.
      std::memset(other.data_ + size_, 0, std::min(mapped_, bytes) - size_);
      data_ = nullptr;
      *this = std::move(other);
      return;
    }
    // It may have made room in the new place before it failed, and somebody else may be there by now.
    other.data_ = nullptr;
    other.data_ = map_pages(other.mapped_);
  }
#endif
  std::memcpy(other.data_, data_, size_);
  *this = std::move(other);
}

void Memory::release() noexcept {
  if (data_ == nullptr) return;
  mapped_ != 0 ? static_cast<void>(munmap(data_, mapped_)) : std::free(data_);
}

}  // namespace perhaps
