// Solving a ribbon: a linear system over GF(2) in which every equation has its coefficients within `kWidth`
// neighbouring slots (Dillinger, Walzer 2021). Knows nothing of keys: the bumped ribbon (64 bits wide) and the standard
// ribbon (128 bits wide, no bumping) are two uses of it.
//
//   banding    rows[i] = an equation whose first coefficient is at slot i, or none. A new equation is reduced by the
//   row
//              at its first slot, which moves its first coefficient to the right, until it finds an empty row, or
//              nothing of it is left: then it follows from the others (redundant) or contradicts them (inconsistent).
//   solution   from the last slot to the first: each row gives its slot's value from those to the right of it.
//              A slot without a row is free and becomes 0.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "perhaps/detail/bits.h"

namespace perhaps::ribbon {

__extension__ using Wide = unsigned __int128;

enum class Added : std::uint8_t { inserted, redundant, inconsistent };

inline unsigned first_one(std::uint64_t word) noexcept { return static_cast<unsigned>(std::countr_zero(word)); }
inline unsigned first_one(Wide word) noexcept {
  const auto low = static_cast<std::uint64_t>(word);
  return low != 0 ? first_one(low) : 64 + first_one(static_cast<std::uint64_t>(word >> 64));
}
inline unsigned parity(std::uint64_t word) noexcept { return static_cast<unsigned>(__builtin_parityll(word)); }
inline unsigned parity(Wide word) noexcept {
  return parity(static_cast<std::uint64_t>(word) ^ static_cast<std::uint64_t>(word >> 64));
}

// Coefficients and results of the rows, in memory of the caller. A row without coefficients is empty.
template <class Word>
struct Banding {
  static constexpr unsigned kWidth = 8 * sizeof(Word);
  std::span<Word> coefficients;  // bit 0 belongs to the row's own slot
  std::span<std::uint32_t> results;

  std::uint64_t slots() const noexcept { return coefficients.size(); }
  void clear() const noexcept { std::memset(coefficients.data(), 0, coefficients.size_bytes()); }

  // `slot` becomes the row that the equation went into; it is untouched otherwise.
  // REQUIRES: bit 0 of `with` is set, start + kWidth <= slots()
  Added add(std::uint64_t start, Word with, std::uint32_t result, std::uint64_t* slot) const noexcept {
    Word* row = coefficients.data() + start;
    const std::uint32_t* row_result = results.data() + start;
    while (*row != 0) {
      with ^= *row;
      result ^= *row_result;
      if (with == 0) return result == 0 ? Added::redundant : Added::inconsistent;
      const unsigned step = first_one(with);
      with >>= step;
      row += step;
      row_result += step;
    }
    *row = with;
    *slot = static_cast<std::uint64_t>(row - coefficients.data());
    results[*slot] = result;
    return Added::inserted;
  }
  // Takes out an equation that was added after all others that are still in.
  void remove(std::uint64_t slot) const noexcept { coefficients[slot] = 0; }

  // Writes the solution in blocks of kWidth slots, each block column by column: column j is bit j of the results.
  // Blocks before number `narrow` have `columns` columns, the others one more.  REQUIRES: slots() is a multiple of
  // kWidth
  void solve(std::uint32_t columns, std::uint64_t narrow, std::byte* out) const noexcept {
    constexpr std::uint32_t kMost = 32;
    Word state[kMost + 1] = {};
    const std::uint64_t blocks = slots() / kWidth;
    std::byte* block = out + (blocks * (columns + 1) - std::min(blocks, narrow)) * sizeof(Word);
    for (std::uint64_t k = blocks; k-- > 0;) {
      const std::uint32_t width = columns + (k >= narrow);
      for (std::uint64_t i = (k + 1) * kWidth; i-- > k * kWidth;) {
        const Word row = coefficients[i];
        const std::uint32_t result = row == 0 ? 0 : results[i];
        for (std::uint32_t j = 0; j < width; ++j) {
          const Word shifted = state[j] << 1;
          state[j] = shifted | (parity(shifted & row) ^ (result >> j & 1));
        }
      }
      block -= width * sizeof(Word);
      std::memcpy(block, state, width * sizeof(Word));
    }
  }
};

}  // namespace perhaps::ribbon
