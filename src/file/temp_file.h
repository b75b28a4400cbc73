// A file that does not exist until publish(), and then replaces what was there.
//
// Where the file system can, it has no name until then (O_TMPFILE), so that a killed process leaves nothing behind.
// Elsewhere, and for the moment between link() and rename() when it replaces another file, its name is
//
//   .perhaps-<XXH3 of the file's name, 16 hex digits>-<0 .. 7>.tmp
//
// and it is locked (flock) for as long as its writer lives. The next writer of the same file removes those
// that nobody holds; it need not list the folder, because the names are known.
#pragma once
#include <string>

#include "file/descriptor.h"
#include "perhaps/hash.h"
#include "perhaps/result.h"

namespace perhaps {

class TempFile {
 public:
  static Result<TempFile> create(const std::string& path);
  TempFile(TempFile&&) noexcept = default;
  TempFile& operator=(TempFile&&) = delete;
  ~TempFile();

  int fd() const noexcept { return file_.get(); }
  Error failed(const std::string& what) const;

  Result<void> write(Bytes bytes, std::uint64_t offset) const;
  // The content is on the disk before the name is, and the name before this returns.
  Result<void> publish();

 private:
  TempFile() = default;

  bool create_named(unsigned mode);
  bool give_name();
  std::string name(unsigned i) const;
  void remove_left_behind() const;
  std::string by_number() const { return "/proc/self/fd/" + std::to_string(file_.get()); }
  template <class Make>
  bool with_new_name(Make make);

  std::string path_;  // as the caller wrote it, for messages
  std::string base_;
  std::string name_;  // empty: has none
  Descriptor folder_;
  Descriptor file_;
  bool replaces_ = false;
};

}  // namespace perhaps
