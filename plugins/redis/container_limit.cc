#include "redis/container_limit.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>

namespace perhaps::redis {
namespace {

std::string text_of_file(const std::string& path) {
  std::string text;
  if (std::FILE* const file = std::fopen(path.c_str(), "re")) {
    std::array<char, 4096> part;
    while (const std::size_t size = std::fread(part.data(), 1, part.size(), file)) text.append(part.data(), size);
    std::fclose(file);
  }
  return text;
}

// kNoContainerLimit for "max" and for a file that is not there.
std::uint64_t number_in_file(const std::string& path) {
  const std::string text = text_of_file(path);
  std::uint64_t number = kNoContainerLimit;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), number);
  return read.ec == std::errc() ? number : kNoContainerLimit;
}

}  // namespace

// Lines are "0::/path" in version 2 and "4:memory:/path" in version 1. A limit holds for all groups below it. Inside a
// container the path may be the host's; then only the root is mounted, and it is the container's group.
std::uint64_t container_limit(const std::string& root) {
  std::uint64_t limit = kNoContainerLimit;
  std::string groups = text_of_file(root + "/proc/self/cgroup");
  while (!groups.empty()) {
    const std::size_t end = std::min(groups.find('\n'), groups.size());
    const std::string line = groups.substr(0, end);
    groups.erase(0, end + 1);
    const std::size_t controllers = line.find(':');
    const std::size_t path = controllers == line.npos ? line.npos : line.find(':', controllers + 1);
    if (path == line.npos) continue;
    std::string names(",");
    names.append(line, controllers + 1, path - controllers - 1).append(",");
    const bool unified = names == ",,";
    if (!unified && names.find(",memory,") == names.npos) continue;
    const std::string mount = root + (unified ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory");
    const char* const file = unified ? "/memory.max" : "/memory.limit_in_bytes";
    for (std::string group = line.substr(path + 1);; group.erase(group.rfind('/'))) {
      limit = std::min(limit, number_in_file(mount + group + file));
      if (group.find('/') == group.npos) break;
    }
  }
  return limit;
}

}  // namespace perhaps::redis
