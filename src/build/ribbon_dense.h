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

// Bits [at, at + count) of `bytes`, count <= 64, all of which are inside.  REQUIRES: bytes.size() >= 8
std::uint64_t bits_at(Bytes bytes, std::uint64_t at, std::uint64_t count) noexcept;

// A key in the dense part of a table.
struct DenseLookup {
  Bytes bytes{};            // of the part, and in a table of at most 255 keys the two seeds before it
  Dense dense{};            // no slots: every answer is *no*
  bool every = false;       // the part answers *perhaps* to everything
  std::uint64_t mixed = 0;  // the digest under the seed of the shard

  // `h` is the digest at front `i`.  REQUIRES: the table was checked
  DenseLookup(const RibbonShape& shape, const std::byte* table, std::uint32_t i, std::uint64_t h) noexcept;

  // The parity of column j under the coefficients of the key.  REQUIRES: slots
  std::uint32_t column(const RibbonShape& shape, std::uint32_t j) const noexcept;
  // Does the key check the extra column, and its parity.
  bool has_extra(const RibbonShape& shape) const noexcept {
    return dense.extra != 0 && RibbonLayout::is_extra(mixed, dense.extra_seed, shape.wide);
  }
  std::uint32_t extra_column(const RibbonShape& shape) const noexcept;
  bool answer(const RibbonShape& shape) const noexcept;
};
// Seeds are tried until the keys, which are mixed, fit; none is left in 1e-38 of all cases. False also if they are more
// than the slots.
template <class Keys>
bool solve_dense(const RibbonShape& shape, Keys of, std::span<const typename Keys::Record> keys, Dense* d,
                 std::span<std::byte> out) noexcept;

}  // namespace perhaps::ribbon
