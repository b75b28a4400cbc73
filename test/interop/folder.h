// A temporary folder, removed at the end of the test, and its files as bytes.
#pragma once
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <vector>

#include "perhaps/hash.h"

namespace perhaps::test {

class Folder {
 public:
  Folder() {
    static int made = 0;
    const std::string name = "interop_" + std::to_string(::getpid()) + "_" + std::to_string(made++);
    path_ = std::filesystem::temp_directory_path() / name;
    std::filesystem::remove_all(path_);
    std::filesystem::create_directories(path_);
  }
  Folder(const Folder&) = delete;
  ~Folder() { std::filesystem::remove_all(path_); }

  std::string path() const { return path_.string(); }
  // The only file with this extension.
  std::string only(const std::string& ending) const {
    std::string found;
    for (const auto& entry : std::filesystem::directory_iterator(path_)) {
      if (entry.path().extension() != ending) continue;
      if (!found.empty()) throw std::runtime_error("several files " + ending);
      found = entry.path().string();
    }
    if (found.empty()) throw std::runtime_error("no file " + ending);
    return found;
  }

 private:
  std::filesystem::path path_;
};

inline std::vector<std::byte> file_bytes(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  const std::vector<char> text((std::istreambuf_iterator<char>(in)), {});
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

inline void write_file(const std::string& path, Bytes bytes) {
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  out.close();
  if (!out) throw std::runtime_error("cannot write " + path);
}

}  // namespace perhaps::test
