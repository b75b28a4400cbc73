#include "build/ribbon_dense.h"

#include <array>
#include <bit>

#include "build/ribbon_band.h"

namespace perhaps::ribbon {
namespace {

void set_bit(std::span<std::byte> bytes, std::uint64_t at) noexcept { bytes[at / 8] |= std::byte{1} << (at % 8); }

// A system of up to 256 equations over all of up to 256 slots.
template <class Result>
class DenseSystem {
 public:
  explicit DenseSystem(std::uint32_t slots) : slots_(slots) {}

  bool add(std::uint64_t a, std::uint32_t seed, Result result) noexcept {
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
    return row.result == Result{0};
  }
  // The value of every slot, bit j for column j.
  std::array<Result, kDense> solve() const noexcept {
    std::array<Result, kDense> value{};
    for (std::uint32_t slot = slots_; slot-- > 0;) {
      const Row& row = rows_[slot];
      if (!row.there) continue;
      Result sum = row.result;
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
    Result result;
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

std::uint32_t DenseLookup::column(const RibbonShape& shape, std::uint32_t j) const noexcept {
  std::uint64_t sum = 0;
  for (std::uint32_t q = 0; 64 * q < dense.slots; ++q) {
    sum ^= RibbonLayout::dense_coefficients(mixed, dense.seed, q) &
           bits_at(bytes, dense.column_bit(shape.columns, q, j), dense.chunk_slots(q));
  }
  return parity(sum);
}

std::uint32_t DenseLookup::extra_column(const RibbonShape& shape) const noexcept {
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
  std::uint32_t wrong = 0;
  for (std::uint32_t j = 0; j < shape.columns; ++j) wrong |= column(shape, j) ^ (fingerprint >> j & 1);
  return wrong == 0 && (!has_extra(shape) || extra_column(shape) == (fingerprint >> shape.columns & 1));
}

template <class Keys>
bool solve_dense(const RibbonShape& shape, Keys of, std::span<const typename Keys::Record> mixed, Dense* d,
                 std::span<std::byte> out) noexcept {
  using Result = typename Keys::Result;
  const auto result_of = [&](const auto& key) {
    return of.result(key, RibbonLayout::fingerprint_of(build::digest_of(key)));
  };
  if (mixed.size() > d->slots) return false;
  if (mixed.empty()) return true;
  const auto mask = low_bits<Result>(shape.columns);
  bool solved = false;
  for (d->seed = 0; d->seed < RibbonLayout::kMaxSeeds; ++d->seed) {
    DenseSystem<Result> system(d->slots);
    solved = std::all_of(mixed.begin(), mixed.end(), [&](const auto& key) {
      return system.add(build::digest_of(key), d->seed, result_of(key) & mask);
    });
    if (!solved) continue;
    const auto value = system.solve();
    for (std::uint32_t slot = 0; slot < d->slots; ++slot) {
      for (std::uint32_t j = 0; j < shape.columns; ++j) {
        if ((static_cast<std::uint64_t>(value[slot] >> j) & 1) != 0)
          set_bit(out, d->column_bit(shape.columns, slot / 64, j) + slot % 64);
      }
    }
    break;
  }
  if (!solved || d->extra == 0) return solved;
  for (d->extra_seed = 0; d->extra_seed < RibbonLayout::kMaxSeeds; ++d->extra_seed) {
    DenseSystem<std::uint32_t> system(d->extra);
    solved = std::all_of(mixed.begin(), mixed.end(), [&](const auto& key) {
      const std::uint64_t a = build::digest_of(key);
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

template bool solve_dense(const RibbonShape&, Fingerprints, std::span<const std::uint64_t>, Dense*,
                          std::span<std::byte>) noexcept;
template bool solve_dense(const RibbonShape&, Values<std::uint64_t>, std::span<const build::Entry>, Dense*,
                          std::span<std::byte>) noexcept;
template bool solve_dense(const RibbonShape&, Values<Wide>, std::span<const build::Entry>, Dense*,
                          std::span<std::byte>) noexcept;

}  // namespace perhaps::ribbon
