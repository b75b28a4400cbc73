// The condition of the three Bloom filters, by one pass over their bits.
#include "perhaps/algebra.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <cmath>

namespace perhaps {
namespace {

std::uint64_t count_ones(Bytes table) noexcept {
  std::uint64_t ones = 0;
  std::size_t at = 0;
  for (; at + 8 <= table.size(); at += 8) {
    ones += static_cast<unsigned>(std::popcount(detail::load<std::uint64_t>(table.data() + at)));
  }
  for (; at < table.size(); ++at) ones += static_cast<unsigned>(std::popcount(std::to_integer<unsigned>(table[at])));
  return ones;
}

// The rate that the fill shows, and what it does not show. A full filter's number of keys is infinite.
template <class Shape>
double with_equals(double rate, const Shape& shape, double keys) {
  return std::isinf(keys) ? rate : std::min(1.0, rate + shape.equal_patterns(keys));
}

}  // namespace

Condition condition_of(BloomShape shape, Bytes table) {
  assert(table.size() >= shape.bytes());
  // The unused bits of the last byte are not part of the filter, even if a file sets them.
  std::uint64_t ones = count_ones(table.first(shape.bits / 8));
  if (shape.bits % 8 != 0) {
    const unsigned last = std::to_integer<unsigned>(table[shape.bits / 8]) & ((1u << shape.bits % 8) - 1);
    ones += static_cast<unsigned>(std::popcount(last));
  }
  Condition c;
  c.fill = static_cast<double>(ones) / static_cast<double>(shape.bits);
  c.keys = shape.keys_at(c.fill);
  c.fpr = std::min(1.0, std::pow(c.fill, shape.probes) + equal_digests(ones == shape.bits ? 0 : c.keys));
  return c;
}

// A query falls on any line with the same probability, and its probes on any bit of their lanes: the rate of a line
// is the product of the fills of the probed lanes, averaged over the eight places to start.
Condition condition_of(LineShape shape, Bytes table) {
  assert(table.size() >= shape.bytes());
  double rates = 0;
  std::uint64_t ones = 0;
  const std::uint32_t rounds = shape.probes / 8;
  const std::uint32_t extra = shape.probes % 8;
  for (std::uint64_t line = 0; line < shape.lines; ++line) {
    std::array<double, 8> fill;
    double whole = 1;
    for (std::size_t lane = 0; lane < 8; ++lane) {
      const std::byte* word = table.data() + line * kLineBytes + lane * 4;
      const int count =
          std::popcount(detail::load<std::uint32_t>(word)) + std::popcount(detail::load<std::uint32_t>(word + 32));
      ones += static_cast<unsigned>(count);
      fill[lane] = count / 64.0;
      whole *= fill[lane];
    }
    double partial = extra == 0 ? 8 : 0;
    if (extra != 0) {
      for (std::uint32_t start = 0; start < 8; ++start) {
        double rate = 1;
        for (std::uint32_t i = 0; i < extra; ++i) rate *= fill[(start + i) % 8];
        partial += rate;
      }
    }
    rates += partial / 8 * (rounds == 0 ? 1 : rounds == 1 ? whole : whole * whole);
  }
  Condition c;
  c.fill = static_cast<double>(ones) / static_cast<double>(shape.bits());
  c.keys = shape.keys_at(c.fill);
  c.fpr = with_equals(rates / static_cast<double>(shape.lines), shape, c.keys);
  return c;
}

Condition condition_of(BlockShape shape, Bytes table) {
  assert(table.size() >= shape.bytes());
  double rates = 0;
  std::uint64_t ones = 0;
  for (std::uint64_t block = 0; block < shape.blocks; ++block) {
    double rate = 1;
    for (std::size_t i = 0; i < 8; ++i) {
      const int count =
          std::popcount(detail::load<std::uint32_t>(table.data() + block * BlockLayout::kBlockBytes + i * 4));
      ones += static_cast<unsigned>(count);
      rate *= count / 32.0;
    }
    rates += rate;
  }
  Condition c;
  c.fill = static_cast<double>(ones) / static_cast<double>(shape.bits());
  c.keys = shape.keys_at(c.fill);
  c.fpr = with_equals(rates / static_cast<double>(shape.blocks), shape, c.keys);
  return c;
}

}  // namespace perhaps
