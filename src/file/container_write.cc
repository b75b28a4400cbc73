// Writing our own file: header and sections, to a path or to memory. doc/container.md is the specification.
#include <algorithm>
#include <array>
#include <cassert>

#include "file/container_header.h"
#include "file/temp_file.h"
#include "hash/checksum.h"
#include "perhaps/file/container.h"

namespace perhaps {
namespace {

// The start of a file of this header, and its table of sections with their offsets.
struct LaidOut {
  std::vector<std::byte> about;
  std::vector<std::byte> start;
  std::vector<SectionEntry> entries;
  std::vector<Bytes> contents;  // of the entries
  std::uint64_t size = 0;
};
Result<LaidOut> laid_out(const std::string& name, const Header& header) {
  LaidOut result;
  auto about = about_text(header.record.about, name);
  if (!about) return std::move(about).error();
  result.about = *std::move(about);
  const auto add = [&](std::uint32_t type, Bytes bytes) {
    result.entries.push_back({.type = type, .offset = 0, .size = bytes.size(), .checksum = 0});
    result.contents.push_back(bytes);
  };
  for (const auto& [type, bytes] : header.sections) add(type, bytes);
  if (!result.about.empty()) add(kAboutSection, result.about);
  auto start = lay_out(name, header, result.entries);
  if (!start) return std::move(start).error();
  result.start = *std::move(start);
  result.size = result.start.size();
  for (const SectionEntry& e : result.entries) result.size = std::max(result.size, e.offset + padded(e.size));
  return result;
}

// Gives every byte of the file to `write`, (bytes, offset) -> Result<void>, the start last. Each piece is written while
// the checksum still has it in the cache.
template <class Write>
Result<void> write_all(LaidOut& file, const Header& header, Write write) {
  constexpr std::size_t kPiece = 1 << 20;
  static constexpr std::array<std::byte, kContainerUnit> kZeros{};
  for (std::size_t i = 0; i < file.entries.size(); ++i) {
    const Bytes bytes = file.contents[i];
    SectionEntry& entry = file.entries[i];
    Checksum sum;
    for (std::size_t from = 0; from < bytes.size(); from += kPiece) {
      const Bytes piece = bytes.subspan(from, std::min(kPiece, bytes.size() - from));
      sum.add(piece);
      if (Result<void> done = write(piece, entry.offset + from); !done) return done;
    }
    const Bytes padding = Bytes(kZeros).first(padded(bytes.size()) - bytes.size());
    sum.add(padding);
    if (Result<void> done = write(padding, entry.offset + bytes.size()); !done) return done;
    entry.checksum = sum.value();
  }
  seal(file.start, header, file.entries);
  return write(Bytes(file.start), 0);
}

}  // namespace

Result<void> write_container(const std::string& path, const Header& header) {
  auto file = laid_out(path, header);
  if (!file) return std::move(file).error();
  auto temp = TempFile::create(path);
  if (!temp) return std::move(temp).error();
  auto done = write_all(*file, header, [&](Bytes bytes, std::uint64_t offset) { return temp->write(bytes, offset); });
  return done ? temp->publish() : done;
}

Result<void> write_container(std::span<std::byte> out, const Header& header) {
  auto file = laid_out("container", header);
  if (!file) return std::move(file).error();
  assert(out.size() == file->size);
  return write_all(*file, header, [&](Bytes bytes, std::uint64_t offset) -> Result<void> {
    std::copy(bytes.begin(), bytes.end(), out.begin() + static_cast<std::ptrdiff_t>(offset));
    return {};
  });
}

Result<std::uint64_t> container_size(const Header& header) {
  auto file = laid_out("container", header);
  if (!file) return std::move(file).error();
  return file->size;
}

}  // namespace perhaps
