// One program at a time changes a filter file.
#pragma once
#include <string>

#include "file/descriptor.h"

namespace perhaps::cli {

// Held from reading a file to replacing it: if two programs add to it, the second one begins with what the first one
// wrote. The lock is on the file that `path` names once it is locked. A missing file is not an error here.
class FileLock {
 public:
  explicit FileLock(const std::string& path);  // waits; throws Interrupted
  void release() noexcept { file_.reset(); }

 private:
  Descriptor file_;
};

}  // namespace perhaps::cli
