// Sums, the way to a plain filter, and the condition: counting_bloom.h.
#include <bit>

#include "perhaps/counting_bloom.h"

namespace perhaps {
namespace {

constexpr std::uint64_t kLowest = 0x1111111111111111u;  // of every counter of a lane

// The lowest bit of every counter that is not zero, and of every one that is stuck.
std::uint64_t used(std::uint64_t lane) noexcept { return (lane | lane >> 1 | lane >> 2 | lane >> 3) & kLowest; }
std::uint64_t stuck(std::uint64_t lane) noexcept { return lane & lane >> 1 & lane >> 2 & lane >> 3 & kLowest; }

std::uint64_t sum(std::uint64_t lane) noexcept {
  lane = (lane & 0x0f0f0f0f0f0f0f0fu) + (lane >> 4 & 0x0f0f0f0f0f0f0f0fu);
  return lane * 0x0101010101010101u >> 56;  // at most 16 * 15 = 240
}

// Two numbers in a byte are added apart from their neighbours; what reaches 16 becomes 15.
std::uint64_t saturated(std::uint64_t sums) noexcept {
  const std::uint64_t over = sums & 0x1010101010101010u;
  return (sums | (over - (over >> 4))) & 0x0f0f0f0f0f0f0f0fu;
}
std::uint64_t sums(std::uint64_t a, std::uint64_t b) noexcept {
  constexpr std::uint64_t kEven = 0x0f0f0f0f0f0f0f0fu;
  return saturated((a & kEven) + (b & kEven)) | saturated((a >> 4 & kEven) + (b >> 4 & kEven)) << 4;
}

// Every fourth bit, from the lowest on, next to each other.
std::uint16_t gathered(std::uint64_t bits) noexcept {
  bits = (bits | bits >> 3) & 0x0303030303030303u;
  bits = (bits | bits >> 6) & 0x000f000f000f000fu;
  bits = (bits | bits >> 12) & 0x000000ff000000ffu;
  return static_cast<std::uint16_t>(bits | bits >> 24);
}

}  // namespace

void CountingLayout::add(const CountingShape& shape, std::byte* into, const std::byte* other) noexcept {
  for (std::uint64_t at = 0; at < shape.bytes(); at += 8) {
    const auto a = detail::load<std::uint64_t>(into + at);
    const auto b = detail::load<std::uint64_t>(other + at);
    detail::store(into + at, shape.counter_bits == 4 ? sums(a, b) : a | b);
  }
}

void CountingLayout::freeze(const CountingShape& shape, const std::byte* table, std::byte* plain) noexcept {
  if (shape.counter_bits == 1) {
    std::memcpy(plain, table, shape.bytes());
    return;
  }
  for (std::uint64_t lane = 0; lane < shape.lines * 8; ++lane) {
    detail::store(plain + lane * 2, gathered(used(detail::load<std::uint64_t>(table + lane * 8))));
  }
}

std::uint64_t CountingLayout::keys(CountingShape shape, const std::byte* table) noexcept {
  std::uint64_t total = 0;
  for (std::uint64_t at = 0; at < shape.bytes(); at += 8) {
    const auto lane = detail::load<std::uint64_t>(table + at);
    total += shape.counter_bits == 4 ? sum(lane) : static_cast<std::uint64_t>(std::popcount(lane));
  }
  return total / shape.counters();
}

// A share s of stuck counters among those in use raises the rate by up to probes * s.
bool CountingLayout::needs_rebuild(CountingShape shape, const std::byte* table) noexcept {
  if (shape.counter_bits == 1) return false;
  std::uint64_t in_use = 0;
  std::uint64_t lost = 0;
  for (std::uint64_t at = 0; at < shape.bytes(); at += 8) {
    const auto lane = detail::load<std::uint64_t>(table + at);
    in_use += static_cast<std::uint64_t>(std::popcount(used(lane)));
    lost += static_cast<std::uint64_t>(std::popcount(stuck(lane)));
  }
  return lost * shape.probes * 10 > in_use;
}

// In a line whose lanes have u_0 .. u_7 counters in use, an absent key's first probe in lane j meets one with
// probability u_j / 16, and its second, which is never the same, then with (u_j - 1) / 15.
Condition condition_of(CountingShape shape, Bytes table) {
  double fpr = 0;
  std::uint64_t in_use = 0;
  for (std::uint64_t line = 0; line < shape.lines; ++line) {
    std::array<double, 8> lanes;
    for (std::size_t j = 0; j < 8; ++j) {
      const std::byte* const at = table.data() + line * shape.line_bytes() + j * 2 * shape.counter_bits;
      const int count = shape.counter_bits == 4 ? std::popcount(used(detail::load<std::uint64_t>(at)))
                                                : std::popcount(detail::load<std::uint16_t>(at));
      in_use += static_cast<std::uint64_t>(count);
      lanes[j] = count;
    }
    for (std::size_t start = 0; start < 8; ++start) {
      double all = 1;
      for (std::uint32_t i = 0; i < shape.probes; ++i) {
        const double count = lanes[(start + i) % 8];
        all *= i < 8 ? count / 16 : std::max(count - 1, 0.0) / 15;
      }
      fpr += all / 8;
    }
  }
  const auto lines = static_cast<double>(shape.lines);
  return {.fill = static_cast<double>(in_use) / (128 * lines),
          .fpr = fpr / lines,
          .keys = static_cast<double>(CountingLayout::keys(shape, table.data()))};
}

}  // namespace perhaps
