#include "prompt.h"

#include <fcntl.h>
#include <termios.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "command.h"
#include "file/descriptor.h"
#include "interrupt.h"

namespace perhaps::cli {
namespace {

class NoEcho {
 public:
  explicit NoEcho(int fd) : fd_(fd) {
    if (::tcgetattr(fd, &before_) != 0) fail("/dev/tty: {}", std::strerror(errno));
    termios silent = before_;
    silent.c_lflag &= ~static_cast<tcflag_t>(ECHO);
    if (::tcsetattr(fd, TCSAFLUSH, &silent) != 0) fail("/dev/tty: {}", std::strerror(errno));
  }
  NoEcho(const NoEcho&) = delete;
  ~NoEcho() { ::tcsetattr(fd_, TCSAFLUSH, &before_); }

 private:
  int fd_;
  termios before_{};
};

void write_text(int fd, const std::string& text) {
  if (::write(fd, text.data(), text.size()) < 0) fail("/dev/tty: {}", std::strerror(errno));
}

}  // namespace

std::string read_without_echo(const std::string& question) {
  const Descriptor terminal(::open("/dev/tty", O_RDWR | O_CLOEXEC));
  if (!terminal) fail("--prompt: there is no terminal to ask at: {}", std::strerror(errno));
  const NoEcho silent(terminal.get());
  write_text(terminal.get(), question);
  std::string line;
  for (;;) {
    char c = 0;
    const ssize_t n = ::read(terminal.get(), &c, 1);
    if (n < 0 && errno == EINTR) {
      check_interrupt();
      continue;
    }
    if (n < 0) fail("/dev/tty: {}", std::strerror(errno));
    if (n == 0 || c == '\n') break;
    line += c;
  }
  write_text(terminal.get(), "\n");
  return line;
}

}  // namespace perhaps::cli
