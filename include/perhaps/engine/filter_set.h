// Many filters queried at once: which of these tables, servers or shards may have this key?
//
//   FilterSet set;                                     newest first
//   for (const auto& table : tables) set.add(*table.filter);
//   set.may_contain(key, answers);                     bit i: filter i says *perhaps*
//   set.find(key, [&](std::size_t i) { return tables[i].get(key, value); });       stops at the first hit
//
// The key is hashed once. Filters of any family take its digest (DigestProbe), and each is prefetched some filters
// before it is probed, so that the cache misses overlap. Filters that hash differently are refused: one digest
// would mean different things to them. Foreign formats have a hash of their own and are refused as well.
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

namespace perhaps {

class FilterSet {
 public:
  // Appends. `filter` must outlive the set. An error leaves the set unchanged.
  PERHAPS_API Result<void> add(const AnyFilter& filter);

  // How many filters it has.
  std::size_t size() const noexcept { return probes_.size(); }
  // How many words one key's answers take.
  std::size_t words() const noexcept { return (probes_.size() + 63) / 64; }
  // Of all its filters; none while it is empty.
  const std::optional<AnyHasher>& hasher() const noexcept { return hasher_; }

  // Bit i % 64 of answers[i / 64] belongs to filter i.  REQUIRES: answers.size() >= words()
  PERHAPS_API void may_contain(Bytes key, std::span<std::uint64_t> answers) const noexcept;
  // Up to kBatch keys: bit j of answers[i] is what filter i says of keys[j].  REQUIRES: answers.size() >= size()
  PERHAPS_API void may_contain(std::span<const Bytes> keys, std::span<std::uint64_t> answers) const noexcept;

  // The read path: queries in order, and for each *perhaps* calls read(i) -> bool, until one answers true. Returns
  // which, or size().
  template <class Read>
  std::size_t find(Bytes key, Read read) const {
    return first(key, [&](std::size_t i, bool perhaps) { return perhaps && read(i); });
  }
  // The same with counters, filter i being level i: read(i, bytes) -> bool adds the bytes it has read to `bytes`.
  // REQUIRES: counters.levels() >= size()
  template <class Read>
  std::size_t find(Bytes key, ReadCounters& counters, Read read) const {
    assert(counters.levels() >= size());
    return first(key, [&](std::size_t i, bool perhaps) {
      if (!perhaps) {
        counters.no(i);
        return false;
      }
      std::uint64_t bytes = 0;
      const bool hit = read(i, bytes);
      hit ? counters.found(i, bytes) : counters.false_positive(i, bytes);
      return hit;
    });
  }

 private:
  // Filters between prefetch and probe: as many misses as a core can have in flight.
  static constexpr std::size_t kAhead = 16;

  // Calls use(i, answer) until it returns true. Returns that i, or size().
  template <class Use>
  std::size_t first(Bytes key, Use use) const {
    if (probes_.empty()) return 0;
    std::uint64_t digest = 0;
    hash_many(*hasher_, std::span(&key, 1), std::span(&digest, 1));
    for (std::size_t i = 0; i < std::min(kAhead, probes_.size()); ++i) probes_[i]->prefetch(digest);
    for (std::size_t i = 0; i < probes_.size(); ++i) {
      if (i + kAhead < probes_.size()) probes_[i + kAhead]->prefetch(digest);
      if (use(i, probes_[i]->may_contain(std::span(&digest, 1)) != 0)) return i;
    }
    return probes_.size();
  }

  std::vector<const DigestProbe*> probes_;
  std::optional<AnyHasher> hasher_;
};

}  // namespace perhaps
