#include "perhaps/file/mapping.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "file/descriptor.h"
#include "file/system_error.h"
#include "perhaps/memory.h"

namespace perhaps {

Result<Mapping> Mapping::open(const std::string& path, Access access) {
  // O_NONBLOCK: opening a pipe by mistake does not wait for its writer. It means nothing to a regular file.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat status;
  if (!file || fstat(file.get(), &status) != 0) return system_error(path, "cannot open");
  if (S_ISDIR(status.st_mode)) return Error{Errc::io, path + ": is a folder"};
  if (!S_ISREG(status.st_mode)) return Error{Errc::io, path + ": is not a regular file"};
  return of(file.get(), static_cast<std::uint64_t>(status.st_size), access, path);
}

Result<Mapping> Mapping::of(int descriptor, std::uint64_t size, Access access, const std::string& name) {
  if (size == 0) return Mapping();
  if (size > kMaxMemory) {
    errno = EFBIG;
    return system_error(name, "cannot map");
  }
  const auto length = static_cast<std::size_t>(size);
  const int protection = access == Access::writable ? PROT_READ | PROT_WRITE : PROT_READ;
  void* const data = mmap(nullptr, length, protection, MAP_SHARED, descriptor, 0);
  if (data == MAP_FAILED) return system_error(name, "cannot map");
  Mapping mapping(static_cast<std::byte*>(data), length);
  if (access != Access::writable) mapping.expect(access);
  return mapping;
}

void Mapping::expect(Access access) noexcept {
  if (data_ == nullptr) return;
  const int advice = access == Access::sequential ? MADV_SEQUENTIAL
                     : access == Access::random   ? MADV_RANDOM
                                                  : MADV_NORMAL;
  madvise(data_, size_, advice);  // If it is refused, only speed is lost.
}

void Mapping::drop(Bytes part) const noexcept {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  const auto at = static_cast<std::size_t>(part.data() - data_);
  const std::size_t begin = at / page * page;
  const std::size_t end = (at + part.size()) / page * page;
  if (begin < end) madvise(data_ + begin, end - begin, MADV_DONTNEED);
}

void Mapping::unmap() noexcept { munmap(data_, size_); }

}  // namespace perhaps
