// The entry point of a module of contenders from outside the source tree.
#include "contender.h"

extern "C" __attribute__((visibility("default"))) perhaps::bench::Contenders perhaps_bench_contenders() {
  return {&perhaps::bench::registry<std::uint64_t>(), &perhaps::bench::registry<std::string_view>()};
}
