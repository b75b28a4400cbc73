// The dense part of a ribbon (perhaps/ribbon.h): the last keys, whose equations cover all of its slots.
#pragma once
#include <algorithm>
#include <cstdint>
#include <span>

#include "perhaps/ribbon.h"

namespace perhaps::ribbon {

constexpr std::uint64_t kDense = RibbonShape::dense_slots(RibbonShape::kDenseKeys);  // slots

// The dense part: where its bits begin and how many slots it has.
struct Dense {
  std::uint64_t first_bit;
  std::uint32_t slots;
  std::uint32_t extra;
  std::uint32_t seed;
  std::uint32_t extra_seed;

  std::uint64_t chunk_slots(std::uint64_t q) const noexcept { return std::min<std::uint64_t>(64, slots - 64 * q); }
  std::uint64_t column_bit(std::uint32_t columns, std::uint64_t q, std::uint32_t j) const noexcept {
    return first_bit + 64 * q * columns + j * chunk_slots(q);
  }
  std::uint64_t extra_bit(std::uint32_t columns, std::uint64_t slot) const noexcept {
    return first_bit + std::uint64_t{slots} * columns + slot;
  }
};

// Does the dense part agree with a key, whose mixed digest is `a`?
bool dense_equals(const RibbonShape& shape, Bytes bytes, const Dense& d, std::uint64_t a) noexcept;
// Column j of the key.
bool dense_column(const RibbonShape& shape, Bytes bytes, const Dense& d, std::uint64_t a, std::uint32_t j) noexcept;
// Seeds are tried until the keys, which are mixed, fit; none is left in 1e-38 of all cases. False also if they are more
// than the slots.
template <class Keys>
bool solve_dense(const RibbonShape& shape, Keys of, std::span<const typename Keys::Record> keys, Dense* d,
                 std::span<std::byte> out) noexcept;

}  // namespace perhaps::ribbon
