// A temporary file without a name: it is gone when it is closed, whatever happens to the program. It is made by the
// first write, so that a build which stays within its memory needs no folder.
#pragma once
#include <atomic>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>

#include "perhaps/result.h"

namespace perhaps::build {

// Reads and writes are safe from many threads.
class SpillFile {
 public:
  // In `folder`; empty: TMPDIR, or /tmp.
  explicit SpillFile(std::string folder);
  SpillFile(const SpillFile&) = delete;
  SpillFile& operator=(const SpillFile&) = delete;
  ~SpillFile();

  // Sets `words` words aside at the end, and returns where.
  std::uint64_t extend(std::uint64_t words) noexcept { return bytes_.fetch_add(words * 8, std::memory_order_relaxed); }
  Result<void> write(std::uint64_t at, std::span<const std::uint64_t> words);
  Result<void> read(std::uint64_t at, std::span<std::uint64_t> words) const;
  std::uint64_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }

 private:
  Result<void> open();
  Error failed(const char* what, int reason) const;

  std::string folder_;
  std::mutex opening_;
  int file_ = -1;
  std::atomic<std::uint64_t> bytes_ = 0;
};

}  // namespace perhaps::build
