// What it means to be a filter. This page is the design; the rest is arithmetic.
//
//   key --hasher--> digest --layout--> positions --bits--> "perhaps" or "no"
//
// `may_contain` may lie in one direction only: false is a proof, true is a guess. Nothing on the query path can fail,
// allocate or throw, so an engine may call it under a lock. Const calls on one filter are safe from many threads.
//
// Three types for each family, one probe loop:
//   XView  borrows const bytes (a mapped file, a block of a table) and is trivially copyable
//   XSpan  borrows writable bytes (memory of a host, a chunk being loaded) and inserts into them
//   X      owns its memory
// and, where the bits allow it, XShared: insert and query from many threads at once without a lock.
#pragma once
#include <concepts>
#include <cstdint>
#include <span>
#include <string_view>

#include "perhaps/hash.h"

namespace perhaps {

// A batch is at most one machine word of answers: no output buffer, nothing to alias, and hits are a popcount.
inline constexpr std::size_t kBatch = 64;

// The families, with the numbers that files carry.
enum class Kind : std::uint32_t {
  classic = 1,
  line = 2,
  block = 3,
  counting = 4,
  scalable = 5,
  cuckoo = 6,
  quotient = 7,
  window = 8,
  fuse = 9,
  ribbon = 10,
  sets = 11,  // no family: many classic filters in one file (set_index.h)
};
PERHAPS_API std::string_view name_of(Kind kind) noexcept;

// Insert says what it knows. `present` may be a false positive: the key looked present before. `full`: the filter has
// no room, and is as it was.
enum class Inserted : std::uint8_t { added, present, full };
// So does erase. `kept`: the key is no longer owed an answer, but a counter has lost count and goes on saying
// *perhaps*.
enum class Erased : std::uint8_t { removed, absent, kept };

// Answers questions. Every owner and every view over someone else's bytes is one.
template <class F>
concept Filter = requires(const F f, Digest<typename F::hasher_type> d,
                          std::span<const Digest<typename F::hasher_type>> digests, std::span<std::uint64_t> answers) {
  requires Hasher<typename F::hasher_type>;
  { f.hasher() }
  noexcept->std::same_as<typename F::hasher_type>;
  { f.byte_size() }
  noexcept->std::same_as<std::uint64_t>;

  { f.may_contain(d) }
  noexcept->std::same_as<bool>;
  // Bit i of the answer belongs to digests[i].  REQUIRES: digests.size() <= kBatch
  { f.may_contain(digests) }
  noexcept->std::same_as<std::uint64_t>;
  // A column: bit i % 64 of answers[i / 64] belongs to digests[i]; the unused bits of the last word become 0. Past the
  // L2 cache the memory is asked ahead of the probe, across batches: the fastest way to put many questions.
  // REQUIRES: answers.size() * kBatch >= digests.size()
  { f.may_contain(digests, answers) }
  noexcept;
  // Asks the memory system for what a later may_contain(d) will touch. An LSM read hashes a key once, prefetches in
  // the filter of every level, and only then probes.
  { f.prefetch(d) }
  noexcept;
};

// Is one run of bytes together with a shape; what a file or a host stores.
template <class F>
concept FlatFilter = Filter<F> && requires(const F f) {
  { f.bytes() }
  noexcept->std::same_as<Bytes>;
  { f.shape() }
  noexcept->std::same_as<typename F::Shape>;
};

// Takes keys one at a time, for as long as you like (memtables, Redis).
template <class F>
concept MutableFilter = Filter<F> &&
    requires(F f, Digest<typename F::hasher_type> d, std::span<const Digest<typename F::hasher_type>> many) {
  { f.insert(d) } -> std::same_as<Inserted>;
  f.insert(many);
};

// Can forget again. A key that was never inserted but looks present cannot be told apart, and erasing it harms another
// key: the header of each such family states with what probability.
template <class F>
concept ErasableFilter = MutableFilter<F> && requires(F f, Digest<typename F::hasher_type> d) {
  { f.erase(d) } -> std::same_as<Erased>;
  // Deletes have left it worse than a fresh filter of the same keys would be.
  { f.needs_rebuild() } -> std::same_as<bool>;
};

}  // namespace perhaps
