// How a static filter is built: threads, memory, a folder for digests that do not fit into it, progress (static.h).
#pragma once
#include <cstdint>
#include <functional>
#include <string>

#include "perhaps/detail/config.h"

namespace perhaps {

// Digests are taken in, then sorted and made distinct, then solved shard by shard.
enum class BuildPhase : std::uint8_t { collecting, sorting, building };

// `done` of `total` digests; while they are being collected the total is not known and 0.
struct BuildProgress {
  BuildPhase phase;
  std::uint64_t done;
  std::uint64_t total;
};

struct BuildOptions {
  unsigned threads = 1;
  std::uint64_t memory = 0;       // for the digests, in bytes; 0: no limit. At least 2 MiB per thread are used.
  std::string spill_folder = {};  // for digests beyond that; empty: TMPDIR, or /tmp
  bool verify = true;             // query every shard for all of its keys once it is built, in cache
  // Called after every million digests or so, from any of the threads but never concurrently.
  std::function<void(const BuildProgress&)> progress = {};
};

}  // namespace perhaps
