// Parses the parameters of a codec, which are given by name.
#include <algorithm>
#include <cassert>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#if !defined(__EMSCRIPTEN__)
#include <locale>
#include <sstream>
#endif

#include "perhaps/format/format.h"

namespace perhaps::format {
namespace {

std::string text_of(double value) {
  std::string text(32, '\0');
#if defined(__cpp_lib_to_chars)
  const auto size = std::to_chars(text.data(), text.data() + text.size(), value).ptr - text.data();
#else
  const auto size = std::snprintf(text.data(), text.size(), "%.15g", value);
#endif
  text.resize(static_cast<std::size_t>(size));
  return text;
}

// The whole text. libc++ reads real numbers by std::from_chars only since version 20, and a stream takes longer.
bool is_number(std::string_view text, double& value) {
#if defined(__cpp_lib_to_chars)
  const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && stop == text.data() + text.size();
#else
  if (text.find_first_not_of("0123456789.eE+-") != text.npos || text.empty() || text[0] == '+') return false;
#if defined(__EMSCRIPTEN__)
  // It has no locales, and streams would be a tenth of a module.
  const std::string copy(text);
  char* stop = nullptr;
  value = std::strtod(copy.c_str(), &stop);
  return stop == copy.c_str() + copy.size();
#else
  std::istringstream in{std::string(text)};
  in.imbue(std::locale::classic());
  return (in >> value) && in.peek() == std::istringstream::traits_type::eof();
#endif
#endif
}

Error wrong(const Param& param, std::string_view text, const std::string& why) {
  return {Errc::bad_parameter, std::string(param.name) + "=" + std::string(text) + ": " + why};
}

}  // namespace

Params::Params(std::span<const Param> known) : known_(known), values_(known.size()) {
  for (std::size_t i = 0; i < known.size(); ++i) {
    if (known[i].initial.empty()) continue;
    auto value = parse(known[i], known[i].initial);
    assert(value);
    values_[i] = *value;
  }
}

Params::Params(const Codec& codec) : Params(codec.params) {}

Result<Params::Value> Params::parse(const Param& param, std::string_view text) {
  Value value;
  value.present = true;
  const char* const end = text.data() + text.size();
  switch (param.type) {
    case Param::Type::flag:
      if (text != "true" && text != "false") return wrong(param, text, "must be true or false");
      value.count = text == "true";
      return value;
    case Param::Type::word:
      if (param.words.empty()) {
        value.word = text;
        return value;
      }
      for (std::string_view rest = param.words; !rest.empty();) {
        const std::string_view word = rest.substr(0, rest.find('|'));
        if (text.substr(0, text.find(' ')) == word) {
          value.word = word;
          return value;
        }
        rest.remove_prefix(std::min(word.size() + 1, rest.size()));
      }
      return wrong(param, text, "must be one of " + std::string(param.words));
    case Param::Type::count: {
      const auto [stop, error] = std::from_chars(text.data(), end, value.count);
      // 1e6 is also a count.
      if (error != std::errc() || stop != end) {
        if (!is_number(text, value.real) || value.real < 0 || value.real >= 0x1p64 ||
            value.real != std::floor(value.real))
          return wrong(param, text, "must be a whole number");
        value.count = static_cast<std::uint64_t>(value.real);
      }
      value.real = static_cast<double>(value.count);
      break;
    }
    case Param::Type::real: {
      if (!is_number(text, value.real) || std::isnan(value.real)) return wrong(param, text, "must be a number");
      break;
    }
  }
  if (value.real < param.least) return wrong(param, text, "must be at least " + text_of(param.least));
  if (param.most != 0 && value.real > param.most) return wrong(param, text, "must be at most " + text_of(param.most));
  return value;
}

std::size_t Params::index_of(std::string_view name) const noexcept {
  return static_cast<std::size_t>(
      std::find_if(known_.begin(), known_.end(), [&](const Param& param) { return param.name == name; }) -
      known_.begin());
}

Result<void> Params::set(std::string_view name, std::string_view text) {
  const std::size_t i = index_of(name);
  if (i == known_.size()) {
    std::string names;
    for (const Param& param : known_) names += (names.empty() ? "" : ", ") + std::string(param.name);
    return Error{Errc::bad_parameter,
                 std::string(name) + ": no such parameter; known: " + (names.empty() ? std::string("none") : names)};
  }
  auto value = parse(known_[i], text);
  if (!value) return std::move(value).error();
  values_[i] = *value;
  values_[i].given = true;
  return {};
}

bool Params::given(std::string_view name) const noexcept {
  const std::size_t i = index_of(name);
  return i != known_.size() && values_[i].given;
}

const Params::Value& Params::value(std::string_view name, [[maybe_unused]] Param::Type type) const noexcept {
  const std::size_t i = index_of(name);
  assert(i != known_.size() && known_[i].type == type && "the codec has no such parameter");
  return values_[i];
}

std::uint64_t Params::count(std::string_view name) const noexcept {
  assert(value(name, Param::Type::count).present);
  return value(name, Param::Type::count).count;
}
double Params::real(std::string_view name) const noexcept {
  assert(value(name, Param::Type::real).present);
  return value(name, Param::Type::real).real;
}
bool Params::flag(std::string_view name) const noexcept {
  assert(value(name, Param::Type::flag).present);
  return value(name, Param::Type::flag).count != 0;
}
std::string_view Params::word(std::string_view name) const noexcept {
  assert(value(name, Param::Type::word).present);
  return value(name, Param::Type::word).word;
}
std::uint64_t Params::count_or(std::string_view name, std::uint64_t otherwise) const noexcept {
  const Value& found = value(name, Param::Type::count);
  return found.present ? found.count : otherwise;
}
double Params::real_or(std::string_view name, double otherwise) const noexcept {
  const Value& found = value(name, Param::Type::real);
  return found.present ? found.real : otherwise;
}

}  // namespace perhaps::format
