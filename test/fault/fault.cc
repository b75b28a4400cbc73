// Preloaded into a program, makes one of its system calls fail or kills it there:
//
//   LD_PRELOAD=libfault.so PERHAPS_FAULT=POINT:KIND PERHAPS_FAULT_LOG=FILE program
//
//   POINT  which call, counted from 1 over everything below; 0: none, they are only counted
//   KIND   ENOSPC | EIO | EINTR | EMFILE   the call is not made and fails with this error
//          kill                            the process gets SIGKILL instead of making the call
//          short                           a transfer of bytes moves only half of them; other calls are made as usual
//          full                            from here on, everything that needs room on a disk fails with ENOSPC
//
// PERHAPS_FAULT_NAMED=1: the file system has no files without names, O_TMPFILE is EOPNOTSUPP.
//
// The log receives one line: the name of the call that failed and its descriptor (-1 if it takes none), or, for point
// 0, how many calls were made. close() does close, as the kernel does even if it reports an error.
//
// A program that calls the kernel through a function that is not here would get away: fault_test.py compares this
// list with what the program imports.
#include <dlfcn.h>
#include <fcntl.h>
#include <netdb.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

namespace {

enum class Kind { error, kill, shorter, full };

struct Plan {
  long point = 0;
  Kind kind = Kind::error;
  int error = 0;
  const char* log = nullptr;
  bool named = false;
};

std::atomic<long> calls{0};

Plan read_plan() {
  Plan plan;
  const char* const text = std::getenv("PERHAPS_FAULT");
  plan.log = std::getenv("PERHAPS_FAULT_LOG");
  plan.named = std::getenv("PERHAPS_FAULT_NAMED") != nullptr;
  if (text == nullptr) return plan;
  plan.point = std::atol(text);
  const char* const colon = std::strchr(text, ':');
  const std::string_view kind = colon == nullptr ? "" : colon + 1;
  if (kind == "kill") plan.kind = Kind::kill;
  if (kind == "short") plan.kind = Kind::shorter;
  if (kind == "full") plan.kind = Kind::full;
  plan.error = kind == "EIO" ? EIO : kind == "EINTR" ? EINTR : kind == "EMFILE" ? EMFILE : ENOSPC;
  return plan;
}

const Plan& plan() {
  static const Plan made = read_plan();
  return made;
}

// By the kernel itself: nothing here may be counted.
void log(const char* what, long number) {
  if (plan().log == nullptr) return;
  char line[96];
  const int size = std::snprintf(line, sizeof line, "%s %ld\n", what, number);
  const long file = syscall(SYS_openat, AT_FDCWD, plan().log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
  if (file < 0 || size < 0) return;
  syscall(SYS_write, file, line, static_cast<std::size_t>(size));
  syscall(SYS_close, file);
}

enum class Verdict { pass, fail, halve };

// `room`: the call may need room on a disk. `bytes`: it moves bytes, so that it can move fewer.
Verdict judge(const char* name, int descriptor, bool room, bool bytes) {
  const long now = calls.fetch_add(1) + 1;
  const Plan& p = plan();
  if (p.point == 0 || now < p.point || (now > p.point && p.kind != Kind::full)) return Verdict::pass;
  if (now == p.point) log(name, descriptor);
  switch (p.kind) {
    case Kind::kill:
      syscall(SYS_kill, getpid(), SIGKILL);
      return Verdict::fail;
    case Kind::shorter:
      return bytes ? Verdict::halve : Verdict::pass;
    case Kind::full:
      if (!room || (0 <= descriptor && descriptor <= STDERR_FILENO)) return Verdict::pass;
      break;
    case Kind::error:
      break;
  }
  errno = p.error;
  return Verdict::fail;
}

bool fails(const char* name, int descriptor, bool room = false) {
  return judge(name, descriptor, room, false) == Verdict::fail;
}

bool refused(int flags) {
  if (!plan().named || (flags & O_TMPFILE) != O_TMPFILE) return false;
  errno = EOPNOTSUPP;
  return true;
}
bool creates(int flags) { return (flags & O_CREAT) != 0 || (flags & O_TMPFILE) == O_TMPFILE; }

template <class F>
F* next(const char* name) {
  void* const found = dlsym(RTLD_NEXT, name);
  F* function = nullptr;
  std::memcpy(&function, &found, sizeof function);
  return function;
}

}  // namespace

#pragma GCC diagnostic ignored "-Wshadow"  // flock is also the name of a struct
// NOLINTBEGIN(readability-identifier-naming, readability-inconsistent-declaration-parameter-name)
#define EXPORT extern "C" __attribute__((visibility("default")))
#define REAL(name) static auto* const real = next<decltype(name)>(#name)

#define CALL(result, name, declared, passed, descriptor, room, failure) \
  EXPORT result name declared {                                         \
    REAL(name);                                                         \
    if (fails(#name, descriptor, room)) return failure;                 \
    return real passed;                                                 \
  }

// A transfer of `size` bytes, which can be made shorter.
#define TRANSFER(name, declared, passed, descriptor, room)            \
  EXPORT ssize_t name declared {                                      \
    REAL(name);                                                       \
    const Verdict verdict = judge(#name, descriptor, room, size > 1); \
    if (verdict == Verdict::fail) return -1;                          \
    if (verdict == Verdict::halve) size /= 2;                         \
    return real passed;                                               \
  }

#define OPEN(name, before, at)                                             \
  EXPORT int name(before const char* path, int flags, ...) {               \
    REAL(name);                                                            \
    va_list rest;                                                          \
    va_start(rest, flags);                                                 \
    const mode_t mode = creates(flags) ? va_arg(rest, mode_t) : mode_t{0}; \
    va_end(rest);                                                          \
    if (fails(#name, -1, creates(flags)) || refused(flags)) return -1;     \
    return real(at path, flags, mode);                                     \
  }
#define NOTHING
#define AND_FOLDER int folder,
#define FOLDER folder,

OPEN(open, NOTHING, NOTHING)
OPEN(open64, NOTHING, NOTHING)
OPEN(openat, AND_FOLDER, FOLDER)
OPEN(openat64, AND_FOLDER, FOLDER)
CALL(int, mkostemp, (char* pattern, int flags), (pattern, flags), -1, true, -1)
CALL(int, mkostemp64, (char* pattern, int flags), (pattern, flags), -1, true, -1)
CALL(int, access, (const char* path, int how), (path, how), -1, false, -1)

TRANSFER(read, (int fd, void* to, std::size_t size), (fd, to, size), fd, false)
TRANSFER(pread, (int fd, void* to, std::size_t size, off_t at), (fd, to, size, at), fd, false)
TRANSFER(pread64, (int fd, void* to, std::size_t size, off64_t at), (fd, to, size, at), fd, false)
TRANSFER(write, (int fd, const void* from, std::size_t size), (fd, from, size), fd, true)
TRANSFER(pwrite, (int fd, const void* from, std::size_t size, off_t at), (fd, from, size, at), fd, true)
TRANSFER(pwrite64, (int fd, const void* from, std::size_t size, off64_t at), (fd, from, size, at), fd, true)
CALL(ssize_t, writev, (int fd, const iovec* parts, int count), (fd, parts, count), fd, true, -1)
CALL(off_t, lseek, (int fd, off_t at, int from) noexcept, (fd, at, from), fd, false, -1)

CALL(int, fsync, (int fd), (fd), fd, true, -1)
CALL(int, fdatasync, (int fd), (fd), fd, true, -1)
CALL(int, ftruncate, (int fd, off_t size) noexcept, (fd, size), fd, true, -1)
CALL(int, ftruncate64, (int fd, off64_t size) noexcept, (fd, size), fd, true, -1)
CALL(int, fallocate64, (int fd, int mode, off64_t at, off64_t size), (fd, mode, at, size), fd, true, -1)
// These two return the error.
CALL(int, posix_fallocate, (int fd, off_t at, off_t size), (fd, at, size), fd, true, errno)
CALL(int, posix_fallocate64, (int fd, off64_t at, off64_t size), (fd, at, size), fd, true, errno)

CALL(int, fstat, (int fd, struct stat* to) noexcept, (fd, to), fd, false, -1)
CALL(int, fstat64, (int fd, struct stat64* to) noexcept, (fd, to), fd, false, -1)
CALL(int, stat, (const char* path, struct stat* to) noexcept, (path, to), -1, false, -1)
CALL(int, fstatat, (int folder, const char* path, struct stat* to, int flags) noexcept, (folder, path, to, flags), -1,
     false, -1)
CALL(int, fstatat64, (int folder, const char* path, struct stat64* to, int flags) noexcept, (folder, path, to, flags),
     -1, false, -1)
CALL(int, fchmod, (int fd, mode_t mode) noexcept, (fd, mode), fd, false, -1)
CALL(int, fchown, (int fd, uid_t user, gid_t group) noexcept, (fd, user, group), fd, false, -1)
CALL(int, flock, (int fd, int how) noexcept, (fd, how), fd, false, -1)
CALL(ssize_t, readlink, (const char* path, char* to, std::size_t size) noexcept, (path, to, size), -1, false, -1)
CALL(ssize_t, readlinkat, (int folder, const char* path, char* to, std::size_t size) noexcept, (folder, path, to, size),
     -1, false, -1)

CALL(int, linkat, (int from, const char* old, int to, const char* made, int flags) noexcept,
     (from, old, to, made, flags), -1, true, -1)
CALL(int, renameat, (int from, const char* old, int to, const char* made) noexcept, (from, old, to, made), -1, true, -1)
CALL(char*, mkdtemp, (char* name) noexcept, (name), -1, true, nullptr)
CALL(int, unlink, (const char* path) noexcept, (path), -1, false, -1)
CALL(int, unlinkat, (int folder, const char* path, int flags) noexcept, (folder, path, flags), -1, false, -1)

CALL(void*, mmap, (void* at, std::size_t size, int protection, int flags, int fd, off_t from) noexcept,
     (at, size, protection, flags, fd, from), fd, false, MAP_FAILED)
CALL(void*, mmap64, (void* at, std::size_t size, int protection, int flags, int fd, off64_t from) noexcept,
     (at, size, protection, flags, fd, from), fd, false, MAP_FAILED)
CALL(int, msync, (void* at, std::size_t size, int flags), (at, size, flags), -1, true, -1)
CALL(int, madvise, (void* at, std::size_t size, int advice) noexcept, (at, size, advice), -1, false, -1)
CALL(int, munmap, (void* at, std::size_t size) noexcept, (at, size), -1, false, -1)
EXPORT void* mremap(void* at, std::size_t before, std::size_t size, int flags, ...) noexcept {
  REAL(mremap);
  if (fails("mremap", -1)) return MAP_FAILED;
  std::va_list more;
  va_start(more, flags);
  void* const to = (flags & MREMAP_FIXED) != 0 ? va_arg(more, void*) : nullptr;
  va_end(more);
  return real(at, before, size, flags, to);
}

EXPORT int close(int fd) {
  REAL(close);
  const bool failed = fails("close", fd);
  const int error = errno;
  const int result = real(fd);
  if (!failed) return result;
  errno = error;
  return -1;
}

CALL(std::FILE*, fopen, (const char* path, const char* mode), (path, mode), -1, false, nullptr)
CALL(std::size_t, fread, (void* to, std::size_t unit, std::size_t count, std::FILE* file), (to, unit, count, file),
     fileno(file), false, 0)
CALL(std::size_t, fwrite, (const void* from, std::size_t unit, std::size_t count, std::FILE* file),
     (from, unit, count, file), fileno(file), true, 0)
CALL(int, fputs, (const char* text, std::FILE* file), (text, file), fileno(file), true, EOF)
CALL(char*, fgets, (char* to, int size, std::FILE* file), (to, size, file), fileno(file), false, nullptr)
CALL(int, fflush, (std::FILE * file), (file), file == nullptr ? -1 : fileno(file), true, EOF)
EXPORT int fclose(std::FILE* file) {
  REAL(fclose);
  const bool failed = fails("fclose", fileno(file));
  const int error = errno;
  const int result = real(file);
  if (!failed) return result;
  errno = error;
  return EOF;
}

CALL(int, getentropy, (void* to, std::size_t size), (to, size), -1, false, -1)
CALL(ssize_t, getrandom, (void* to, std::size_t size, unsigned flags), (to, size, flags), -1, false, -1)

CALL(int, getaddrinfo, (const char* host, const char* port, const addrinfo* hints, addrinfo** to),
     (host, port, hints, to), -1, false, EAI_SYSTEM)
CALL(int, socket, (int domain, int type, int protocol) noexcept, (domain, type, protocol), -1, false, -1)
CALL(int, connect, (int fd, const sockaddr* to, socklen_t size), (fd, to, size), fd, false, -1)
CALL(int, setsockopt, (int fd, int level, int name, const void* value, socklen_t size) noexcept,
     (fd, level, name, value, size), fd, false, -1)
TRANSFER(send, (int fd, const void* from, std::size_t size, int flags), (fd, from, size, flags), fd, false)
TRANSFER(recv, (int fd, void* to, std::size_t size, int flags), (fd, to, size, flags), fd, false)
// NOLINTEND(readability-identifier-naming, readability-inconsistent-declaration-parameter-name)

namespace {
__attribute__((destructor)) void count() {
  if (plan().point == 0) log("calls", calls.load());
}
}  // namespace
