#include "print.h"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>

#include "command.h"

namespace perhaps::cli {
namespace {

std::string command_name = "perhaps";
std::atomic<int> caught{0};
std::atomic<bool> saving{false};
static_assert(std::atomic<int>::is_always_lock_free);

// Only what POSIX allows in a signal handler. The library writes to a file without a name where the file system can,
// and then there is nothing to remove; elsewhere the name is found by the descriptor.
void remove_temporary_files() noexcept {
  for (int fd = STDERR_FILENO + 1; fd < 256; ++fd) {
    char link[32] = "/proc/self/fd/";
    *std::to_chars(link + std::strlen(link), link + sizeof link - 1, fd).ptr = 0;
    char path[4096];
    const ssize_t size = ::readlink(link, path, sizeof path - 1);
    if (size <= 0) continue;
    path[size] = 0;
    const std::string_view text(path, static_cast<std::size_t>(size));
    const std::size_t slash = text.rfind('/');
    if (slash != std::string_view::npos && text.substr(slash + 1).starts_with(".perhaps-") && text.ends_with(".tmp")) {
      ::unlink(path);
    }
  }
}

void on_signal(int signal) noexcept {
  // The second time somebody means it.
  if (saving.load() || caught.exchange(signal) != 0) {
    remove_temporary_files();
    ::_exit(128 + signal);
  }
}

std::string scaled(double n, const char* unit) {
  static constexpr const char* kPrefix[] = {"", "k", "M", "G", "T", "P", "E"};
  std::size_t i = 0;
  while (std::abs(n) >= 999.5 && i + 1 < std::size(kPrefix)) n /= 1000, ++i;
  const int digits = i == 0 || n >= 99.95 ? 0 : n >= 9.995 ? 1 : 2;
  return fmt::format("{:.{}f} {}{}", n, digits, kPrefix[i], unit);
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

// Whoever closed or filled standard error does not want to know; the work goes on.
void write_error(std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t n = ::write(STDERR_FILENO, text.data(), text.size());
    if (n < 0 && errno != EINTR) return;
    if (n > 0) text.remove_prefix(static_cast<std::size_t>(n));
  }
}

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
  return fmt::format("{:.3g} %", share * 100);
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

Progress::Progress(std::string label, std::uint64_t total, bool hidden)
    : label_(std::move(label)),
      total_(total),
      next_(begin_ + std::chrono::seconds(1)),
      enabled_(!hidden && is_terminal(STDERR_FILENO)) {}

Progress::~Progress() {
  if (shown_) write_error("\r\033[K");
}

void Progress::advance(std::uint64_t bytes, std::uint64_t keys) {
  check_interrupt();
  bytes_.fetch_add(bytes, std::memory_order_relaxed);
  keys_.fetch_add(keys, std::memory_order_relaxed);
  if (!enabled_) return;
  const auto now = Clock::now();
  const std::unique_lock lock(drawing_, std::try_to_lock);
  if (!lock || now < next_) return;
  next_ = now + std::chrono::milliseconds(100);
  draw(now);
}

void Progress::draw(Clock::time_point now) {
  const double elapsed = std::chrono::duration<double>(now - begin_).count();
  const auto bytes = static_cast<double>(bytes_.load(std::memory_order_relaxed));
  const auto keys = static_cast<double>(keys_.load(std::memory_order_relaxed));
  std::string line = fmt::format("{:<9}", label_);
  if (total_ != 0) {
    const double share = std::min(1.0, bytes / static_cast<double>(total_));
    const double left = share > 0 ? std::min(elapsed / share - elapsed, 359'999.0) : 359'999.0;
    const auto seconds = static_cast<int>(std::ceil(left));
    line += fmt::format(" {} {:>3.0f} %  {}:{:02} left", bar(share, 24), share * 100, seconds / 60, seconds % 60);
  } else {
    line += fmt::format(" {}", bytes_text(bytes));
    if (keys > 0) line += fmt::format(", {} keys", rate_text(keys));
  }
  if (keys > 0) line += fmt::format("  {} keys/s", rate_text(keys / elapsed));
  winsize size{};
  const std::size_t columns = ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 1 ? size.ws_col : 80;
  write_error(fmt::format("\r{}\033[K", line.substr(0, columns - 1)));
  shown_ = true;
}

void catch_signals() {
  struct sigaction action {};
  action.sa_handler = &on_signal;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction old {};
    ::sigaction(signal, nullptr, &old);
    if (old.sa_handler != SIG_IGN) ::sigaction(signal, &action, nullptr);  // no SA_RESTART: a blocked read returns
  }
  // Past the limit of file sizes a write fails, and the message says why.
  ::signal(SIGXFSZ, SIG_IGN);
  // A file that shrinks while it is mapped takes its pages away.
  struct sigaction bus {};
  bus.sa_handler = [](int) {
    constexpr std::string_view kText = "perhaps: a file became shorter while it was being read\n";
    [[maybe_unused]] const auto n = ::write(STDERR_FILENO, kText.data(), kText.size());
    ::_exit(kError);
  };
  ::sigaction(SIGBUS, &bus, nullptr);
}
void check_interrupt() {
  if (const int signal = caught.load(std::memory_order_relaxed); signal != 0) throw Interrupted{signal};
}
Saving::Saving() {
  saving = true;
  check_interrupt();
}
Saving::~Saving() { saving = false; }

}  // namespace perhaps::cli
