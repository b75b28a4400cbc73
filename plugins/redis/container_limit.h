// The memory limit of the container this process runs in.
#pragma once
#include <cstdint>
#include <string>

namespace perhaps::redis {

inline constexpr std::uint64_t kNoContainerLimit = UINT64_MAX;

// The lowest memory limit among the control groups of this process, version 2 or 1. `root` precedes /proc and /sys.
std::uint64_t container_limit(const std::string& root = "");

}  // namespace perhaps::redis
