// Failures of the C API: a status, and a message that the thread keeps.
#pragma once
#include <exception>
#include <new>
#include <string>
#include <string_view>
#include <utility>

#include "perhaps.h"
#include "perhaps/result.h"

namespace perhaps {

// Keeps the message for perhaps_last_error and returns the status.
perhaps_status failed(perhaps_status status, std::string_view text) noexcept;

constexpr perhaps_status status_of(Errc code) noexcept {
  return static_cast<perhaps_status>(static_cast<int>(code) + 1);
}
static_assert(status_of(Errc::truncated) == PERHAPS_TRUNCATED && status_of(Errc::bad_magic) == PERHAPS_BAD_MAGIC &&
              status_of(Errc::bad_version) == PERHAPS_BAD_VERSION &&
              status_of(Errc::bad_checksum) == PERHAPS_BAD_CHECKSUM &&
              status_of(Errc::bad_parameter) == PERHAPS_BAD_PARAMETER && status_of(Errc::bad_key) == PERHAPS_BAD_KEY &&
              status_of(Errc::mismatch) == PERHAPS_MISMATCH && status_of(Errc::full) == PERHAPS_FULL &&
              status_of(Errc::unsupported) == PERHAPS_UNSUPPORTED && status_of(Errc::io) == PERHAPS_IO);

// Runs what may fail or throw. Nothing is thrown past this.
template <class Work>
perhaps_status guarded(Work work) noexcept {
  try {
    const Result<void> done = work();
    if (done) return PERHAPS_OK;
    return failed(status_of(done.error().code), done.error().detail);
  } catch (const std::bad_alloc&) {
    return failed(PERHAPS_NO_MEMORY, "not enough memory");
  } catch (const std::exception& e) {
    return failed(PERHAPS_INTERNAL, e.what());
  } catch (...) {
    return failed(PERHAPS_INTERNAL, "an unknown exception");
  }
}

inline Error refused(std::string what) { return {Errc::unsupported, std::move(what)}; }
inline Error out_of_range(std::string what) { return {Errc::bad_parameter, std::move(what)}; }

}  // namespace perhaps
