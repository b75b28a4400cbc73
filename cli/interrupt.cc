#include "interrupt.h"

#include <fcntl.h>
#include <unistd.h>

#include <atomic>
#include <charconv>
#include <csignal>
#include <cstring>
#include <string_view>

#include "command.h"

namespace perhaps::cli {
namespace {

std::atomic<int> caught{0};
std::atomic<bool> saving{false};
static_assert(std::atomic<int>::is_always_lock_free);

// Uses only what POSIX allows in a signal handler. If the file system has files without names, there is nothing to
// remove; otherwise the name is found by the descriptor.
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
  // The second signal ends the program.
  if (saving.load() || caught.exchange(signal) != 0) {
    remove_temporary_files();
    ::_exit(128 + signal);
  }
  ::alarm(1);
}

// A read that began between the check and its system call would wait for ever: it is woken every second.
void on_alarm(int) noexcept {
  if (caught.load() != 0) ::alarm(1);
}

// The file that is mapped at `address`, from /proc/self/maps, whose lines are
// "from-to rwxp offset device inode   /path"; empty if there is none. For a signal handler, like the above.
std::string_view mapped_at(std::uintptr_t address, char* buffer, std::size_t room) noexcept {
  const int fd = ::open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (fd < 0) return {};
  std::size_t used = 0;
  for (;;) {
    const ssize_t n = ::read(fd, buffer + used, room - used);
    if (n <= 0) return {};
    used += static_cast<std::size_t>(n);
    std::string_view text(buffer, used);
    for (std::size_t end = text.find('\n'); end != std::string_view::npos; end = text.find('\n')) {
      const std::string_view line = text.substr(0, end);
      text.remove_prefix(end + 1);
      std::uintptr_t from = 0;
      std::uintptr_t to = 0;
      const auto first = std::from_chars(line.data(), line.data() + line.size(), from, 16);
      if (first.ec != std::errc()) continue;
      std::from_chars(first.ptr + 1, line.data() + line.size(), to, 16);
      const std::size_t path = line.find('/');
      if (address >= from && address < to)
        return path == std::string_view::npos ? std::string_view() : line.substr(path);
    }
    std::memmove(buffer, text.data(), text.size());
    used = text.size();
    if (used == room) return {};
  }
}

void on_bus_error(int, siginfo_t* info, void*) noexcept {
  static char buffer[1 << 14];
  constexpr std::string_view kText = " became shorter while it was being read\n";
  std::string_view file = mapped_at(reinterpret_cast<std::uintptr_t>(info->si_addr), buffer, sizeof buffer);
  if (file.empty()) file = "a file";
  for (const std::string_view part : {std::string_view("perhaps: "), file, kText}) {
    [[maybe_unused]] const auto n = ::write(STDERR_FILENO, part.data(), part.size());
  }
  ::_exit(kError);
}

}  // namespace

void catch_signals() {
  struct sigaction action {};
  action.sa_handler = &on_signal;
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction old {};
    ::sigaction(signal, nullptr, &old);
    if (old.sa_handler != SIG_IGN) ::sigaction(signal, &action, nullptr);  // no SA_RESTART: a blocked read returns
  }
  action.sa_handler = &on_alarm;
  ::sigaction(SIGALRM, &action, nullptr);
  // Beyond the limit on file sizes (ulimit -f), write() then fails and the message says why.
  ::signal(SIGXFSZ, SIG_IGN);
  // Reading a mapped page beyond the end of a file that was truncated.
  struct sigaction bus {};
  bus.sa_sigaction = &on_bus_error;
  bus.sa_flags = SA_SIGINFO;
  ::sigaction(SIGBUS, &bus, nullptr);
}
void check_interrupt() {
  if (const int signal = caught.load(std::memory_order_relaxed); signal != 0) throw Interrupted{signal};
}
void forget_interrupt() noexcept {
  ::alarm(0);
  caught = 0;
}
Saving::Saving() {
  saving = true;
  check_interrupt();
}
Saving::~Saving() { saving = false; }

}  // namespace perhaps::cli
