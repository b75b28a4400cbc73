// Compiled for any machine.
#include "probes.h"

int plain_hits(perhaps::LineBloomView line, perhaps::BlockBloomView block, std::uint64_t keys) {
  return hits(line, block, keys);
}

int plain_inserts(perhaps::LineBloomSpan line, perhaps::BlockBloomSpan block, std::uint64_t keys) {
  return inserts(line, block, keys);
}
