// What bench/python.py measures the Python package against: the same filter in C++ and through the C API, in the same
// process, on the same column.
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <span>

#include "perhaps.h"
#include "perhaps/line_bloom.h"

namespace {

template <class Work>
double seconds(Work work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

}  // namespace

extern "C" {

PERHAPS_API void* peer_new(std::uint64_t keys) { return new perhaps::LineBloom({.keys = keys, .fpr = 0.01}); }
PERHAPS_API void peer_free(void* filter) { delete static_cast<perhaps::LineBloom*>(filter); }
PERHAPS_API void peer_insert(void* filter, const std::uint64_t* keys, std::size_t count) {
  static_cast<perhaps::LineBloom*>(filter)->insert(std::span(keys, count));
}
PERHAPS_API void peer_query(const void* filter, const std::uint64_t* keys, std::size_t count, std::uint64_t* answers) {
  static_cast<const perhaps::LineBloom*>(filter)->may_contain(std::span(keys, count),
                                                              std::span(answers, (count + 63) / 64));
}

// The least time of `rounds` interleaved passes over a column in batches of 64: by the C API, in units of the C++ call.
// The filter is in the cache. Negative: it failed, or the answers differ.
PERHAPS_API double peer_batches_of_64(const std::uint64_t* keys, std::size_t count, int rounds) {
  const std::uint64_t in_cache = 20'000;
  perhaps::LineBloom ours({.keys = in_cache, .fpr = 0.01});
  perhaps_options options{};
  options.size = sizeof options;
  options.keys = in_cache;
  perhaps_filter* theirs = nullptr;
  if (perhaps_new(&options, &theirs) != PERHAPS_OK) return -1;
  const std::unique_ptr<perhaps_filter, void (*)(perhaps_filter*)> kept(theirs, perhaps_free);
  const std::size_t few = std::min<std::size_t>(count, in_cache);
  ours.insert(std::span(keys, few));
  if (perhaps_insert_integers(theirs, keys, few, nullptr) != PERHAPS_OK) return -1;
  double best[2] = {std::numeric_limits<double>::max(), std::numeric_limits<double>::max()};
  std::uint64_t sums[2] = {0, 0};
  for (int round = 0; round < rounds; ++round) {
    best[0] = std::min(best[0], seconds([&] {
                         for (std::size_t i = 0; i + 64 <= count; i += 64) {
                           std::uint64_t answers = 0;
                           ours.may_contain(std::span(keys + i, 64), std::span(&answers, 1));
                           sums[0] += answers;
                         }
                       }));
    best[1] = std::min(best[1], seconds([&] {
                         for (std::size_t i = 0; i + 64 <= count; i += 64) {
                           std::uint64_t answers = 0;
                           if (perhaps_query_integers(theirs, keys + i, 64, &answers) != PERHAPS_OK) return;
                           sums[1] += answers;
                         }
                       }));
  }
  return sums[0] == sums[1] ? best[1] / best[0] : -1;
}

}  // extern "C"
