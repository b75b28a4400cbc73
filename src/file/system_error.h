// A failed system call as an Error: "FILE: cannot open: No such file or directory".
#pragma once
#include <cerrno>
#include <string>
#include <system_error>

#include "perhaps/result.h"

namespace perhaps {

inline Error system_error(const std::string& name, const std::string& what) {
  return {Errc::io, name + ": " + what + ": " + std::generic_category().message(errno)};
}

}  // namespace perhaps
