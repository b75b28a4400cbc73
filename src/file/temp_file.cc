#include "file/temp_file.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdio>

#include "file/link_target.h"
#include "file/system_error.h"

namespace perhaps {
namespace {

constexpr unsigned kKnownNames = 8;  // Each may be in use by another writer of the same file.
constexpr unsigned kTries = 100;     // Somebody who takes the known names on purpose cannot take the random ones.

std::string temporary_name(std::uint64_t number, unsigned index) {
  std::array<char, 64> name;
  std::snprintf(name.data(), name.size(), ".perhaps-%016llx-%u.tmp", static_cast<unsigned long long>(number), index);
  return name.data();
}

bool is_the_file(int fd, int folder, const std::string& name) {
  struct stat open;
  struct stat named;
  return fstat(fd, &open) == 0 && fstatat(folder, name.c_str(), &named, AT_SYMLINK_NOFOLLOW) == 0 &&
         open.st_dev == named.st_dev && open.st_ino == named.st_ino;
}

}  // namespace

Result<TempFile> TempFile::create(const std::string& path) {
  auto target = follow_links(path);
  if (!target) return std::move(target).error();
  TempFile temp;
  temp.path_ = path;
  temp.base_ = std::move(target->base);
  temp.folder_ = std::move(target->folder);

  struct stat old;
  temp.replaces_ = fstatat(temp.folder_.get(), temp.base_.c_str(), &old, AT_SYMLINK_NOFOLLOW) == 0;
  if (!temp.replaces_ && errno != ENOENT) return temp.failed("cannot look at the old file");
  if (temp.replaces_ && !S_ISREG(old.st_mode)) {
    return Error{Errc::io, path + (S_ISDIR(old.st_mode) ? ": is a folder" : ": is not a regular file")};
  }
  temp.remove_left_behind();
  const mode_t mode = temp.replaces_ ? 0600 : 0666;
  temp.file_ = Descriptor(openat(temp.folder_.get(), ".", O_TMPFILE | O_RDWR | O_CLOEXEC, mode));
  if (temp.file_ && access(temp.by_number().c_str(), F_OK) != 0) temp.file_.reset();  // No /proc, no name.
  if (!temp.file_ && !temp.create_named(mode)) return temp.failed("cannot make a file in " + target->folder_name);
  if (temp.name_.empty()) flock(temp.file_.get(), LOCK_EX | LOCK_NB);  // before it has a name: nobody else can
  if (temp.replaces_) {
    // A user who may not give a file away keeps it. The mode comes second: giving a file away changes it.
    if (fchown(temp.file_.get(), old.st_uid, old.st_gid) != 0) errno = 0;
    if (fchmod(temp.file_.get(), old.st_mode & 07777) != 0) return temp.failed("cannot set the mode");
  }
  return temp;
}

TempFile::~TempFile() {
  if (folder_ && !name_.empty()) unlinkat(folder_.get(), name_.c_str(), 0);
}

Error TempFile::failed(const std::string& what) const { return system_error(path_, what); }

Result<void> TempFile::write(Bytes bytes, std::uint64_t offset) const {
  while (!bytes.empty()) {
    const ssize_t count = pwrite(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return failed("cannot write");
    bytes = bytes.subspan(static_cast<std::size_t>(count));
    offset += static_cast<std::uint64_t>(count);
  }
  return {};
}

Result<void> TempFile::publish() {
  if (fsync(file_.get()) != 0) return failed("cannot sync");
  if (!give_name()) return failed("cannot rename");
  flock(file_.get(), LOCK_UN);  // It is a file like any other now.
  if (fsync(folder_.get()) != 0 && errno != EINVAL) return failed("written, but cannot sync its folder");
  return {};
}

bool TempFile::give_name() {
  const auto link_as = [&](const std::string& name) {
    return linkat(AT_FDCWD, by_number().c_str(), folder_.get(), name.c_str(), AT_SYMLINK_FOLLOW) == 0;
  };
  if (name_.empty()) {
    if (!replaces_ && link_as(base_)) return true;
    if (!replaces_ && errno != EEXIST) return false;
    if (!with_new_name(link_as)) return false;
  }
  if (renameat(folder_.get(), name_.c_str(), folder_.get(), base_.c_str()) != 0) return false;
  name_.clear();
  return true;
}

bool TempFile::create_named(unsigned mode) {
  return with_new_name([&](const std::string& name) {
    file_ = Descriptor(openat(folder_.get(), name.c_str(), O_CREAT | O_EXCL | O_RDWR | O_CLOEXEC, mode));
    if (!file_) return false;
    // Until it is locked, another writer may take it for one that was left behind, and remove it.
    const bool taken = flock(file_.get(), LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (!taken && is_the_file(file_.get(), folder_.get(), name)) return true;
    errno = EEXIST;
    return false;
  });
}

std::string TempFile::name(unsigned i) const { return temporary_name(Hash(0)(bytes_of(base_)).value, i); }

// Tries `make` with names until one is free; it becomes name_.
template <class Make>
bool TempFile::with_new_name(Make make) {
  for (unsigned i = 0; i < kTries; ++i) {
    std::uint64_t random = 0;
    if (getentropy(&random, sizeof random) != 0) return false;
    std::string candidate = i < kKnownNames ? name(i) : temporary_name(random, i);
    if (make(candidate)) {
      name_ = std::move(candidate);
      return true;
    }
    if (errno != EEXIST) return false;
  }
  return false;
}

void TempFile::remove_left_behind() const {
  for (unsigned i = 0; i < kKnownNames; ++i) {
    const std::string left = name(i);
    const Descriptor file(openat(folder_.get(), left.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    // Whoever has the lock may remove the name, if it is still that file's: its writer may have renamed it, and another
    // one have made a new file of this name, between opening and locking it here.
    if (file && flock(file.get(), LOCK_EX | LOCK_NB) == 0 && is_the_file(file.get(), folder_.get(), left))
      unlinkat(folder_.get(), left.c_str(), 0);
  }
}

}  // namespace perhaps
