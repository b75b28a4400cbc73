// The filters that every promise is tested on, and a second, slow statement of their layouts.
#pragma once
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <vector>

#include "perhaps/block_bloom.h"
#include "perhaps/bloom.h"
#include "perhaps/line_bloom.h"

namespace perhaps::test {

using KeyedBloom = BasicBloom<Multiplicative, KeyedHash>;
using KeyedLineBloom = BasicLineBloom<KeyedHash>;
using KeyedBlockBloom = BasicBlockBloom<KeyedHash>;

using Families = ::testing::Types<Bloom, LineBloom, BlockBloom>;
using FamiliesAndHashers = ::testing::Types<Bloom, LineBloom, BlockBloom, KeyedBloom, KeyedLineBloom, KeyedBlockBloom>;

// Makes gtest print LineBloom/siphash-1-3 instead of a number.
struct FamilyNames {
  template <class F>
  static std::string GetName(int) {
    const bool keyed = std::same_as<typename F::hasher_type, KeyedHash>;
    return std::string(F::layout::family) + (keyed ? "_keyed" : "");
  }
};

template <class H>
H hasher_of(std::uint64_t seed) {
  if constexpr (std::same_as<H, KeyedHash>) {
    KeyedHash::Secret secret{};
    detail::store<std::uint64_t>(secret.data(), seed);
    detail::store<std::uint64_t>(secret.data() + 8, ~seed);
    return KeyedHash(secret);
  } else {
    return H(seed);
  }
}

// Positions of the bits of a word in the table (bit p is bit p % 8 of byte p / 8), written from the first comment of
// each family's header and sharing no line with the code.
class Positions {
 public:
  void push_back(std::uint64_t position) { at_[size_++] = position; }
  const std::uint64_t* begin() const { return at_.data(); }
  const std::uint64_t* end() const { return at_.data() + size_; }
  std::uint64_t operator[](std::size_t i) const { return at_[i]; }

 private:
  std::array<std::uint64_t, BloomShape::kMaxProbes> at_{};
  std::size_t size_ = 0;
};

inline std::uint64_t high_product(std::uint64_t a, std::uint64_t b) {
  const std::uint64_t a0 = a & 0xffffffff, a1 = a >> 32, b0 = b & 0xffffffff, b1 = b >> 32;
  const std::uint64_t middle = (a0 * b0 >> 32) + (a1 * b0 & 0xffffffff) + (a0 * b1 & 0xffffffff);
  return a1 * b1 + (a1 * b0 >> 32) + (a0 * b1 >> 32) + (middle >> 32);
}

inline Positions positions(BloomShape s, std::uint64_t h) {
  Positions result;
  for (std::uint64_t i = 0; i < s.probes; ++i, h *= 0xf1357aea2e62a9c5u) result.push_back(high_product(h, s.bits));
  return result;
}

constexpr std::uint64_t kSalt[8] = {0x47b6137b, 0x44974d91, 0x8824ad5b, 0xa2b7289d,
                                    0x705495c7, 0x2df1424b, 0x9efc4947, 0x5c6bfb31};

inline Positions positions(LineShape s, std::uint64_t h) {
  Positions result;
  const std::uint64_t low = h % 0x100000000;
  const std::uint64_t second = h * 0xe7037ed1a0b428dbu / 0x100000000;
  for (std::uint64_t i = 0; i < s.probes; ++i) {
    const std::uint64_t lane = ((low * 0x9e3779b1 % 0x100000000 >> 29) + i) % 8;
    const std::uint64_t p = (i < 8 ? low : second) * kSalt[lane] % 0x100000000 >> 26;
    result.push_back(high_product(h, s.lines) * 512 + (p % 2 * 8 + lane) * 32 + p / 2);
  }
  return result;
}

inline Positions positions(BlockShape s, std::uint64_t h) {
  Positions result;
  for (std::uint64_t i = 0; i < 8; ++i) {
    const std::uint64_t bit = (h % 0x100000000 * kSalt[i]) % 0x100000000 >> 27;
    result.push_back(high_product(h >> 32 << 32, s.blocks) * 256 + i * 32 + bit);
  }
  return result;
}

inline bool bit_at(Bytes table, std::uint64_t position) {
  return (std::to_integer<unsigned>(table[position / 8]) >> position % 8 & 1u) != 0;
}

template <class Shape>
bool covers(Shape shape, Bytes table, std::uint64_t h) {
  return std::ranges::all_of(positions(shape, h), [&](std::uint64_t p) { return bit_at(table, p); });
}

template <class Shape>
void set_all(Shape shape, std::span<std::byte> table, std::uint64_t h) {
  for (const std::uint64_t p : positions(shape, h)) table[p / 8] |= std::byte{1} << static_cast<int>(p % 8);
}

inline bool same_bytes(Bytes a, Bytes b) { return std::ranges::equal(a, b); }

// A copy of a table at an address that is not aligned for any word.
class Unaligned {
 public:
  explicit Unaligned(Bytes table) : storage_(table.size() + 64), size_(table.size()) {
    std::ranges::copy(table, bytes().begin());
  }
  std::span<std::byte> bytes() {
    std::byte* at = storage_.data();
    while (reinterpret_cast<std::uintptr_t>(at) % 64 != 13) ++at;
    return {at, size_};
  }

 private:
  std::vector<std::byte> storage_;
  std::size_t size_;
};

}  // namespace perhaps::test
