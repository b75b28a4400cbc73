// What a file says about its filter (Record::about): lines of text, "name=value". doc/container.md has the rules.
#include <algorithm>
#include <set>
#include <string_view>

#include "file/container_header.h"

namespace perhaps {
namespace {

constexpr std::size_t kMaxName = 64;

bool is_name(std::string_view name) noexcept {
  return !name.empty() && name.size() <= kMaxName && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
  });
}

// Well-formed by the table of the Unicode standard: no overlong forms, no surrogates, nothing above 10ffff.
bool is_utf8(std::string_view text) noexcept {
  for (std::size_t i = 0; i < text.size();) {
    const auto byte = [&](std::size_t at) { return static_cast<unsigned char>(text[at]); };
    const unsigned first = byte(i);
    const std::size_t size = first < 0x80   ? 1
                             : first < 0xc2 ? 0
                             : first < 0xe0 ? 2
                             : first < 0xf0 ? 3
                             : first < 0xf5 ? 4
                                            : 0;
    if (size == 0 || text.size() - i < size) return false;
    for (std::size_t at = 1; at < size; ++at) {
      if ((byte(i + at) & 0xc0) != 0x80) return false;
    }
    if (size > 2) {
      const unsigned second = byte(i + 1);
      if ((first == 0xe0 && second < 0xa0) || (first == 0xed && second > 0x9f) || (first == 0xf0 && second < 0x90) ||
          (first == 0xf4 && second > 0x8f)) {
        return false;
      }
    }
    i += size;
  }
  return true;
}

}  // namespace

Result<std::vector<std::byte>> about_text(const Facts& about, const std::string& path) {
  const auto bad = [&](const std::string& fact) { return Error{Errc::bad_parameter, path + ": about: " + fact}; };
  std::string text;
  std::set<std::string_view> names;
  for (const auto& [name, value] : about) {
    if (!is_name(name)) return bad("a name has 1 to 64 of a-z, 0-9, '.', '_' and '-'");
    if (!names.insert(name).second) return bad("'" + name + "' occurs twice");
    if (!is_utf8(value)) return bad("the value of '" + name + "' is not UTF-8");
    text += name + '=';
    for (const char c : value) {
      if (c == '\\' || c == '\n') text += '\\';
      text += c == '\n' ? 'n' : c;
    }
    text += '\n';
    if (text.size() > kMaxAbout) return bad("more than 64 KiB");
  }
  const Bytes bytes = bytes_of(text);
  return std::vector<std::byte>(bytes.begin(), bytes.end());
}

Result<Facts> parse_about(Bytes bytes, const std::string& file) {
  const auto bad = [&](const std::string& fact) { return Error{Errc::bad_parameter, file + ": about: " + fact}; };
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  Facts about;
  std::set<std::string_view> names;
  if (text.empty() || text.back() != '\n') return bad("does not end with a whole line");
  while (!text.empty()) {
    const std::string which = "line " + std::to_string(about.size() + 1);
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(line.size() + 1);
    const std::size_t equals = line.find('=');
    if (equals == line.npos || !is_name(line.substr(0, equals))) return bad(which + " is not name=value");
    std::string value;
    for (std::size_t i = equals + 1; i < line.size(); ++i) {
      if (line[i] != '\\') {
        value += line[i];
        continue;
      }
      if (++i == line.size() || (line[i] != '\\' && line[i] != 'n')) return bad(which + " has an unknown escape");
      value += line[i] == 'n' ? '\n' : '\\';
    }
    const std::string name(line.substr(0, equals));
    if (!is_utf8(value)) return bad("the value of '" + name + "' is not UTF-8");
    if (!names.insert(line.substr(0, equals)).second) return bad("'" + name + "' occurs twice");
    about.emplace_back(name, std::move(value));
  }
  return about;
}

}  // namespace perhaps
