// Lists and tables in a host's memory.
#pragma once
#include <algorithm>
#include <cstring>

#include "redisbloom/redisbloom.h"

namespace perhaps::redisbloom {

// Room for one more in a list that lives in a host's memory.
template <class T>
bool make_room(const Memory& memory, T*& list, std::uint64_t count, std::uint64_t& room) noexcept {
  if (count < room) return true;
  const std::uint64_t more = std::max<std::uint64_t>(1, 2 * room);
  std::byte* const fresh = memory.take(more * sizeof(T));
  if (fresh == nullptr) return false;
  if (count != 0) std::memcpy(fresh, list, count * sizeof(T));
  memory.give(reinterpret_cast<std::byte*>(list));
  list = reinterpret_cast<T*>(fresh);
  room = more;
  return true;
}

}  // namespace perhaps::redisbloom
