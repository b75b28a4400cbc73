#include "json.h"

#include <algorithm>
#include <cmath>

namespace perhaps::cli {
namespace {

// The length of a well-formed UTF-8 sequence at the front of `s`, or 0.
std::size_t utf8_length(std::string_view s) {
  const auto at = [&](std::size_t i) { return static_cast<unsigned char>(s[i]); };
  const unsigned char c = at(0);
  const std::size_t n = c < 0x80 ? 1 : c < 0xc2 ? 0 : c < 0xe0 ? 2 : c < 0xf0 ? 3 : c < 0xf5 ? 4 : 0;
  if (n == 0 || n > s.size()) return 0;
  for (std::size_t i = 1; i < n; ++i) {
    if ((at(i) & 0xc0) != 0x80) return 0;
  }
  if ((c == 0xe0 && at(1) < 0xa0) || (c == 0xed && at(1) >= 0xa0)) return 0;
  if ((c == 0xf0 && at(1) < 0x90) || (c == 0xf4 && at(1) >= 0x90)) return 0;
  return n;
}

}  // namespace

std::string Json::quoted(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    const std::size_t n = utf8_length(text);
    const char c = text[0];
    if (n == 0) {
      out += "\\ufffd";
    } else if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (static_cast<unsigned char>(c) < 0x20) {
      out += fmt::format("\\u{:04x}", c);
    } else {
      out += text.substr(0, n);
    }
    text.remove_prefix(std::max<std::size_t>(n, 1));
  }
  return out + "\"";
}
std::string Json::array(const std::vector<std::string>& items) { return fmt::format("[{}]", fmt::join(items, ", ")); }
Json& Json::raw(std::string_view name, std::string_view json) {
  body_ += fmt::format("{}{}: {}", body_.empty() ? "" : ", ", quoted(name), json);
  return *this;
}
Json& Json::add(std::string_view name, std::string_view value) { return raw(name, quoted(value)); }
Json& Json::add(std::string_view name, double value) {
  return raw(name, std::isfinite(value) ? fmt::format("{}", value) : "null");
}

}  // namespace perhaps::cli
