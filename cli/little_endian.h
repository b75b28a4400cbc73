// Numbers in bytes, the least significant first, at any address. As folds, compilers make one instruction of them
// wherever they stand; of loops, gcc 12 at -O2 does so in some places only.
#pragma once
#include <concepts>
#include <cstddef>
#include <utility>

namespace perhaps::cli {

// REQUIRES: sizeof(Word) readable bytes
template <std::unsigned_integral Word>
constexpr Word load_little_endian(const std::byte* p) noexcept {
  return [p]<std::size_t... kByte>(std::index_sequence<kByte...>) {
    return static_cast<Word>((... | (static_cast<Word>(std::to_integer<unsigned char>(p[kByte])) << (8 * kByte))));
  }
  (std::make_index_sequence<sizeof(Word)>());
}

// REQUIRES: sizeof(Word) writable bytes
template <std::unsigned_integral Word>
void store_little_endian(std::byte* p, Word value) noexcept {
  [=]<std::size_t... kByte>(std::index_sequence<kByte...>) {
    (..., (p[kByte] = static_cast<std::byte>(value >> (8 * kByte))));
  }
  (std::make_index_sequence<sizeof(Word)>());
}

}  // namespace perhaps::cli
