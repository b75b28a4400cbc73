// Writes a file of shards of whatever filters it is given: a file that `perhaps` does not make.
//   shards_peer OUT FILTER..     shard i is the i-th filter; -: it is not in this file
#include <cstdio>
#include <span>
#include <string_view>
#include <vector>

#include "perhaps/file/mapping.h"
#include "perhaps/file/shards.h"

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  std::vector<perhaps::Mapping> files;
  std::vector<perhaps::Shard> shards;
  for (int i = 2; i < argc; ++i) {
    if (std::string_view(argv[i]) == "-") continue;
    auto file = perhaps::Mapping::open(argv[i]);
    if (!file) return std::fprintf(stderr, "%s\n", file.error().detail.c_str()), 1;
    files.push_back(*std::move(file));
    shards.push_back({.index = static_cast<std::uint64_t>(i - 2), .bytes = files.back().bytes()});
  }
  const auto written = perhaps::write_shards(argv[1], static_cast<std::uint64_t>(argc - 2), shards);
  if (!written) std::fprintf(stderr, "%s\n", written.error().detail.c_str());
  return written ? 0 : 1;
}
