#include "lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <cerrno>
#include <cstring>

#include "interrupt.h"
#include "print.h"

namespace perhaps::cli {

FileLock::FileLock(const std::string& path) {
  for (bool said = false;;) {
    file_ = Descriptor(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
    if (!file_) return;  // opening it will say why
    while (::flock(file_.get(), said ? LOCK_EX : LOCK_EX | LOCK_NB) != 0) {
      if (errno == EWOULDBLOCK) {
        say("", fmt::format("{}: waiting for another perhaps that is changing it", path));
        said = true;
      } else if (errno == EINTR) {
        check_interrupt();
      } else {
        warn(fmt::format("{}: cannot be locked ({}): what others add meanwhile is lost", path, std::strerror(errno)));
        return;
      }
    }
    struct stat locked {};
    struct stat named {};
    if (::fstat(file_.get(), &locked) == 0 && ::stat(path.c_str(), &named) == 0 && locked.st_dev == named.st_dev &&
        locked.st_ino == named.st_ino) {
      return;
    }
    release();  // it was replaced while we waited
  }
}

}  // namespace perhaps::cli
