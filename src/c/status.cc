#include "c/status.h"

#include <algorithm>
#include <array>
#include <cstring>

namespace perhaps {
namespace {

// Not a string: saying that there is no memory must not need any. WebAssembly without threads has no thread's own
// variables either.
#if defined(__wasm__) && !defined(__wasm_atomics__)
std::array<char, 1024> last_error{};
#else
thread_local std::array<char, 1024> last_error{};
#endif

}  // namespace

perhaps_status failed(perhaps_status status, std::string_view text) noexcept {
  const std::size_t size = std::min(text.size(), last_error.size() - 1);
  std::memcpy(last_error.data(), text.data(), size);
  last_error[size] = 0;
  return status;
}

}  // namespace perhaps

const char* perhaps_version(void) { return PERHAPS_VERSION; }

const char* perhaps_last_error(void) { return perhaps::last_error.data(); }
