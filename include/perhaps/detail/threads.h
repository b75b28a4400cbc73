// Threads that are joined at the end of their scope: a list of std::jthread, which libc++ has only since version 18.
#pragma once
#include <system_error>
#include <thread>
#include <vector>

#include "perhaps/detail/config.h"

namespace perhaps::detail {

class Threads {
 public:
  // Runs `work` in up to `count` threads. It may be fewer, even none where a program has no threads (WebAssembly): the
  // caller takes part in the work, and must not rely on the others.
  template <class Work>
  Threads(unsigned count, const Work& work) {
    threads_.reserve(count);
    try {
      for (unsigned i = 0; i < count; ++i) threads_.emplace_back(work);
    } catch (const std::system_error&) {
      // No more to be had.
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

}  // namespace perhaps::detail
