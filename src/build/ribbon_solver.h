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
// loops are kernels, compiled twice from the same text (ribbon_kernels.cc).
#pragma once
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#include "kernel/instruction_set.h"
#include "perhaps/detail/bits.h"

namespace perhaps::ribbon {

using detail::Wide;

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
template <class Word, class Result = std::uint32_t>
struct Row {
  Word coefficients;  // bit 0 belongs to the row's own slot
  Result result;
};

// One pass of the solution: columns [first, first + count) of blocks [from, to), which have `width` columns; block
// `from` is at `out`.
template <class Word, class Result>
struct Walk {
  const Row<Word, Result>* rows;
  std::uint32_t count, first, width;
  std::uint64_t from, to;
  std::byte* out;
};
inline void run(const Walk<std::uint64_t, std::uint32_t>& walk, std::uint64_t* state) noexcept {
  kernel::active().ribbon_solver.walk(walk, state);
}
inline void run(const Walk<std::uint64_t, std::uint64_t>& walk, std::uint64_t* state) noexcept {
  kernel::active().ribbon_map_solver.walk(walk, state);
}
inline void run(const Walk<std::uint64_t, Wide>& walk, std::uint64_t* state) noexcept {
  kernel::active().ribbon_wide_map_solver.walk(walk, state);
}
inline void run(const Walk<Wide, std::uint32_t>& walk, Wide* state) noexcept {
  kernel::active().ribbon_walk_wide(walk, state);
}

// The rows, in memory of the caller.
template <class Word, class Result = std::uint32_t>
struct Banding {
  static constexpr unsigned kWidth = 8 * sizeof(Word);
  std::span<Row<Word, Result>> rows;

  std::uint64_t slots() const noexcept { return rows.size(); }
  void clear() const noexcept { std::memset(static_cast<void*>(rows.data()), 0, rows.size_bytes()); }

  // REQUIRES: bit 0 of `with` is set, start + kWidth <= slots()
  Added add(std::uint64_t start, Word with, Result result) const noexcept {
    Row<Word, Result>* row = rows.data() + start;
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
    // As many columns at once as there are registers for: a walk over the rows for each eight of them.
    constexpr std::uint32_t kAtOnce = 8;
    const std::uint64_t blocks = slots() / kWidth;
    narrow = std::min(narrow, blocks);
    std::byte* const wide = out + narrow * columns * sizeof(Word);
    for (std::uint32_t first = 0; first < columns + (narrow < blocks); first += kAtOnce) {
      Word state[kAtOnce] = {};
      const Row<Word, Result>* const all = rows.data();
      using Pass = Walk<Word, Result>;
      run(Pass{all, std::min(columns + 1 - first, kAtOnce), first, columns + 1, narrow, blocks, wide}, state);
      if (first < columns) run(Pass{all, std::min(columns - first, kAtOnce), first, columns, 0, narrow, out}, state);
    }
  }
};

}  // namespace perhaps::ribbon
