// A second output beside standard output: lines that were dropped, or the other half of an answer.
#pragma once
#include <string>
#include <string_view>

#include "file/descriptor.h"
#include "key_options.h"
#include "perhaps/hash.h"

namespace perhaps::cli {

// Written from begin() on; until then the command may still be refused, and the old content stays. Never one of the
// inputs, nor the file that standard output goes to.
class SideFile {
 public:
  // `option` names the file, `inputs` are read. An empty path: none is wanted. Throws Failure.
  SideFile(std::string option, std::string path, const KeyOptions& inputs);
  void begin();
  bool wanted() const noexcept { return !path_.empty(); }
  void write(Bytes bytes) { write(std::string_view(reinterpret_cast<const char*>(bytes.data()), bytes.size())); }
  void write(std::string_view text) {
    buffer_.append(text);
    if (buffer_.size() >= kBuffer) flush();
  }
  void write(char c) { buffer_ += c; }
  void flush();

 private:
  static constexpr std::size_t kBuffer = std::size_t{1} << 16;
  std::string option_;
  std::string path_;
  Descriptor file_;
  std::string buffer_;
};

}  // namespace perhaps::cli
