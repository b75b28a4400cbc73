// Threads that are joined at the end of their scope: a list of std::jthread, which libc++ has only since version 18.
#pragma once
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "perhaps/detail/config.h"

namespace perhaps::detail {

class Threads {
 public:
  // Runs `work` in up to `count` threads. It may be fewer, even none where a program has no threads (WebAssembly): the
  // caller takes part in the work, and must not rely on the others. `work` must not throw.
  template <class Work>
  Threads(unsigned count, const Work& work) noexcept {
    try {
      threads_.reserve(count);
      for (unsigned i = 0; i < count; ++i) threads_.emplace_back(work);
    } catch (const std::exception&) {
      // No more to be had: std::system_error, or std::bad_alloc, with which those that run must still be joined.
    }
  }
  Threads(const Threads&) = delete;
  Threads& operator=(const Threads&) = delete;
  ~Threads() {
    for (std::thread& thread : threads_) thread.join();
  }

 private:
  std::vector<std::thread> threads_;
};

// Runs work() in up to `threads` threads, this one included, and throws what one of them threw.
template <class Work>
void in_threads(unsigned threads, const Work& work) {
  std::exception_ptr thrown;
  std::mutex mutex;
  const auto guarded = [&] {
    try {
      work();
    } catch (...) {
      const std::lock_guard lock(mutex);
      thrown = std::current_exception();
    }
  };
  {
    const Threads others(threads - 1, guarded);
    guarded();
  }
  if (thrown) std::rethrow_exception(thrown);
}

}  // namespace perhaps::detail
