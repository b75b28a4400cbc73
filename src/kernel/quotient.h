// Tables of the quotient filter that are written: what kernel/quotient.cc and quotient.cc share.
#pragma once
#include <algorithm>
#include <cstdint>

#include "kernel/run_editor.h"
#include "perhaps/quotient.h"

namespace perhaps::quotient {

using runs::below_bit;
using runs::PortableBits;
using Table = detail::QuotientTable<PortableBits>;
template <class Bits>
using Editor = runs::Editor<detail::QuotientTable<Bits>>;

// The first slot of a run whose value is above `value`, or the one behind the run.
template <class T>
PERHAPS_INLINE std::uint64_t upper_bound(const T& t, typename T::Run run, std::uint64_t value) noexcept {
  std::uint64_t low = run.first;
  std::uint64_t high = run.last + 1;
  while (high - low > 8) {
    const std::uint64_t middle = low + (high - low) / 2;
    if (t.slot(middle) <= value) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  while (low < high && t.slot(low) <= value) ++low;
  return low;
}

// Which of a block's 64 quotients there are.
constexpr std::uint64_t quotients_of_block(const QuotientShape& shape, std::uint64_t b) noexcept {
  const std::uint64_t left = shape.buckets > b * 64 ? shape.buckets - b * 64 : 0;
  return left >= 64 ? ~std::uint64_t{0} : below_bit(left);
}

// A block of slots, done with: 64 values of `width` bits into `width` words, 64 bytes of 0 or 1 into the run ends.
void write_slots(detail::QuotientPen& pen) noexcept;
// Done with the quotients of a block: only now is it known how far they spill.
void next_start_block(detail::QuotientPen& pen) noexcept;

}  // namespace perhaps::quotient
