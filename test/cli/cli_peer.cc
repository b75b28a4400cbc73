// Writes a filter of the same keys with the library, to compare it byte by byte with that of the command line.
//   cli_peer numbers|text FILE KEYS     the keys are 0 .. KEYS - 1, as integers or as their decimal text
#include <cstdio>
#include <cstdlib>
#include <string>

#include "perhaps/file/container.h"
#include "perhaps/line_bloom.h"

int main(int argc, char** argv) {
  if (argc != 4) return 2;
  const auto keys = static_cast<std::uint64_t>(std::atoll(argv[3]));
  perhaps::LineBloom filter({.keys = keys, .fpr = 0.01});
  for (std::uint64_t i = 0; i < keys; ++i) {
    if (std::string(argv[1]) == "numbers") {
      filter.insert(i);
    } else {
      filter.insert(std::to_string(i));
    }
  }
  const auto saved = perhaps::save(argv[2], filter, {.keys = keys, .capacity = keys});
  if (!saved) std::fprintf(stderr, "%s\n", saved.error().detail.c_str());
  return saved ? 0 : 1;
}
