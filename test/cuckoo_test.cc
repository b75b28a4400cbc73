// Promise: a cuckoo filter holds capacity() keys, never answers *no* to a key it holds, forgets exactly what is erased,
// and is unchanged when insert returns `full`. Would notice: a fingerprint that is lost or doubled when it moves, a
// bucket that overlaps its neighbour, a guard that does not move with its fingerprint, a load that is not reached.
#include "perhaps/cuckoo.h"

#include <cmath>
#include <cstdio>
#include <map>

#include "support/multiset_model.h"
#include "support/no_false_negatives.h"
#include "support/statistics.h"

namespace perhaps::test {
namespace {

using L = CuckooLayout;
using Table = std::vector<std::byte>;

bool has(CuckooShape s, const Table& t, std::uint64_t h) { return L::may_contain<detail::isa::Here>(s, t.data(), h); }
bool empty(const Table& t) {
  return std::ranges::all_of(t, [](std::byte b) { return b == std::byte{0}; });
}

// The layout from the text of the header, bit by bit, sharing no line with the code.
struct Slow {
  CuckooShape s;
  static constexpr std::uint64_t k32 = 0x100000000;
  std::uint64_t fingerprint(std::uint64_t h) const {
    const std::uint64_t x = (h ^ h / k32) % k32 * 0xcc9e2d51 % k32;
    return 1 + x * ((std::uint64_t{1} << s.fingerprint_bits) - 1) / k32;
  }
  std::uint64_t guard(std::uint64_t h) const {
    const std::uint64_t y = (h ^ h / k32) * 0x9e6c63d0876a9a47u;
    return high_product((y ^ y / 0x20000000) * 0xd6e8feb86659fd93u, std::uint64_t{1} << s.guard_bits);
  }
  std::uint64_t first(std::uint64_t h) const { return high_product(h, s.buckets); }
  std::uint64_t second(std::uint64_t h) const {
    const std::uint64_t z = fingerprint(h) * 0x9e3779b1 % k32;
    const std::uint64_t sum = high_product((z ^ z / 0x8000) * 0x85ebca6b % k32 * k32, s.buckets);
    return (sum + s.buckets - first(h)) % s.buckets;
  }
  std::uint64_t bits(const Table& t, std::uint64_t from, std::uint64_t count) const {
    std::uint64_t value = 0;
    for (std::uint64_t i = 0; i < count; ++i) value |= std::uint64_t{bit_at(t, from + i)} << i;
    return value;
  }
  std::uint64_t slot(const Table& t, std::uint64_t bucket, std::uint64_t i) const {
    return bits(t, 512 + (bucket * 4 + i) * s.fingerprint_bits, s.fingerprint_bits);
  }
  std::uint64_t guard_at(const Table& t, std::uint64_t bucket, std::uint64_t i) const {
    const std::uint64_t start = 64 + (s.buckets * 4 * s.fingerprint_bits + 7) / 8;
    return bits(t, start * 8 + (bucket * 4 + i) * s.guard_bits, s.guard_bits);
  }
  // How often the fingerprint and guard of h are in its two buckets.
  std::uint64_t copies(const Table& t, std::uint64_t h) const {
    std::uint64_t found = 0;
    for (const std::uint64_t bucket : std::set{first(h), second(h)}) {
      for (std::uint64_t i = 0; i < 4; ++i) {
        found += slot(t, bucket, i) == fingerprint(h) && (s.guard_bits == 0 || guard_at(t, bucket, i) == guard(h));
      }
    }
    return found;
  }
};

TEST(Cuckoo, LayoutIsThatOfTheHeader) {
  for (std::uint32_t f = CuckooShape::kMinFingerprint; f <= CuckooShape::kMaxFingerprint; ++f) {
    for (const std::uint64_t buckets : {1u, 2u, 7u, 64u, 101u}) {
      for (const std::uint32_t guard : {0u, 1u, 5u, 16u}) {
        const CuckooShape s{buckets, f, guard};
        const Slow slow{s};
        Table t(s.bytes());
        const std::uint64_t n = s.capacity();
        for (std::uint64_t i = 0; i < n; ++i) ASSERT_NE(L::insert(s, t.data(), Stream{f}.at(i)), Inserted::full);
        std::uint64_t lying = L::stashed(t.data());
        for (std::uint64_t b = 0; b < buckets; ++b) {
          for (std::uint64_t i = 0; i < 4; ++i) lying += slow.slot(t, b, i) != 0;
        }
        ASSERT_EQ(lying, n);
        ASSERT_EQ(L::keys(s, t.data()), n);
        for (std::uint64_t i = 0; i < n; ++i) {
          const std::uint64_t h = Stream{f}.at(i);
          ASSERT_TRUE(slow.copies(t, h) > 0 || L::in_stash(t.data(), h)) << f << ' ' << buckets << ' ' << guard;
        }
      }
    }
  }
}

TEST(Cuckoo, TheOtherBucketOfTheOtherIsTheFirst) {
  for (const std::uint64_t buckets :
       std::initializer_list<std::uint64_t>{1, 2, 3, 10, 4096, 999'983, CuckooShape::kMaxBuckets}) {
    for (std::uint64_t i = 0; i < 2000; ++i) {
      const CuckooShape s{buckets, static_cast<std::uint32_t>(6 + i % 27)};
      const auto p = L::place_of(s, Stream{buckets}.at(i));
      ASSERT_LT(p.first, buckets);
      ASSERT_LT(p.second, buckets);
      ASSERT_EQ(L::other_bucket(s, p.second, p.fingerprint), p.first);
      ASSERT_GE(p.fingerprint, 1u);
      ASSERT_LT(p.fingerprint, std::uint64_t{1} << s.fingerprint_bits);
    }
  }
}

// Every kind of insert and every kind of lookup, for integers and texts of all patterns.
TEST(Cuckoo, NoFalseNegatives) {
  std::uint64_t turn = 0;
  const auto run = [&](const char* name, const auto& keys) {
    using K = typename std::remove_cvref_t<decltype(keys)>::value_type;
    for (const std::uint64_t n : {0u, 1u, 2u, 3u, 10u, 63u, 64u, 65u, 300u, 11'500u}) {
      SCOPED_TRACE(std::string(name) + ", " + std::to_string(n) + " keys");
      constexpr double kRates[] = {0.01, 0.1, 0.0018, 1e-4, 1e-7};
      Cuckoo filter(
          GuardedRequest{.keys = n, .fpr = kRates[turn % 5], .guard_bits = static_cast<std::uint32_t>(turn % 3)},
          Hash(turn));
      const auto some = std::span<const K>(keys).first(n);
      const auto digests = digests_of(filter.hasher(), std::vector<K>(some.begin(), some.end()));
      switch (turn++ % 4) {
        case 0:
          for (const K& key : some) ASSERT_NE(filter.insert(key), Inserted::full);
          break;
        case 1:
          for (const auto& d : digests) ASSERT_NE(filter.insert(d), Inserted::full);
          break;
        case 2:
          ASSERT_EQ(filter.insert(some), n);
          break;
        default:
          ASSERT_EQ(filter.insert(std::span<const Digest<Hash>>(digests)), n);
          break;
      }
      ASSERT_EQ(filter.keys(), n);
      expect_all_perhaps(filter, some, std::span<const Digest<Hash>>(digests));
      std::vector<std::uint64_t> words;  // a digest may carry a tag
      for (const auto& d : digests) words.push_back(d.word());
      std::vector<std::uint64_t> answers(n / 64 + 1);
      Unaligned copy(filter.bytes());
      const CuckooView unaligned = *CuckooView::over(copy.bytes(), filter.shape(), filter.hasher());
      for (const CuckooView& view : {filter.view(), unaligned}) {
        for (const bool ahead : {false, true}) {
          std::ranges::fill(answers, 0);
          detail::query_batch<L>(view.shape(), view.bytes().data(), {.words = words.data(), .count = n, .ahead = ahead},
                                 answers.data());
          ASSERT_EQ(count_ones(answers), n);
        }
      }
    }
  };
  for (const auto& pattern : kIntegerPatterns) {
    if (std::string_view(pattern.name) != "duplicates") run(pattern.name, keys_of(pattern, 11'500));
  }
  for (const auto& pattern : kTextPatterns) run(pattern.name, Texts(pattern, 11'500).views);
}

// Single lookups, batches and prefetched batches give the same answers with every kernel, also for absent keys, with
// and without a stash.
TEST(Cuckoo, BatchesAnswerAsSingleLookups) {
  std::vector<std::uint64_t> digests(333);
  for (std::uint32_t f = CuckooShape::kMinFingerprint; f <= CuckooShape::kMaxFingerprint; ++f) {
    for (std::size_t i = 0; i < digests.size(); ++i) digests[i] = Stream{f}.at(i);
    const CuckooShape s{23, f};
    for (const std::uint64_t n : {60u, 120u}) {  // the second until it is full
      Table t(s.bytes());
      for (std::uint64_t i = 0; i < n; ++i) L::insert(s, t.data(), digests[i]);
      with_every_kernel([&](const kernel::InstructionSet& row) {
        for (const std::size_t count : {1u, 64u, 65u, 127u, 128u, 333u}) {
          for (const bool ahead : {false, true}) {
            std::vector<std::uint64_t> answers(count / 64 + 1, ~std::uint64_t{0});
            detail::query_batch<L>(s, t.data(), {.words = digests.data(), .count = count, .ahead = ahead},
                                   answers.data());
            for (std::size_t i = 0; i < (count + 63) / 64 * 64; ++i) {
              const bool wanted = i < count && has(s, t, digests[i]);
              ASSERT_EQ(answers[i / 64] >> i % 64 & 1, wanted) << row.name << ' ' << f << ' ' << count << ' ' << i;
            }
          }
        }
      });
    }
  }
}

// The kernels compute the same places as place_of, for tables of any size.
TEST(Cuckoo, KernelsPlaceAlike) {
  using Places = kernel::CuckooPlaces;
  std::vector<std::uint64_t> digests(64);
  const auto sizes = {std::uint64_t{1},          std::uint64_t{2},       std::uint64_t{1000},
                      std::uint64_t{0xffffffff}, std::uint64_t{1} << 32, CuckooShape::kMaxBuckets};
  for (const std::uint64_t buckets : sizes) {
    for (std::uint32_t f = CuckooShape::kMinFingerprint; f <= CuckooShape::kMaxFingerprint; ++f) {
      const CuckooShape s{buckets, f};
      for (std::size_t i = 0; i < 64; ++i) digests[i] = i == 0 ? 0 : i == 1 ? ~std::uint64_t{0} : Stream{f}.at(i);
      with_every_kernel([&](const kernel::InstructionSet& row) {
        Places places;
        row.cuckoo_place(s, digests.data(), &places);
        for (std::size_t i = 0; i < 64; ++i) {
          const auto p = L::place_of(s, digests[i]);
          ASSERT_EQ(places.fingerprint[i], p.fingerprint) << row.name;
          ASSERT_EQ(places.first[i], p.first * f / (2 - f % 2)) << row.name;
          ASSERT_EQ(places.second[i], p.second * f / (2 - f % 2)) << row.name;
        }
      });
    }
  }
}

// 1e6 operations on three shapes, up to the capacity; the slow test does 1e7.
TEST(Cuckoo, IsAMultiset) {
  for (const CuckooShape s : {CuckooShape{1000, 12}, CuckooShape{77, 7, 3}, CuckooShape{301, 21, 16}}) {
    Table t(s.bytes());
    const ChurnResult r = churn<L>(s, t.data(),
                                   {.seed = s.buckets,
                                    .operations = 333'333,
                                    .universe = s.capacity() * 2,
                                    .most_keys = s.capacity(),
                                    .most_copies = 3});
    EXPECT_EQ(r.false_negatives, 0u);
    EXPECT_EQ(r.not_removed, 0u);
    // Copies crowd into two buckets, so the table may be full a little earlier: 1 insert in 1000 may fail.
    EXPECT_LE(r.full, 333u);
    EXPECT_TRUE(empty(t)) << "erasing everything leaves the empty table";
  }
}

// Keys beyond the capacity: the stash is nearly always in use.
TEST(Cuckoo, IsAMultisetWhileItOverflows) {
  for (const CuckooShape s : {CuckooShape{1, 8}, CuckooShape{3, 6}, CuckooShape{16, 9, 2}}) {
    Table t(s.bytes());
    const ChurnResult r = churn<L>(s, t.data(),
                                   {.seed = s.buckets,
                                    .operations = 200'000,
                                    .universe = s.slots() * 4,
                                    .most_keys = s.slots() * 3,
                                    .most_copies = 9});
    EXPECT_EQ(r.false_negatives, 0u);
    EXPECT_EQ(r.not_removed, 0u);
    EXPECT_GT(r.full, 0u);
    EXPECT_TRUE(empty(t));
  }
}

TEST(Cuckoo, FullIsUnchanged) {
  for (const CuckooShape s : {CuckooShape{1, 12}, CuckooShape{50, 8, 4}, CuckooShape{2000, 13}, CuckooShape{100, 24}}) {
    Table t(s.bytes());
    std::uint64_t full = 0;
    std::uint64_t in = 0;
    for (std::uint64_t i = 0; full < 100; ++i) {
      const Table before = t;
      if (L::insert(s, t.data(), Stream{9}.at(i)) == Inserted::full) {
        ++full;
        ASSERT_TRUE(t == before);
      } else {
        ++in;
      }
    }
    EXPECT_EQ(L::keys(s, t.data()), in);
    EXPECT_GE(in, s.capacity());
    EXPECT_LE(in, s.slots() + CuckooShape::kStash);
  }
}

TEST(Cuckoo, InsertManyStopsWhereItIsFull) {
  const CuckooShape s{40, 12};
  std::vector<std::uint64_t> digests(400);
  for (std::size_t i = 0; i < digests.size(); ++i) digests[i] = Stream{4}.at(i);
  for (const bool ahead : {false, true}) {
    Table many(s.bytes());
    const std::size_t in =
        detail::insert_batch<L>(s, many.data(), {.words = digests.data(), .count = digests.size(), .ahead = ahead});
    EXPECT_LT(in, digests.size());
    EXPECT_EQ(L::keys(s, many.data()), in);
    Table single(s.bytes());
    for (std::size_t i = 0; i < in; ++i) L::insert(s, single.data(), digests[i]);
    EXPECT_TRUE(many == single);
  }
}

// Nine copies fit, or five if both buckets are the same; then insert returns `full`, whatever the load.
TEST(Cuckoo, CopiesAreBounded) {
  const CuckooShape s{1000, 12};
  for (std::uint64_t key = 0; key < 100; ++key) {
    const std::uint64_t h = Stream{5}.at(key);
    Table t(s.bytes());
    const auto p = L::place_of(s, h);
    const std::uint64_t most = p.first == p.second ? 5 : 9;
    for (std::uint64_t i = 0; i < most; ++i) {
      ASSERT_EQ(L::insert(s, t.data(), h), i == 0 ? Inserted::added : Inserted::present);
      ASSERT_EQ(L::count(s, t.data(), h), i + 1);
    }
    ASSERT_EQ(L::insert(s, t.data(), h), Inserted::full);
    ASSERT_TRUE(L::needs_rebuild(s, t.data()));
    for (std::uint64_t i = most; i > 0; --i) {
      ASSERT_EQ(L::count(s, t.data(), h), i);
      ASSERT_EQ(L::erase(s, t.data(), h), Erased::removed);
      ASSERT_FALSE(L::needs_rebuild(s, t.data()));
    }
    ASSERT_EQ(L::erase(s, t.data(), h), Erased::absent);
    ASSERT_TRUE(empty(t));
  }
}

// capacity() distinct keys fit: every size up to 300 keys 30 times, and some larger ones. The slow test tries more.
TEST(Cuckoo, HoldsItsCapacity) {
  const auto fill = [](CuckooShape s, std::uint64_t seed) {
    Table t(s.bytes());
    std::uint64_t full = 0;
    for (std::uint64_t i = 0; i < s.capacity(); ++i) {
      full += L::insert(s, t.data(), Stream{seed}.at(i)) == Inserted::full;
    }
    return full;
  };
  std::uint64_t full = 0;
  for (std::uint64_t buckets = 1; buckets < 90; ++buckets) {
    for (std::uint64_t seed = 1; seed <= 30; ++seed) {
      full += fill({buckets, static_cast<std::uint32_t>(6 + seed % 8)}, seed * 1000 + buckets);
    }
  }
  for (const std::uint64_t buckets : {1000u, 4097u, 33'333u, 100'000u}) {
    for (const std::uint32_t f : {6u, 8u, 12u, 17u}) full += fill({buckets, f}, buckets + f);
  }
  EXPECT_EQ(full, 0u);
  for (std::uint64_t buckets = 100; buckets < 1'000'000; buckets = buckets * 5 / 3) {
    const double promised = static_cast<double>(CuckooShape{buckets, 12}.capacity());
    EXPECT_GE(promised / static_cast<double>(4 * buckets), buckets < 1000 ? 0.93 : 0.955);
  }
}

TEST(Cuckoo, ForKeysKeepsItsPromise) {
  for (const std::uint64_t n : {1u, 5u, 100u, 12'345u, 10'000'000u}) {
    for (const double fpr : {0.3, 0.05, 0.01, 0.0019, 1e-3, 1e-5, 1e-8}) {
      for (const std::uint32_t guard : {0u, 7u}) {
        const auto s = CuckooShape::for_keys({.keys = n, .fpr = fpr, .guard_bits = guard});
        ASSERT_TRUE(s.valid());
        EXPECT_LE(s.fpr(static_cast<double>(n)), fpr);
        EXPECT_GE(s.capacity(), n);
        EXPECT_EQ(s.guard_bits, guard);
        // No narrower fingerprint needs fewer bytes.
        if (s.fingerprint_bits > CuckooShape::kMinFingerprint) {
          CuckooShape less{s.buckets, s.fingerprint_bits - 1, guard};
          while (less.bytes() + 64 < s.bytes()) ++less.buckets;
          EXPECT_TRUE(less.bytes() >= s.bytes() || less.capacity() < n || less.fpr(static_cast<double>(n)) > fpr);
        }
      }
    }
    for (const double bits : {4.0, 9.0, 12.8, 20.0, 60.0}) {
      const auto s = CuckooShape::for_keys({.keys = n, .bits_per_key = bits});
      ASSERT_TRUE(s.valid());
      const double budget = static_cast<double>(n) * bits / 8;
      const bool room = static_cast<double>(CuckooShape{1, 6}.bytes()) < budget;
      EXPECT_TRUE(!room || static_cast<double>(s.bytes()) <= budget + 1);
      EXPECT_TRUE(n < 10'000 || bits < 7 || s.capacity() >= n);
    }
  }
  const auto bar = CuckooShape::for_keys({.keys = 10'000'000, .fpr = 0.002});
  EXPECT_EQ(bar.fingerprint_bits, 12u);
  EXPECT_LE(static_cast<double>(bar.bytes()) * 8 / 1e7, 12.8);
}

TEST(Cuckoo, ShapeFromNumbers) {
  const CuckooShape s{12'345, 13, 4};
  EXPECT_EQ(*CuckooShape::from(s.numbers()), s);
  using Numbers = std::vector<std::uint64_t>;
  for (const Numbers& bad : {Numbers{}, Numbers{1, 12}, Numbers{1, 12, 0, 0}, Numbers{0, 12, 0}, Numbers{1, 5, 0},
                             Numbers{1, 33, 0}, Numbers{1, 12, 17}, Numbers{CuckooShape::kMaxBuckets + 1, 12, 0},
                             Numbers{1, (std::uint64_t{1} << 32) + 12, 0}, Numbers{UINT64_MAX, 12, 0}}) {
    EXPECT_FALSE(CuckooShape::from(bad));
  }
}

struct Rate {
  CuckooShape shape;
  double load;
};

// The rate matches the model: `filters` tables (seeds 1, 2, ..) of random keys, each queried with absent keys.
void expect_rate(CuckooShape s, double load, std::uint64_t filters, std::uint64_t queries) {
  const auto n = static_cast<std::uint64_t>(static_cast<double>(s.slots()) * load);
  Mean rate;
  std::vector<std::uint64_t> digests(queries), answers(queries / 64 + 1);
  for (std::uint64_t seed = 1; seed <= filters; ++seed) {
    Table t(s.bytes());
    for (std::uint64_t i = 0; i < n; ++i) ASSERT_NE(L::insert(s, t.data(), Stream{seed}.at(i)), Inserted::full);
    for (std::uint64_t i = 0; i < queries; ++i) digests[i] = Stream{seed}.at(n + i);
    detail::query_batch<L>(s, t.data(), {.words = digests.data(), .count = queries, .ahead = true}, answers.data());
    rate.add(static_cast<double>(count_ones(answers)) / static_cast<double>(queries));
  }
  const double model = s.fpr(static_cast<double>(n));
  std::printf("  %7llu buckets, %2u bits, load %.2f   model %.4e   measured %.4e   z %+.1f\n",
              static_cast<unsigned long long>(s.buckets), s.fingerprint_bits, load, model, rate.value(),
              (rate.value() - model) / rate.error());
  EXPECT_NEAR(rate.value(), model, kSigmas * rate.error());
}

TEST(Cuckoo, RateMatchesTheModel) {
  expect_rate({20, 6}, 0.8, 1000, 2000);
  expect_rate({500, 7}, 0.95, 100, 10'000);
  expect_rate({1000, 8}, 0.95, 100, 10'000);
  expect_rate({1024, 9}, 0.5, 100, 10'000);
  expect_rate({997, 10}, 0.1, 100, 20'000);
  expect_rate({20'001, 12}, 0.95, 10, 200'000);
  expect_rate({2000, 16}, 0.95, 20, 500'000);
  expect_rate({500, 18}, 0.9, 20, 500'000);
}

// Integers under the default hash, whose low bits are weak: the fingerprints of regular keys are as good as random.
TEST(Cuckoo, RegularKeysKeepTheModel) {
  for (const IntegerPattern& pattern : kIntegerPatterns) {
    if (std::string_view(pattern.name) == "duplicates") continue;
    for (const CuckooShape s : {CuckooShape{5000, 8}, CuckooShape{3001, 12}}) {
      const std::uint64_t n = s.capacity();
      Mean rate;
      for (std::uint64_t seed = 1; seed <= 12; ++seed) {
        Cuckoo filter(s, Hash(seed));
        for (std::uint64_t i = 0; i < n; ++i) ASSERT_NE(filter.insert(pattern.key(i)), Inserted::full);
        std::uint64_t perhaps = 0;
        for (std::uint64_t i = n; i < n + 100'000; ++i) perhaps += filter.may_contain(pattern.key(i));
        rate.add(static_cast<double>(perhaps) / 100'000);
      }
      const double model = s.fpr(static_cast<double>(n));
      // Twelve values estimate their own error poorly: the binomial error is the lower bound.
      EXPECT_NEAR(rate.value(), model, kSigmas * std::max(rate.error(), binomial_error(model, 1.2e6))) << pattern.name;
    }
  }
}

// Erasing an absent key succeeds with probability fpr / 2^g with g guard bits, and fpr without. 300 tables x 20,000
// erases each; every success is undone.
TEST(Cuckoo, GuardsMakeErasingAbsentKeysRare) {
  for (const std::uint32_t guard : {0u, 1u, 3u, 6u}) {
    const CuckooShape s{200, 8, guard};
    const std::uint64_t n = s.capacity();
    constexpr std::uint64_t kErases = 20'000;
    Mean rate;
    for (std::uint64_t seed = 1; seed <= 300; ++seed) {
      Table full(s.bytes());
      for (std::uint64_t i = 0; i < n; ++i) L::insert(s, full.data(), Stream{seed}.at(i));
      Table t = full;
      std::uint64_t wrong = 0;
      for (std::uint64_t i = 0; i < kErases; ++i) {
        const Erased e = L::erase(s, t.data(), Stream{seed}.at(n + i));
        ASSERT_NE(e, Erased::kept);
        if (e == Erased::absent) continue;
        ++wrong;
        t = full;
      }
      ASSERT_TRUE(t == full) << "`absent` changes nothing";
      rate.add(static_cast<double>(wrong) / kErases);
    }
    const double model = s.wrong_erase(static_cast<double>(n));
    std::printf("  guard %u   model %.4e   measured %.4e   z %+.1f\n", guard, model, rate.value(),
                (rate.value() - model) / rate.error());
    EXPECT_NEAR(rate.value(), model, kSigmas * rate.error());
    const double fpr = s.fpr(static_cast<double>(n));
    EXPECT_LE(model, std::ldexp(fpr * (1 + fpr), -static_cast<int>(guard)));
  }
}

// Two keys with the same fingerprint, the same pair of buckets and different guards: each erase removes its own.
TEST(Cuckoo, EqualFingerprintsWithDifferentGuards) {
  const CuckooShape s{5, 6, 8};
  std::map<std::tuple<std::uint64_t, std::uint64_t, std::uint64_t>, std::uint64_t> seen;
  std::uint64_t pairs = 0;
  for (std::uint64_t i = 0; pairs < 200; ++i) {
    const std::uint64_t h = Stream{6}.at(i);
    const auto p = L::place_of(s, h);
    const auto [at, fresh] =
        seen.try_emplace({p.fingerprint, std::min(p.first, p.second), std::max(p.first, p.second)}, h);
    if (fresh || L::guard_of(s, at->second) == L::guard_of(s, h)) continue;
    ++pairs;
    Table t(s.bytes());
    ASSERT_EQ(L::insert(s, t.data(), h), Inserted::added);
    ASSERT_EQ(L::erase(s, t.data(), at->second), Erased::absent);
    ASSERT_EQ(L::insert(s, t.data(), at->second), Inserted::present);
    ASSERT_EQ(L::erase(s, t.data(), h), Erased::removed);
    ASSERT_EQ(L::erase(s, t.data(), h), Erased::absent);
    ASSERT_TRUE(has(s, t, at->second));
    ASSERT_EQ(L::erase(s, t.data(), at->second), Erased::removed);
    ASSERT_TRUE(empty(t));
  }
}

// Whatever the bytes are, lookups, inserts and erases stay inside them (the sanitizers check), and an impossible head
// is refused.
TEST(Cuckoo, HostileBytes) {
  for (std::uint64_t seed = 1; seed <= 100; ++seed) {
    const Stream random{seed};
    const CuckooShape s{2 + random.at(0) % 70, static_cast<std::uint32_t>(6 + random.at(1) % 27),
                        static_cast<std::uint32_t>(random.at(2) % 17)};
    std::vector<std::byte> bytes(s.bytes());
    for (std::size_t i = 0; i < bytes.size(); ++i) bytes[i] = static_cast<std::byte>(random.at(10 + i));
    EXPECT_FALSE(CuckooView::over(bytes, s)) << "random counts";
    detail::store<std::uint64_t>(bytes.data(), 6 + random.at(3) % (s.slots() - 5));
    detail::store<std::uint64_t>(bytes.data() + 8, random.at(4) % 7);
    auto span = CuckooSpan::over(bytes, s);
    ASSERT_TRUE(span);
    for (std::uint64_t i = 0; i < 300; ++i) {
      const auto d = Digest<Hash>::made_by(Hash(), random.at(5000 + i));
      span->insert(d);
      span->may_contain(d);
      count(*span, d);
      span->erase(Digest<Hash>::made_by(Hash(), random.at(9000 + i)));
    }
    span->needs_rebuild();
    EXPECT_FALSE(CuckooView::over(std::span(bytes).first(s.bytes() - 1), s));
  }
}

// The bytes never change. Inserts and erases of fixed digests, beyond the first stashed ones.
TEST(Cuckoo, GoldenBytes) {
  std::string now;
  for (const CuckooShape s :
       {CuckooShape{250, 12}, CuckooShape{333, 9, 5}, CuckooShape{100, 25, 1}, CuckooShape{4, 6}}) {
    Table t(s.bytes());
    for (std::uint64_t i = 0; i < s.slots() + 5; ++i) L::insert(s, t.data(), Stream{1}.at(i));
    const std::uint64_t stashed = L::stashed(t.data());
    for (std::uint64_t i = 0; i < s.slots(); i += 7) L::erase(s, t.data(), Stream{1}.at(i));
    char line[100];
    std::snprintf(line, sizeof line, "%llu %u %u: %llu stashed, %llu keys, %016llx\n",
                  static_cast<unsigned long long>(s.buckets), s.fingerprint_bits, s.guard_bits,
                  static_cast<unsigned long long>(stashed), static_cast<unsigned long long>(L::keys(s, t.data())),
                  static_cast<unsigned long long>(Hash(0)(Bytes(t)).value));
    now += line;
  }
  EXPECT_EQ(now,
            "250 12 0: 6 stashed, 851 keys, 0aa41548cb7a3bef\n"
            "333 9 5: 6 stashed, 1139 keys, 356fc1b3b403c0ab\n"
            "100 25 1: 6 stashed, 339 keys, 63b51f3b339f2e33\n"
            "4 6 0: 5 stashed, 18 keys, 9f11f3fb8cbd43c3\n");
}

}  // namespace
}  // namespace perhaps::test
