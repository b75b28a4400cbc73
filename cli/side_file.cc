#include "side_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "command.h"
#include "interrupt.h"

namespace perhaps::cli {
namespace {

bool same_file(const struct stat& a, const struct stat& b) noexcept {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino;
}

}  // namespace

SideFile::SideFile(std::string option, std::string path, const KeyOptions& inputs)
    : option_(std::move(option)), path_(std::move(path)) {
  if (path_.empty()) return;
  if (path_ == "-") fail("{} -: standard output is for the lines that are kept; name a file", option_);
  struct stat there {};
  if (::stat(path_.c_str(), &there) == 0) {
    for (const std::string& input : inputs.files) {
      struct stat status {};
      const int found = input == "-" ? ::fstat(STDIN_FILENO, &status) : ::stat(input.c_str(), &status);
      if (found == 0 && same_file(status, there)) fail("{}: is an input and would be overwritten ({})", path_, option_);
    }
    struct stat output {};
    if (S_ISREG(there.st_mode) && ::fstat(STDOUT_FILENO, &output) == 0 && same_file(output, there))
      fail("{}: is standard output, which is for the lines that are kept ({})", path_, option_);
  }
  const std::size_t slash = path_.rfind('/');
  const std::string folder = slash == std::string::npos ? "." : path_.substr(0, slash + 1);
  if (::access(path_.c_str(), W_OK) != 0 && (errno != ENOENT || ::access(folder.c_str(), W_OK | X_OK) != 0))
    fail("{}: {}", path_, std::strerror(errno));
}

void SideFile::begin() {
  if (!wanted()) return;
  file_ = Descriptor(::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666));
  if (!file_) fail("{}: {}", path_, std::strerror(errno));
  buffer_.reserve(kBuffer);
}

void SideFile::flush() {
  for (std::string_view left = buffer_; !left.empty();) {
    const ssize_t n = ::write(file_.get(), left.data(), left.size());
    if (n >= 0) {
      left.remove_prefix(static_cast<std::size_t>(n));
    } else if (errno == EINTR) {
      check_interrupt();
    } else {
      fail("{}: {}", path_, std::strerror(errno));
    }
  }
  buffer_.clear();
}

}  // namespace perhaps::cli
