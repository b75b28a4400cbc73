// Files that count what is read from them. They are in memory, so that the example needs no folder; nothing else about
// them is make-believe: tables are bytes, and are read through offsets.
#pragma once
#include <cstdint>
#include <map>
#include <vector>

#include "perhaps/hash.h"

namespace lsm {

// How often something was read, and how much.
struct Reads {
  std::uint64_t count = 0;
  std::uint64_t bytes = 0;
};

class Disk {
 public:
  using File = std::uint64_t;

  File write(std::vector<std::byte> bytes) {
    files_.emplace(++last_, std::move(bytes));
    return last_;
  }
  void remove(File file) { files_.erase(file); }

  // Valid until the file is removed. Counts for `reads`, which are those of data blocks or of filters.
  perhaps::Bytes read(File file, std::uint64_t offset, std::uint64_t size, Reads& reads) const {
    ++reads.count;
    reads.bytes += size;
    return perhaps::Bytes(files_.at(file)).subspan(offset, size);
  }

 private:
  std::map<File, std::vector<std::byte>> files_;
  File last_ = 0;
};

}  // namespace lsm
