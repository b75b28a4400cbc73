// Compiled for machines with AVX2, where there is one.
#include "probes.h"

int wide_hits(perhaps::LineBloomView line, perhaps::BlockBloomView block, std::uint64_t keys) {
  return hits(line, block, keys);
}

int wide_inserts(perhaps::LineBloomSpan line, perhaps::BlockBloomSpan block, std::uint64_t keys) {
  return inserts(line, block, keys);
}
