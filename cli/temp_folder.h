// A new folder under TMPDIR, removed at the end with its contents, also after an error.
#pragma once
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>

#include "command.h"

namespace perhaps::cli {

class TempFolder {
 public:
  // Throws Failure.
  explicit TempFolder(std::string_view prefix = "perhaps-") {
    std::string name =
        (std::filesystem::temp_directory_path() / prefix).string() + std::string(6, 'X');  // mkdtemp's part
    if (::mkdtemp(name.data()) == nullptr) fail("{}: {} (TMPDIR)", name, std::strerror(errno));
    path_ = std::move(name);
  }
  TempFolder(const TempFolder&) = delete;
  ~TempFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_;
};

}  // namespace perhaps::cli
