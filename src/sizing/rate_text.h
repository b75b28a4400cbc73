// A rate in a message: 0.5 %, and below 0.01 % as 1 in 12300000. Nobody reads 8.13e-08 at a glance.
#pragma once
#include <cmath>
#include <cstdio>
#include <string>

namespace perhaps::detail {

inline std::string rate_text(double rate) {
  char text[32];
  const bool small = rate > 1e-18 && rate < 1e-4;
  const int size = small ? std::snprintf(text, sizeof text, "1 in %lld", std::llround(1 / rate))
                         : std::snprintf(text, sizeof text, "%.3g %%", rate * 100);
  return {text, static_cast<std::size_t>(size)};
}

}  // namespace perhaps::detail
