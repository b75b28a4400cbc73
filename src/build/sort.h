// Sorts digests, or the entries of a map by their digests, and makes them distinct.
//
// Digests are as good as uniform, so a place can be computed instead of searched for: one counting pass deals n digests
// out to about n / 3 cells by their leading bits, and a sweep of insertion sort puts the few of a cell in order,
// without the mispredicted comparisons of std::sort. More than kOnePass digests are first dealt out to parts of that
// size. Digests that are not spread evenly (a foreign hash) make large cells, which std::sort takes.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "build/entry.h"

namespace perhaps::build {

// The distinct digests, ascending, in one of the two buffers. `common` leading bits are the same in all of them.
// REQUIRES: digests.size() == other.size(), below 2^32
std::span<std::uint64_t> sort_distinct(std::span<std::uint64_t> digests, std::span<std::uint64_t> other,
                                       unsigned common);
// The distinct entries: a digest that has two values remains twice.
std::span<Entry> sort_distinct(std::span<Entry> entries, std::span<Entry> other, unsigned common);

}  // namespace perhaps::build
