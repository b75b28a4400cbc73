// What it means to be a filter. This page is the design; the rest is arithmetic.
//
//   key --hasher--> digest --layout--> positions --bits--> "perhaps" or "no"
//
// `may_contain` errs in one direction only: false is a proof, true is a guess. Nothing on the query path can fail,
// allocate or throw, so an engine may call it under a lock. Const calls on one filter are safe from many threads.
//
// Each family (family.h) comes as three types with one probe loop:
//   XView  borrows const bytes (a mapped file, a block of a table) and is trivially copyable
//   XSpan  borrows writable bytes (memory of a host, a chunk being loaded) and inserts into them
//   X      owns its memory
// and, where insert only sets bits, as XShared: insert and query from many threads at once without a lock.
//
// The concepts build on each other, and each adds one ability:
//
//   Probed           has a hasher, a size and prefetch: all that a read path over many structures needs
//   +- Filter        answers a key with *perhaps* or *no*
//      +- FlatFilter       is one run of bytes and a shape
//      +- MutableFilter    takes keys one at a time
//         +- ErasableFilter     forgets keys again
//   +- ValueMap      answers a key with its value
//   +- ExactSet      answers a key of a known universe with *in* or *out*, and is always right
//
// A structure with another kind of answer is not a Filter but a concept of its own on top of Probed, so that nothing
// takes one for the other: a map answers a digest with a value (and a wrong value for an absent key), an exact set is
// right for every key of a known universe (and for no other), and a range filter answers an interval of keys, which has
// no digest at all: it has a byte_size, no hasher, and stands beside Probed (Ranged, range.h).
#pragma once
#include <concepts>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "perhaps/family.h"
#include "perhaps/hash.h"

namespace perhaps {

// A batch is at most one machine word of answers: no output buffer, nothing to alias, and hits are a popcount.
inline constexpr std::size_t kBatch = 64;

// What insert found. `present`: the key looked present before, which may be a false positive. `full`: the filter has no
// room and is unchanged.
enum class Inserted : std::uint8_t { added, present, full };
// What erase found. `kept`: the key was erased, but a saturated counter still answers *perhaps*.
enum class Erased : std::uint8_t { removed, absent, kept };

// What is looked up by digest.
template <class F>
concept Probed = requires(const F f, Digest<typename F::hasher_type> d) {
  requires Hasher<typename F::hasher_type>;
  { f.hasher() }
  noexcept->std::same_as<typename F::hasher_type>;
  { f.byte_size() }
  noexcept->std::same_as<std::uint64_t>;
  // Loads what a later lookup of d will touch into the cache. An LSM read hashes a key once, prefetches in the filter
  // of every level, and only then probes.
  { f.prefetch(d) }
  noexcept;
};

// Answers *perhaps* or *no*. Every owner and every view over someone else's bytes is one.
template <class F>
concept Filter = Probed<F> &&
    requires(const F f, Digest<typename F::hasher_type> d, std::span<const Digest<typename F::hasher_type>> digests,
             std::span<std::uint64_t> answers) {
  { f.may_contain(d) }
  noexcept->std::same_as<bool>;
  // Bit i of the answer belongs to digests[i].  REQUIRES: digests.size() <= kBatch
  { f.may_contain(digests) }
  noexcept->std::same_as<std::uint64_t>;
  // A column: bit i % 64 of answers[i / 64] belongs to digests[i]; the unused bits of the last word become 0. Tables
  // larger than the L2 cache are prefetched ahead of the probes, across batches: the fastest way to look up many keys.
  // REQUIRES: answers.size() * kBatch >= digests.size()
  { f.may_contain(digests, answers) }
  noexcept;
};

// Answers *in* or *out*, without an error for the keys of the universe that it was built for. The answer for any other
// key means nothing.
template <class F>
concept ExactSet = Probed<F> &&
    requires(const F f, Digest<typename F::hasher_type> d, std::span<const Digest<typename F::hasher_type>> digests,
             std::span<std::uint64_t> answers) {
  { f.contains(d) }
  noexcept->std::same_as<bool>;
  // A column, as Filter's.
  { f.contains(digests, answers) }
  noexcept;
};

// Is one run of bytes together with a shape: what a file or a host stores.
template <class F>
concept FlatFilter = Filter<F> && requires(const F f) {
  { f.bytes() }
  noexcept->std::same_as<Bytes>;
  { f.shape() }
  noexcept->std::same_as<typename F::Shape>;
};

// Takes keys one at a time, at any time (memtables, Redis).
template <class F>
concept MutableFilter = Filter<F> &&
    requires(F f, Digest<typename F::hasher_type> d, std::span<const Digest<typename F::hasher_type>> many) {
  { f.insert(d) } -> std::same_as<Inserted>;
  f.insert(many);
};

// Forgets keys again. A key that was never inserted but looks present cannot be told apart from one that was, and
// erasing it harms another key: the header of each such family states with what probability.
template <class F>
concept ErasableFilter = MutableFilter<F> && requires(F f, Digest<typename F::hasher_type> d) {
  { f.erase(d) } -> std::same_as<Erased>;
  // Erases have left it worse than a fresh filter of the same keys would be.
  { f.needs_rebuild() } -> std::same_as<bool>;
};

// The numbers from low to high, both included.
struct Interval {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  friend constexpr bool operator==(const Interval&, const Interval&) = default;
};

// Answers a range of keys: false is a proof that none of them is in it.
template <class F>
concept Ranged = requires(const F f, Interval range, std::span<const Interval> ranges,
                          std::span<std::uint64_t> answers) {
  { f.byte_size() }
  noexcept->std::same_as<std::uint64_t>;
  { f.may_contain_any(range) }
  noexcept->std::same_as<bool>;
  // Bit i % 64 of answers[i / 64] belongs to ranges[i]; the unused bits of the last word become 0.
  // REQUIRES: answers.size() * kBatch >= ranges.size()
  { f.may_contain_any(ranges, answers) }
  noexcept;
};

// Answers with the value that a key was given, or, for a key that was given none, with any value or nothing.
template <class M>
concept ValueMap = Probed<M> &&
    requires(const M m, Digest<typename M::hasher_type> d, std::span<const Digest<typename M::hasher_type>> digests,
             std::span<std::uint64_t> values, std::span<std::uint64_t> found) {
  { m.find(d) }
  noexcept->std::same_as<std::optional<std::uint64_t>>;
  // A column: values[i], and bit i % 64 of found[i / 64], belong to digests[i].
  { m.find(digests, values, found) }
  noexcept;
};

}  // namespace perhaps
