// lookup3, little-endian (Jenkins 2006): the older of Hadoop's two hashes.
#pragma once
#include <bit>
#include <cstring>

#include "perhaps/detail/bits.h"
#include "perhaps/hash.h"

namespace perhaps {

inline std::uint32_t lookup3(Bytes key, std::uint32_t seed) noexcept {
  std::uint32_t a = 0xdeadbeefu + static_cast<std::uint32_t>(key.size()) + seed;
  std::uint32_t b = a;
  std::uint32_t c = a;
  const auto add = [&](const std::byte* at) {
    a += detail::load<std::uint32_t>(at);
    b += detail::load<std::uint32_t>(at + 4);
    c += detail::load<std::uint32_t>(at + 8);
  };
  const auto mix = [](std::uint32_t& x, std::uint32_t& y, std::uint32_t& z, int by) {
    x = (x - z) ^ std::rotl(z, by);
    z += y;
  };
  for (; key.size() > 12; key = key.subspan(12)) {
    add(key.data());
    mix(a, b, c, 4);
    mix(b, c, a, 6);
    mix(c, a, b, 8);
    mix(a, b, c, 16);
    mix(b, c, a, 19);
    mix(c, a, b, 4);
  }
  if (key.empty()) return c;
  std::array<std::byte, 12> last{};
  std::memcpy(last.data(), key.data(), key.size());
  add(last.data());
  const auto end = [](std::uint32_t& x, std::uint32_t y, int by) { x = (x ^ y) - std::rotl(y, by); };
  end(c, b, 14);
  end(a, c, 11);
  end(b, a, 25);
  end(c, b, 16);
  end(a, c, 4);
  end(b, a, 14);
  end(c, b, 24);
  return c;
}

}  // namespace perhaps
