// Solving a ribbon: a linear system over GF(2) in which every equation has its coefficients within `kWidth`
// neighbouring slots (Dillinger, Walzer 2021). Knows nothing of keys: the bumped ribbon (64 bits wide) and the standard
// ribbon (128 bits wide, no bumping) are two uses of it.
//
//   banding    rows[i] = an equation whose first coefficient is at slot i, or none. A new equation is reduced by the
//              row at its first slot, which moves its first coefficient to the right, until it finds an empty row, or
//              nothing of it is left: then it follows from the others (redundant) or contradicts them (inconsistent).
//   solution   from the last slot to the first: each row gives its slot's value from those to the right of it.
//              A slot without a row is free and becomes 0.
//
// Both are many small steps on words, and x86-64 from before 2013 counts and finds bits in a dozen instructions. So the
// loops are compiled twice, from the same text.
#pragma once
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "kernel/table.h"
#include "perhaps/detail/bits.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define PERHAPS_RIBBON_BMI2 1
#define PERHAPS_RIBBON_WITH_BMI2 [[gnu::target("bmi,bmi2,popcnt")]]
#else
#define PERHAPS_RIBBON_BMI2 0
#endif

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

// An equation in the row of its first coefficient. A row of zeros is empty.
template <class Word>
struct Row {
  Word coefficients;  // bit 0 belongs to the row's own slot
  std::uint32_t result;
};

// The rows, in memory of the caller.
template <class Word>
struct Banding {
  static constexpr unsigned kWidth = 8 * sizeof(Word);
  std::span<Row<Word>> rows;

  std::uint64_t slots() const noexcept { return rows.size(); }
  void clear() const noexcept { std::memset(static_cast<void*>(rows.data()), 0, rows.size_bytes()); }

  // REQUIRES: bit 0 of `with` is set, start + kWidth <= slots()
  Added add(std::uint64_t start, Word with, std::uint32_t result) const noexcept {
    Row<Word>* row = rows.data() + start;
    while (row->coefficients != 0) {
      with ^= row->coefficients;
      result ^= row->result;
      if (with == 0) return result == 0 ? Added::redundant : Added::inconsistent;
      const unsigned step = first_one(with);
      with >>= step;
      row += step;
    }
    *row = {with, result};
    return Added::inserted;
  }

  // Writes the solution in blocks of kWidth slots, each block column by column: column j is bit j of the results.
  // Blocks before number `narrow` have `columns` columns, the others one more.  REQUIRES: slots() is a multiple of
  // kWidth
  void solve(std::uint32_t columns, std::uint64_t narrow, std::byte* out) const noexcept {
    auto walk = &Banding::walk_here;
#if PERHAPS_RIBBON_BMI2
    if (kernel::active().bmi2) walk = &Banding::walk_bmi2;
#endif
    // As many columns at once as there are registers for: a walk over the rows for each eight of them.
    constexpr std::uint32_t kAtOnce = 8;
    const std::uint64_t blocks = slots() / kWidth;
    narrow = std::min(narrow, blocks);
    std::byte* const wide = out + narrow * columns * sizeof(Word);
    for (std::uint32_t first = 0; first < columns + (narrow < blocks); first += kAtOnce) {
      Word state[kAtOnce] = {};
      (this->*walk)({std::min(columns + 1 - first, kAtOnce), first, columns + 1, narrow, blocks, wide}, state);
      if (first < columns) {
        (this->*walk)({std::min(columns - first, kAtOnce), first, columns, 0, narrow, out}, state);
      }
    }
  }

 private:
  // Columns [first, first + count) of blocks [from, to), which have `width` columns; block `from` is at `out`.
  struct Walk {
    std::uint32_t count, first, width;
    std::uint64_t from, to;
    std::byte* out;
  };
  void walk_here(const Walk& walk, Word* state) const noexcept { walk_as(walk, state); }
#if PERHAPS_RIBBON_BMI2
  PERHAPS_RIBBON_WITH_BMI2 void walk_bmi2(const Walk& walk, Word* state) const noexcept { walk_as(walk, state); }
#endif
  PERHAPS_INLINE void walk_as(const Walk& walk, Word* state) const noexcept {
    switch (walk.count) {
      case 1:
        return walk_columns<1>(walk, state);
      case 2:
        return walk_columns<2>(walk, state);
      case 3:
        return walk_columns<3>(walk, state);
      case 4:
        return walk_columns<4>(walk, state);
      case 5:
        return walk_columns<5>(walk, state);
      case 6:
        return walk_columns<6>(walk, state);
      case 7:
        return walk_columns<7>(walk, state);
      default:
        return walk_columns<8>(walk, state);
    }
  }
  // state[j] is column first + j of the kWidth slots behind the current one.
  template <std::uint32_t kCount>
  PERHAPS_INLINE void walk_columns(const Walk& walk, Word* state) const noexcept {
    Word now[kCount];
    std::copy_n(state, kCount, now);
    for (std::uint64_t k = walk.to; k-- > walk.from;) {
      const Row<Word>* const block = rows.data() + k * kWidth;
      for (unsigned i = kWidth; i-- > 0;) {
        const Word others = block[i].coefficients >> 1;
        std::uint32_t result = block[i].result >> walk.first;
#pragma GCC unroll 8
        for (std::uint32_t j = 0; j < kCount; ++j, result >>= 1) {
          now[j] += now[j] + ((parity(now[j] & others) ^ result) & 1);
        }
      }
      std::memcpy(walk.out + ((k - walk.from) * walk.width + walk.first) * sizeof(Word), now, sizeof now);
    }
    std::copy_n(now, kCount, state);
  }
};

}  // namespace perhaps::ribbon
