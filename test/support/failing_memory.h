// Memory that runs out on demand, as SQLite's tests have it: the k-th request for memory, mapped or not, or for a
// thread fails, alone or with all that follow, for every k until the operation no longer asks that often.
//
// Replaces operator new and delete, and by the linker (--wrap, CMakeLists.txt) what the library calls itself. Include
// it in one file of an executable.
#pragma once
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/mman.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <new>
#include <string>
#include <system_error>
#include <thread>

extern "C" {
void* __real_malloc(std::size_t);
void* __real_calloc(std::size_t, std::size_t);
void* __real_aligned_alloc(std::size_t, std::size_t);
void __real_free(void*);
void* __real_mmap(void*, std::size_t, int, int, int, off_t);
void* __real_mmap64(void*, std::size_t, int, int, int, off_t);
int __real_munmap(void*, std::size_t);
}

namespace perhaps::test {

// What there is of memory. All requests are counted while it is armed; blocks and mapped bytes always.
struct Memories {
  std::atomic<bool> armed = false;
  std::atomic<long> requests = 0;
  std::atomic<long> fail_at = 0;  // 0: never
  std::atomic<bool> and_all_after = false;
  std::atomic<long> blocks = 0;
  std::atomic<long long> mapped = 0;

  bool refuse() noexcept {
    if (!armed.load(std::memory_order_relaxed)) return false;
    const long n = requests.fetch_add(1) + 1;
    return n == fail_at || (and_all_after && fail_at != 0 && n > fail_at);
  }
  void* given(void* p) noexcept {
    if (p != nullptr) blocks.fetch_add(1, std::memory_order_relaxed);
    return p;
  }
  void taken_back(void* p) noexcept {
    if (p != nullptr) blocks.fetch_sub(1, std::memory_order_relaxed);
    __real_free(p);
  }
};
inline Memories memories;

inline void* allocate(std::size_t size, std::size_t alignment, bool throws) {
  void* p = nullptr;
  if (!memories.refuse()) {
    size = size == 0 ? 1 : size;
    p = alignment == 0 ? __real_malloc(size)
                       : __real_aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment);
    memories.given(p);
  }
  if (p == nullptr && throws) throw std::bad_alloc();
  return p;
}

enum class End { done, error, no_memory };

// Runs act(state) -> bool (false: an Error came back) over and over, each time with a fresh state of make(), while one
// request fails, and calls check(state, end). Nothing may be left of state and operation afterwards. Returns how many
// requests the operation makes.
template <class Make, class Act, class Check>
long for_every_failure(const std::string& name, Make make, Act act, Check check) {
  static std::string running;
  static long at = 0;
  running = name;
  std::set_terminate([] {
    memories.armed = false;
    std::fprintf(stderr, "%s: terminated when request %ld failed\n", running.c_str(), at);
    std::abort();
  });
  const auto run = [&](long fail_at, bool and_all_after) {
    at = fail_at;
    auto state = make();
    memories.requests = 0;
    memories.fail_at = fail_at;
    memories.and_all_after = and_all_after;
    End end = End::done;
    memories.armed = true;
    try {
      if (!act(state)) end = End::error;
    } catch (const std::bad_alloc&) {
      end = End::no_memory;
    }
    memories.armed = false;
    SCOPED_TRACE(name + ": request " + std::to_string(fail_at) + (and_all_after ? " and all after" : ""));
    check(state, end);
    return end;
  };
  EXPECT_EQ(run(0, false), End::done) << name;  // also for what is made once and kept
  EXPECT_EQ(run(0, false), End::done) << name;
  const long requests = memories.requests;
  for (const bool and_all_after : {false, true}) {
    for (long k = 1;; ++k) {
      const long blocks = memories.blocks;
      const long long mapped = memories.mapped;
      const End end = run(k, and_all_after);
      EXPECT_EQ(memories.blocks, blocks) << name << ": leaks when request " << k << " fails";
      EXPECT_EQ(memories.mapped, mapped) << name << ": leaks a mapping when request " << k << " fails";
      if (memories.requests < k) {
        EXPECT_EQ(end, End::done) << name;
        break;
      }
      if (::testing::Test::HasFailure()) return requests;
    }
  }
  return requests;
}

}  // namespace perhaps::test

// NOLINTBEGIN(misc-definitions-in-headers): a test that includes this is a program of one file.
// Of the library.
extern "C" {
using perhaps::test::memories;
inline void* refused() noexcept {
  errno = ENOMEM;
  return nullptr;
}
void* __wrap_malloc(std::size_t size) { return memories.refuse() ? refused() : memories.given(__real_malloc(size)); }
void* __wrap_calloc(std::size_t count, std::size_t size) {
  return memories.refuse() ? refused() : memories.given(__real_calloc(count, size));
}
void* __wrap_aligned_alloc(std::size_t alignment, std::size_t size) {
  return memories.refuse() ? refused() : memories.given(__real_aligned_alloc(alignment, size));
}
void __wrap_free(void* p) { memories.taken_back(p); }
inline void* mapped(void* p, std::size_t size) noexcept {
  if (p != MAP_FAILED) memories.mapped += static_cast<long long>(size);
  return p;
}
void* __wrap_mmap(void* at, std::size_t size, int protection, int flags, int file, off_t offset) {
  if (memories.refuse()) return refused(), MAP_FAILED;
  return mapped(__real_mmap(at, size, protection, flags, file, offset), size);
}
// What mmap is called where offsets have 64 bits by definition of a macro.
void* __wrap_mmap64(void* at, std::size_t size, int protection, int flags, int file, off_t offset) {
  if (memories.refuse()) return refused(), MAP_FAILED;
  return mapped(__real_mmap64(at, size, protection, flags, file, offset), size);
}
int __wrap_munmap(void* at, std::size_t size) {
  memories.mapped -= static_cast<long long>(size);
  return __real_munmap(at, size);
}
#if defined(__GLIBCXX__)
// std::thread's own way to a thread: libstdc++ is a shared library, whose calls are not wrapped.
void __real__ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE(std::thread*, void*,
                                                                                                  void (*)());
void __wrap__ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE(std::thread* self,
                                                                                                  void* state,
                                                                                                  void (*depend)()) {
  if (memories.refuse()) throw std::system_error(EAGAIN, std::generic_category(), "thread");
  __real__ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE(self, state, depend);
}
#else
int __real_pthread_create(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
int __wrap_pthread_create(pthread_t* to, const pthread_attr_t* with, void* (*work)(void*), void* argument) {
  return memories.refuse() ? EAGAIN : __real_pthread_create(to, with, work, argument);
}
#endif
}

// Of everybody.
void* operator new(std::size_t size) { return perhaps::test::allocate(size, 0, true); }
void* operator new[](std::size_t size) { return perhaps::test::allocate(size, 0, true); }
void* operator new(std::size_t size, const std::nothrow_t&) noexcept { return perhaps::test::allocate(size, 0, false); }
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  return perhaps::test::allocate(size, 0, false);
}
void* operator new(std::size_t size, std::align_val_t to) {
  return perhaps::test::allocate(size, static_cast<std::size_t>(to), true);
}
void* operator new[](std::size_t size, std::align_val_t to) {
  return perhaps::test::allocate(size, static_cast<std::size_t>(to), true);
}
void operator delete(void* p) noexcept { memories.taken_back(p); }
void operator delete[](void* p) noexcept { memories.taken_back(p); }
void operator delete(void* p, std::size_t) noexcept { memories.taken_back(p); }
void operator delete[](void* p, std::size_t) noexcept { memories.taken_back(p); }
void operator delete(void* p, const std::nothrow_t&) noexcept { memories.taken_back(p); }
void operator delete[](void* p, const std::nothrow_t&) noexcept { memories.taken_back(p); }
void operator delete(void* p, std::align_val_t) noexcept { memories.taken_back(p); }
void operator delete[](void* p, std::align_val_t) noexcept { memories.taken_back(p); }
void operator delete(void* p, std::size_t, std::align_val_t) noexcept { memories.taken_back(p); }
void operator delete[](void* p, std::size_t, std::align_val_t) noexcept { memories.taken_back(p); }
// NOLINTEND(misc-definitions-in-headers)
