// XXH3-64 with seed 0, computed incrementally: the checksum of our own file format. Defined in xxhash.cc, the only file
// that includes xxHash. For contiguous bytes it equals Hash(0)(bytes).
#pragma once
#include "perhaps/hash.h"

namespace perhaps {

class Checksum {
 public:
  Checksum() noexcept;
  void add(Bytes bytes) noexcept;
  std::uint64_t value() const noexcept;

 private:
  alignas(64) std::array<std::byte, 576> state_;
};

inline std::uint64_t checksum_of(Bytes bytes) noexcept { return Hash(0)(bytes).value; }

// The checksum of a header that contains it: the eight bytes at `field` count as zero.
inline std::uint64_t checksum_around(Bytes header, std::size_t field) noexcept {
  static constexpr std::array<std::byte, 8> kZero{};
  Checksum sum;
  sum.add(header.first(field));
  sum.add(kZero);
  sum.add(header.subspan(field + kZero.size()));
  return sum.value();
}

}  // namespace perhaps
