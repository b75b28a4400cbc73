// Promise: a ribbon holds every digest it was built from, whatever they are, in the planned number of bytes, at the
// requested rate; every kernel answers as the layout in its header says; and no bytes lead a probe out of the table.
// Would notice: a key lost between the layers, an equation left unsolved, a bumped key looked up in the wrong layer, a
// byte that changes, a slot too many, a read outside the table (under ASan). Seeds are fixed; bounds are 5 sigma.
#include "perhaps/ribbon.h"

#include <cmath>
#include <numeric>

#include "build/ribbon_solver.h"
#include "support/kernels.h"
#include "support/sanitized.h"
#include "support/statistics.h"

namespace perhaps::test {
namespace {

using Digests = std::vector<std::uint64_t>;

Digests ascending(Digests digests) {
  std::ranges::sort(digests);
  digests.erase(std::unique(digests.begin(), digests.end()), digests.end());
  return digests;
}

Digests random_set(std::uint64_t seed, std::uint64_t keys) {
  Digests digests(keys);
  for (std::uint64_t i = 0; i < keys; ++i) digests[i] = Stream{seed}.at(i);
  return ascending(std::move(digests));
}

Ribbon built(const Digests& digests, const Request& request, const BuildOptions& options = {}) {
  std::vector<Digest<Hash>> typed(digests.size());
  std::ranges::transform(digests, typed.begin(), [](auto h) { return digest_with(Hash(), h); });
  auto filter = Ribbon::build(std::span<const Digest<Hash>>(typed), request, options);
  EXPECT_TRUE(filter) << filter.error().detail;
  return *std::move(filter);
}

std::uint64_t perhaps_of(const Ribbon& filter, const Digests& digests, bool ahead = false) {
  std::vector<std::uint64_t> answers(digests.size() / kBatch + 1);
  detail::query_batch<RibbonLayout>(filter.shape(), filter.bytes().data(),
                                    {.words = digests.data(), .count = digests.size(), .ahead = ahead}, answers.data());
  return count_ones(answers);
}

// For one shard.
bool is_every(const Ribbon& filter) {
  const std::byte* shard = filter.bytes().data() + filter.shape().front_bytes() + detail::directory_bytes(0);
  return filter.shape().tiny() ? shard[0] == std::byte{255} : shard[0] != std::byte{0};
}

// The layout again, from the text of its header: bit by bit, without words, vectors or packed places.
class Reference {
 public:
  Reference(RibbonShape shape, Bytes table) : shape_(shape), table_(table) {}

  bool may_contain(std::uint64_t h) const {
    std::uint64_t end = 0;
    for (std::uint64_t i = 0; i < shape_.fronts; ++i, h = mixed(h, 0) * kTimes[0]) {
      const std::uint64_t starts = shape_.starts[i];
      if (starts == 0) continue;
      const auto narrow = shape_.wide == 0
                              ? UINT64_MAX
                              : static_cast<std::uint64_t>(
                                    static_cast<detail::Wide>(starts) * ((std::uint64_t{1} << 32) - shape_.wide) >> 38);
      const std::uint64_t codes = end;
      const std::uint64_t blocks = (codes + (starts / 128 + 3) / 4 + 63) / 64 * 64;
      end = (blocks + 8 * words(starts / 64 + 1, narrow) + 63) / 64 * 64;
      const std::uint64_t start = high_product(h, starts);
      if (bumped(start, codes, 2)) continue;
      const std::uint64_t high = high_product(h, 0xd6e8feb86659fd93);
      return equal(start, blocks, narrow, (h * 0xd6e8feb86659fd93 ^ high) | 1, high);
    }
    if (shape_.rest == 0) return false;
    const std::uint64_t at = end + number(end, 8);
    if (shape_.rest <= 255) {
      const std::uint64_t slots = shape_.rest + (shape_.rest > 64);
      std::uint64_t extra = static_cast<std::uint64_t>(std::ceil(static_cast<double>(shape_.rest) * wide()));
      if (shape_.rest > 64 && shape_.wide != 0) extra = std::min(extra + 4, slots);
      return dense(8 * at + 16, slots, extra, number(at, 1), number(at + 1, 1), mixed(h, 0));
    }
    if (number(at, 1) == 1) return true;
    const std::uint64_t seed = number(at + 12, 4);
    const std::uint64_t a = mixed(h, seed);
    for (std::uint64_t layer = 0; layer < number(at + 1, 1); ++layer) {
      const std::uint64_t starts = number(at + 16 + 16 * layer, 4), narrow = number(at + 20 + 16 * layer, 4);
      const std::uint64_t blocks = number(at + 24 + 16 * layer, 4), codes = number(at + 28 + 16 * layer, 4);
      const std::uint64_t start = high_product(layer == 0 && seed == 0 ? h : a * kTimes[layer], starts);
      if (bumped(start, at + 8 * codes, starts < 512 ? 0 : starts < 4096 ? 1 : 2)) continue;
      const std::uint64_t t = a * 0xd6e8feb86659fd93;
      return equal(start, at + 8 * blocks, narrow, (t ^ t >> 32) | 1, a * 0xc2b2ae3d27d4eb4f >> 32);
    }
    return dense(8 * (at + 8 * number(at + 8, 4)), number(at + 4, 2), number(at + 6, 2), number(at + 2, 1),
                 number(at + 3, 1), a);
  }

 private:
  static constexpr std::uint64_t kTimes[8] = {0xa0761d6478bd642f, 0xe7037ed1a0b428db, 0x8ebc6af09c88c6e3,
                                              0x589965cc75374cc3, 0x1d8e4e27c47d124f, 0xeb44accab455d165,
                                              0xbf58476d1ce4e5b9, 0x94d049bb133111eb};
  static constexpr std::uint64_t kGolden = 0x9e3779b97f4a7c15;

  std::uint64_t words(std::uint64_t k, std::uint64_t narrow) const {
    return std::min(k, narrow) * shape_.columns + (k - std::min(k, narrow)) * (shape_.columns + 1);
  }
  bool bumped(std::uint64_t start, std::uint64_t codes, unsigned kind) const {
    const std::uint64_t size = std::uint64_t{32} << kind;
    const std::uint64_t code = number(codes + start / size / 4, 1) >> (start / size % 4 * 2) & 3;
    constexpr std::uint64_t kBumped[3][4] = {{0, 8, 16, 32}, {0, 16, 32, 64}, {0, 24, 48, 128}};
    return start % size < kBumped[kind][code];
  }
  bool equal(std::uint64_t start, std::uint64_t blocks, std::uint64_t narrow, std::uint64_t c,
             std::uint64_t fingerprint) const {
    for (std::uint64_t j = 0; j < shape_.columns + (start / 64 >= narrow); ++j) {
      bool sum = false;
      for (std::uint64_t i = 0; i < 64; ++i) {
        if ((c >> i & 1) == 0) continue;
        sum ^= bit(8 * (blocks + 8 * (words((start + i) / 64, narrow) + j)) + (start + i) % 64);
      }
      if (sum != ((fingerprint >> j & 1) != 0)) return false;
    }
    return true;
  }
  double wide() const { return static_cast<double>(shape_.wide) / 4294967296.0; }
  std::uint64_t number(std::uint64_t at, std::uint64_t bytes) const {
    std::uint64_t n = 0;
    for (std::uint64_t i = bytes; i-- > 0;) n = n << 8 | static_cast<std::uint64_t>(table_[at + i]);
    return n;
  }
  bool bit(std::uint64_t at) const { return (static_cast<unsigned>(table_[at / 8]) >> (at % 8) & 1) != 0; }
  static std::uint64_t mixed(std::uint64_t h, std::uint64_t seed) {
    const std::uint64_t u = h ^ seed;
    const std::uint64_t a = (u ^ u >> 32) * kGolden;
    return a ^ a >> 29;
  }
  static std::uint64_t mix(std::uint64_t z) {
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }
  bool dense(std::uint64_t first, std::uint64_t slots, std::uint64_t extra, std::uint64_t seed,
             std::uint64_t extra_seed, std::uint64_t a) const {
    if (slots == 0) return false;
    const std::uint64_t fingerprint = a * 0xc2b2ae3d27d4eb4f >> 32;
    for (std::uint64_t j = 0; j < shape_.columns; ++j) {
      bool sum = false;
      for (std::uint64_t i = 0; i < slots; ++i) {
        const std::uint64_t q = i / 64;
        const std::uint64_t in_chunk = std::min<std::uint64_t>(64, slots - 64 * q);
        const bool c = (mix(a + kGolden * (4 * seed + q + 1)) >> (i % 64) & 1) != 0;
        sum ^= c && bit(first + 64 * q * shape_.columns + j * in_chunk + i % 64);
      }
      if (sum != ((fingerprint >> j & 1) != 0)) return false;
    }
    if (extra == 0 || mix(a + kGolden * (1025 + extra_seed)) >> 32 >= shape_.wide) return true;
    bool sum = false;
    for (std::uint64_t i = 0; i < extra; ++i) {
      const bool c = (mix(a + kGolden * (4 * (512 + extra_seed) + i / 64 + 1)) >> (i % 64) & 1) != 0;
      sum ^= c && bit(first + slots * shape_.columns + i);
    }
    return sum == ((fingerprint >> shape_.columns & 1) != 0);
  }

  RibbonShape shape_;
  Bytes table_;
};

void expect_all(const Ribbon& filter, const Digests& digests) {
  std::uint64_t no = 0;
  for (const std::uint64_t h : digests) {
    no += !RibbonLayout::may_contain<detail::isa::Portable>(filter.shape(), filter.bytes().data(), h);
    no += !RibbonLayout::may_contain<detail::isa::Here>(filter.shape(), filter.bytes().data(), h);
  }
  EXPECT_EQ(no, 0u);
}

TEST(Ribbon, HoldsEveryKeyForEverySmallNumberOfThem) {
  constexpr double kRates[] = {0.01, 1.0 / 256, 0.3, 1e-3, 2.5e-7};
  const kernel::InstructionSet& best = *kernel::instruction_sets().back();
  for (std::uint64_t keys = 0; keys <= 2000; ++keys) {
    SCOPED_TRACE(std::to_string(keys) + " keys");
    const Digests digests = random_set(keys, keys);
    const Ribbon filter = built(digests, {.fpr = kRates[keys % 5]});
    ASSERT_EQ(filter.shape().keys, keys);
    ASSERT_FALSE(is_every(filter));
    kernel::use(*kernel::instruction_sets()[keys % kernel::instruction_sets().size()]);
    ASSERT_EQ(perhaps_of(filter, digests), keys);
    kernel::use(best);
    if (keys % 16 == 0) expect_all(filter, digests);
    ASSERT_TRUE(RibbonView::over(filter.bytes(), filter.shape()));
  }
}

TEST(Ribbon, HoldsEveryKeyOfLargeSets) {
  for (const std::uint64_t keys : {10'000, 100'000, 600'000, 1'200'000}) {
    for (const double fpr : {0.5, 0.01}) {
      SCOPED_TRACE(std::to_string(keys) + " keys");
      const Digests digests = random_set(keys, keys);
      const Ribbon filter = built(digests, {.fpr = fpr}, {.threads = 2});
      EXPECT_EQ(filter.shape().fronts, keys > 1'000'000 ? 2u : keys > 32'768 ? 1u : 0u);
      with_every_kernel(
          [&](const kernel::InstructionSet& row) { EXPECT_EQ(perhaps_of(filter, digests, true), keys) << row.name; });
      expect_all(filter, digests);
    }
  }
}

// Digests of a poor hash: the first front finds them all in a few buckets and is skipped; after it, they are spread.
TEST(Ribbon, HoldsDigestsThatAreNotSpread) {
  struct Pattern {
    const char* name;
    std::uint64_t (*digest)(std::uint64_t i);
  };
  constexpr Pattern kPatterns[] = {
      {"small integers", [](std::uint64_t i) { return i; }},
      {"high bits equal", [](std::uint64_t i) { return 0xabcdef0000000000 + Stream{3}.at(i) % 0x1000000000; }},
      {"multiples of 2^32", [](std::uint64_t i) { return i << 32; }},
      {"multiples of 2^46", [](std::uint64_t i) { return i << 46; }},
      {"two heaps", [](std::uint64_t i) { return (i % 2 << 63) + i; }},
      {"a heap among others", [](std::uint64_t i) { return i % 3 == 0 ? i : Stream{4}.at(i); }},
      {"the last ones", [](std::uint64_t i) { return UINT64_MAX - i; }},
  };
  for (const Pattern& pattern : kPatterns) {
    for (const std::uint64_t keys : {1, 2, 100, 300, 3'000, 100'000, 300'000}) {
      SCOPED_TRACE(std::string(pattern.name) + ", " + std::to_string(keys) + " keys");
      Digests digests(keys);
      for (std::uint64_t i = 0; i < keys; ++i) digests[i] = pattern.digest(i);
      digests = ascending(std::move(digests));
      const Ribbon filter = built(digests, {.fpr = 0.01});
      EXPECT_EQ(perhaps_of(filter, digests), digests.size());
      EXPECT_FALSE(is_every(filter));
      const Digests others = random_set(99, 2000);
      EXPECT_LT(perhaps_of(filter, others), 200u);
    }
  }
}

// As many fronts as there can be, all skipped: the words lie in one half for each of them.
TEST(Ribbon, HoldsDigestsThatNoFrontTakes) {
  Digests digests;
  for (std::uint64_t i = 0; digests.size() < 40'000; ++i) {
    std::uint64_t h = Stream{11}.at(i);
    const std::uint64_t first = h;
    bool in_one_half = true;
    for (std::uint32_t front = 0; front < RibbonShape::kMaxFronts; ++front) {
      in_one_half &= h >> 63 == 0;
      h = RibbonLayout::remixed(h);
    }
    if (in_one_half) digests.push_back(first);
  }
  digests = ascending(std::move(digests));
  for (const bool verify : {true, false}) {
    const Ribbon filter = built(digests, {.fpr = 0.01}, {.verify = verify});
    EXPECT_EQ(perhaps_of(filter, digests), digests.size());
    EXPECT_EQ(filter.shape().fronts, RibbonShape::kMaxFronts);
  }
}

TEST(Ribbon, EmptyAnswersNo) {
  const Ribbon filter = built({}, {.fpr = 0.5});
  EXPECT_EQ(perhaps_of(filter, random_set(1, 10'000)), 0u);
  EXPECT_EQ(filter.shape().fpr(0), 0);
}

TEST(Ribbon, EveryKernelAnswersAsTheHeaderSays) {
  for (const std::uint64_t keys : {3, 64, 65, 200, 300, 900, 5'000, 40'000, 1'200'000}) {
    for (const double columns : {1.0, 2.6, 3.0, 3.5, 4.0, 6.3, 7.0, 7.5, 8.0, 8.5, 13.3, 16.2, 24.0, 31.5, 32.0}) {
      if (keys == 1'200'000 && columns != 7.5 && columns != 8.0) continue;
      const Digests digests = random_set(keys, keys);
      const Ribbon filter = built(digests, {.fpr = std::exp2(-columns)});
      SCOPED_TRACE(std::to_string(keys) + " keys, " + std::to_string(columns) + " columns");
      const Reference reference(filter.shape(), filter.bytes());
      Digests queries = random_set(1, 300);
      for (std::size_t i = 0; i < digests.size(); i += digests.size() / 60 + 1) queries.push_back(digests[i]);
      queries.push_back(0);
      queries.push_back(UINT64_MAX);
      Unaligned copy(filter.bytes());
      std::vector<bool> wanted;
      for (const std::uint64_t h : queries) {
        wanted.push_back(reference.may_contain(h));
        ASSERT_EQ(RibbonLayout::may_contain<detail::isa::Portable>(filter.shape(), copy.bytes().data(), h),
                  wanted.back());
        ASSERT_EQ(RibbonLayout::may_contain<detail::isa::Here>(filter.shape(), copy.bytes().data(), h), wanted.back());
        RibbonLayout::prefetch(filter.shape(), filter.bytes().data(), h);
      }
      with_every_kernel([&](const kernel::InstructionSet& row) {
        for (const bool ahead : {false, true}) {
          std::vector<std::uint64_t> answers(queries.size() / kBatch + 1);
          detail::query_batch<RibbonLayout>(filter.shape(), copy.bytes().data(),
                                            {.words = queries.data(), .count = queries.size(), .ahead = ahead},
                                            answers.data());
          for (std::size_t i = 0; i < queries.size(); ++i) {
            ASSERT_EQ((answers[i / kBatch] >> (i % kBatch) & 1) != 0, wanted[i]) << row.name << ", query " << i;
          }
        }
      });
    }
  }
}

TEST(Ribbon, RateIsTheRequestedOne) {
  constexpr std::uint64_t kQueries = samples(2'000'000);
  Digests queries(kQueries);
  for (std::uint64_t i = 0; i < kQueries; ++i) queries[i] = Stream{77}.at(i);
  for (const std::uint64_t keys : {40, 200, 100'000, 300'000}) {
    for (const double fpr : {0.4, 0.1, 0.01, 1.0 / 256, 0.003, 1e-4}) {
      const Ribbon filter = built(random_set(5, keys), {.fpr = fpr});
      const double model = filter.shape().fpr(static_cast<double>(keys));
      EXPECT_LE(model, fpr);
      EXPECT_GT(model, fpr * (1 - 1e-6));
      const double measured = static_cast<double>(perhaps_of(filter, queries)) / kQueries;
      // Not above, and below only because of the one block in which the number of columns changes.
      EXPECT_NEAR(measured, model, kSigmas * binomial_error(model, kQueries) + (keys > 255 ? 0.01 * model : 0))
          << keys << " keys at " << fpr;
      EXPECT_LE(measured, fpr + kSigmas * binomial_error(fpr, kQueries));
    }
  }
}

// Deterministic: the bytes that a plan takes. 400 bytes are allowed for the header of a file.
TEST(Ribbon, IsNearTheLimit) {
  struct Bar {
    std::uint64_t keys;
    double fpr, over;
  };
  constexpr Bar kBars[] = {{1'000'000, 0.01, 1.02},   {1'000'000, 1e-3, 1.01}, {1'000'000, 1e-4, 1.012},
                           {100'000'000, 0.01, 1.02}, {10'000, 1e-3, 1.03},    {1000, 0.01, 1.13},
                           {100, 0.01, 1.26},         {36, 0.01, 1.9}};
  for (const Bar& bar : kBars) {
    const RibbonShape shape = RibbonShape::for_keys({.keys = bar.keys, .fpr = bar.fpr});
    const double header = bar.keys >= 1'000'000 ? 400 : 0;
    const double over = (static_cast<double>(shape.bytes()) + header) * 8 /
                        (static_cast<double>(bar.keys) * bits_per_key_limit(bar.fpr));
    EXPECT_LE(over, bar.over) << bar.keys << " keys at " << bar.fpr;
  }
  const Ribbon filter = built(random_set(8, 1'000'000), {.fpr = 0.01});
  EXPECT_LE(static_cast<double>(filter.byte_size() + 400) * 8 / (1e6 * bits_per_key_limit(0.01)), 1.02);
}

TEST(Ribbon, UsesTheBytesItIsGiven) {
  for (const std::uint64_t keys : {50, 1'000, 100'000}) {
    const RibbonShape by_bits = RibbonShape::for_keys({.keys = keys, .bits_per_key = 9});
    EXPECT_LE(by_bits.bytes(), keys * 9 / 8 + 1);
    EXPECT_GT(by_bits.bytes(), keys - 8);
    const RibbonShape by_bytes = RibbonShape::for_keys({.keys = keys, .bits_per_key = 9, .max_bytes = keys * 2});
    EXPECT_LE(by_bytes.bytes(), keys * 2);
    EXPECT_LT(by_bytes.fpr(1), by_bits.fpr(1));
  }
}

TEST(Ribbon, RefusesInvalidShapes) {
  const RibbonShape shape = RibbonShape::for_keys({.keys = 1000, .fpr = 0.01});
  auto numbers = shape.numbers();
  ASSERT_TRUE(RibbonShape::from(numbers));
  EXPECT_EQ(*RibbonShape::from(numbers), shape);
  const auto refused = [&](std::size_t i, std::uint64_t value) {
    auto changed = numbers;
    changed[i] = value;
    return !RibbonShape::from(changed);
  };
  EXPECT_TRUE(refused(0, 5));  // a tiny set has another number of bytes
  EXPECT_TRUE(refused(1, 0));
  EXPECT_TRUE(refused(1, 33));
  EXPECT_TRUE(refused(1, std::uint64_t{1} << 32 | 7));
  EXPECT_TRUE(refused(2, std::uint64_t{1} << 32));
  EXPECT_TRUE(refused(3, 1));
  EXPECT_TRUE(refused(3, 7));
  EXPECT_TRUE(refused(4, 0));
  EXPECT_TRUE(refused(4, 1001));
  EXPECT_TRUE(refused(4, UINT64_MAX - 7));
  EXPECT_FALSE(RibbonShape::from(std::vector<std::uint64_t>{1, 2, 3}));

  const RibbonShape fronted = RibbonShape::for_keys({.keys = 1'000'000, .fpr = 0.01});
  ASSERT_EQ(fronted.fronts, 2u);
  numbers = fronted.numbers();
  ASSERT_TRUE(RibbonShape::from(numbers));
  EXPECT_EQ(*RibbonShape::from(numbers), fronted);
  EXPECT_TRUE(refused(3, 0));
  EXPECT_TRUE(refused(3, 3));
  EXPECT_TRUE(refused(4, fronted.front_bytes()));
  EXPECT_TRUE(refused(6, 100));
  EXPECT_TRUE(refused(6, std::uint64_t{128} << 20));  // more than the bytes allow
  EXPECT_TRUE(refused(6, std::uint64_t{1} << 60));
}

// Random damage to head and directory either is refused or leaves a table that can be probed.
TEST(Ribbon, DamagedBytesCanBeProbedOrAreRefused) {
  std::uint64_t refused = 0, probed = 0;
  const Digests queries = random_set(2, 200);
  for (const std::uint64_t keys : {30, 2'000, 300'000}) {
    const Ribbon filter = built(random_set(keys, keys), {.fpr = 0.013});
    for (std::uint64_t turn = 0; turn < 3000; ++turn) {
      const Stream random{turn};
      // Of exactly this size, so that a read past the end is also past the allocation.
      const auto copy = std::make_unique<std::byte[]>(filter.byte_size());
      std::memcpy(copy.get(), filter.bytes().data(), filter.byte_size());
      for (std::uint64_t i = 0; i <= turn % 4; ++i) {
        const std::uint64_t directory = filter.shape().front_bytes();
        const std::uint64_t first = directory + (turn % 2 == 0 ? detail::directory_bytes(0) : 0);
        const std::uint64_t at = first + random.at(2 * i) % 96;
        if (at < filter.byte_size()) copy[at] = static_cast<std::byte>(random.at(2 * i + 1));
      }
      const auto view = RibbonView::over({copy.get(), filter.byte_size()}, filter.shape());
      refused += !view;
      if (!view) continue;
      ++probed;
      with_every_kernel([&](const kernel::InstructionSet&) {
        std::uint64_t answers[4];
        detail::query_batch<RibbonLayout>(filter.shape(), copy.get(),
                                          {.words = queries.data(), .count = queries.size(), .ahead = turn % 3 == 0},
                                          answers);
      });
      for (std::size_t i = 0; i < 20; ++i) {
        RibbonLayout::may_contain<detail::isa::Portable>(filter.shape(), copy.get(), queries[i]);
        RibbonLayout::may_contain<detail::isa::Here>(filter.shape(), copy.get(), queries[i]);
        RibbonLayout::prefetch(filter.shape(), copy.get(), queries[i]);
      }
    }
  }
  EXPECT_GT(refused, 1000u);
  EXPECT_GT(probed, 1000u);
}

TEST(Ribbon, BytesAreTheSameForEveryThreadCountAndOrder) {
  Digests digests = random_set(4, 700'000);
  const Ribbon one = built(digests, {.fpr = 0.003});
  std::ranges::reverse(digests);
  digests.insert(digests.end(), digests.begin(), digests.begin() + 5000);
  const Ribbon two = built(digests, {.fpr = 0.003}, {.threads = 2, .memory = 4 << 20});
  EXPECT_EQ(one.shape(), two.shape());
  EXPECT_TRUE(std::ranges::equal(one.bytes(), two.bytes()));
}

// The standard ribbon: 128 bits wide, no bumping, enough slots to be solvable. Every equation is checked.
template <class Word>
void expect_solved(std::uint32_t columns, std::uint64_t narrow) {
  constexpr std::uint64_t kEquations = 4000;
  constexpr std::uint64_t kWidth = 8 * sizeof(Word);
  constexpr std::uint64_t kSlots = 5120;
  std::vector<ribbon::Row<Word>> rows(kSlots);
  const ribbon::Banding<Word> banding{rows};
  const Stream random{kWidth};
  const auto equation = [&](std::uint64_t i) {
    Word with = static_cast<Word>(random.at(3 * i));
    if constexpr (kWidth == 128) with = with << 64 | random.at(1'000'000 + i);
    return std::tuple(high_product(random.at(3 * i + 1), kSlots - kWidth + 1), with | 1,
                      static_cast<std::uint32_t>(random.at(3 * i + 2)));
  };
  const auto add = [&](std::uint64_t i, std::uint32_t change) {
    const auto [start, with, result] = equation(i);
    return banding.add(start, with, result ^ change);
  };
  for (std::uint64_t i = 0; i < kEquations; ++i) ASSERT_EQ(add(i, 0), ribbon::Added::inserted);
  EXPECT_EQ(add(17, 0), ribbon::Added::redundant);
  EXPECT_EQ(add(17, 4), ribbon::Added::inconsistent);

  const std::uint64_t blocks = kSlots / kWidth;
  std::vector<Word> words(blocks * (columns + 1) - std::min(blocks, narrow));
  banding.solve(columns, narrow, std::as_writable_bytes(std::span(words)).data());
  const auto value = [&](std::uint64_t slot, std::uint32_t j) {
    const std::uint64_t k = slot / kWidth;
    return static_cast<std::uint32_t>(words[k * (columns + 1) - std::min(k, narrow) + j] >> (slot % kWidth)) & 1;
  };
  for (std::uint64_t i = 0; i < kEquations; ++i) {
    const auto [start, with, result] = equation(i);
    const std::uint32_t width = columns + (start / kWidth >= narrow);
    for (std::uint32_t j = 0; j < width; ++j) {
      std::uint32_t sum = 0;
      for (unsigned bit = 0; bit < kWidth; ++bit) {
        if ((with >> bit & 1) != 0) sum ^= value(start + bit, j);
      }
      ASSERT_EQ(sum, result >> j & 1) << "equation " << i << ", column " << j;
    }
  }
}

TEST(RibbonSolver, SolvesTheStandardRibbonOf128Bits) {
  with_every_kernel([](const kernel::InstructionSet&) {
    expect_solved<ribbon::Wide>(7, 13);
    expect_solved<ribbon::Wide>(32, 1000);
  });
}

TEST(RibbonSolver, SolvesARibbonOf64Bits) {
  with_every_kernel([](const kernel::InstructionSet&) {
    expect_solved<std::uint64_t>(5, 31);
    expect_solved<std::uint64_t>(8, 0);
  });
}

TEST(Ribbon, BytesNeverChange) {
  struct Golden {
    std::uint64_t keys;
    double fpr;
    std::uint64_t bytes;  // the digest of the table
  };
  constexpr Golden kGolden[] = {{0, 0.01, 0xf4e0909fb26174b},       {1, 0.01, 0x732203e4bc40276a},
                                {36, 0.01, 0x61179424b126b7a3},     {200, 1e-3, 0x9883b067330c6fd7},
                                {1'000, 0.01, 0x3f63672c7a37019b},  {20'000, 1.0 / 256, 0xfd49db042de2c968},
                                {600'000, 0.01, 0xeeae5f64391c28a0}};
  for (const Golden& golden : kGolden) {
    const Digests digests = random_set(golden.keys + 1, golden.keys);
    with_every_kernel([&](const kernel::InstructionSet& row) {
      const Ribbon filter = built(digests, {.fpr = golden.fpr});
      EXPECT_EQ(Hash(0)(filter.bytes()).value, golden.bytes) << golden.keys << " keys, " << row.name;
    });
  }
  // A set that needs a seed.
  Digests numbers(5000);
  std::iota(numbers.begin(), numbers.end(), 0);
  const Ribbon seeded = built(numbers, {.fpr = 0.02});
  EXPECT_EQ(Hash(0)(seeded.bytes()).value, 0x5771ccfdd5cca2eeu);
}

}  // namespace
}  // namespace perhaps::test
