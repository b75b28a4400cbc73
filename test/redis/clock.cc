// A clock for servers under test: preloaded, it answers gettimeofday() with the milliseconds in the file that
// PERHAPS_TEST_CLOCK names, a decimal number; 0 is the real time.
#include <fcntl.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include <cstdlib>

extern "C" int gettimeofday(timeval* time, void*) noexcept {
  long long milliseconds = 0;
  if (const char* const path = std::getenv("PERHAPS_TEST_CLOCK")) {
    char text[32] = {};
    const int file = open(path, O_RDONLY | O_CLOEXEC);
    if (file >= 0 && read(file, text, sizeof text - 1) > 0) milliseconds = std::atoll(text);
    if (file >= 0) close(file);
  }
  if (milliseconds == 0) return static_cast<int>(syscall(SYS_gettimeofday, time, nullptr));
  time->tv_sec = milliseconds / 1000;
  time->tv_usec = milliseconds % 1000 * 1000;
  return 0;
}
