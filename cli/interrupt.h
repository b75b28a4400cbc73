// Ctrl-C, and the other signals that end a program: temporary files are removed on the way out.
#pragma once

namespace perhaps::cli {

struct Interrupted {
  int signal;
};
// From here on SIGINT, SIGTERM and SIGHUP are noted, and noticed by check_interrupt(). The second one ends the program.
void catch_signals();
void check_interrupt();  // throws Interrupted
// The signal was noticed, and there is something left to save first.
void forget_interrupt() noexcept;
// While one lives, a signal ends the program at once and removes the temporary file that is being written.
struct Saving {
  Saving();  // throws Interrupted
  Saving(const Saving&) = delete;
  ~Saving();
};

}  // namespace perhaps::cli
