// JSON for the page and the package. Doubles have 17 digits, so that a reader gets the same number as from the command
// line; integers above 2^53 are for readers that keep them.
#pragma once
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <string_view>

namespace perhaps::web {

inline std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += {'\\', c};
    } else if (byte < 0x20) {
      std::array<char, 8> escape;
      std::snprintf(escape.data(), escape.size(), "\\u%04x", unsigned{byte});
      out += escape.data();
    } else {
      out += c;  // the reader's decoder replaces what is not UTF-8
    }
  }
  return out + "\"";
}

// One object, fields in the order they were added.
class Json {
 public:
  Json& raw(std::string_view name, std::string_view json) {
    body_ += (body_.empty() ? "" : ",") + quoted(name) + ":" + std::string(json);
    return *this;
  }
  Json& add(std::string_view name, std::string_view value) { return raw(name, quoted(value)); }
  Json& add(std::string_view name, const char* value) { return add(name, std::string_view(value)); }
  Json& add(std::string_view name, bool value) { return raw(name, value ? "true" : "false"); }
  Json& add(std::string_view name, std::uint64_t value) { return raw(name, std::to_string(value)); }
  Json& add(std::string_view name, std::uint32_t value) { return add(name, std::uint64_t{value}); }
  Json& add(std::string_view name, double value) {
    std::array<char, 32> text;
    std::snprintf(text.data(), text.size(), "%.17g", value);
    return raw(name, std::isfinite(value) ? text.data() : "null");
  }
  template <class T>
  Json& add(std::string_view name, const std::optional<T>& value) {
    return value ? add(name, *value) : raw(name, "null");
  }
  std::string text() const { return "{" + body_ + "}"; }

  // A list of what `each` makes of the items.
  template <class Items, class Each>
  static std::string array_of(const Items& items, Each each) {
    std::string out = "[";
    for (const auto& item : items) out += (out.size() == 1 ? "" : ",") + std::string(each(item));
    return out + "]";
  }

 private:
  std::string body_;
};

}  // namespace perhaps::web
