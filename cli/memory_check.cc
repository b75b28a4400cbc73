#include "memory_check.h"

#include <unistd.h>

#include "command.h"
#include "print.h"

namespace perhaps::cli {

std::uint64_t physical_memory() noexcept {
  return static_cast<std::uint64_t>(::sysconf(_SC_PHYS_PAGES)) * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
}

void check_memory(std::uint64_t bytes, const std::string& what, std::string_view advice) {
  const std::uint64_t memory = physical_memory();
  if (bytes > memory) {
    fail("{} needs {}, this machine has {} of memory{}", what, bytes_text(static_cast<double>(bytes)),
         bytes_text(static_cast<double>(memory)), advice);
  }
}

}  // namespace perhaps::cli
