// The error for numbers in a file's header that make no shape.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>

#include "perhaps/result.h"

namespace perhaps {

inline Error wrong_count(std::string_view family, std::size_t expected, std::size_t found) {
  return {Errc::bad_parameter,
          std::string(family) + ": " + std::to_string(expected) + " parameters expected, not " + std::to_string(found)};
}

inline Error out_of_range(std::string_view family, std::string_view what, std::uint64_t value) {
  return {Errc::bad_parameter, std::string(family) + ": " + std::to_string(value) + " " + std::string(what)};
}

}  // namespace perhaps
