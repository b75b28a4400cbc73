// What the parts of the WebAssembly module share: module.cc is the npm package, page.cc what only the page calls.
// Filters are handles of the C API. Larger answers are JSON, in the words and fields of the command line. No filter,
// hash, model or format is here.
//
// A function that can fail returns a status of perhaps.h; web_error() has the text. What a function leaves for the
// caller to fetch (text or bytes) is in web_result() and web_result_size() until the next call.
#pragma once
#include <cstdint>
#include <exception>
#include <new>
#include <string>

#include "perhaps.h"
#include "perhaps/result.h"

#define PERHAPS_WEB extern "C" __attribute__((used, visibility("default")))

namespace perhaps::web {

extern std::string error_text;
extern std::string result;

// Runs what leaves a text in `result`. Nothing is thrown past this.
template <class Work>
perhaps_status guarded(Work work) {
  try {
    Result<std::string> made = work();
    if (made) {
      result = *std::move(made);
      return PERHAPS_OK;
    }
    error_text = made.error().detail;
    return static_cast<perhaps_status>(static_cast<int>(made.error().code) + 1);
  } catch (const std::bad_alloc&) {
    error_text = "not enough memory";
    return PERHAPS_NO_MEMORY;
  } catch (const std::exception& e) {
    error_text = e.what();
    return PERHAPS_INTERNAL;
  }
}

// A number of JavaScript as a size.
inline std::uint64_t whole(double number) {
  return number >= 1 && number < 0x1p63 ? static_cast<std::uint64_t>(number) : number >= 1 ? UINT64_MAX >> 1 : 0;
}

}  // namespace perhaps::web
