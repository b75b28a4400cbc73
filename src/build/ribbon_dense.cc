#include "build/ribbon_dense.h"

#include <array>
#include <bit>

#include "build/ribbon_band.h"

namespace perhaps::ribbon {
namespace {

void set_bit(std::span<std::byte> bytes, std::uint64_t at) noexcept { bytes[at / 8] |= std::byte{1} << (at % 8); }

// A system of up to 256 equations over all of up to 256 slots.
class DenseSystem {
 public:
  explicit DenseSystem(std::uint32_t slots) : slots_(slots) {}

  bool add(std::uint64_t a, std::uint32_t seed, std::uint32_t result) noexcept {
    Row row{};
    for (std::uint32_t q = 0; 64 * q < slots_; ++q) {
      row.c[q] = RibbonLayout::dense_coefficients(a, seed, q);
      if (slots_ - 64 * q < 64) row.c[q] &= (std::uint64_t{1} << (slots_ - 64 * q)) - 1;
    }
    row.result = result;
    for (std::uint32_t q = 0; 64 * q < slots_; ++q) {
      while (row.c[q] != 0) {
        Row& at = rows_[64 * q + first_one(row.c[q])];
        if (!at.there) {
          at = row;
          at.there = true;
          return true;
        }
        for (std::uint32_t i = q; i < 4; ++i) row.c[i] ^= at.c[i];
        row.result ^= at.result;
      }
    }
    return row.result == 0;
  }
  // The value of every slot, bit j for column j.
  std::array<std::uint32_t, kDense> solve() const noexcept {
    std::array<std::uint32_t, kDense> value{};
    for (std::uint32_t slot = slots_; slot-- > 0;) {
      const Row& row = rows_[slot];
      if (!row.there) continue;
      std::uint32_t sum = row.result;
      for (std::uint32_t q = slot / 64; q < 4; ++q) {
        for (std::uint64_t c = row.c[q]; c != 0; c &= c - 1) sum ^= value[64 * q + first_one(c)];
      }
      value[slot] = sum;
    }
    return value;
  }

 private:
  struct Row {
    std::array<std::uint64_t, 4> c;
    std::uint32_t result;
    bool there;
  };
  std::uint32_t slots_;
  std::array<Row, kDense> rows_{};
};

}  // namespace

std::uint64_t bits_at(Bytes bytes, std::uint64_t at, std::uint64_t count) noexcept {
  const std::uint64_t byte = std::min<std::uint64_t>(at / 8, bytes.size() - 8);
  const std::uint64_t shift = at - 8 * byte;
  std::uint64_t word = detail::load<std::uint64_t>(bytes.data() + byte) >> shift;
  if (shift + count > 64) word |= std::uint64_t{static_cast<unsigned char>(bytes[byte + 8])} << (64 - shift);
  return count == 64 ? word : word & ((std::uint64_t{1} << count) - 1);
}

std::uint32_t DenseLookup::parities(const RibbonShape& shape) const noexcept {
  std::array<std::uint64_t, RibbonShape::kMaxColumns> sum{};
  for (std::uint32_t q = 0; 64 * q < dense.slots; ++q) {
    const std::uint64_t c = RibbonLayout::dense_coefficients(mixed, dense.seed, q);
    for (std::uint32_t j = 0; j < shape.columns; ++j) {
      sum[j] ^= c & bits_at(bytes, dense.column_bit(shape.columns, q, j), dense.chunk_slots(q));
    }
  }
  std::uint32_t all = 0;
  for (std::uint32_t j = 0; j < shape.columns; ++j) all |= parity(sum[j]) << j;
  return all;
}

std::uint32_t DenseLookup::extra_parity(const RibbonShape& shape) const noexcept {
  std::uint64_t sum = 0;
  for (std::uint32_t q = 0; 64 * q < dense.extra; ++q) {
    sum ^= RibbonLayout::dense_coefficients(mixed, RibbonLayout::extra_seed(dense.extra_seed), q) &
           bits_at(bytes, dense.extra_bit(shape.columns, 64 * q), std::min<std::uint64_t>(64, dense.extra - 64 * q));
  }
  return parity(sum);
}

bool DenseLookup::answer(const RibbonShape& shape) const noexcept {
  if (every) return true;
  if (dense.slots == 0) return false;
  const std::uint32_t fingerprint = RibbonLayout::fingerprint_of(mixed);
  if (((parities(shape) ^ fingerprint) & low_bits(shape.columns)) != 0) return false;
  return !has_extra(shape) || extra_parity(shape) == (fingerprint >> shape.columns & 1);
}

bool solve_dense(const RibbonShape& shape, std::span<const std::uint64_t> mixed, Dense* d,
                 std::span<std::byte> out) noexcept {
  if (mixed.size() > d->slots) return false;
  if (mixed.empty()) return true;
  const std::uint32_t mask = low_bits(shape.columns);
  bool solved = false;
  for (d->seed = 0; d->seed < RibbonLayout::kMaxSeeds; ++d->seed) {
    DenseSystem system(d->slots);
    solved = std::all_of(mixed.begin(), mixed.end(), [&](std::uint64_t a) {
      return system.add(a, d->seed, RibbonLayout::fingerprint_of(a) & mask);
    });
    if (!solved) continue;
    const auto value = system.solve();
    for (std::uint32_t slot = 0; slot < d->slots; ++slot) {
      for (std::uint32_t j = 0; j < shape.columns; ++j) {
        if ((value[slot] >> j & 1) != 0) set_bit(out, d->column_bit(shape.columns, slot / 64, j) + slot % 64);
      }
    }
    break;
  }
  if (!solved || d->extra == 0) return solved;
  for (d->extra_seed = 0; d->extra_seed < RibbonLayout::kMaxSeeds; ++d->extra_seed) {
    DenseSystem system(d->extra);
    solved = std::all_of(mixed.begin(), mixed.end(), [&](std::uint64_t a) {
      return !RibbonLayout::is_extra(a, d->extra_seed, shape.wide) ||
             system.add(a, RibbonLayout::extra_seed(d->extra_seed),
                        RibbonLayout::fingerprint_of(a) >> shape.columns & 1);
    });
    if (!solved) continue;
    const auto value = system.solve();
    for (std::uint32_t slot = 0; slot < d->extra; ++slot) {
      if (value[slot] != 0) set_bit(out, d->extra_bit(shape.columns, slot));
    }
    return true;
  }
  return false;
}

}  // namespace perhaps::ribbon
