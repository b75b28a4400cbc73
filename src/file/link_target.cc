#include "file/link_target.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <string_view>

#include "file/system_error.h"

namespace perhaps {

bool may_follow(const struct stat& link, const struct stat& folder, uid_t user) noexcept {
  constexpr mode_t kShared = S_ISVTX | S_IWOTH;
  return (folder.st_mode & kShared) != kShared || link.st_uid == user || link.st_uid == folder.st_uid;
}

Result<LinkTarget> follow_links(const std::string& path) {
  std::string at = path;  // for messages; what is opened is relative to `folder`
  std::string step = path;
  Descriptor folder;
  for (int hops = 0; hops < 40; ++hops) {
    const std::size_t slash = step.rfind('/');
    const std::string base = slash == std::string::npos ? step : step.substr(slash + 1);
    const std::size_t name_end = at.size() - base.size();
    const std::string folder_name = name_end == 0 ? "." : at.substr(0, name_end);
    if (base.empty()) {
      errno = path.empty() ? ENOENT : EISDIR;
      return system_error(path, "cannot write");
    }
    // Descriptors all the way, so that what was checked is what is used, whoever renames things meanwhile.
    const std::string into = slash == std::string::npos ? "." : step.substr(0, slash + 1);
    folder = Descriptor(openat(folder ? folder.get() : AT_FDCWD, into.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
    struct stat around;
    if (!folder || fstat(folder.get(), &around) != 0)
      return system_error(path, "cannot open the folder " + folder_name);

    const Descriptor link(openat(folder.get(), base.c_str(), O_PATH | O_NOFOLLOW | O_CLOEXEC));
    struct stat status;
    if (!link || fstat(link.get(), &status) != 0 || !S_ISLNK(status.st_mode)) {
      Descriptor readable(openat(folder.get(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
      if (!readable) return system_error(path, "cannot open the folder " + folder_name);
      return LinkTarget{std::move(readable), folder_name, base};
    }
    if (!may_follow(status, around, geteuid())) {
      return Error{Errc::io, path + ": cannot write: the link " + at + " belongs to somebody else, and everybody may " +
                                 "write to its folder"};
    }
    std::array<char, 4096> text;
    const ssize_t size = readlinkat(link.get(), "", text.data(), text.size());
    if (size < 0) return system_error(path, "cannot write");
    step.assign(text.data(), static_cast<std::size_t>(size));
    at = step.starts_with('/') ? step : at.substr(0, name_end) + step;
  }
  errno = ELOOP;
  return system_error(path, "cannot write");
}

}  // namespace perhaps
