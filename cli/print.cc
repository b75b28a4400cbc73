#include "print.h"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <utility>

#include "command.h"
#include "interrupt.h"

namespace perhaps::cli {
namespace {

std::string command_name = "perhaps";

std::string scaled(double n, const char* unit) {
  static constexpr const char* kPrefix[] = {"", "k", "M", "G", "T", "P", "E"};
  std::size_t i = 0;
  while (std::abs(n) >= 999.5 && i + 1 < std::size(kPrefix)) n /= 1000, ++i;
  const int digits = i == 0 || n >= 99.95 ? 0 : n >= 9.995 ? 1 : 2;
  std::string text = fmt::format("{:.{}f} {}{}", n, digits, kPrefix[i], unit);
  if (text.back() == ' ') text.pop_back();  // 29, of no unit
  return text;
}

// 1.23, 12.3, 12,300: three significant digits, and no exponent.  REQUIRES: 0.001 <= n < 1e19
std::string three_digits(double n) {
  if (n < 99.95) return fmt::format("{:.3g}", n);
  const double unit = std::pow(10, std::floor(std::log10(n)) - 2);
  return grouped(std::round(n / unit) * unit);
}

bool colour() {
  static const bool on =
      is_terminal(STDOUT_FILENO) && (std::getenv("NO_COLOR") == nullptr || *std::getenv("NO_COLOR") == 0);
  return on;
}

void write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t n = ::write(fd, text.data(), text.size());
    if (n >= 0) {
      text.remove_prefix(static_cast<std::size_t>(n));
    } else if (errno == EINTR) {
      check_interrupt();
    } else if (errno == EPIPE) {
      std::_Exit(128 + SIGPIPE);
    } else {
      fail("standard output: {}", std::strerror(errno));
    }
  }
}

std::size_t columns_of(std::string_view s) {
  return static_cast<std::size_t>(std::count_if(s.begin(), s.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

}  // namespace

std::string grouped(std::uint64_t n) {
  const std::string digits = std::to_string(n);
  std::string out;
  for (std::size_t i = 0; i < digits.size(); ++i) {
    if (i != 0 && (digits.size() - i) % 3 == 0) out += ',';
    out += digits[i];
  }
  return out;
}
std::string grouped(double n) {
  if (!(n < 1e19)) return n > 0 ? "infinite" : "unknown";
  return grouped(static_cast<std::uint64_t>(std::llround(std::max(n, 0.0))));
}
std::string bytes_text(double bytes) { return scaled(bytes, "B"); }
std::string rate_text(double per_second) { return scaled(per_second, ""); }
std::string percent(double share) {
  if (share == 0) return "0 %";
  if (share > 0 && share < 1e-4) return one_in(share);
  return share < 9.995 ? fmt::format("{:.3g} %", share * 100) : grouped(share * 100) + " %";
}
std::string one_in(double share) {
  if (!(share > 0)) return "none";
  const double n = 1 / share;
  if (n < 999'500) return "1 in " + three_digits(n);
  static constexpr std::string_view kNames[] = {"million", "billion", "trillion", "quadrillion", "quintillion"};
  double scale = 1e6;
  std::size_t name = 0;
  while (n / scale >= 999.5 && name + 1 < std::size(kNames)) scale *= 1000, ++name;
  return n / scale >= 1e6 ? "fewer than 1 in 10^24" : fmt::format("1 in {:.3g} {}", n / scale, kNames[name]);
}
std::string plain(double n) {
  std::array<char, 400> text;  // the smallest number has 324 places, the largest 309
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), n, std::chars_format::fixed).ptr};
}
std::string expected(double n) {
  if (!(n > 0)) return "0";
  if (n < 0.001) return one_in(n);
  return n < 1e19 ? three_digits(n) : grouped(n);
}
std::string seconds_text(double s) {
  if (!(s < 360'000)) return "long";
  if (s < 100) return fmt::format("{:.{}f} s", s, s < 0.1 ? 3 : s < 10 ? 2 : 1);
  const auto whole = static_cast<int>(std::lround(s));
  if (whole < 3600) return fmt::format("{}:{:02}", whole / 60, whole % 60);
  return fmt::format("{}:{:02}:{:02}", whole / 3600, whole / 60 % 60, whole % 60);
}
std::string bar(double share, int width) {
  const int full = std::clamp(static_cast<int>(std::lround(share * width)), 0, width);
  return fmt::format("[{:#<{}}{:.<{}}]", "", full, "", width - full);
}

bool is_terminal(int fd) noexcept { return ::isatty(fd) == 1; }
std::string bold(std::string_view text) { return colour() ? fmt::format("\033[1m{}\033[0m", text) : std::string(text); }
std::string dim(std::string_view text) { return colour() ? fmt::format("\033[2m{}\033[0m", text) : std::string(text); }

void write_error(std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t n = ::write(STDERR_FILENO, text.data(), text.size());
    if (n < 0 && errno != EINTR) return;
    if (n > 0) text.remove_prefix(static_cast<std::size_t>(n));
  }
}

void set_command_name(std::string_view name) { command_name = "perhaps " + std::string(name); }
void say(std::string_view kind, std::string_view message) {
  write_error(fmt::format("{}: {}{}\n", command_name, kind.empty() ? "" : fmt::format("{}: ", kind), message));
}
void warn(std::string_view message) { say("warning", message); }

std::string table(const std::vector<std::vector<std::string>>& rows, std::string_view align) {
  std::vector<std::size_t> width(align.size());
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) width[i] = std::max(width[i], columns_of(row[i]));
  }
  std::string out;
  for (std::size_t r = 0; r < rows.size(); ++r) {
    std::string line;
    for (std::size_t i = 0; i < rows[r].size(); ++i) {
      const std::string pad(width[i] - columns_of(rows[r][i]), ' ');
      if (i != 0) line += "  ";
      line += align[i] == 'r' ? pad + rows[r][i] : rows[r][i] + pad;
    }
    line.erase(line.find_last_not_of(' ') + 1);
    out += (r == 0 ? bold(line) : line) + "\n";
  }
  return out;
}

Out::~Out() {
  if (std::uncaught_exceptions() == 0 && used_ != 0) {
    try {
      flush();
    } catch (const Failure& failure) {
      say("", failure.what());
      std::_Exit(kError);
    }
  }
}
void Out::flush() {
  const std::size_t n = std::exchange(used_, 0);
  write_all(STDOUT_FILENO, {buffer_, n});
}
void Out::write_large(std::string_view text) {
  flush();
  if (text.size() > sizeof buffer_) return write_all(STDOUT_FILENO, text);
  write(text);
}

}  // namespace perhaps::cli
