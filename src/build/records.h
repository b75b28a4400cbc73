// The large arrays of a build. From 4 MiB on their memory comes from the system and goes straight back to it, on small
// pages (lane.h says why). malloc would do so for the first build only: once large arrays were freed it takes such
// arrays into its heap, and the next build finds that heap in pieces. (1e6 keys, peak beside the keys: 37 instead of 25
// bytes per key for a fuse filter, 41 instead of 29 for a ribbon. From 1 MiB on it would be 24 and 26, and 2 to 3 % of
// the time more.)
#pragma once
#include <cstddef>
#include <cstdint>
#include <new>
#include <vector>

#if !defined(__EMSCRIPTEN__)
#include <sys/mman.h>
#endif

namespace perhaps::build {

template <class T>
struct FromSystem {
  using value_type = T;
  static constexpr std::size_t kFrom = std::size_t{4} << 20;  // bytes

  FromSystem() = default;
  template <class U>
  FromSystem(const FromSystem<U>&) noexcept {}

  T* allocate(std::size_t count) {
    if (count > PTRDIFF_MAX / sizeof(T)) throw std::bad_alloc();
#if !defined(__EMSCRIPTEN__)
    if (const std::size_t bytes = count * sizeof(T); bytes >= kFrom) {
      void* const start = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
      if (start == MAP_FAILED) throw std::bad_alloc();
      return static_cast<T*>(start);
    }
#endif
    return static_cast<T*>(::operator new(count * sizeof(T)));
  }
  void deallocate(T* start, [[maybe_unused]] std::size_t count) noexcept {
#if !defined(__EMSCRIPTEN__)
    if (count * sizeof(T) >= kFrom) return static_cast<void>(munmap(start, count * sizeof(T)));
#endif
    ::operator delete(start);
  }
  template <class U>
  friend bool operator==(const FromSystem&, const FromSystem<U>&) noexcept {
    return true;
  }
};

template <class Record>
using Records = std::vector<Record, FromSystem<Record>>;

}  // namespace perhaps::build
