// Promise: a counting Bloom filter never answers *no* to a stored key, however many others were inserted and erased;
// erase undoes insert, counter by counter, until one is stuck; the plain filter frozen from it gives the same answers.
// Would notice: a counter that wraps, goes below zero or overflows into its neighbour, a probe that hits one twice.
#include "perhaps/counting_bloom.h"

#include <cmath>
#include <cstdio>

#include "support/multiset_model.h"
#include "support/no_false_negatives.h"
#include "support/statistics.h"

namespace perhaps::test {
namespace {

using L = CountingLayout;
using Table = std::vector<std::byte>;

bool same_filter(const CountingBloom& a, const CountingBloom& b) { return same_bytes(a.bytes(), b.bytes()); }

bool has(CountingShape s, const Table& t, std::uint64_t h) { return L::may_contain<detail::isa::Here>(s, t.data(), h); }
bool empty(const Table& t) {
  return std::ranges::all_of(t, [](std::byte b) { return b == std::byte{0}; });
}

// Positions of the counters of a key in the table, from the text of the header.
std::vector<std::uint64_t> counters_of(CountingShape s, std::uint64_t h) {
  std::vector<std::uint64_t> result;
  const std::uint64_t low = h % 0x100000000;
  const std::uint64_t r = h * 0xe7037ed1a0b428dbu / 0x100000000;
  for (std::uint64_t i = 0; i < s.probes + s.guards; ++i) {
    const std::uint64_t lane = ((low * 0x9e3779b1 % 0x100000000 >> 29) + i) % 8;
    std::uint64_t c = low * kSalt[lane] % 0x100000000 >> 28;
    if (i >= 8) c = (c + 1 + ((r * kSalt[lane] % 0x100000000 >> 16) * 15 >> 16)) % 16;
    result.push_back(high_product(h, s.lines) * 128 + lane * 16 + c);
  }
  return result;
}

unsigned counter(const Table& t, std::uint64_t at) { return std::to_integer<unsigned>(t[at / 2]) >> at % 2 * 4 & 15u; }

// The counters equal those of a std::map, for every probe count.
TEST(Counting, LayoutIsThatOfTheHeader) {
  for (std::uint32_t probes = 1; probes <= 16; ++probes) {
    for (const std::uint32_t guards : {0u, 1u, 16 - probes}) {
      if (probes + guards > 16) continue;
      const CountingShape s{7, probes, guards};
      Table t(s.bytes());
      std::vector<unsigned> expected(s.lines * 128);
      for (std::uint64_t i = 0; i < 200; ++i) {
        const std::uint64_t h = Stream{probes}.at(i % 150);
        const auto at = counters_of(s, h);
        ASSERT_EQ(std::set<std::uint64_t>(at.begin(), at.end()).size(), at.size()) << "no counter twice";
        bool all = true;
        for (std::size_t p = 0; p < probes; ++p) all &= expected[at[p]] != 0;
        ASSERT_EQ(has(s, t, h), all);
        ASSERT_EQ(L::insert(s, t.data(), h), all ? Inserted::present : Inserted::added);
        for (const std::uint64_t p : at) expected[p] = std::min(15u, expected[p] + 1);
      }
      for (std::uint64_t p = 0; p < expected.size(); ++p) ASSERT_EQ(counter(t, p), expected[p]);
      for (std::uint64_t i = 0; i < 400; ++i) {
        const std::uint64_t h = Stream{probes}.at(i);
        const auto at = counters_of(s, h);
        bool all = true;
        bool stuck = false;
        for (const std::uint64_t p : at) all &= expected[p] != 0, stuck |= expected[p] == 15;
        ASSERT_EQ(L::erase(s, t.data(), h), !all ? Erased::absent : stuck ? Erased::kept : Erased::removed);
        if (!all) continue;
        for (const std::uint64_t p : at) expected[p] -= expected[p] < 15;
      }
      for (std::uint64_t p = 0; p < expected.size(); ++p) ASSERT_EQ(counter(t, p), expected[p]);
    }
  }
}

TEST(Counting, NoFalseNegatives) {
  std::uint64_t turn = 0;
  const auto run = [&](const char* name, const auto& keys) {
    using K = typename std::remove_cvref_t<decltype(keys)>::value_type;
    for (const std::uint64_t n : {0u, 1u, 2u, 10u, 63u, 64u, 65u, 300u, 11'500u}) {
      SCOPED_TRACE(std::string(name) + ", " + std::to_string(n) + " keys");
      constexpr double kRates[] = {0.01, 0.1, 0.3, 1e-3, 1e-4};
      CountingBloom filter(
          GuardedRequest{.keys = n, .fpr = kRates[turn % 5], .guard_bits = static_cast<std::uint32_t>(turn % 3)},
          Hash(turn));
      const auto some = std::span<const K>(keys).first(n);
      const auto digests = digests_of(filter.hasher(), std::vector<K>(some.begin(), some.end()));
      switch (turn++ % 4) {
        case 0:
          for (const K& key : some) filter.insert(key);
          break;
        case 1:
          for (const auto& d : digests) filter.insert(d);
          break;
        case 2:
          filter.insert(some);
          break;
        default:
          filter.insert(std::span<const Digest<Hash>>(digests));
          break;
      }
      expect_all_perhaps(filter, some, std::span<const Digest<Hash>>(digests));
      CountingBloom plain = frozen(filter);
      expect_all_perhaps(plain, some, std::span<const Digest<Hash>>(digests));
      std::vector<std::uint64_t> words;  // a digest may carry a tag
      for (const auto& d : digests) words.push_back(d.word());
      std::vector<std::uint64_t> answers(n / 64 + 1);
      Unaligned copy(filter.bytes());
      const CountingBloomView unaligned = *CountingBloomView::over(copy.bytes(), filter.shape(), filter.hasher());
      for (const CountingBloomView& view : {filter.view(), unaligned, plain.view()}) {
        for (const bool ahead : {false, true}) {
          std::ranges::fill(answers, 0);
          detail::query_batch<L>(view.shape(), view.bytes().data(), {.words = words.data(), .count = n, .ahead = ahead},
                                 answers.data());
          ASSERT_EQ(count_ones(answers), n);
        }
      }
    }
  };
  for (const auto& pattern : kIntegerPatterns) run(pattern.name, keys_of(pattern, 11'500));
  for (const auto& pattern : kTextPatterns) run(pattern.name, Texts(pattern, 11'500).views);
}

// Single lookups and batches, counters and the plain filter frozen from them: all give the same answers.
TEST(Counting, AllFormsAnswerAlike) {
  for (std::uint32_t probes = 1; probes <= 16; ++probes) {
    CountingBloom filter(CountingShape{11, probes, (16 - probes) / 3});
    for (std::uint64_t i = 0; i < 120; ++i) filter.insert(i);
    const CountingBloom plain = frozen(filter);
    EXPECT_EQ(plain.byte_size() * 4, filter.byte_size());
    std::vector<std::uint64_t> digests(2000), answers(digests.size() / 64 + 1);
    for (std::uint64_t i = 0; i < digests.size(); ++i) digests[i] = filter.hasher()(i).word();
    for (const CountingBloomView& view : {filter.view(), plain.view()}) {
      for (const bool ahead : {false, true}) {
        detail::query_batch<L>(view.shape(), view.bytes().data(),
                               {.words = digests.data(), .count = digests.size(), .ahead = ahead}, answers.data());
        for (std::uint64_t i = 0; i < digests.size(); ++i) {
          ASSERT_EQ(answers[i / 64] >> i % 64 & 1, filter.may_contain(i)) << probes;
          ASSERT_EQ(plain.may_contain(i), filter.may_contain(i));
        }
      }
    }
  }
}

// Nothing can be erased from a plain filter, and erase reports that; inserting still works.
TEST(Counting, FrozenKeepsEverything) {
  CountingBloom filter(Request{.keys = 1000});
  for (std::uint64_t i = 0; i < 1000; ++i) filter.insert(i);
  CountingBloom plain = frozen(filter);
  const std::vector<std::byte> before(plain.bytes().begin(), plain.bytes().end());
  for (std::uint64_t i = 0; i < 1000; ++i) EXPECT_EQ(plain.erase(i), Erased::kept);
  EXPECT_TRUE(same_bytes(before, plain.bytes()));
  EXPECT_FALSE(plain.needs_rebuild());
  for (std::uint64_t i = 1000; i < 1100; ++i) plain.insert(i), filter.insert(i);
  EXPECT_TRUE(same_filter(plain, frozen(filter)));
  EXPECT_TRUE(same_filter(plain, frozen(plain)));
}

TEST(Counting, IsAMultiset) {
  for (const CountingShape s : {CountingShape{100, 7}, CountingShape{33, 3, 2}, CountingShape{200, 8, 8}}) {
    Table t(s.bytes());
    const ChurnResult r = churn<L>(s, t.data(),
                                   {.seed = s.lines,
                                    .operations = 333'333,
                                    .universe = s.lines * 20,
                                    .most_keys = s.lines * 10,
                                    .most_copies = 2});
    EXPECT_EQ(r.false_negatives, 0u);
    EXPECT_EQ(r.not_removed, 0u) << "with so few keys no counter reaches 15 (with these seeds)";
    EXPECT_TRUE(empty(t)) << "erasing everything leaves the empty table";
  }
}

// Overfull, so that counters stick all the time: still no false negative, and only stuck counters remain.
TEST(Counting, IsAMultisetWhileCountersStick) {
  const CountingShape s{20, 6, 1};
  Table t(s.bytes());
  const ChurnResult r =
      churn<L>(s, t.data(), {.seed = 3, .operations = 300'000, .universe = 4000, .most_keys = 6000, .most_copies = 20});
  EXPECT_EQ(r.false_negatives, 0u);
  EXPECT_GT(r.not_removed, 0u);
  std::uint64_t stuck = 0;
  for (std::uint64_t at = 0; at < s.lines * 128; ++at) {
    ASSERT_TRUE(counter(t, at) == 0 || counter(t, at) == 15);
    stuck += counter(t, at) == 15;
  }
  EXPECT_GT(stuck, 0u);
  EXPECT_TRUE(L::needs_rebuild(s, t.data()));
}

TEST(Counting, StuckCountersAreKept) {
  CountingBloom filter(CountingShape{50, 8});
  for (int i = 0; i < 14; ++i) filter.insert("often");
  EXPECT_EQ(filter.keys(), 14u);
  EXPECT_FALSE(filter.needs_rebuild());
  for (int i = 0; i < 14; ++i) EXPECT_EQ(filter.erase("often"), Erased::removed);
  EXPECT_EQ(filter.erase("often"), Erased::absent);
  for (int i = 0; i < 20; ++i) filter.insert("often");
  EXPECT_EQ(filter.keys(), 15u) << "a lower bound now";
  for (int i = 0; i < 20; ++i) EXPECT_EQ(filter.erase("often"), Erased::kept);
  EXPECT_TRUE(filter.may_contain("often"));
  EXPECT_TRUE(filter.needs_rebuild()) << "only stuck counters remain";
  for (std::uint64_t i = 0; i < 500; ++i) filter.insert(i);
  EXPECT_FALSE(filter.needs_rebuild()) << "eight of thousands";
}

// into += other is the filter of both multisets, byte for byte, unless a counter is stuck; then it stays stuck.
TEST(Counting, UniteAdds) {
  for (const std::uint64_t keys : {300u, 5000u}) {  // the second overfull
    const CountingShape s{30, 7, 1};
    CountingBloom a(s), b(s), both(s);
    for (std::uint64_t i = 0; i < keys; ++i) {
      (i % 3 == 0 ? a : b).insert(i);
      both.insert(i);
    }
    ASSERT_TRUE(merge(a, b));
    EXPECT_TRUE(same_bytes(a.bytes(), both.bytes()));
    CountingBloom plain = frozen(b);
    const auto frozen_both = frozen(both);
    ASSERT_TRUE(merge(plain, frozen_both));
    EXPECT_TRUE(same_filter(plain, frozen(both)));
  }
  CountingBloom a(CountingShape{30, 7, 1});
  const CountingBloom without_guards(CountingShape{30, 7, 0});
  const CountingBloom with_another_seed(a.shape(), Hash(1));
  EXPECT_FALSE(merge(a, without_guards));
  EXPECT_FALSE(merge(a, with_another_seed));
  const auto frozen_a = frozen(a);
  EXPECT_FALSE(merge(a, frozen_a));
}

TEST(Counting, ForKeysKeepsItsPromise) {
  for (const std::uint64_t n : {1u, 50u, 1000u, 10'000'000u}) {
    for (const double fpr : {0.3, 0.1, 0.01, 1e-3, 1e-4}) {
      for (const std::uint32_t guard : {0u, 1u, 4u, 8u}) {
        const auto s = CountingShape::for_keys({.keys = n, .fpr = fpr, .guard_bits = guard});
        ASSERT_TRUE(s.valid());
        const double keys = static_cast<double>(n);
        EXPECT_LE(s.fpr(keys), fpr) << n << ' ' << guard;
        EXPECT_LE(s.wrong_erase(keys), fpr * std::ldexp(1.0, -static_cast<int>(guard))) << n << ' ' << fpr;
      }
      // No other probe count needs fewer lines.
      const auto s = CountingShape::for_keys({.keys = n, .fpr = fpr});
      for (std::uint32_t probes = 1; probes <= 16 && s.lines > 20; ++probes) {
        EXPECT_GT((CountingShape{s.lines - 1 - s.lines / 1000, probes}.fpr(static_cast<double>(n))), fpr);
      }
    }
    const auto s = CountingShape::for_keys({.keys = n, .bits_per_key = 40});
    EXPECT_LE(s.bytes(), n * 5 + 64);
    const auto guarded = CountingShape::for_keys({.keys = n, .bits_per_key = 60, .guard_bits = 2});
    const double keys = static_cast<double>(n);
    EXPECT_LE(guarded.wrong_erase(keys), guarded.fpr(keys) / 4 + 1e-15);
  }
}

TEST(Counting, ShapeFromNumbers) {
  const CountingShape s{12'345, 7, 2, 1};
  EXPECT_EQ(*CountingShape::from(s.numbers()), s);
  using Numbers = std::vector<std::uint64_t>;
  for (const Numbers& bad :
       {Numbers{}, Numbers{1, 7, 0}, Numbers{1, 7, 0, 4, 0}, Numbers{0, 7, 0, 4}, Numbers{UINT64_MAX, 7, 0, 4},
        Numbers{1, 0, 0, 4}, Numbers{1, 17, 0, 4}, Numbers{1, 8, 9, 4}, Numbers{1, 8, UINT64_MAX, 4},
        Numbers{1, 8, 0, 2}, Numbers{1, (std::uint64_t{1} << 32) + 7, 0, 4}}) {
    EXPECT_FALSE(CountingShape::from(bad));
  }
}

// Filters of random digests with seeds 1, 2, .., each queried with absent keys: the rate and the share of wrong erases
// match the model.
void expect_rate(CountingShape s, std::uint64_t n, std::uint64_t filters, std::uint64_t queries) {
  Mean rate, erased;
  std::vector<std::uint64_t> digests(queries), answers(queries / 64 + 1);
  for (std::uint64_t seed = 1; seed <= filters; ++seed) {
    Table t(s.bytes());
    for (std::uint64_t i = 0; i < n; ++i) L::insert(s, t.data(), Stream{seed}.at(i));
    for (std::uint64_t i = 0; i < queries; ++i) digests[i] = Stream{seed}.at(n + i);
    detail::query_batch<L>(s, t.data(), {.words = digests.data(), .count = queries, .ahead = true}, answers.data());
    rate.add(static_cast<double>(count_ones(answers)) / static_cast<double>(queries));
    if (s.guards == 0) continue;
    std::uint64_t wrong = 0;
    for (const std::uint64_t h : digests) {
      if (L::erase(s, t.data(), h) == Erased::absent) continue;
      ++wrong;
      L::insert(s, t.data(), h);  // restores the table: no counter is near 15
    }
    erased.add(static_cast<double>(wrong) / static_cast<double>(queries));
  }
  const auto expect = [&](const char* what, double model, const Mean& m) {
    std::printf("  %6llu lines, %2u + %u counters, %5.1f keys a line, %s: model %.4e   measured %.4e   z %+.1f\n",
                static_cast<unsigned long long>(s.lines), s.probes, s.guards,
                static_cast<double>(n) / static_cast<double>(s.lines), what, model, m.value(),
                (m.value() - model) / m.error());
    EXPECT_NEAR(m.value(), model, kSigmas * m.error());
  };
  expect("rate", s.fpr(static_cast<double>(n)), rate);
  if (s.guards != 0) expect("wrong erases", s.wrong_erase(static_cast<double>(n)), erased);
}

TEST(Counting, RatesMatchTheModel) {
  expect_rate({1, 5}, 12, 2000, 2000);
  expect_rate({3, 8}, 30, 2000, 2000);
  expect_rate({100, 3}, 3000, 100, 10'000);
  expect_rate({101, 6}, 1000, 100, 20'000);
  expect_rate({2000, 8}, 16'000, 20, 100'000);
  expect_rate({999, 11}, 6000, 40, 100'000);
  expect_rate({500, 16}, 3000, 40, 100'000);
  expect_rate({300, 4, 2}, 3000, 50, 40'000);
  expect_rate({300, 6, 4}, 2000, 50, 40'000);
  expect_rate({200, 9, 3}, 2000, 50, 40'000);
}

TEST(Counting, RegularKeysKeepTheModel) {
  for (const IntegerPattern& pattern : kIntegerPatterns) {
    if (std::string_view(pattern.name) == "duplicates") continue;
    const CountingShape s{1000, 7};
    Mean rate;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      CountingBloom filter(s, Hash(seed));
      for (std::uint64_t i = 0; i < 10'000; ++i) filter.insert(pattern.key(i));
      std::uint64_t perhaps = 0;
      for (std::uint64_t i = 10'000; i < 60'000; ++i) perhaps += filter.may_contain(pattern.key(i));
      rate.add(static_cast<double>(perhaps) / 50'000);
    }
    EXPECT_NEAR(rate.value(), s.fpr(10'000), kSigmas * rate.error()) << pattern.name;
  }
}

// Any bytes are a filter; nothing outside of them is touched (the sanitizers check).
TEST(Counting, HostileBytes) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    const Stream random{seed};
    CountingShape s{1 + random.at(0) % 9, static_cast<std::uint32_t>(1 + random.at(1) % 16), 0,
                    seed % 2 == 0 ? 1u : 4u};
    s.guards = static_cast<std::uint32_t>(random.at(2) % (17 - s.probes));
    std::vector<std::byte> bytes(s.bytes());
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(random.at(10 + i));
    auto span = CountingBloomSpan::over(bytes, s);
    ASSERT_TRUE(span);
    for (std::uint64_t i = 0; i < 500; ++i) {
      span->insert(i);
      EXPECT_TRUE(span->may_contain(i));
      span->erase(i + 250);
    }
    span->keys();
    span->needs_rebuild();
    frozen<Hash>(*span);
    EXPECT_FALSE(CountingBloomView::over(std::span(bytes).first(s.bytes() - 1), s));
  }
}

TEST(Counting, GoldenBytes) {
  std::string now;
  for (const CountingShape s : {CountingShape{40, 7}, CountingShape{37, 5, 3}, CountingShape{64, 16}}) {
    Table t(s.bytes());
    for (std::uint64_t i = 0; i < s.lines * 12; ++i) L::insert(s, t.data(), Stream{1}.at(i));
    for (std::uint64_t i = 0; i < s.lines * 12; i += 5) L::erase(s, t.data(), Stream{1}.at(i));
    Table plain(s.bytes() / 4);
    CountingLayout::freeze(s, t.data(), plain.data());
    char line[100];
    std::snprintf(line, sizeof line, "%u + %u: %llu keys, %016llx, plain %016llx\n", s.probes, s.guards,
                  static_cast<unsigned long long>(L::keys(s, t.data())),
                  static_cast<unsigned long long>(Hash(0)(Bytes(t)).value),
                  static_cast<unsigned long long>(Hash(0)(Bytes(plain)).value));
    now += line;
  }
  EXPECT_EQ(now,
            "7 + 0: 384 keys, 1be5e0da19906041, plain b35c1abdec1abb69\n"
            "5 + 3: 355 keys, 702d158648bd5dbc, plain e6ba61b97b8a513a\n"
            "16 + 0: 614 keys, 61d0a5e71280bef7, plain 964be5caa228bcfe\n");
}

}  // namespace
}  // namespace perhaps::test
