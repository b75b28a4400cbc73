#include "perhaps/algebra.h"

#include <bit>
#include <cassert>
#include <cmath>

namespace perhaps {
namespace detail {
namespace {

template <class Combine>
void combine(std::byte* into, const std::byte* other, std::uint64_t size, Combine op) noexcept {
  std::uint64_t at = 0;
  for (; at + 8 <= size; at += 8) {
    store<std::uint64_t>(into + at, op(load<std::uint64_t>(into + at), load<std::uint64_t>(other + at)));
  }
  for (; at < size; ++at) into[at] = op(into[at], other[at]);
}

std::uint64_t count_ones(Bytes table) noexcept {
  std::uint64_t ones = 0;
  std::size_t at = 0;
  for (; at + 8 <= table.size(); at += 8) {
    ones += static_cast<unsigned>(std::popcount(load<std::uint64_t>(table.data() + at)));
  }
  for (; at < table.size(); ++at) ones += static_cast<unsigned>(std::popcount(std::to_integer<unsigned>(table[at])));
  return ones;
}

std::string differ(const char* what, std::uint64_t a, std::uint64_t b) {
  return "the filters differ in " + std::string(what) + ": " + std::to_string(a) + " and " + std::to_string(b);
}

}  // namespace

void or_bytes(std::byte* into, const std::byte* other, std::uint64_t size) noexcept {
  combine(into, other, size, [](auto a, auto b) { return a | b; });
}

void and_bytes(std::byte* into, const std::byte* other, std::uint64_t size) noexcept {
  combine(into, other, size, [](auto a, auto b) { return a & b; });
}

void fold_units(std::byte* half, const std::byte* whole, std::uint64_t half_units, std::size_t unit_bytes) noexcept {
  for (std::uint64_t unit = 0; unit < half_units; ++unit) {
    for (std::size_t at = 0; at < unit_bytes; at += 8) {
      const std::byte* pair = whole + 2 * unit * unit_bytes + at;
      store(half + unit * unit_bytes + at, load<std::uint64_t>(pair) | load<std::uint64_t>(pair + unit_bytes));
    }
  }
}

void fold_bits(std::byte* half, const std::byte* whole, std::uint64_t half_bits) noexcept {
  for (std::uint64_t bit = 0; bit < half_bits; ++bit) {
    const unsigned pair = std::to_integer<unsigned>(whole[bit / 4]) >> (bit % 4 * 2) & 3u;
    if (pair != 0) half[bit / 8] |= std::byte{1} << static_cast<int>(bit % 8);
  }
}

std::string differ(BloomShape a, BloomShape b) {
  return a.bits != b.bits ? differ("bits", a.bits, b.bits) : differ("probes", a.probes, b.probes);
}
std::string differ(LineShape a, LineShape b) {
  return a.lines != b.lines ? differ("lines", a.lines, b.lines) : differ("probes", a.probes, b.probes);
}
std::string differ(BlockShape a, BlockShape b) { return differ("blocks", a.blocks, b.blocks); }

}  // namespace detail

Condition condition_of(BloomShape shape, Bytes table) {
  assert(table.size() >= shape.bytes());
  // The unused bits of the last byte are no part of the filter, whatever a file says.
  std::uint64_t ones = detail::count_ones(table.first(shape.bits / 8));
  if (shape.bits % 8 != 0) {
    const unsigned last = std::to_integer<unsigned>(table[shape.bits / 8]) & ((1u << shape.bits % 8) - 1);
    ones += static_cast<unsigned>(std::popcount(last));
  }
  Condition c;
  c.fill = static_cast<double>(ones) / static_cast<double>(shape.bits);
  c.fpr = std::pow(c.fill, shape.probes);
  c.keys = shape.keys_at(c.fill);
  return c;
}

// A question falls on any line with the same probability, and its probes on any bit of their lanes: the rate of a line
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
  c.fpr = rates / static_cast<double>(shape.lines);
  c.keys = shape.keys_at(c.fill);
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
  c.fpr = rates / static_cast<double>(shape.blocks);
  c.keys = shape.keys_at(c.fill);
  return c;
}

}  // namespace perhaps
