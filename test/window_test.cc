// Promise: a key answers *perhaps* as long as its window lasts, by keys and by time, and is forgotten soon after; the
// rate of absent keys matches the model. Would notice: a generation cleared too early or too late, a stamp that is not
// kept, a batch that differs from single calls, a number from a file that is trusted. Seeds are fixed; bounds are 5
// sigma.
#include "perhaps/window.h"

#include <cmath>
#include <deque>

#include "support/sanitized.h"
#include "support/statistics.h"

namespace perhaps::test {
namespace {

using Digests = std::vector<Digest<Hash>>;

Digest<Hash> digest(std::uint64_t word) { return digest_with(Hash(), word); }

// The filter as described in its header, without stamps, cells or interleaving: eight sets of positions; when a
// generation begins, the oldest is discarded.
class Model {
 public:
  explicit Model(WindowShape shape) : shape_(shape), sets_(8) {}

  bool seen(std::uint64_t h) const {
    const auto at = positions(h);
    return std::ranges::any_of(sets_, [&](const auto& set) {
      return std::ranges::all_of(at, [&](std::uint64_t p) { return set.count(p) != 0; });
    });
  }
  bool insert(std::uint64_t h) {
    if (shape_.by_time == 0 && inserted_ == shape_.step) begin(1);
    const bool before = seen(h);
    for (const std::uint64_t p : positions(h)) sets_.front().insert(p);
    ++inserted_;
    return before;
  }
  void advance(std::uint64_t now) {
    if (now / shape_.step <= epoch_) return;
    begin(now / shape_.step - epoch_);
    epoch_ = now / shape_.step;
  }

 private:
  void begin(std::uint64_t count) {
    for (std::uint64_t i = 0; i < std::min<std::uint64_t>(count, 8); ++i) {
      sets_.pop_back();
      sets_.emplace_front();
    }
    inserted_ = 0;
  }
  std::vector<std::uint64_t> positions(std::uint64_t h) const {
    constexpr std::uint64_t kXor[8] = {0x243f6a8885a308d3, 0x13198a2e03707344, 0xa4093822299f31d0, 0x082efa98ec4e6c89,
                                       0x452821e638d01377, 0xbe5466cf34e90c6c, 0xc0ac29b7c97c50dd, 0x3f84d5b5b5470917};
    constexpr std::uint64_t kTimes[8] = {0xa0761d6478bd642f, 0xe7037ed1a0b428db, 0x8ebc6af09c88c6e3,
                                         0x589965cc75374cc3, 0x1d8e4e27c47d124f, 0xeb44accab455d165,
                                         0x9c6e6877736c46e3, 0x7b215d5a8b1f29ad};
    std::vector<std::uint64_t> at;
    for (std::uint64_t r = 0; r < shape_.rows; ++r) {
      const std::uint64_t a = h ^ kXor[r];
      const std::uint64_t x = high_product(a, kTimes[r]) ^ a * kTimes[r];
      const std::uint64_t line = high_product(x, shape_.lines);
      for (std::uint64_t i = 0; i < shape_.probes; ++i) {
        const std::uint64_t begin = 63 * i / shape_.probes;
        const std::uint64_t width = 63 * (i + 1) / shape_.probes - begin;
        const std::uint64_t p = x % 0x100000000 * test::kSalt[i] % 0x100000000;
        at.push_back((r * shape_.lines + line) * 64 + begin + p * width / 0x100000000);
      }
    }
    return at;
  }

  WindowShape shape_;
  std::deque<std::set<std::uint64_t>> sets_;  // the present generation first
  std::uint64_t inserted_ = 0;
  std::uint64_t epoch_ = 0;
};

const std::vector<WindowShape> kShapes = {
    {.lines = 1, .rows = 1, .probes = 1, .step = 3},    {.lines = 2, .rows = 2, .probes = 3, .step = 5},
    {.lines = 3, .rows = 8, .probes = 7, .step = 40},   {.lines = 7, .rows = 3, .probes = 4, .step = 64},
    {.lines = 11, .rows = 5, .probes = 5, .step = 100}, {.lines = 2, .rows = 4, .probes = 6, .step = 1},
    {.lines = 5, .rows = 6, .probes = 2, .step = 1000}};

TEST(Window, ByKeysIsTheModelAndLosesNothing) {
  std::uint64_t missing = 0;
  for (const WindowShape shape : kShapes) {
    SCOPED_TRACE(std::to_string(shape.rows) + " rows, " + std::to_string(shape.probes) + " probes");
    Window one(shape);
    Window batch(shape);
    Model model(shape);
    std::deque<std::uint64_t> last;  // exactly the window
    const std::uint64_t n = std::min<std::uint64_t>(60 * shape.window(), 8000);
    Digests digests;
    std::vector<bool> expected;
    for (std::uint64_t i = 0; i < n; ++i) {
      // One key in three is a repetition, from anywhere in the past.
      const std::uint64_t r = Stream{11}.at(i);
      const std::uint64_t h = r % 3 == 0 && i > 0 ? Stream{12}.at(r / 3 % i) : Stream{12}.at(i);
      digests.push_back(digest(h));
      expected.push_back(model.insert(h));
      ASSERT_EQ(one.insert(digest(h)) == Inserted::present, expected.back()) << "key " << i;
      last.push_back(h);
      if (last.size() > shape.window()) last.pop_front();
      if (i % 97 == 0) {
        for (const std::uint64_t k : last) missing += !one.may_contain(digest(k));
        for (std::uint64_t k = 0; k < 20; ++k) {
          const std::uint64_t absent = Stream{13}.at(20 * i + k);
          ASSERT_EQ(one.may_contain(digest(absent)), model.seen(absent));
        }
      }
    }
    // The same keys in batches of odd sizes give the same answers and the same bytes.
    std::vector<std::uint64_t> answers(5);
    for (std::size_t from = 0, size = 1; from < n; from += size, size = size % 300 + 7) {
      const auto part = std::span<const Digest<Hash>>(digests).subspan(from, std::min<std::size_t>(size, n - from));
      insert(batch, part, answers);
      for (std::size_t i = 0; i < part.size(); ++i)
        ASSERT_EQ(bool(answers[i / 64] >> i % 64 & 1), expected[from + i]) << "key " << from + i;
    }
    EXPECT_TRUE(same_bytes(one.bytes(), batch.bytes()));
    Window silent(shape);
    silent.insert(std::span<const Digest<Hash>>(digests));
    EXPECT_TRUE(same_bytes(one.bytes(), silent.bytes()));
  }
  EXPECT_EQ(missing, 0u);
}

TEST(Window, ByTimeIsTheModelAndLosesNothing) {
  std::uint64_t missing = 0;
  for (WindowShape shape : kShapes) {
    shape.by_time = 1;
    Window filter(shape);
    Model model(shape);
    std::deque<std::pair<std::uint64_t, std::uint64_t>> last;  // (time, key)
    std::uint64_t now = 1'700'000'000;
    advance(filter, now);
    model.advance(now);
    for (std::uint64_t i = 0; i < 3000; ++i) {
      const std::uint64_t r = Stream{21}.at(i);
      if (r % 16 == 0) now += r / 16 % (shape.step + 1);
      if (r % 512 == 1) now += r / 512 % (20 * shape.step);
      if (r % 1024 == 2) now += 256 * shape.step;  // stamps are equal again
      const bool backwards = r % 32 == 3;
      advance(filter, backwards ? now - std::min(now, r / 32 % 10'000) : now);
      model.advance(now);
      const std::uint64_t h = r % 3 == 0 && i > 0 ? Stream{22}.at(r / 3 % i) : Stream{22}.at(i);
      ASSERT_EQ(filter.insert(digest(h)) == Inserted::present, model.insert(h)) << "key " << i;
      last.emplace_back(now, h);
      while (now - last.front().first > shape.window()) last.pop_front();
      for (std::size_t k = 0; k < last.size(); k += 1 + last.size() / 64)
        missing += !filter.may_contain(digest(last[k].second));
    }
  }
  EXPECT_EQ(missing, 0u);
}

TEST(Window, ALineUntouchedFor256GenerationsStaysWithinTheModel) {
  // One key in each generation of a filter of many lines: stamps wrap around. The promise of the window holds, and
  // absent keys are answered *perhaps* no more often than by a full filter.
  const WindowShape shape{.lines = 50, .rows = 2, .probes = 3, .step = 1, .by_time = 1};
  Window filter(shape);
  for (std::uint64_t i = 0; i < 2000; ++i) filter.insert(digest(Stream{31}.at(i)));
  std::uint64_t missing = 0;
  std::uint64_t found = 0;
  std::uint64_t queries = 0;
  for (std::uint64_t now = 1; now < 1200; ++now) {
    advance(filter, now);
    filter.insert(digest(Stream{32}.at(now)));
    for (std::uint64_t t = now > 7 ? now - 7 : 1; t <= now; ++t)
      missing += !filter.may_contain(digest(Stream{32}.at(t)));
    for (std::uint64_t k = 0; k < 50; ++k, ++queries) found += filter.may_contain(digest(Stream{33}.at(50 * now + k)));
  }
  EXPECT_EQ(missing, 0u);
  const double rate = static_cast<double>(found) / static_cast<double>(queries);
  const double full = shape.generation_fpr(2000);
  std::printf("  rate %.5f, that of a full generation %.5f\n", rate, full);
  EXPECT_LT(rate, full);
}

TEST(Window, StatesWhatItHolds) {
  Window filter(Request{.keys = 700, .fpr = 1e-3});
  EXPECT_EQ(filter.shape().step, 100u);
  EXPECT_EQ(filter.shape().window(), 700u);
  for (std::uint64_t i = 0; i < 1050; ++i) filter.insert(i);
  const WindowState state = state_of(filter);
  EXPECT_EQ(state.generation, 10u);
  EXPECT_EQ(state.inserted, (std::array<std::uint64_t, 8>{50, 100, 100, 100, 100, 100, 100, 100}));
  EXPECT_LT(state.fpr, 1e-3);
  EXPECT_GT(state.fpr, 3e-4);
  const Condition c = condition_of(filter);
  EXPECT_NEAR(c.keys, 750, 60);
  filter.clear();
  EXPECT_EQ(state_of(filter).fpr, 0);
  EXPECT_EQ(condition_of(filter).fpr, 0);
  EXPECT_FALSE(std::signbit(state_of(filter).fpr) || std::signbit(condition_of(filter).fpr));  // -0 would be printed
}

struct Row {
  double fpr;
  std::uint64_t window;
  std::uint64_t filters;
  std::uint64_t queries;
};

// After many windows, just before a generation ends. Checks the rate computed from the bits (without the noise of
// queries) and the answers themselves; both are averages over filters with sigma from their spread, n and z are
// printed.
TEST(Window, RateMatchesTheModel) {
  for (const Row row : {Row{0.1, 700, 300, 2000}, Row{1e-2, 1400, 300, 5000}, Row{1e-3, 7000, 60, 60'000},
                        Row{1e-4, 2100, 100, 100'000}, Row{1e-6, 3500, 100, 500'000}}) {
    const WindowShape shape = WindowShape::for_keys({.keys = row.window, .fpr = row.fpr});
    const double model = shape.fpr(static_cast<double>(row.window));
    Mean bits;
    Mean answered;
    Digests absent(row.queries);
    std::vector<std::uint64_t> answers(row.queries / 64 + 1);
    for (std::uint64_t seed = 0; seed < samples(row.filters); ++seed) {
      const Hash hash(seed);
      BasicWindow<Hash> filter(shape, hash);
      for (std::uint64_t i = 0; i < 10 * shape.window() + shape.step; ++i) filter.insert(i);
      bits.add(condition_of(filter).fpr);
      for (std::uint64_t i = 0; i < row.queries; ++i) absent[i] = hash(1'000'000'000 + i);
      filter.may_contain(std::span<const Digest<Hash>>(absent), answers);
      answered.add(static_cast<double>(count_ones(answers)) / static_cast<double>(row.queries));
    }
    const double queries = static_cast<double>(samples(row.filters) * row.queries);
    const double noise = std::max(answered.error(), binomial_error(model, queries));
    std::printf("  fpr %g, window %lu: model %.4g, bits %.4g (z %+.1f), answers %.4g of n = %.0f (z %+.1f)\n", row.fpr,
                row.window, model, bits.value(), (bits.value() - model) / bits.error(), answered.value(), queries,
                (answered.value() - model) / noise);
    EXPECT_LE(model, row.fpr);
    EXPECT_GT(model, 0.8 * row.fpr);
    EXPECT_NEAR(bits.value(), model, kSigmas * bits.error());
    EXPECT_NEAR(answered.value(), model, kSigmas * noise);
  }
}

TEST(Window, MoreKeysThanExpectedRaiseTheRateAndLoseNothing) {
  Window filter(WindowShape::for_ticks(700, {.keys = 1000, .fpr = 1e-4}));
  EXPECT_EQ(filter.shape().window(), 700u);
  std::uint64_t key = 0;
  for (std::uint64_t now = 0; now < 800; ++now) {
    advance(filter, now);
    for (int i = 0; i < 14; ++i) filter.insert(key++);  // 9800 per window
  }
  std::uint64_t missing = 0;
  for (std::uint64_t k = key - 9800; k < key; ++k) missing += !filter.may_contain(k);
  EXPECT_EQ(missing, 0u);
  const double rate = condition_of(filter).fpr;
  EXPECT_GT(rate, 1e-2);
  EXPECT_NEAR(rate, filter.shape().fpr(9800), 0.5 * rate);
  EXPECT_GT(state_of(filter).fpr, 1e-2);
  EXPECT_NEAR(filter.shape().keys_for(filter.shape().fpr(9800)), 9800, 1);
}

TEST(Window, IsSizedByMemoryToo) {
  for (const std::uint64_t bytes : {1ull, 64ull, 192ull, 1000ull, 100'000ull, 10'000'000ull}) {
    const WindowShape s = WindowShape::for_keys({.keys = 10'000, .max_bytes = bytes});
    EXPECT_TRUE(s.valid());
    EXPECT_LE(s.bytes(), std::max<std::uint64_t>(bytes, 192));
  }
  const WindowShape s = WindowShape::for_keys({.keys = 1'000'000, .bits_per_key = 24.5});
  EXPECT_LT(s.fpr(1e6), 1.05e-3);
  // A generation is a whole number of keys, so a window of few keys is longer than requested.
  for (std::uint64_t keys = 1; keys < 50; ++keys) {
    const WindowShape few = WindowShape::for_keys({.keys = keys, .fpr = 1e-6});
    EXPECT_GE(few.window(), keys);
    EXPECT_LE(few.fpr(static_cast<double>(few.window())), 1e-6) << keys;
  }
  EXPECT_TRUE(WindowShape::for_keys({.keys = 0, .fpr = 1e-12}).valid());
  EXPECT_LE(WindowShape::for_keys({.keys = 1'000'000, .fpr = 1e-12}).fpr(1e6), 1e-12);
  EXPECT_EQ(WindowShape::for_keys({.keys = UINT64_MAX, .fpr = 1e-6}).lines, WindowShape::kMaxLines);
  EXPECT_EQ(WindowShape::for_ticks(UINT64_MAX, {.keys = 10}).window(), UINT64_MAX);
}

TEST(Window, NumbersComeBackAndBadOnesAreRefused) {
  for (const WindowShape s : kShapes) EXPECT_EQ(*WindowShape::from(s.numbers()), s);
  using Numbers = std::vector<std::uint64_t>;
  for (const Numbers& bad :
       {Numbers{}, Numbers{1, 1, 1, 1}, Numbers{0, 1, 1, 1, 0}, Numbers{1ull << 51, 1, 1, 1, 0}, Numbers{1, 0, 1, 1, 0},
        Numbers{1, 9, 1, 1, 0}, Numbers{1, 1, 0, 1, 0}, Numbers{1, 1, 8, 1, 0}, Numbers{1, 1, 1, 0, 0},
        Numbers{1, 1, 1, 1, 2}, Numbers{1, 1ull << 32 | 1, 1, 1, 0}, Numbers{UINT64_MAX, 8, 7, 1, 1}}) {
    const auto shape = WindowShape::from(bad);
    ASSERT_FALSE(shape);
    EXPECT_EQ(shape.error().detail.substr(0, 8), "window: ");
  }
}

TEST(Window, AnyBytesCanBeQueriedAndWritten) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    WindowShape shape = kShapes[seed % kShapes.size()];
    shape.by_time = seed % 2;
    if (seed % 5 == 0) shape.step = UINT64_MAX;
    std::vector<std::byte> table(shape.bytes());
    for (std::size_t i = 0; i < table.size(); ++i) table[i] = static_cast<std::byte>(Stream{seed}.at(i));
    if (seed % 7 == 0) std::ranges::fill(table, std::byte{0xff});
    Unaligned copy(table);
    auto span = *WindowSpan::over(copy.bytes(), shape);
    for (std::uint64_t i = 0; i < 300; ++i) {
      if (i % 10 == 0) advance(span, Stream{seed}.at(i));
      span.insert(i);
      EXPECT_TRUE(span.may_contain(i));
    }
    (void)state_of(shape, span.bytes());
    EXPECT_GE(condition_of(shape, span.bytes()).fpr, 0);
    EXPECT_FALSE(WindowView::over(Bytes(table).first(table.size() - 1), shape));
  }
}

// The bytes of a filter never change: 3000 numbers and texts, a window of 1000, then the same by time.
TEST(Window, Golden) {
  Window keys(WindowShape{.lines = 30, .rows = 3, .probes = 4, .step = 143});
  Window time(WindowShape{.lines = 40, .rows = 2, .probes = 5, .step = 10, .by_time = 1});
  for (std::uint64_t i = 0; i < 3000; ++i) {
    keys.insert(i);
    keys.insert(std::to_string(i));
    advance(time, i / 5);
    time.insert(i);
  }
  EXPECT_EQ(Hash(0)(keys.bytes()).value, 15307712760836333340u);
  EXPECT_EQ(Hash(0)(time.bytes()).value, 10019059581311308979u);
}

static_assert(MutableFilter<Window> && FlatFilter<WindowView> && !ErasableFilter<Window>);

}  // namespace
}  // namespace perhaps::test
