#include "perhaps/file/writer.h"

#include <cassert>

#include "file/temp_file.h"

namespace perhaps {

struct FileWriter::State {
  TempFile temp;
};

FileWriter::FileWriter(std::unique_ptr<State> state) noexcept : state_(std::move(state)) {}
FileWriter::FileWriter(FileWriter&&) noexcept = default;
FileWriter::~FileWriter() = default;

Result<FileWriter> FileWriter::create(const std::string& path) {
  auto temp = TempFile::create(path);
  if (!temp) return std::move(temp).error();
  return FileWriter(std::make_unique<State>(State{*std::move(temp)}));
}

Result<void> FileWriter::append(Bytes bytes) {
  if (auto done = state_->temp.write(bytes, size_); !done) return done;
  size_ += bytes.size();
  return {};
}

Result<void> FileWriter::overwrite(std::uint64_t at, Bytes bytes) {
  assert(at <= size_ && bytes.size() <= size_ - at);
  return state_->temp.write(bytes, at);
}

Result<void> FileWriter::commit() { return state_->temp.publish(); }

Result<void> write_file(const std::string& path, Bytes bytes) {
  auto file = FileWriter::create(path);
  if (!file) return std::move(file).error();
  if (auto done = file->append(bytes); !done) return done;
  return file->commit();
}

}  // namespace perhaps
