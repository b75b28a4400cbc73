// JSON, for programs that read what a command prints.
#pragma once
#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace perhaps::cli {

// One JSON object, fields in the order they were added. Text that is not UTF-8 has its bad bytes replaced.
class Json {
 public:
  Json& add(std::string_view name, std::string_view value);
  Json& add(std::string_view name, const char* value) { return add(name, std::string_view(value)); }
  Json& add(std::string_view name, double value);
  Json& add(std::string_view name, std::uint64_t value) { return raw(name, fmt::format("{}", value)); }
  Json& add(std::string_view name, std::uint32_t value) { return raw(name, fmt::format("{}", value)); }
  Json& add(std::string_view name, bool value) { return raw(name, value ? "true" : "false"); }
  template <class T>
  Json& add(std::string_view name, const std::optional<T>& value) {
    return value ? add(name, *value) : raw(name, "null");
  }
  Json& raw(std::string_view name, std::string_view json);
  std::string text() const { return "{" + body_ + "}"; }

  static std::string quoted(std::string_view text);
  static std::string array(const std::vector<std::string>& items);
  // Of what `each` makes of the items.
  template <class Items, class Each>
  static std::string array_of(const Items& items, Each each) {
    std::vector<std::string> made;
    for (const auto& item : items) made.push_back(each(item));
    return array(made);
  }

 private:
  std::string body_;
};

}  // namespace perhaps::cli
