// Keys of exact sets, typed: text, or numbers.
#pragma once
#include <array>
#include <span>

#include "keys.h"
#include "little_endian.h"

namespace perhaps::cli {

// use(keys) with the keys of a batch as what they are hashed as.
template <class Use>
auto with_typed(KeysAs as, std::span<const Bytes> keys, Use use) {
  if (as != KeysAs::u64) return use(keys);
  std::array<std::uint64_t, Parser::kColumn> numbers;
  for (std::size_t i = 0; i < keys.size(); ++i) numbers[i] = load_little_endian<std::uint64_t>(keys[i].data());
  return use(std::span<const std::uint64_t>(numbers.data(), keys.size()));
}

// Of both lists, the options that say how keys are read, and the files of one.
inline KeyOptions keys_in(const KeyOptions& how, std::vector<std::string> files) {
  KeyOptions keys = how;
  keys.files = std::move(files);
  return keys;
}

}  // namespace perhaps::cli
