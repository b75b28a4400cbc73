// What people see: numbers, aligned tables, messages, buffered output. Colour appears on a terminal only, and not under
// NO_COLOR.
#pragma once
#include <fmt/format.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "perhaps/hash.h"

namespace perhaps::cli {

std::string grouped(std::uint64_t n);      // 12,345,678
std::string grouped(double n);             // rounded
std::string bytes_text(double bytes);      // 12.3 MB, powers of 1000
std::string rate_text(double per_second);  // 12.3 M
std::string percent(double share);         // 0.953 %; below 0.01 %: 1 in 1.01 million
std::string one_in(double share);          // 1 in 12,300
std::string expected(double n);            // of events: 22,000; 3.41; below 0.001: 1 in 1.01 million
std::string seconds_text(double seconds);  // 0.45 s, 2:05
std::string plain(double n);               // 0.00001: every digit, no exponent
std::string bar(double share, int width);  // [####......], the unfilled part dotted

bool is_terminal(int fd) noexcept;
std::string bold(std::string_view text);  // on standard output
std::string dim(std::string_view text);

// "perhaps build: warning: ..." on standard error.
void say(std::string_view kind, std::string_view message);
void warn(std::string_view message);
void set_command_name(std::string_view name);
// As it is. If standard error is closed or full, the work goes on.
void write_error(std::string_view text) noexcept;

// Rows of cells; the first row is the heading. Columns are as wide as their widest cell; a column is right-aligned
// where `align` has an 'r'.
std::string table(const std::vector<std::vector<std::string>>& rows, std::string_view align);

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

}  // namespace perhaps::cli
