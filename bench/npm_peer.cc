// The native side of bench/npm.mjs: a line filter of 64-bit numbers at 1 %, and as many absent ones looked up in one
// call, by one thread. Each line on stdin is a round; the answer is its CPU time in ns per key.
//   perhaps-bench-npm KEYS
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <vector>

#include "perhaps.h"

namespace {

std::vector<std::uint64_t> numbers(std::size_t count, std::uint64_t state) {
  std::vector<std::uint64_t> all(count);
  for (std::uint64_t& one : all) {
    std::uint64_t z = state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    one = z ^ z >> 31;
  }
  return all;
}

double cpu_ns() {
  timespec now;
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
  return 1e9 * static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec);
}

}  // namespace

int main(int argc, char** argv) {
  const std::size_t count = argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 1000000;
  perhaps_options options{};
  options.size = sizeof options;
  options.keys = count;
  options.fpr = 0.01;
  perhaps_filter* filter = nullptr;
  const auto present = numbers(count, 1);
  const auto absent = numbers(count, 2);
  if (perhaps_new(&options, &filter) != PERHAPS_OK ||
      perhaps_insert_integers(filter, present.data(), count, nullptr) != PERHAPS_OK) {
    std::fprintf(stderr, "perhaps-bench-npm: %s\n", perhaps_last_error());
    return 1;
  }
  std::vector<std::uint64_t> answers((count + 63) / 64);
  while (std::getchar() == '\n') {
    const double before = cpu_ns();
    perhaps_query_integers(filter, absent.data(), count, answers.data());
    std::printf("%.4f\n", (cpu_ns() - before) / static_cast<double>(count));
    std::fflush(stdout);
  }
  perhaps_free(filter);
}
