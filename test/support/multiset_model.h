// Compares a filter that erases with an exact multiset: random inserts, erases and queries.
#pragma once
#include <gtest/gtest.h>

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "perhaps/filter.h"
#include "support/keys.h"

namespace perhaps::test {

struct Churn {
  std::uint64_t seed;
  std::uint64_t operations;
  std::uint64_t universe;       // number of keys to draw from
  std::uint64_t most_keys;      // in the filter at once
  std::uint64_t most_copies;    // of one key
  std::uint64_t check_all = 8;  // how often every stored key is looked up
};

// Erases only stored keys, as a caller must. Counts stored keys that are answered *no*, erases that did not remove, and
// inserts that returned `full`.
struct ChurnResult {
  std::uint64_t false_negatives = 0;
  std::uint64_t not_removed = 0;
  std::uint64_t full = 0;
};

template <class L>
ChurnResult churn(typename L::Shape shape, std::byte* table, const Churn& c) {
  struct Copies {
    std::uint64_t key;
    std::uint64_t count;
  };
  ChurnResult result;
  std::vector<Copies> in;  // in any order, so that one can be drawn at random
  std::unordered_map<std::uint64_t, std::size_t> where;
  std::uint64_t total = 0;
  const Stream random{c.seed};
  const Stream digests{c.seed + 1000};
  const auto has = [&](std::uint64_t key) {
    return L::template may_contain<detail::isa::Here>(shape, table, digests.at(key));
  };
  for (std::uint64_t i = 0; i < c.operations; ++i) {
    const std::uint64_t r = random.at(i);
    // In waves: mostly inserts, then mostly erases, so that the filter fills and empties in turn.
    const bool rising = (i / (2 * c.most_keys)) % 2 == 0;
    const std::uint64_t dice = r % 16;
    if (dice < 2) {  // a query
      const std::uint64_t key = (r >> 8) % c.universe;
      if (where.contains(key)) result.false_negatives += !has(key);
    } else if ((dice < 11) == rising) {
      const std::uint64_t key = (r >> 8) % c.universe;
      const auto found = where.find(key);
      if (total >= c.most_keys || (found != where.end() && in[found->second].count >= c.most_copies)) continue;
      if (L::insert(shape, table, digests.at(key)) == Inserted::full) {
        ++result.full;
        continue;
      }
      ++total;
      if (found != where.end()) {
        ++in[found->second].count;
      } else {
        where.emplace(key, in.size());
        in.push_back({key, 1});
      }
      result.false_negatives += !has(key);
    } else if (!in.empty()) {
      const std::size_t at = (r >> 8) % in.size();
      const std::uint64_t key = in[at].key;
      result.not_removed += L::erase(shape, table, digests.at(key)) != Erased::removed;
      --total;
      if (--in[at].count == 0) {
        where.erase(key);
        if (at + 1 != in.size()) {
          in[at] = in.back();
          where[in[at].key] = at;
        }
        in.pop_back();
      }
    }
    if ((i + 1) % (c.operations / c.check_all) == 0) {
      for (const Copies& copies : in) result.false_negatives += !has(copies.key);
    }
  }
  for (const Copies& copies : in) {
    for (std::uint64_t i = 0; i < copies.count; ++i) {
      result.false_negatives += !has(copies.key);
      result.not_removed += L::erase(shape, table, digests.at(copies.key)) != Erased::removed;
    }
  }
  return result;
}

}  // namespace perhaps::test
