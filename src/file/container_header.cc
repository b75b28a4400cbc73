// Every number of the header is compared with the size of the file before it is used. The offsets below are the first
// table of doc/container.md.
#include "file/container_header.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "hash/checksum.h"
#include "perhaps/detail/bits.h"

namespace perhaps {
namespace {

using detail::load;
using detail::store;

constexpr std::array<unsigned char, 8> kMagic = {0x89, 'p', 'e', 'r', 'h', 'a', 'p', 's'};
constexpr std::uint32_t kVersion = 2;
constexpr std::size_t kMaxHeader = 512 << 10;  // a chain of 4096 links takes 64 bytes for each

constexpr std::size_t kVersionAt = 8;
constexpr std::size_t kHeaderBytesAt = 12;
constexpr std::size_t kKindAt = 16;
constexpr std::size_t kSchemeAt = 20;
constexpr std::size_t kSeedAt = 24;
constexpr std::size_t kKeysAt = 32;
constexpr std::size_t kCapacityAt = 40;
constexpr std::size_t kFileBytesAt = 48;
constexpr std::size_t kParamCountAt = 56;
constexpr std::size_t kSectionCountAt = 60;
constexpr std::size_t kChecksumAt = 64;
constexpr std::size_t kParamsAt = 72;
constexpr std::size_t kSectionEntry = 32;

std::string number(std::uint64_t n) { return std::to_string(n); }

// The header is there, whole and undamaged; returns its size.
Result<std::uint32_t> check_envelope(Bytes file, const std::string& name) {
  const auto bad = [&](Errc code, const std::string& fact) { return Error{code, name + ": " + fact}; };
  const std::byte* const at = file.data();

  if (file.empty()) return bad(Errc::truncated, "the file is empty");
  if (std::memcmp(at, kMagic.data(), std::min(kMagic.size(), file.size())) != 0) {
    return bad(Errc::bad_magic, "not a perhaps file");
  }
  if (file.size() < kKindAt) return bad(Errc::truncated, "truncated within the header");
  const auto version = load<std::uint32_t>(at + kVersionAt);
  if (version > kVersion) {
    return bad(Errc::bad_version,
               "version " + number(version) + " is newer than this library (" + number(kVersion) + ")");
  }
  if (version == 0) return bad(Errc::bad_parameter, "damaged header: version 0");
  if (version < kVersion) {
    return bad(Errc::bad_version, "version " + number(version) +
                                      ", written by perhaps before 0.2: its hash is no longer supported; build the "
                                      "filter again from its keys");
  }
  const auto header_bytes = load<std::uint32_t>(at + kHeaderBytesAt);
  if (header_bytes <= kParamsAt || header_bytes > kMaxHeader || header_bytes % kContainerUnit != 0) {
    return bad(Errc::bad_parameter, "damaged header: a header of " + number(header_bytes) + " bytes");
  }
  if (file.size() < header_bytes) {
    return bad(Errc::truncated, "truncated: the header alone has " + number(header_bytes) + " bytes, the file has " +
                                    number(file.size()));
  }
  if (checksum_around(file.first(header_bytes), kChecksumAt) != load<std::uint64_t>(at + kChecksumAt)) {
    return bad(Errc::bad_checksum, "damaged: the header does not match its checksum");
  }
  const auto file_bytes = load<std::uint64_t>(at + kFileBytesAt);
  if (file.size() != file_bytes) {
    const bool truncated = file.size() < file_bytes;
    return bad(truncated ? Errc::truncated : Errc::bad_parameter,
               (truncated ? "truncated: the header promises " : "too long: the header promises ") + number(file_bytes) +
                   " bytes, the file has " + number(file.size()));
  }
  return header_bytes;
}

// Sections follow the header and each other without a gap, and end where the file does.
Result<void> parse_sections(Bytes file, std::uint64_t table_at, std::uint64_t count, std::uint64_t header_bytes,
                            const std::string& name, ParsedHeader& parsed) {
  const auto bad = [&](Errc code, const std::string& fact) { return Error{code, name + ": " + fact}; };
  const std::uint64_t file_bytes = file.size();
  std::uint64_t end = header_bytes;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::byte* const entry = file.data() + table_at + kSectionEntry * i;
    const SectionEntry e{.type = load<std::uint32_t>(entry),
                         .offset = load<std::uint64_t>(entry + 8),
                         .size = load<std::uint64_t>(entry + 16),
                         .checksum = load<std::uint64_t>(entry + 24)};
    const std::string which = "section " + number(i);
    if (load<std::uint32_t>(entry + 4) != 0) return bad(Errc::unsupported, which + " uses a reserved field");
    if (e.offset != end) {
      return bad(Errc::bad_parameter, which + " starts at " + number(e.offset) + " instead of " + number(end));
    }
    // `size` first, so that neither the padding nor the sum can overflow.
    if (e.size > file_bytes - end || padded(e.size) > file_bytes - end) {
      return bad(Errc::bad_parameter, which + " of " + number(e.size) + " bytes does not fit the file");
    }
    if (e.type == kAboutSection) {
      if (i + 1 != count)
        return bad(Errc::bad_parameter, which + " holds the text about the filter and is not the last");
      if (e.size == 0 || e.size > kMaxAbout) {
        return bad(Errc::bad_parameter, which + ": a text of " + number(e.size) + " bytes about the filter");
      }
    } else {
      parsed.header.sections.push_back({.type = e.type, .bytes = file.subspan(e.offset, e.size)});
    }
    parsed.entries.push_back(e);
    end += padded(e.size);
  }
  if (end != file_bytes) {
    return bad(Errc::bad_parameter,
               "the sections end at " + number(end) + ", the header promises " + number(file_bytes) + " bytes");
  }
  return {};
}

}  // namespace

Result<ParsedHeader> parse_header(Bytes file, const std::string& name) {
  const auto bad = [&](Errc code, const std::string& fact) { return Error{code, name + ": " + fact}; };
  const auto envelope = check_envelope(file, name);
  if (!envelope) return envelope.error();
  const std::uint64_t header_bytes = *envelope;

  // From here on the header is known to be undamaged: an error now was made by its writer, or on purpose.
  const std::byte* const at = file.data();
  ParsedHeader parsed;
  Header& header = parsed.header;
  header.kind = Kind{load<std::uint32_t>(at + kKindAt)};
  header.scheme = Scheme{load<std::uint32_t>(at + kSchemeAt)};
  header.seed = load<std::uint64_t>(at + kSeedAt);
  header.record = {.keys = load<std::uint64_t>(at + kKeysAt), .capacity = load<std::uint64_t>(at + kCapacityAt)};

  const std::uint64_t params = load<std::uint32_t>(at + kParamCountAt);
  const std::uint64_t sections = load<std::uint32_t>(at + kSectionCountAt);
  const std::uint64_t sections_at = kParamsAt + 8 * params;
  const std::uint64_t used = sections_at + kSectionEntry * sections;
  if (used > header_bytes) {
    return bad(Errc::bad_parameter, number(params) + " parameters and " + number(sections) +
                                        " sections do not fit a header of " + number(header_bytes) + " bytes");
  }
  for (std::uint64_t i = 0; i < params; ++i) header.params.push_back(load<std::uint64_t>(at + kParamsAt + 8 * i));
  if (auto done = parse_sections(file, sections_at, sections, header_bytes, name, parsed); !done)
    return std::move(done).error();
  for (std::uint64_t i = used; i < header_bytes; ++i) {
    if (at[i] != std::byte{0}) return bad(Errc::unsupported, "the padding of the header is in use");
  }
  return parsed;
}

Result<std::vector<std::byte>> lay_out(const std::string& path, const Header& header,
                                       std::vector<SectionEntry>& entries) {
  const std::uint64_t used = kParamsAt + 8 * header.params.size() + kSectionEntry * entries.size();
  if (used > kMaxHeader) return Error{Errc::unsupported, path + ": the header would exceed 512 KiB"};
  std::vector<std::byte> bytes(padded(used));
  std::uint64_t end = bytes.size();
  for (SectionEntry& e : entries) {
    if (e.size > (INT64_MAX >> 1) - end) {
      return Error{Errc::unsupported, path + ": a section of " + number(e.size) + " bytes is too large"};
    }
    e.offset = end;
    end += padded(e.size);
  }
  std::byte* const at = bytes.data();
  std::memcpy(at, kMagic.data(), kMagic.size());
  store(at + kVersionAt, kVersion);
  store(at + kHeaderBytesAt, static_cast<std::uint32_t>(bytes.size()));
  store(at + kKindAt, static_cast<std::uint32_t>(header.kind));
  store(at + kSchemeAt, static_cast<std::uint32_t>(header.scheme));
  store(at + kSeedAt, header.seed);
  store(at + kFileBytesAt, end);
  store(at + kParamCountAt, static_cast<std::uint32_t>(header.params.size()));
  store(at + kSectionCountAt, static_cast<std::uint32_t>(entries.size()));
  for (std::size_t i = 0; i < header.params.size(); ++i) store(at + kParamsAt + 8 * i, header.params[i]);
  return bytes;
}

void seal(std::vector<std::byte>& bytes, const Header& header, const std::vector<SectionEntry>& entries) {
  store(bytes.data() + kKeysAt, header.record.keys);
  store(bytes.data() + kCapacityAt, header.record.capacity);
  std::byte* entry = bytes.data() + kParamsAt + 8 * header.params.size();
  for (const SectionEntry& e : entries) {
    store(entry, e.type);
    store(entry + 8, e.offset);
    store(entry + 16, e.size);
    store(entry + 24, e.checksum);
    entry += kSectionEntry;
  }
  store(bytes.data() + kChecksumAt, checksum_around(bytes, kChecksumAt));
}

bool is_container(Bytes start) noexcept {
  return start.size() >= kMagic.size() && std::memcmp(start.data(), kMagic.data(), kMagic.size()) == 0;
}

}  // namespace perhaps
