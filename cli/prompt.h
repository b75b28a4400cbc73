// A key that must not be seen: typed at the terminal, without echo.
#pragma once
#include <string>

namespace perhaps::cli {

// Throws Failure if there is no terminal, Interrupted if Ctrl-C is pressed; the echo is back in any case.
std::string read_without_echo(const std::string& question);

}  // namespace perhaps::cli
