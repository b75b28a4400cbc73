// Many filters queried at once: which of these tables, servers or shards may have this key?
//
//   FilterSet set;                                     newest first
//   for (const auto& table : tables) set.add(*table.filter);
//   set.may_contain(key, answers);                     bit i: filter i says *perhaps*
//   set.find(key, [&](std::size_t i) { return tables[i].get(key, value); });       stops at the first hit
//
// The key is hashed once. Filters of any family take its digest (DigestProbe), filters of tables take it with the key
// (FilterBlock), and each is prefetched some filters before it is probed, so that the cache misses overlap. Filters
// that hash differently are refused: one digest would mean different things to them. Foreign formats have a hash of
// their own and are refused as well.
//
// A tree has more tables than a lookup can need: those whose range of keys does not cover the key are left out.
//
//   set.find(key, choices, counters, read)             choices: {which filter, for which level it counts}
//
// Hundreds of sets of similar size are queried faster in slices: set_index.h.
#pragma once
#include <algorithm>
#include <cassert>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "perhaps/any_filter.h"
#include "perhaps/engine/counters.h"
#include "perhaps/engine/filter_block.h"

namespace perhaps {

class FilterSet {
 public:
  // Appends. `filter` must outlive the set. An error leaves the set unchanged.
  PERHAPS_API Result<void> add(const AnyFilter& filter);
  // Of a table: whole keys, full or partitioned. A damaged one is taken, and answers *perhaps*.
  PERHAPS_API Result<void> add(const FilterBlock& filter);

  // How many filters it has.
  std::size_t size() const noexcept { return probes_.size(); }
  // How many words one key's answers take.
  std::size_t words() const noexcept { return (probes_.size() + 63) / 64; }
  // Of all its filters; none while it is empty, or has damaged ones only.
  const std::optional<AnyHasher>& hasher() const noexcept { return hasher_; }

  // Bit i % 64 of answers[i / 64] belongs to filter i.  REQUIRES: answers.size() >= words()
  PERHAPS_API void may_contain(Bytes key, std::span<std::uint64_t> answers) const noexcept;
  // Up to kBatch keys: bit j of answers[i] is what filter i says of keys[j].  REQUIRES: answers.size() >= size()
  PERHAPS_API void may_contain(std::span<const Bytes> keys, std::span<std::uint64_t> answers) const noexcept;

  // The read path: queries in order, and for each *perhaps* calls read(i) -> bool, until one answers true. Returns
  // which, or size().
  template <class Read>
  std::size_t find(Bytes key, Read read) const {
    return first(key, size(), all, [&](std::size_t i, bool perhaps) { return perhaps && read(i); });
  }
  // The same with counters, filter i being level i: read(i, bytes) -> bool adds the bytes it has read to `bytes`.
  // REQUIRES: counters.levels() >= size()
  template <class Read>
  std::size_t find(Bytes key, ReadCounters& counters, Read read) const {
    assert(counters.levels() >= size());
    return first(key, size(), all, [&](std::size_t i, bool perhaps) { return counted(counters, i, i, perhaps, read); });
  }
  // The same over some of the filters, in the order of `choices`. Returns which choice, or choices.size().
  // REQUIRES: the filters are of this set, the levels of the counters
  struct Choice {
    std::size_t filter;
    std::size_t level;
  };
  template <class Read>
  std::size_t find(Bytes key, std::span<const Choice> choices, ReadCounters& counters, Read read) const {
    return first(
        key, choices.size(), [choices](std::size_t i) { return choices[i].filter; },
        [&](std::size_t i, bool perhaps) {
          return counted(counters, choices[i].level, choices[i].filter, perhaps, read);
        });
  }

 private:
  // Filters between prefetch and probe: as many misses as a core can have in flight.
  static constexpr std::size_t kAhead = 16;

  static std::size_t all(std::size_t i) noexcept { return i; }

  // Calls use(i, answer) for the filters filter_of(0), .. until it returns true. Returns that i, or `count`.
  template <class FilterOf, class Use>
  std::size_t first(Bytes key, std::size_t count, FilterOf filter_of, Use use) const {
    std::uint64_t digest = 0;
    if (hasher_) hash_many(*hasher_, std::span(&key, 1), std::span(&digest, 1));
    const auto probe = [&](std::size_t i) -> const Probe& { return probes_[filter_of(i)]; };
    for (std::size_t i = 0; i < std::min(kAhead, count); ++i) probe(i).prefetch(key, digest);
    for (std::size_t i = 0; i < count; ++i) {
      if (i + kAhead < count) probe(i + kAhead).prefetch(key, digest);
      if (use(i, probe(i).may_contain(key, digest))) return i;
    }
    return count;
  }

  template <class Read>
  static bool counted(ReadCounters& counters, std::size_t level, std::size_t filter, bool perhaps, Read& read) {
    if (!perhaps) {
      counters.no(level);
      return false;
    }
    std::uint64_t bytes = 0;
    const bool hit = read(filter, bytes);
    hit ? counters.found(level, bytes) : counters.false_positive(level, bytes);
    return hit;
  }

  // One of the two.
  struct Probe {
    const DigestProbe* filter = nullptr;
    const FilterBlock* block = nullptr;

    void prefetch(Bytes key, std::uint64_t digest) const noexcept {
      block != nullptr ? block->prefetch(key, digest) : filter->prefetch(digest);
    }
    bool may_contain(Bytes key, std::uint64_t digest) const noexcept {
      return block != nullptr ? block->may_contain(key, digest) : filter->may_contain(std::span(&digest, 1)) != 0;
    }
  };
  Result<void> take(const Probe& probe, const AnyHasher& hasher);

  std::vector<Probe> probes_;
  std::optional<AnyHasher> hasher_;
};

}  // namespace perhaps
