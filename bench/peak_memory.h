// How much memory a build takes at its peak, beside what the process had before.
#pragma once
#include <malloc.h>

#include <fstream>
#include <string>

namespace perhaps::bench {

// The resident memory of this process, from the kernel: what is allocated and never touched does not count. Memory that
// the allocator kept from earlier builds would hide in "before", so it is given back first.
class PeakMemory {
 public:
  PeakMemory() {
    malloc_trim(0);
    std::ofstream("/proc/self/clear_refs") << 5;  // the high-water mark begins again
    before_ = bytes_of("VmRSS:");
  }
  double bytes() const { return bytes_of("VmHWM:") - before_; }

 private:
  static double bytes_of(const std::string& name) {
    std::ifstream status("/proc/self/status");
    for (std::string word; status >> word;) {
      double kib = 0;
      if (word == name && status >> kib) return 1024 * kib;
    }
    return 0;
  }

  double before_ = 0;
};

}  // namespace perhaps::bench
