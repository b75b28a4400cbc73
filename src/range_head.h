// The head of a range filter's table, and the function that turns blocks: what building and looking up share.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

#include "perhaps/detail/bits.h"
#include "perhaps/range.h"

namespace perhaps {

struct RangeHead {
  static constexpr std::uint64_t kPositionBytes = 12;
  RangeShape shape;
  std::uint64_t seed = 0;
  std::uint32_t coding = 0;
  std::uint32_t positions = 0;
  std::uint64_t bytes = 0;  // of the table
  bool reserved = false;    // a field that must be zero is not

  static std::uint64_t code_bytes(std::uint64_t positions) noexcept { return (positions * kPositionBytes + 7) / 8 * 8; }

  // REQUIRES: kHeadBytes bytes
  static RangeHead read(const std::byte* at) noexcept {
    using detail::load;
    return {
        .shape = {.keys = load<std::uint64_t>(at),
                  .universe = load<std::uint64_t>(at + 8),
                  .half_bits = load<std::uint32_t>(at + 24)},
        .seed = load<std::uint64_t>(at + 16),
        .coding = load<std::uint32_t>(at + 28),
        .positions = load<std::uint32_t>(at + 32),
        .bytes = load<std::uint64_t>(at + 40),
        .reserved = (load<std::uint32_t>(at + 36) | load<std::uint64_t>(at + 48) | load<std::uint64_t>(at + 56)) != 0};
  }
  // REQUIRES: kHeadBytes zero bytes
  void write(std::byte* at) const noexcept {
    using detail::store;
    store<std::uint64_t>(at, shape.keys);
    store<std::uint64_t>(at + 8, shape.universe);
    store<std::uint64_t>(at + 16, seed);
    store<std::uint32_t>(at + 24, shape.half_bits);
    store<std::uint32_t>(at + 28, coding);
    store<std::uint32_t>(at + 32, positions);
    store<std::uint64_t>(at + 40, bytes);
  }
};

// The numbers of q: words of splitmix64, a generator whose every step is a bijection of a counter.
inline std::array<std::uint64_t, 4> turn_words(std::uint64_t seed) noexcept {
  std::array<std::uint64_t, 4> words;
  for (std::uint64_t& word : words) {
    seed += 0x9e3779b97f4a7c15u;
    word = (seed ^ seed >> 30) * 0xbf58476d1ce4e5b9u;
    word = (word ^ word >> 27) * 0x94d049bb133111ebu;
    word ^= word >> 31;
  }
  return words;
}

// q(block): the high word of a * block + b mod 2^128 is pairwise independent (Dietzfelbinger 1996); then scaled to r.
inline std::uint64_t range_turn(const std::array<std::uint64_t, 4>& words, std::uint64_t block,
                                std::uint64_t universe) noexcept {
  using detail::Wide;
  const Wide sum = static_cast<Wide>(words[0]) * block + static_cast<Wide>(words[2]);
  const std::uint64_t high = static_cast<std::uint64_t>(sum >> 64) + words[1] * block + words[3];
  return detail::scale(high, universe);
}

}  // namespace perhaps
