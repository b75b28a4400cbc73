// The loops that solve ribbons, for whatever finds the first one of a word fastest; all are inlined into the kernels of
// an instruction set (ribbon_kernels.cc).
#pragma once
#include "build/ribbon_band.h"

namespace perhaps::ribbon {

// Reduces the equation by the row that it begins at; false after the last one.
template <class Bits, class Band>
PERHAPS_INLINE bool step(Band& band, typename Band::Equation& e) noexcept {
  // Rows begin with a one, as equations do: the first one of the sum is at 0 only if the row is empty.
  std::uint64_t left = e.with ^ e.row->coefficients;
  asm("" : "+r"(left));  // the compiler would compare the two later and keep them apart until then
  std::uint64_t ahead;
  if (Bits::odd_or_zero(left, ahead)) [[unlikely]] {
    e.with = left;
    return band.settle(e);
  }
  e.result ^= e.row->result;
  e.with = left >> ahead;
  e.row += ahead;
  return true;
}

template <class Bits, class Band>
PERHAPS_INLINE void band_alone(Band& band, typename Band::Equation e) noexcept {
  while (step<Bits>(band, e)) {
  }
}

template <class Bits, class Band>
PERHAPS_INLINE void band_all(Band& band) noexcept {
  typename Band::Equation e{};
  if (band.begin(e)) band_alone<Bits>(band, e);
}

// The steps of an equation wait for one another, some ten cycles each and 17 of them per key; those of different runs
// do not. Four in turns take half the time (two: 0.65, six: as four).
template <class Bits, class Keys>
PERHAPS_INLINE void band_together(const FrontBands<Keys>& bands) noexcept {
  static_assert(RibbonLayout::kRunsTogether == 4);
  FrontBand<Keys>& b0 = *bands.runs[0];
  FrontBand<Keys>& b1 = *bands.runs[1];
  FrontBand<Keys>& b2 = *bands.runs[2];
  FrontBand<Keys>& b3 = *bands.runs[3];
  // Not in arrays: gcc 12 keeps those in memory.
  typename FrontBand<Keys>::Equation e0{}, e1{}, e2{}, e3{};
  bool more0 = b0.begin(e0);
  bool more1 = b1.begin(e1);
  bool more2 = b2.begin(e2);
  bool more3 = b3.begin(e3);
  if (more0 && more1 && more2 && more3) {
    while ((more0 = step<Bits>(b0, e0)) && (more1 = step<Bits>(b1, e1)) && (more2 = step<Bits>(b2, e2)) &&
           (more3 = step<Bits>(b3, e3))) {
    }
  }
  if (more0) band_alone<Bits>(b0, e0);
  if (more1) band_alone<Bits>(b1, e1);
  if (more2) band_alone<Bits>(b2, e2);
  if (more3) band_alone<Bits>(b3, e3);
}

// state[j] is column first + j of the kWidth slots behind the current one.
template <std::uint32_t kCount, class Word, class Result>
PERHAPS_INLINE void walk_columns(const Walk<Word, Result>& walk, Word* state) noexcept {
  constexpr unsigned kWidth = 8 * sizeof(Word);
  Word now[kCount];
  std::copy_n(state, kCount, now);
  for (std::uint64_t k = walk.to; k-- > walk.from;) {
    const Row<Word, Result>* const block = walk.rows + k * kWidth;
    for (unsigned i = kWidth; i-- > 0;) {
      const Word others = block[i].coefficients >> 1;
      auto result = static_cast<std::uint32_t>(static_cast<std::uint64_t>(block[i].result >> walk.first));
#pragma GCC unroll 8
      for (std::uint32_t j = 0; j < kCount; ++j, result >>= 1) {
        now[j] += now[j] + ((parity(now[j] & others) ^ result) & 1);
      }
    }
    std::byte* const out = walk.out + ((k - walk.from) * walk.width + walk.first) * sizeof(Word);
    for (std::uint32_t j = 0; j < kCount; ++j) detail::store(out + j * sizeof(Word), now[j]);
  }
  std::copy_n(now, kCount, state);
}

template <class Word, class Result>
PERHAPS_INLINE void walk_as(const Walk<Word, Result>& walk, Word* state) noexcept {
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
}  // namespace perhaps::ribbon
