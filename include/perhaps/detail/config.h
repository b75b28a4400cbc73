// What every header needs to know about the compiler. Nothing here is part of the API.
#pragma once

#if __cplusplus < 202002L
#error "perhaps needs C++20: compile with -std=c++20"
#include <a C++20 compiler>  // Does not exist, so compilation ends here, before errors that say less.
#endif

#include <cstddef>

#define PERHAPS_API __attribute__((visibility("default")))
// For what must be compiled as its caller is, that is, for the caller's instruction set.
#define PERHAPS_INLINE [[gnu::always_inline]] inline

// A debug build of the library tags every digest with the hasher that made it and asserts on use. The tag changes
// the size of a Digest, so this is a property of the installed library (its CMake target and its .pc file carry the
// definition), never of NDEBUG in the including file.
#ifndef PERHAPS_CHECK_DIGESTS
#define PERHAPS_CHECK_DIGESTS 0
#endif

namespace perhaps {

// The unit in which memory moves. It is part of layouts and files, so it is the same on every machine.
inline constexpr std::size_t kLineBytes = 64;

}  // namespace perhaps
