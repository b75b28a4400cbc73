// A temporary file without a name: it disappears when it is closed, whatever happens to the program. The first write
// creates it, so that a build which stays within its memory needs no folder.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <string>

#include "file/descriptor.h"
#include "perhaps/result.h"

namespace perhaps::build {

// Reads and writes are safe from many threads.
class SpillFile {
 public:
  // In `folder`; empty: TMPDIR, or /tmp.
  explicit SpillFile(std::string folder);

  // Reserves `words` words at the end, and returns where they begin.
  std::uint64_t extend(std::uint64_t words) noexcept { return bytes_.fetch_add(words * 8, std::memory_order_relaxed); }
  // `Record`: words or entries, in the machine's own representation; nobody else reads the file.
  template <class Record>
  Result<void> write(std::uint64_t at, std::span<const Record> records) {
    return write_bytes(at, std::as_bytes(records));
  }
  template <class Record>
  Result<void> read(std::uint64_t at, std::span<Record> records) const {
    return read_bytes(at, std::as_writable_bytes(records));
  }
  std::uint64_t bytes() const noexcept { return bytes_.load(std::memory_order_relaxed); }

 private:
  Result<void> write_bytes(std::uint64_t at, std::span<const std::byte> bytes);
  Result<void> read_bytes(std::uint64_t at, std::span<std::byte> bytes) const;
  Result<void> open();
  Error failed(const char* what, int reason) const;

  std::string folder_;
  std::mutex opening_;
  Descriptor file_;
  std::atomic<std::uint64_t> bytes_ = 0;
};

}  // namespace perhaps::build
