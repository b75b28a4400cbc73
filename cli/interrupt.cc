#include "interrupt.h"

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
  // Beyond the limit on file sizes (ulimit -f), write() then fails and the message says why.
  ::signal(SIGXFSZ, SIG_IGN);
  // Reading a mapped page beyond the end of a file that was truncated.
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
