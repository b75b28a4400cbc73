// Time, and keeping the optimiser from removing what is timed.
#pragma once
#include <ctime>

namespace perhaps::bench {

template <class T>
void keep(const T& value) {
  asm volatile("" : : "r,m"(value) : "memory");
}

// A lookup takes a nanosecond and another process a time slice of milliseconds: work of one thread is timed by the
// clock of that thread, which stands still while other programs run. Work of several threads is timed by the wall
// clock.
template <class Work>
double seconds(Work work, clockid_t clock = CLOCK_THREAD_CPUTIME_ID) {
  const auto now = [&] {
    timespec time;
    clock_gettime(clock, &time);
    return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
  };
  const double start = now();
  work();
  return now() - start;
}

}  // namespace perhaps::bench
