#include "json_field.h"

#include <charconv>

namespace perhaps::cli::json {
namespace {

constexpr int kMaxDepth = 512;

int hex_value(char c) noexcept {
  if (c >= '0' && c <= '9') return c - '0';
  const char low = static_cast<char>(c | 0x20);
  return low >= 'a' && low <= 'f' ? low - 'a' + 10 : -1;
}

// The four digits after \u, or -1.
int code_unit(const char* p, const char* end) noexcept {
  if (end - p < 4) return -1;
  int value = 0;
  for (int i = 0; i < 4; ++i) {
    const int digit = hex_value(p[i]);
    if (digit < 0) return -1;
    value = value << 4 | digit;
  }
  return value;
}

std::byte* put_utf8(std::byte* out, unsigned code) noexcept {
  const auto put = [&](unsigned value) { *out++ = static_cast<std::byte>(value); };
  if (code < 0x80) {
    put(code);
  } else if (code < 0x800) {
    put(0xc0 | code >> 6);
    put(0x80 | (code & 0x3f));
  } else if (code < 0x10000) {
    put(0xe0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3f));
    put(0x80 | (code & 0x3f));
  } else {
    put(0xf0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3f));
    put(0x80 | (code >> 6 & 0x3f));
    put(0x80 | (code & 0x3f));
  }
  return out;
}

// REQUIRES: a string that Scan has checked, without its quotes
std::byte* unescape(std::string_view text, std::byte* out) noexcept {
  for (const char* p = text.data(); p != text.data() + text.size();) {
    if (*p != '\\') {
      *out++ = static_cast<std::byte>(*p++);
      continue;
    }
    const char* const end = text.data() + text.size();
    const char c = p[1];
    p += 2;
    if (c != 'u') {
      const char plain = c == 'b' ? '\b' : c == 'f' ? '\f' : c == 'n' ? '\n' : c == 'r' ? '\r' : c == 't' ? '\t' : c;
      *out++ = static_cast<std::byte>(plain);
      continue;
    }
    auto code = static_cast<unsigned>(code_unit(p, end));
    p += 4;
    if (code >= 0xd800 && code < 0xdc00) {
      code = 0x10000 + ((code - 0xd800) << 10) + (static_cast<unsigned>(code_unit(p + 2, end)) - 0xdc00);
      p += 6;
    }
    out = put_utf8(out, code);
  }
  return out;
}

class Scan {
 public:
  Scan(std::string_view line, const std::vector<std::string>& path, Arena& arena)
      : begin_(line.data()), p_(begin_), end_(begin_ + line.size()), path_(path), arena_(arena) {}

  std::vector<Bytes> elements() {
    std::vector<Bytes> all;
    elements_ = &all;
    blanks();
    const bool good = value(0, 0, true) && (blanks(), p_ == end_) && target_.starts_with('[');
    return good ? all : std::vector<Bytes>();
  }
  Field run() {
    blanks();
    if (p_ == end_) return {};
    if (!value(0, 0, true)) return fault();
    blanks();
    if (p_ != end_) return why_ = "more after the end of the value", fault();
    if (target_.data() == nullptr || target_ == "null") return {};
    if (target_[0] == '{' || target_[0] == '[') {
      p_ = target_.data();
      return why_ = target_[0] == '{' ? "the field is an object" : "the field is an array", fault();
    }
    if (target_[0] != '"') return {.found = Found::value, .value = bytes_of(target_)};
    const std::string_view text = target_.substr(1, target_.size() - 2);
    if (text.find('\\') == text.npos) return {.found = Found::value, .value = bytes_of(text)};
    std::byte* const out = arena_.take(text.size());
    std::byte* const last = unescape(text, out);
    arena_.trim(last);
    return {.found = Found::value, .value = {out, last}};
  }

 private:
  Field fault() const {
    return {.found = Found::fault, .fault = why_, .column = static_cast<std::size_t>(p_ - begin_) + 1};
  }
  bool wrong(const char* why) noexcept {
    why_ = why;
    return false;
  }
  void blanks() noexcept {
    while (p_ != end_ && (*p_ == ' ' || *p_ == '\t' || *p_ == '\r' || *p_ == '\n')) ++p_;
  }

  // `wanted`: the path leads here, and continues with path_[at].
  bool value(int depth, std::size_t at, bool wanted) {
    const char* const from = p_;
    const bool ends_here = wanted && at == path_.size();
    if (p_ == end_) return wrong("a value is missing");
    bool good = false;
    switch (*p_) {
      case '{':
        good = depth < kMaxDepth ? object(depth, at, wanted && !ends_here) : wrong("nested too deeply");
        break;
      case '[':
        good = depth < kMaxDepth ? array(depth, at, wanted && !ends_here, ends_here) : wrong("nested too deeply");
        break;
      case '"':
        good = string();
        break;
      case 't':
        good = word("true");
        break;
      case 'f':
        good = word("false");
        break;
      case 'n':
        good = word("null");
        break;
      default:
        good = number();
    }
    if (good && ends_here) target_ = {from, static_cast<std::size_t>(p_ - from)};
    return good;
  }

  bool object(int depth, std::size_t at, bool wanted) {
    ++p_;
    blanks();
    if (p_ != end_ && *p_ == '}') return ++p_, true;
    for (;;) {
      blanks();
      if (p_ == end_ || *p_ != '"') return wrong("the name of a member is missing");
      const char* const name = p_ + 1;
      if (!string()) return false;
      const bool here = wanted && is_name({name, static_cast<std::size_t>(p_ - 1 - name)}, path_[at]);
      if (here) target_ = {};
      blanks();
      if (p_ == end_ || *p_ != ':') return wrong("a colon is missing");
      ++p_;
      blanks();
      if (!value(depth + 1, at + 1, here)) return false;
      blanks();
      if (p_ == end_) return wrong("the object does not end");
      if (*p_ == '}') return ++p_, true;
      if (*p_ != ',') return wrong("a comma is missing");
      ++p_;
    }
  }

  // `whole`: the path ends here.
  bool array(int depth, std::size_t at, bool wanted, bool whole) {
    const bool listed = whole && elements_ != nullptr;
    if (listed) elements_->clear();
    std::size_t index = 0;
    std::size_t chosen = 0;
    if (wanted) {
      const std::string& text = path_[at];
      const auto [last, code] = std::from_chars(text.data(), text.data() + text.size(), chosen);
      wanted = code == std::errc() && last == text.data() + text.size();
    }
    ++p_;
    blanks();
    if (p_ != end_ && *p_ == ']') return ++p_, true;
    for (;; ++index) {
      blanks();
      const char* const from = p_;
      if (!value(depth + 1, at + 1, wanted && index == chosen)) return false;
      if (listed) elements_->push_back(bytes_of({from, static_cast<std::size_t>(p_ - from)}));
      blanks();
      if (p_ == end_) return wrong("the array does not end");
      if (*p_ == ']') return ++p_, true;
      if (*p_ != ',') return wrong("a comma is missing");
      ++p_;
    }
  }

  bool string() noexcept {
    for (++p_; p_ != end_; ++p_) {
      const auto c = static_cast<unsigned char>(*p_);
      if (c == '"') return ++p_, true;
      if (c < 0x20) return wrong("a control character in a string");
      if (c != '\\') continue;
      if (++p_ == end_) break;
      if (*p_ == 'u') {
        const int code = code_unit(p_ + 1, end_);
        if (code < 0) return wrong("\\u needs four hex digits");
        p_ += 4;
        if (code >= 0xdc00 && code < 0xe000) return wrong("half of a surrogate pair");
        if (code >= 0xd800 && code < 0xdc00) {
          const bool pair = end_ - p_ > 6 && p_[1] == '\\' && p_[2] == 'u';
          const int low = pair ? code_unit(p_ + 3, end_) : -1;
          if (low < 0xdc00 || low >= 0xe000) return wrong("half of a surrogate pair");
          p_ += 6;
        }
      } else if (std::string_view("\"\\/bfnrt").find(*p_) == std::string_view::npos) {
        return wrong("no such escape");
      }
    }
    return wrong("the string does not end");
  }

  bool word(std::string_view text) noexcept {
    if (!std::string_view(p_, static_cast<std::size_t>(end_ - p_)).starts_with(text)) return wrong("not a value");
    p_ += text.size();
    return true;
  }

  bool number() noexcept {
    const auto digits = [&] {
      const char* const from = p_;
      while (p_ != end_ && *p_ >= '0' && *p_ <= '9') ++p_;
      return p_ != from;
    };
    if (*p_ == '-') ++p_;
    const char* const whole = p_;
    if (!digits()) return wrong("not a value");
    if (*whole == '0' && p_ - whole > 1) return wrong("a number with a leading zero");
    if (p_ != end_ && *p_ == '.') {
      ++p_;
      if (!digits()) return wrong("a number without digits after its point");
    }
    if (p_ != end_ && (*p_ | 0x20) == 'e') {
      ++p_;
      if (p_ != end_ && (*p_ == '+' || *p_ == '-')) ++p_;
      if (!digits()) return wrong("a number without digits in its exponent");
    }
    return true;
  }

  // `raw` may have escapes.
  bool is_name(std::string_view raw, const std::string& wanted) {
    if (raw == wanted) return raw.find('\\') == raw.npos;
    if (raw.find('\\') == raw.npos) return false;
    std::byte* const out = arena_.take(raw.size());
    const std::byte* const last = unescape(raw, out);
    const bool same =
        std::string_view(reinterpret_cast<const char*>(out), static_cast<std::size_t>(last - out)) == wanted;
    arena_.trim(out);
    return same;
  }

  const char* begin_;
  const char* p_;
  const char* end_;
  const std::vector<std::string>& path_;
  Arena& arena_;
  std::string_view target_{};
  std::vector<Bytes>* elements_ = nullptr;
  const char* why_ = "";
};

}  // namespace

std::vector<std::string> path_of(std::string_view text) {
  std::vector<std::string> path;
  for (std::size_t from = 0;;) {
    const std::size_t dot = text.find('.', from);
    path.emplace_back(text.substr(from, dot - from));
    if (dot == std::string_view::npos) return path;
    from = dot + 1;
  }
}

Field find(Bytes line, const std::vector<std::string>& path, Arena& arena) {
  return Scan({reinterpret_cast<const char*>(line.data()), line.size()}, path, arena).run();
}
std::vector<Bytes> elements(Bytes line, const std::vector<std::string>& path) {
  Arena arena;
  return Scan({reinterpret_cast<const char*>(line.data()), line.size()}, path, arena).elements();
}

}  // namespace perhaps::cli::json
