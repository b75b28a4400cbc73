// Where writing to a path ends up: links are followed, and the last one's target need not exist.
//
// rename() would replace a link instead of following it, so links are followed here and not by the kernel, and the
// protection that Linux has against planted links (fs.protected_symlinks) has to be here as well: in a folder that
// everybody may write to, such as /tmp, somebody could leave a link to a file of ours under the name of an output.
#pragma once
#include <sys/stat.h>

#include <string>

#include "file/descriptor.h"
#include "perhaps/result.h"

namespace perhaps {

struct LinkTarget {
  Descriptor folder;  // open for reading: it can be synced
  std::string folder_name;
  std::string base;  // in `folder`; not a link at the time of looking
};
Result<LinkTarget> follow_links(const std::string& path);

// In a sticky folder that everybody may write to, only links of the user and of the folder's owner are followed.
bool may_follow(const struct stat& link, const struct stat& folder, uid_t user) noexcept;

}  // namespace perhaps
