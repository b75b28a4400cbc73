// One row of batch kernels for each instruction set. Row 0 is the portable reference; every other row must equal it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "perhaps/detail/kernels.h"

namespace perhaps::kernel {

struct Row {
  const char* isa;
  void (*line_query)(LineShape, const std::byte*, const std::uint64_t*, std::size_t, std::uint64_t*, bool) noexcept;
  void (*line_insert)(LineShape, std::byte*, const std::uint64_t*, std::size_t, bool) noexcept;
  void (*block_query)(BlockShape, const std::byte*, const std::uint64_t*, std::size_t, std::uint64_t*, bool) noexcept;
  void (*block_insert)(BlockShape, std::byte*, const std::uint64_t*, std::size_t, bool) noexcept;
};

// How many digests the prefetch runs ahead of the probe. 16 is too few to cover a miss to DRAM (twice the time at 1e7
// keys), 32 to 64 measure alike.
inline constexpr std::size_t kDistance = 48;

extern const Row kPortable;

// The rows this CPU can run, best last. The tests and the bench walk them.
std::span<const Row* const> rows() noexcept;
// The row in use: the last one, or the one named by PERHAPS_ISA in the environment.
const Row& active() noexcept;
// Makes `row` the one in use, for tests and benchmarks; not while other threads are probing.
void use(const Row& row) noexcept;

// Walks `digests` with the table `kDistance` ahead: ask(i) prefetches, probe(i) uses.
template <class Ask, class Probe>
inline __attribute__((always_inline)) void walk(std::size_t count, bool ahead, Ask ask, Probe probe) {
  if (!ahead) {
    for (std::size_t i = 0; i < count; ++i) probe(i);
    return;
  }
  const std::size_t primed = count < kDistance ? count : kDistance;
  for (std::size_t i = 0; i < primed; ++i) ask(i);
  std::size_t i = 0;
  for (; i + kDistance < count; ++i) {
    ask(i + kDistance);
    probe(i);
  }
  for (; i < count; ++i) probe(i);
}

}  // namespace perhaps::kernel
