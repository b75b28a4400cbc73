// How keys get into a filter: from mapped files by all threads, from pipes as they come, or by way of their digests.
#pragma once
#include <cstdint>
#include <memory>

#include "build_target.h"
#include "keys.h"

namespace perhaps::cli {

struct Built {
  std::unique_ptr<BuildTarget> filter;
  Record record;
  unsigned threads = 1;
  bool repeats = false;  // so many of its keys that it was sized for the distinct ones
};

// More threads than blocks of input would only cost memory.
unsigned threads_for(const BuildArgs& options, std::uint64_t blocks);
// `size_is_known`: the size of the filter is, before its keys are.
Built build_from(const BuildArgs& options, Keys& keys, const AnyHasher& hasher, bool size_is_known);

}  // namespace perhaps::cli
