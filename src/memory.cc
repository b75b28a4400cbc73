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
constexpr bool is_mapped(std::uint64_t) noexcept { return false; }
#else
constexpr bool is_mapped(std::uint64_t size) noexcept { return size >= Memory::kHugeFrom; }
#endif

std::uint64_t round_up(std::uint64_t size, std::uint64_t unit) noexcept { return (size + unit - 1) / unit * unit; }

// Zero pages at a huge-page boundary: maps one huge page too much and gives back what is left over on both sides. What
// does not fill a huge page at the end stays on small pages: a huge one would take its full size.
std::byte* map_huge(std::uint64_t size) {
  const std::uint64_t length = round_up(size, kPage);
  void* start = mmap(nullptr, length + kHugePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED) throw std::bad_alloc();
  auto* const first = static_cast<std::byte*>(start);
  const std::uint64_t before =
      round_up(reinterpret_cast<std::uintptr_t>(first), kHugePage) - reinterpret_cast<std::uintptr_t>(first);
  if (before != 0) munmap(first, before);
  if (before != kHugePage) munmap(first + before + length, kHugePage - before);
  // Advice: where it is refused, only speed is lost.
  madvise(first + before, size / kHugePage * kHugePage, MADV_HUGEPAGE);
  return first + before;
}

}  // namespace

Memory::Memory(std::uint64_t bytes) : size_(bytes) {
  if (bytes == 0) return;
  if (bytes > kMaxMemory - 2 * kHugePage) throw std::bad_alloc();
  if (is_mapped(bytes)) {
    data_ = map_huge(bytes);
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
  if (is_mapped(size_) && is_mapped(bytes) && bytes <= size_) {
    const std::uint64_t kept = round_up(bytes, kPage);
    if (const std::uint64_t whole = round_up(size_, kPage); kept < whole) munmap(data_ + kept, whole - kept);
    size_ = bytes;
    return;
  }
#if defined(MREMAP_FIXED)
  // Pages move instead of bytes. Both ends are huge-page boundaries, so whole page tables move.
  if (is_mapped(size_) && is_mapped(bytes)) {
    Memory other(bytes);
    const std::uint64_t whole = round_up(size_, kPage);
    if (mremap(data_, whole, whole, MREMAP_MAYMOVE | MREMAP_FIXED, other.data_) != MAP_FAILED) {
      // Behind the last byte there may be bytes from before it shrank.
      std::memset(other.data_ + size_, 0, std::min(whole, bytes) - size_);
      data_ = nullptr;
      *this = std::move(other);
      return;
    }
  }
#endif
  Memory other(bytes);
  if (bytes != 0 && size_ != 0) std::memcpy(other.data_, data_, std::min(bytes, size_));
  *this = std::move(other);
}

void Memory::release() noexcept {
  if (data_ == nullptr) return;
  is_mapped(size_) ? static_cast<void>(munmap(data_, round_up(size_, kPage))) : std::free(data_);
}

}  // namespace perhaps
