// Promises: without maxmemory, the module's memory limit is that of the container. Would notice: a layout of control
// groups, version 1 or 2, whose limit is not found, and one that is misread as a limit.
#include "redis/container_limit.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <filesystem>
#include <fstream>

namespace perhaps::redis {
namespace {

constexpr std::uint64_t kNone = kNoContainerLimit;

class ContainerLimit : public testing::Test {
 protected:
  ContainerLimit() : root_(testing::TempDir() + "container_limit." + std::to_string(::getpid())) {}
  ~ContainerLimit() override { std::filesystem::remove_all(root_); }

  void write(const std::string& path, const std::string& text) {
    const std::filesystem::path file = root_ + path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }

  std::string root_;
};

TEST_F(ContainerLimit, NoControlGroups) { EXPECT_EQ(container_limit(root_), kNone); }

TEST_F(ContainerLimit, Version2InsideItsNamespace) {
  write("/proc/self/cgroup", "0::/\n");
  write("/sys/fs/cgroup/memory.max", "536870912\n");
  EXPECT_EQ(container_limit(root_), 536870912);
  write("/sys/fs/cgroup/memory.max", "max\n");
  EXPECT_EQ(container_limit(root_), kNone);
}

TEST_F(ContainerLimit, Version2OfAParent) {
  write("/proc/self/cgroup", "0::/system.slice/redis.service/worker\n");
  write("/sys/fs/cgroup/system.slice/redis.service/worker/memory.max", "max\n");
  write("/sys/fs/cgroup/system.slice/redis.service/memory.max", "1000000\n");
  write("/sys/fs/cgroup/system.slice/memory.max", "2000000\n");
  EXPECT_EQ(container_limit(root_), 1000000);
}

TEST_F(ContainerLimit, Version1) {
  write("/proc/self/cgroup", "12:cpu,cpuacct:/docker/x\n9:memory:/docker/x\n1:name=systemd:/docker/x\n0::/none\n");
  write("/sys/fs/cgroup/memory/docker/x/memory.limit_in_bytes", "3000000\n");
  write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(container_limit(root_), 3000000);
}

TEST_F(ContainerLimit, Version1WithThePathOfTheHost) {
  write("/proc/self/cgroup", "9:memory:/docker/x\n");
  write("/sys/fs/cgroup/memory/memory.limit_in_bytes", "4000000\n");
  EXPECT_EQ(container_limit(root_), 4000000);
}

TEST_F(ContainerLimit, DamagedFiles) {
  for (const char* text : {"", "\n", "0", "0:", "::", "0::", "9:memory", "x:y:z\n\n", ":::::"}) {
    write("/proc/self/cgroup", text);
    EXPECT_EQ(container_limit(root_), kNone) << text;
  }
  write("/proc/self/cgroup", "0::/");
  write("/sys/fs/cgroup/memory.max", "many\n");
  EXPECT_EQ(container_limit(root_), kNone);
}

}  // namespace
}  // namespace perhaps::redis
