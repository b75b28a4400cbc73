// Random keys without a generator's state.
//
// Keys are the values of a bijection of 64 bits (splitmix64): numbers of different ranges are different keys, so absent
// keys are absent by construction. They look random, which the models assume; regular keys such as 0, 1, 2.. spread
// more evenly than that under a multiplicative hash, and their rates come out lower.
#pragma once
#include <cstdint>

namespace perhaps::bench {

inline std::uint64_t key_number(std::uint64_t i) {
  std::uint64_t x = (i + 1) * 0x9e3779b97f4a7c15u;
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9u;
  x = (x ^ x >> 27) * 0x94d049bb133111ebu;
  return x ^ x >> 31;
}

}  // namespace perhaps::bench
