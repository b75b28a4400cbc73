// What people and programs see: numbers, aligned tables, JSON, a progress line, buffered output.
//
// Colour and progress appear on a terminal only, and colour not under NO_COLOR.
#pragma once
#include <fmt/format.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "perhaps/hash.h"

namespace perhaps::cli {

std::string grouped(std::uint64_t n);      // 12,345,678
std::string grouped(double n);             // rounded
std::string bytes_text(double bytes);      // 12.3 MB, powers of 1000
std::string rate_text(double per_second);  // 12.3 M
std::string percent(double share);         // 0.953 %
std::string seconds_text(double seconds);  // 0.45 s, 2:05
std::string bar(double share, int width);  // [####......], the unfilled part dotted

bool is_terminal(int fd) noexcept;
std::string bold(std::string_view text);  // on standard output
std::string dim(std::string_view text);

// "perhaps build: warning: ..." on standard error.
void say(std::string_view kind, std::string_view message);
void warn(std::string_view message);
void set_command_name(std::string_view name);

// Rows of cells; the first row is the heading. Columns are as wide as their widest cell; a column is right-aligned
// where `align` has an 'r'.
std::string table(const std::vector<std::vector<std::string>>& rows, std::string_view align);

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

 private:
  std::string body_;
};

// Standard output, in large writes. A closed pipe ends the program quietly, any other failure is an error.
class Out {
 public:
  ~Out();  // writes what is left, unless an exception is on its way
  void write(std::string_view text) {
    if (used_ + text.size() > sizeof buffer_) return write_large(text);
    text.copy(buffer_ + used_, text.size());
    used_ += text.size();
  }
  void write(Bytes bytes) { write({reinterpret_cast<const char*>(bytes.data()), bytes.size()}); }
  void write(char c) { write(std::string_view(&c, 1)); }
  void flush();

 private:
  void write_large(std::string_view text);
  std::size_t used_ = 0;
  char buffer_[1 << 16];
};

// A line on standard error with share, rate and time left, from the second second on. Also the place where Ctrl-C is
// noticed: advance() throws Interrupted.
class Progress {
 public:
  // `total` bytes of input, 0 if unknown. `hidden`: somebody else writes to the terminal.
  Progress(std::string label, std::uint64_t total, bool hidden = false);
  ~Progress();
  // Safe from several threads.
  void advance(std::uint64_t bytes, std::uint64_t keys);

 private:
  using Clock = std::chrono::steady_clock;
  void draw(Clock::time_point now);

  std::string label_;
  std::uint64_t total_;
  std::atomic<std::uint64_t> bytes_{0};
  std::atomic<std::uint64_t> keys_{0};
  Clock::time_point begin_ = Clock::now();
  std::mutex drawing_;
  Clock::time_point next_;
  bool shown_ = false;
  bool enabled_;
};

struct Interrupted {
  int signal;
};
// Notes SIGINT, SIGTERM and SIGHUP instead of dying of them, so that temporary files are removed on the way out.
void catch_signals();
void check_interrupt();  // throws Interrupted
// While one lives a signal ends the program at once, and takes the temporary file that is being written with it.
struct Saving {
  Saving();  // throws Interrupted
  Saving(const Saving&) = delete;
  ~Saving();
};

}  // namespace perhaps::cli
