// Keeps the program on one CPU while it measures.
#pragma once
#include <sched.h>

#include <cstdio>

namespace perhaps::bench {

class Pin {
 public:
  explicit Pin(int cpu) {
    sched_getaffinity(0, sizeof all_, &all_);
    cpu_ = cpu;
    for (int i = 0; cpu_ < 0 || i < CPU_SETSIZE; ++i) {
      if (i == CPU_SETSIZE) break;
      if (cpu < 0 && CPU_ISSET(i, &all_)) cpu_ = i;
    }
    down();
  }
  void down() const {
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu_, &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0) std::fprintf(stderr, "warning: cannot stay on CPU %d\n", cpu_);
  }
  void up() const { sched_setaffinity(0, sizeof all_, &all_); }
  int cpu() const { return cpu_; }
  int cpus() const { return CPU_COUNT(&all_); }

 private:
  cpu_set_t all_;
  int cpu_;
};

}  // namespace perhaps::bench
