// Structs of the C API, which begin with their size so that they can grow.
#pragma once
#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>

#include "c/status.h"

namespace perhaps {

// The caller's struct as this library knows it: what an older caller lacks is zero, what a newer one adds must be.
template <class Struct>
Result<Struct> read(const Struct* from, const char* name) {
  Struct known{};
  const std::size_t given = from->size;
  if (given < sizeof given) return out_of_range(std::string(name) + ": size is not set");
  const auto* const bytes = reinterpret_cast<const unsigned char*>(from);
  std::copy_n(bytes, std::min(given, sizeof known), reinterpret_cast<unsigned char*>(&known));
  for (std::size_t i = sizeof known; i < given; ++i) {
    if (bytes[i] != 0) return refused(std::string(name) + ": has a field that this version of the library lacks");
  }
  if constexpr (requires { known.reserved; }) {
    if (known.reserved != 0) return refused(std::string(name) + ": reserved is not zero");
  }
  return known;
}
template <class Struct>
Result<Struct> read_or_default(const Struct* from, const char* name) {
  return from == nullptr ? Result<Struct>(Struct{}) : read(from, name);
}

// As much of it as the caller has room for.
template <class Struct>
Result<void> answer(Struct value, Struct* to, const char* name) {
  const std::size_t room = to->size;
  if (room < sizeof room) return out_of_range(std::string(name) + ": size is not set");
  value.size = room;
  std::memcpy(to, &value, std::min(room, sizeof value));
  return {};
}

}  // namespace perhaps
