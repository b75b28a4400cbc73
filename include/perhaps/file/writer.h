// Files that appear whole or not at all: ours, and those of other systems.
//
// The bytes go to a temporary file in the folder of `path`, which is synced and then takes the name `path`; then the
// folder is synced. A link is followed and stays a link, unless the kernel would not follow it either: in a folder like
// /tmp, which everybody may write to, only links of one's own or of the folder's owner are. An existing file keeps its
// mode. On an error nothing is left behind and the old file, if any, is as it was (unless only the very last step
// failed, which the error says). What a killed process may leave, the next writer of the same file removes.
#pragma once
#include <memory>
#include <string>

#include "perhaps/hash.h"
#include "perhaps/result.h"

namespace perhaps {

// Writes these bytes, as above.
PERHAPS_API Result<void> write_file(const std::string& path, Bytes bytes);

// The same for bytes that come piece by piece. Nothing appears at `path` before commit(), and without it nothing ever
// does.
class FileWriter {
 public:
  // An error if there is no folder for `path`, or it cannot be written to.
  PERHAPS_API static Result<FileWriter> create(const std::string& path);
  PERHAPS_API FileWriter(FileWriter&&) noexcept;
  PERHAPS_API ~FileWriter();

  // The bytes written so far.
  std::uint64_t size() const noexcept { return size_; }
  // Adds bytes at the end.
  PERHAPS_API Result<void> append(Bytes bytes);
  PERHAPS_API Result<void> overwrite(std::uint64_t at, Bytes bytes);  // REQUIRES: within what is there
  PERHAPS_API Result<void> commit();                                  // once

 private:
  struct State;
  explicit FileWriter(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
  std::uint64_t size_ = 0;
};

}  // namespace perhaps
