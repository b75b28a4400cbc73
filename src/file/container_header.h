// The header of our file: bytes to a Header and back. doc/container.md is the specification.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "perhaps/file/container.h"

namespace perhaps {

inline constexpr std::size_t kContainerUnit = 64;  // Header and sections are padded to a multiple of this.

// REQUIRES: size <= INT64_MAX
constexpr std::uint64_t padded(std::uint64_t size) noexcept {
  return (size + kContainerUnit - 1) / kContainerUnit * kContainerUnit;
}

// A section as the header's table has it.
struct SectionEntry {
  std::uint32_t type = 0;
  std::uint64_t offset = 0;
  std::uint64_t size = 0;
  std::uint64_t checksum = 0;
};

struct ParsedHeader {
  Header header;                      // without record.about, whose section is not read here
  std::vector<SectionEntry> entries;  // one more than the header's sections if there is an about
};
// Every number is compared with the size of the file before it is used, and nothing here looks past the header.
Result<ParsedHeader> parse_header(Bytes file, const std::string& name);

// Record::about as the text of its section, and back. `name` is for messages.
inline constexpr std::uint32_t kAboutSection = 2;
inline constexpr std::size_t kMaxAbout = 64 << 10;
Result<std::vector<std::byte>> about_text(const Facts& about, const std::string& name);
Result<Facts> parse_about(Bytes text, const std::string& name);

// The whole header but for the checksums of the sections; `entries` has type and size, and gets offsets.
Result<std::vector<std::byte>> lay_out(const std::string& path, const Header& header,
                                       std::vector<SectionEntry>& entries);
// Puts what is known last into a header that was laid out: the record, the checksums of the sections, and then its own.
void seal(std::vector<std::byte>& bytes, const Header& header, const std::vector<SectionEntry>& entries);

// What write_container writes to a file, in memory.  REQUIRES: out.size() == *container_size(header)
Result<void> write_container(std::span<std::byte> out, const Header& header);
Result<std::uint64_t> container_size(const Header& header);

}  // namespace perhaps
