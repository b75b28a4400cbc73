// Law one: every inserted key answers *perhaps*, for every kind of insert and every kind of lookup.
#pragma once
#include <gtest/gtest.h>

#include <bit>
#include <optional>

#include "support/families.h"
#include "support/kernels.h"
#include "support/keys.h"

namespace perhaps::test {

inline std::uint64_t count_ones(std::span<const std::uint64_t> words) {
  std::uint64_t ones = 0;
  for (const std::uint64_t word : words) ones += static_cast<unsigned>(std::popcount(word));
  return ones;
}

// Fills `filter` with a kind of insert that depends on `turn`: one key, one digest, many of either, shared.
template <class F, class K>
void insert_somehow(F& filter, std::span<const K> keys, std::span<const Digest<typename F::hasher_type>> digests,
                    std::uint64_t turn) {
  const auto rows = kernel::instruction_sets();
  const kernel::InstructionSet& before = kernel::active();
  kernel::use(*rows[turn / 5 % rows.size()]);
  switch (turn % 5) {
    case 0:
      for (const K& key : keys) filter.insert(key);
      break;
    case 1:
      for (const auto& d : digests) filter.insert(d);
      break;
    case 2:
      filter.insert(keys);
      break;
    case 3:
      filter.insert(digests);
      break;
    default:
      filter.shared().insert(digests);
      break;
  }
  kernel::use(before);
}

// Counts the answers *no* for every kind of lookup, and expects none.
template <class F, class K>
void expect_all_perhaps(F& filter, std::span<const K> keys, std::span<const Digest<typename F::hasher_type>> digests) {
  using View = typename F::View;
  const std::size_t n = keys.size();
  std::uint64_t no = 0;
  for (std::size_t i = 0; i < n; ++i) {
    no += !filter.may_contain(digests[i]);
    no += !filter.template may_contain<detail::isa::Portable>(digests[i]);
    no += !filter.may_contain(keys[i]);
    if constexpr (BitLayout<typename F::layout>) no += !filter.shared().may_contain(digests[i]);
  }
  EXPECT_EQ(no, 0u) << "single lookups";

  Unaligned copy(filter.bytes());
  const View unaligned = *View::over(copy.bytes(), filter.shape(), filter.hasher());
  no = 0;
  for (const auto& d : digests) no += !unaligned.may_contain(d);
  EXPECT_EQ(no, 0u) << "single lookups in an unaligned view";

  std::vector<std::uint64_t> answers(n / kBatch + 1);
  with_every_kernel([&](const kernel::InstructionSet& row) {
    std::uint64_t perhaps = 0;
    for (std::size_t from = 0; from < n; from += kBatch) {
      const std::uint64_t mask = filter.may_contain(digests.subspan(from, std::min(kBatch, n - from)));
      perhaps += static_cast<unsigned>(std::popcount(mask));
    }
    EXPECT_EQ(perhaps, n) << "masks, " << row.name;
    const auto column = [&](const char* form, const View& view, auto column_of) {
      std::ranges::fill(answers, 0);
      view.may_contain(column_of, std::span(answers));
      EXPECT_EQ(count_ones(answers), n) << form << ", " << row.name;
    };
    column("column of digests", filter, digests);
    column("column of keys", filter, keys);
    column("column of digests, unaligned", unaligned, digests);
    column("column of keys, unaligned", unaligned, keys);
  });
}

// Builds a filter of `keys` (sized for them, at a rate that depends on `turn`) and looks all of them up.
template <class F, class K>
void expect_no_false_negatives(std::span<const K> keys, std::span<const Digest<typename F::hasher_type>> digests,
                               typename F::hasher_type hasher, std::uint64_t turn) {
  constexpr double kRates[] = {0.01, 0.2, 1e-3, 1e-5};
  F filter(Request{.keys = keys.size(), .fpr = kRates[turn / 3 % 4]}, hasher);
  insert_somehow(filter, keys, digests, turn);
  expect_all_perhaps(filter, keys, digests);
}

// All patterns with up to `most` keys; `sizes` calls back with every number of keys to try.
template <class F, class Sizes>
void every_pattern(std::uint64_t most, Sizes sizes) {
  const auto hasher = hasher_of<typename F::hasher_type>(3);
  std::uint64_t turn = 0;
  const auto run = [&](const char* name, const auto& keys) {
    using K = typename std::remove_cvref_t<decltype(keys)>::value_type;
    const auto digests = digests_of(hasher, keys);
    sizes([&](std::uint64_t n) {
      SCOPED_TRACE(std::string(name) + ", " + std::to_string(n) + " keys");
      expect_no_false_negatives<F>(std::span<const K>(keys).first(n), std::span(digests).first(n), hasher, turn++);
    });
  };
  for (const auto& pattern : kIntegerPatterns) run(pattern.name, keys_of(pattern, most));
  for (const auto& pattern : kTextPatterns) run(pattern.name, Texts(pattern, most).views);
}

}  // namespace perhaps::test
