// What every header needs to know about the compiler. Nothing here is part of the API.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>

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

// Layouts are defined as little-endian bytes and probed as words. A big-endian port would swap in detail/ only.
static_assert(std::endian::native == std::endian::little, "perhaps supports little-endian targets");

// The unit in which memory moves. It is part of layouts and files, so it is not asked of the machine.
inline constexpr std::size_t kLineBytes = 64;

}  // namespace perhaps
