#include "build/spill_file.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace perhaps::build {
namespace {

constexpr std::size_t kMaxTransfer = std::size_t{1} << 30;  // Linux moves at most 2 GiB per call

std::string temporary_folder() {
  const char* folder = std::getenv("TMPDIR");
  return folder != nullptr && *folder != '\0' ? folder : "/tmp";
}

// For file systems without O_TMPFILE: the file has a name for a moment.
Descriptor create_and_unlink(const std::string& folder) {
  std::string name = folder + "/perhaps-" + std::string(6, 'X');
  Descriptor file(mkostemp(name.data(), O_CLOEXEC));
  if (file) unlink(name.c_str());
  return file;
}

}  // namespace

SpillFile::SpillFile(std::string folder) : folder_(folder.empty() ? temporary_folder() : std::move(folder)) {}

Result<void> SpillFile::open() {
  const std::lock_guard lock(opening_);
  if (file_) return {};
  file_ = Descriptor(::open(folder_.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (!file_ && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) file_ = create_and_unlink(folder_);
  if (!file_) return failed("cannot be made", errno);
  return {};
}

Result<void> SpillFile::write_bytes(std::uint64_t at, std::span<const std::byte> bytes) {
  if (auto done = open(); !done) return done;
  while (!bytes.empty()) {
    const ssize_t moved =
        pwrite(file_.get(), bytes.data(), std::min(bytes.size(), kMaxTransfer), static_cast<off_t>(at));
    if (moved < 0 && errno == EINTR) continue;
    if (moved <= 0) return failed("cannot be written", moved < 0 ? errno : ENOSPC);
    bytes = bytes.subspan(static_cast<std::size_t>(moved)), at += static_cast<std::uint64_t>(moved);
  }
  return {};
}

Result<void> SpillFile::read_bytes(std::uint64_t at, std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t moved =
        pread(file_.get(), bytes.data(), std::min(bytes.size(), kMaxTransfer), static_cast<off_t>(at));
    if (moved < 0 && errno == EINTR) continue;
    if (moved <= 0) return failed("cannot be read back", moved < 0 ? errno : EIO);
    bytes = bytes.subspan(static_cast<std::size_t>(moved)), at += static_cast<std::uint64_t>(moved);
  }
  return {};
}

Error SpillFile::failed(const char* what, int reason) const {
  return Error{Errc::io, "a temporary file in " + folder_ + " " + what + ": " + std::strerror(reason)};
}

}  // namespace perhaps::build
