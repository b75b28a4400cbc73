// The keys of a table, present and absent: number i is always the same key.
#pragma once
#include <cstdint>
#include <cstring>
#include <span>
#include <stdexcept>
#include <string_view>
#include <vector>

#include "number.h"

namespace perhaps::bench {

inline constexpr std::uint64_t kAbsent = std::uint64_t{1} << 40;  // Numbers of absent keys begin here,
inline constexpr std::uint64_t kNeverAsked = kAbsent << 1;        // those that only measure the rate here.

template <class Key>
class KeyList;

template <>
class KeyList<std::uint64_t> {
 public:
  template <class Number>
  KeyList(std::uint64_t count, Number number) : keys_(count) {
    for (std::uint64_t i = 0; i < count; ++i) keys_[i] = key_number(number(i));
  }
  std::span<const std::uint64_t> keys() const { return keys_; }

 private:
  std::vector<std::uint64_t> keys_;
};

// 16 to 32 bytes, the first 8 of which are the number.
template <>
class KeyList<std::string_view> {
 public:
  template <class Number>
  KeyList(std::uint64_t count, Number number) : text_(count * 24 + count / 4 + 64), keys_(count) {
    std::size_t at = 0;
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t first = key_number(number(i));
      const std::size_t size = 16 + key_number(first) % 17;
      if (at + 32 > text_.size()) throw std::length_error("strings longer than expected");
      std::uint64_t word = first;
      for (std::size_t j = 0; j < 32; j += 8, word = key_number(word)) std::memcpy(&text_[at + j], &word, 8);
      keys_[i] = {&text_[at], size};
      at += size;
    }
  }
  std::span<const std::string_view> keys() const { return keys_; }

 private:
  std::vector<char> text_;
  std::vector<std::string_view> keys_;
};

}  // namespace perhaps::bench
