// Numbers in bytes, the least significant first, at any address. Compilers make one instruction of the loops, gcc at
// -O2 only once they are unrolled.
#pragma once
#include <concepts>
#include <cstddef>

namespace perhaps::cli {

// REQUIRES: sizeof(Word) readable bytes
template <std::unsigned_integral Word>
constexpr Word load_little_endian(const std::byte* p) noexcept {
  Word value = 0;
#pragma GCC unroll 8
  for (unsigned i = 0; i < sizeof value; ++i)
    value |= static_cast<Word>(std::to_integer<unsigned char>(p[i])) << (8 * i);
  return value;
}

// REQUIRES: sizeof(Word) writable bytes
template <std::unsigned_integral Word>
void store_little_endian(std::byte* p, Word value) noexcept {
#pragma GCC unroll 8
  for (unsigned i = 0; i < sizeof value; ++i) p[i] = static_cast<std::byte>(value >> (8 * i));
}

}  // namespace perhaps::cli
