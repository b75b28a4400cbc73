// Promise: an exact set has the right answer for every key of its universe, whatever the density, the order, repeated
// keys, threads or memory; its bytes depend on the two sets alone; damage is refused or harmless. Would notice: one
// wrong answer among all keys, a set that is larger than its plan, a collision that is not reported, bytes that change.
#include "perhaps/exact.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>

#include "exact/plan.h"
#include "perhaps.h"
#include "perhaps/detail/threads.h"
#include "perhaps/file/exact_file.h"
#include "support/keys.h"
#include "support/sanitized.h"

namespace perhaps::test {
namespace {

namespace fs = std::filesystem;
using Words = std::vector<std::uint64_t>;

static_assert(ExactSet<Exact> && ExactSet<ExactView> && ExactSet<BasicExact<KeyedHash>>);
// Nothing takes one for the other.
static_assert(!Filter<Exact> && !ExactSet<BasicExactBuilder<Hash>>);
// A view would outlive a File that nobody keeps.
template <class F>
concept GivesExact = requires(F f) {
  exact_in<Hash>(std::forward<F>(f));
};
static_assert(GivesExact<File&> && GivesExact<const File&> && !GivesExact<File> && !GivesExact<const File>);

KeyedHash keyed() {
  KeyedHash::Secret secret;
  for (unsigned i = 0; i < secret.size(); ++i) secret[i] = std::byte(i);
  return KeyedHash(secret);
}

// Keys 0 .. size - 1, of which about a share are members.
struct Universe {
  Words keys;
  Words members;

  Universe(std::uint64_t size, double share, std::uint64_t seed = 1) {
    for (std::uint64_t i = 0; i < size; ++i) {
      keys.push_back(Stream{seed}.at(i));
      if (static_cast<double>(Stream{seed + 1000}.at(i) >> 11) < share * 0x1p53) members.push_back(keys.back());
    }
    shuffle(keys, seed);
    shuffle(members, seed + 1);
  }
  static void shuffle(Words& all, std::uint64_t seed) {
    for (std::size_t i = all.size(); i > 1; --i) std::swap(all[i - 1], all[Stream{seed}.at(i) % i]);
  }
  bool is_member(std::uint64_t key) const {
    if (sorted.empty() && !members.empty()) {
      sorted = members;
      std::sort(sorted.begin(), sorted.end());
    }
    return std::binary_search(sorted.begin(), sorted.end(), key);
  }
  mutable Words sorted;
};

template <class T>
std::span<const T> all(const std::vector<T>& items) {
  return items;
}

template <class Set>
std::uint64_t wrong_answers(const Set& set, const Universe& universe) {
  std::vector<std::uint64_t> answers((universe.keys.size() + 63) / 64, ~std::uint64_t{0});
  set.contains(all(universe.keys), answers);
  std::uint64_t wrong = 0;
  for (std::size_t i = 0; i < universe.keys.size(); ++i) {
    wrong += ((answers[i / 64] >> (i % 64) & 1) != 0) != universe.is_member(universe.keys[i]);
  }
  if (!universe.keys.empty() && universe.keys.size() % 64 != 0) {
    EXPECT_EQ(answers.back() >> (universe.keys.size() % 64), 0u);
  }
  // One at a time, by digest and by key.
  for (std::size_t i = 0; i < std::min<std::size_t>(universe.keys.size(), 500); ++i) {
    const bool member = universe.is_member(universe.keys[i]);
    wrong += set.contains(universe.keys[i]) != member;
    wrong += set.contains(digest_of(set.hasher(), universe.keys[i])) != member;
  }
  return wrong;
}

struct Image {
  Words numbers;
  std::vector<std::vector<std::byte>> sections;
  friend bool operator==(const Image&, const Image&) = default;

  template <class Set>
  explicit Image(const Set& set) : numbers(set.numbers()) {
    for (const Bytes section : set.sections()) sections.emplace_back(section.begin(), section.end());
  }
  std::vector<Bytes> spans() const { return {sections.begin(), sections.end()}; }
};

TEST(Exact, IsRightForEveryKeyOfEveryUniverse) {
  for (const std::uint64_t size : {1u, 2u, 3u, 10u, 64u, 65u, 1000u, 5000u, 60'000u}) {
    for (const double share : {0.0, 0.001, 0.014, 0.1, 0.2, 0.3, 0.5, 0.7, 0.986, 1.0}) {
      const Universe universe(samples(size), share, size);
      const auto set = Exact::build(all(universe.members), all(universe.keys));
      ASSERT_TRUE(set) << set.error().detail;
      ASSERT_EQ(wrong_answers(*set, universe), 0u) << size << " keys, share " << share;
      const ExactFigures figures = set->figures();
      EXPECT_EQ(figures.members, universe.members.size());
      EXPECT_EQ(figures.universe, universe.keys.size()) << size << " keys, share " << share;
      EXPECT_EQ(figures.bytes, set->byte_size());
    }
  }
}

TEST(Exact, OneMemberAndAllButOne) {
  Universe universe(20'000, 0);
  universe.members = {universe.keys[7]};
  const auto one = Exact::build(all(universe.members), all(universe.keys));
  EXPECT_EQ(wrong_answers(*one, universe), 0u);
  EXPECT_LT(one->byte_size(), 80u);
  Universe other = universe;
  other.members.clear();
  std::remove_copy(universe.keys.begin(), universe.keys.end(), std::back_inserter(other.members), universe.keys[7]);
  other.sorted.clear();
  const auto but_one = Exact::build(all(other.members), all(other.keys));
  EXPECT_EQ(wrong_answers(*but_one, other), 0u);
  EXPECT_LT(but_one->byte_size(), 80u);
}

TEST(Exact, KeyedAndText) {
  const Universe universe(20'000, 0.05);
  const auto set = BasicExact<KeyedHash>::build(all(universe.members), all(universe.keys), {}, {.threads = 2}, keyed());
  ASSERT_TRUE(set);
  EXPECT_EQ(wrong_answers(*set, universe), 0u);
  std::vector<std::string> texts;
  for (const std::uint64_t key : universe.keys) texts.push_back("https://example.org/" + std::to_string(key));
  const std::vector<std::string_view> keys(texts.begin(), texts.end());
  const std::vector<std::string_view> members(keys.begin(), keys.begin() + 300);
  const auto text_set = Exact::build(all(members), all(keys));
  for (std::size_t i = 0; i < keys.size(); ++i) ASSERT_EQ(text_set->contains(keys[i]), i < 300) << keys[i];
}

TEST(Exact, MembersOutsideTheUniverseBelongToIt) {
  Universe universe(5000, 0.02);
  const Words asked(universe.keys.begin(), universe.keys.begin() + 2500);
  const auto set = Exact::build(all(universe.members), all(asked));
  for (const std::uint64_t key : universe.members) EXPECT_TRUE(set->contains(key));
  for (const std::uint64_t key : asked) EXPECT_EQ(set->contains(key), universe.is_member(key));
  const auto no_universe = Exact::build(all(universe.members), all(Words()));
  for (const std::uint64_t key : universe.members) EXPECT_TRUE(no_universe->contains(key));
}

// By the builder, in pieces, from threads or not, with the universe announced or kept.
Image image_of(const Universe& universe, bool announced, BuildOptions options) {
  ExactBuilder builder({}, std::move(options));
  const auto pieces = [](const Words& keys, auto use) {
    for (std::size_t from = 0; from < keys.size(); from += 777) {
      use(all(keys).subspan(from, std::min<std::size_t>(777, keys.size() - from)));
    }
  };
  pieces(universe.members, [&](auto some) { builder.add_members(some); });
  if (announced) builder.begin(universe.keys.size());
  pieces(universe.keys, [&](auto some) { EXPECT_TRUE(builder.add(some)); });
  const auto set = builder.finish();
  EXPECT_TRUE(set) << set.error().detail;
  EXPECT_EQ(wrong_answers(*set, universe), 0u);
  return Image(*set);
}

TEST(Exact, BytesDependOnTheSetsAlone) {
  for (const double share : {0.014, 0.4, 0.8}) {
    Universe universe(samples(100'000), share);
    const Image once = image_of(universe, true, {});
    Universe::shuffle(universe.keys, 77);
    Universe::shuffle(universe.members, 78);
    EXPECT_TRUE(once == image_of(universe, true, {.threads = 3})) << share;
    EXPECT_TRUE(once == image_of(universe, false, {.threads = 2})) << share;
    EXPECT_TRUE(once == image_of(universe, false, {.threads = 2, .memory = 100'000})) << share << ", spilled";
  }
}

TEST(Exact, ManyThreadsAtOnce) {
  const Universe universe(samples(100'000), 0.014);
  ExactBuilder builder({}, {.threads = 2});
  builder.add_members(all(universe.members));
  builder.begin(universe.keys.size());
  std::atomic<std::size_t> next = 0;
  detail::in_threads(4, [&] {
    for (std::size_t from; (from = next.fetch_add(1000)) < universe.keys.size();) {
      builder.add(all(universe.keys).subspan(from, std::min<std::size_t>(1000, universe.keys.size() - from)));
    }
  });
  const auto set = builder.finish();
  ASSERT_TRUE(set);
  EXPECT_EQ(wrong_answers(*set, universe), 0u);
  EXPECT_TRUE(Image(*set) == image_of(universe, true, {}));
}

TEST(Exact, RepeatedKeysCountOnce) {
  Universe universe(50'000, 0.03);
  const auto once = Exact::build(all(universe.members), all(universe.keys));
  const Words keys = universe.keys;
  for (int i = 0; i < 19; ++i) universe.keys.insert(universe.keys.end(), keys.begin(), keys.end());
  const Words members = universe.members;
  universe.members.insert(universe.members.end(), members.begin(), members.end());
  for (const bool announced : {true, false}) {
    ExactBuilder builder;
    builder.add_members(all(universe.members));
    if (announced) builder.begin(universe.keys.size());
    builder.add(all(universe.keys));
    const auto set = builder.finish();
    ASSERT_TRUE(set);
    EXPECT_EQ(wrong_answers(*set, universe), 0u);
    EXPECT_EQ(builder.advice() != 0, announced);
    // 4 columns too many if it is not said again.
    if (announced) {
      EXPECT_GT(set->byte_size(), once->byte_size() * 11 / 10);
    } else {
      EXPECT_EQ(set->byte_size(), once->byte_size());
    }
  }
  const auto whole = Exact::build(all(universe.members), all(universe.keys));
  EXPECT_EQ(whole->byte_size(), once->byte_size());
  // The estimate of distinct keys: 19 of 20 repeat. 5 sigma of what passed a filter, about 1.5 of it per member.
  const auto n = static_cast<double>(keys.size());
  EXPECT_NEAR(static_cast<double>(whole->figures().universe), n,
              5 * n / std::sqrt(static_cast<double>(members.size())));
}

// The size that the plan promises: n columns + n + others / 2^columns bits, and the ribbons' overhead, which is larger
// for small sets (exact_slow_test has large ones).
TEST(Exact, IsAsSmallAsPlanned) {
  if (kSanitized) GTEST_SKIP() << "the release run measures sizes";
  for (const auto& [share, at_most] : {std::pair(0.014, 1.11), std::pair(0.5, 1.03), std::pair(0.986, 1.11)}) {
    const Universe universe(1'000'000, share);
    const auto set = Exact::build(all(universe.members), all(universe.keys), {}, {.threads = 2});
    ASSERT_TRUE(set);
    EXPECT_EQ(wrong_answers(*set, universe), 0u);
    const ExactFigures figures = set->figures();
    const double times = static_cast<double>(figures.bytes) * 8 / figures.limit_bits;
    std::printf("  share %.3f: %.4f times the limit\n", share, times);
    EXPECT_LT(times, at_most) << share;
    EXPECT_GE(times, 1) << share;
  }
}

TEST(ExactPlan, TakesTheCheapestColumns) {
  using detail::plan_of;
  EXPECT_EQ(plan_of(0, 10).code, detail::kAllOut);
  EXPECT_EQ(plan_of(10, 0).code, detail::kAllIn);
  EXPECT_EQ(plan_of(14, 986).code, 6);
  EXPECT_EQ(plan_of(986, 14).code, detail::kInverted + 6);
  EXPECT_EQ(plan_of(500, 500).code, 0);
  for (std::uint64_t others = 1000; others < 1'000'000; others = others * 9 / 8) {
    const auto plan = plan_of(1000, others);
    for (std::uint32_t columns = 0; columns <= 32; ++columns) {
      EXPECT_LE(plan.cost, detail::cost_of(1000, others, columns)) << others;
    }
  }
}

// Keys "part<tab>number" whose parts differ in density.
struct Parted {
  std::vector<std::string> texts;
  std::vector<std::string_view> keys, members;

  explicit Parted(std::uint64_t size) {
    static constexpr double kShare[] = {0, 0.5, 0.001, 0.99, 0.02, 1, 0.2, 0.05};
    std::vector<bool> in;
    for (std::uint64_t i = 0; i < size; ++i) {
      // Eight large parts, and one in ten keys in one of a thousand small ones.
      const std::uint64_t part = i % 10 == 9 ? 100 + Stream{3}.at(i) % 1000 : Stream{4}.at(i) % 8;
      texts.push_back("issuer" + std::to_string(part) + "\t" + std::to_string(i));
      in.push_back(static_cast<double>(Stream{5}.at(i) >> 11) < (part < 8 ? kShare[part] : 0.1) * 0x1p53);
    }
    for (std::size_t i = 0; i < texts.size(); ++i) {
      keys.push_back(texts[i]);
      if (in[i]) members.push_back(texts[i]);
    }
  }
  template <class Set>
  std::uint64_t wrong(const Set& set) const {
    std::vector<std::uint64_t> answers((keys.size() + 63) / 64);
    set.contains(all(keys), answers);
    std::uint64_t wrong = 0;
    std::size_t next = 0;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const bool member = next < members.size() && members[next] == keys[i];
      next += member;
      wrong += ((answers[i / 64] >> (i % 64) & 1) != 0) != member;
      if (i % 37 == 0) wrong += set.contains(keys[i]) != member;
    }
    return wrong;
  }
};

TEST(Exact, PartsHaveTheirOwnDensity) {
  const Parted parted(samples(100'000));
  const auto whole = Exact::build(all(parted.members), all(parted.keys));
  const ExactRequest by_issuer{.parts = {.field = 1}};
  const auto set = Exact::build(all(parted.members), all(parted.keys), by_issuer);
  ASSERT_TRUE(set) << set.error().detail;
  EXPECT_EQ(parted.wrong(*whole), 0u);
  EXPECT_EQ(parted.wrong(*set), 0u);
  EXPECT_EQ(set->parts(), by_issuer.parts);
  const ExactFigures figures = set->figures();
  std::printf("  %lu bytes in one part, %lu in parts, of which %lu are listed\n",
              static_cast<unsigned long>(whole->byte_size()), static_cast<unsigned long>(set->byte_size()),
              static_cast<unsigned long>(figures.parts));
  EXPECT_LT(static_cast<double>(set->byte_size()), 0.7 * static_cast<double>(whole->byte_size()));
  // The large ones, and few of the thousand small ones, for which an entry does not pay.
  EXPECT_GE(figures.parts, 6u);
  EXPECT_LT(figures.parts, 60u);

  // By a digest and that of its part.
  for (std::size_t i = 0; i < 500; ++i) {
    const auto part = Hash()(by_issuer.parts.of(bytes_of(parted.keys[i])));
    EXPECT_EQ(set->contains(Hash()(bytes_of(parted.keys[i])), part), set->contains(parted.keys[i]));
  }
  // Kept and replayed, spilled or not, from threads: the same bytes.
  for (const std::uint64_t memory : {0u, 200'000u}) {
    ExactBuilder builder(by_issuer, {.threads = 2, .memory = memory});
    builder.add_members(all(parted.members));
    builder.add(all(parted.keys));
    const auto kept = builder.finish();
    ASSERT_TRUE(kept) << kept.error().detail;
    EXPECT_TRUE(Image(*kept) == Image(*set));
  }
}

TEST(ExactParts, AreFieldsOfTheKey) {
  const auto text = [](Bytes bytes) { return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size()); };
  const ExactParts second{.field = 2, .delimiter = ','};
  EXPECT_EQ(text(second.of(bytes_of("a,bc,d"))), "bc");
  EXPECT_EQ(text(second.of(bytes_of("a,bc"))), "bc");
  EXPECT_EQ(text(second.of(bytes_of("a"))), "");
  EXPECT_EQ(text(second.of(bytes_of(""))), "");
  EXPECT_EQ(text(ExactParts{.field = 1}.of(bytes_of("a\tb"))), "a");
}

// Digests are 64 bits: with 1e8 keys, two of them are equal once in 3700 universes.
TEST(Exact, CollisionsAreReported) {
  const Words words = {5, 1000, 77};
  const Words members = {77};
  const Words checks = {std::uint64_t{1} << 32, std::uint64_t{2} << 32, std::uint64_t{3} << 32};
  const Words same = {checks[2]};
  const Words another = {std::uint64_t{4} << 32};
  for (const bool announced : {true, false}) {
    for (const Words& member_checks : {same, another}) {
      const auto build = detail::ExactBuild::make({}, {});
      build->add_members({.words = members, .checks = member_checks});
      if (announced) build->begin(words.size());
      build->add({.words = words, .checks = checks});
      const auto tables = build->finish();
      EXPECT_EQ(bool(tables), member_checks == same);
      if (tables) continue;
      EXPECT_EQ(tables.error().code, Errc::unsupported);
      EXPECT_NE(tables.error().detail.find("same digest (word 0x000000000000004d)"), std::string::npos)
          << tables.error().detail;
    }
  }
  // Two members, or two others: one answer is right for both.
  const auto build = detail::ExactBuild::make({}, {});
  const Words twice = {77, 77};
  const Words two_checks = {std::uint64_t{3} << 32, std::uint64_t{4} << 32};
  build->add_members({.words = twice, .checks = two_checks});
  build->add({.words = twice, .checks = two_checks});
  build->add({.words = words, .checks = checks});
  EXPECT_TRUE(build->finish());
}

TEST(Exact, UpdatesFlipAnswers) {
  const Universe before(60'000, 0.02);
  Universe after = before;
  // A hundred go, two hundred come, of which some were not in the universe.
  after.sorted.clear();
  after.members.erase(after.members.begin(), after.members.begin() + 100);
  for (std::uint64_t i = 0; i < 200; ++i) {
    after.members.push_back(i % 2 == 0 ? Stream{999}.at(i) : before.keys[i]);
    if (i % 2 == 0) after.keys.push_back(after.members.back());
  }
  const auto was = Exact::build(all(before.members), all(before.keys));
  const auto is = Exact::build(all(after.members), all(after.keys));
  Words changed;
  for (const std::uint64_t key : after.keys) {
    if (was->contains(key) != is->contains(key)) changed.push_back(key);
  }
  const auto update = Exact::build(all(changed), all(after.keys));
  const auto updated = was->view().updated(update->view());
  ASSERT_TRUE(updated);
  EXPECT_EQ(wrong_answers(*updated, after), 0u);
  EXPECT_LT(update->byte_size(), is->byte_size() / 2);
  // And once more, through its image.
  const Image image(*updated);
  const auto again = ExactView::over(image.numbers, image.spans());
  ASSERT_TRUE(again);
  EXPECT_EQ(wrong_answers(*again, after), 0u);
  EXPECT_EQ(again->figures().layers, 2u);
  const auto other_hash = Exact::build(all(changed), all(after.keys), {}, {}, Hash(5));
  EXPECT_EQ(was->view().updated(other_hash->view()).error().code, Errc::mismatch);
}

class ExactFile : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = fs::temp_directory_path() /
              ("exact_" + std::to_string(getpid()) + testing::UnitTest::GetInstance()->current_test_info()->name());
    fs::create_directory(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  std::string path(const std::string& name) const { return folder_ / name; }

  static std::vector<std::byte> read(const std::string& path) {
    std::ifstream in(path, std::ios::binary);
    EXPECT_TRUE(in) << path;
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    const auto bytes = std::as_bytes(std::span(text));
    return {bytes.begin(), bytes.end()};
  }

  fs::path folder_;
};

TEST_F(ExactFile, IsReadAsItWasWritten) {
  const Universe universe(20'000, 0.03);
  const auto set = Exact::build(all(universe.members), all(universe.keys));
  ASSERT_TRUE(save(path("f"), *set, {.keys = universe.members.size()}));
  const auto file = File::open(path("f"));
  ASSERT_TRUE(file) << file.error().detail;
  const auto view = exact_in<Hash>(*file);
  ASSERT_TRUE(view);
  EXPECT_EQ(wrong_answers(*view, universe), 0u);
  EXPECT_FALSE(exact_in<KeyedHash>(*file));

  // As a filter: it never denies a member, and here it never errs.
  const auto any = file->any();
  ASSERT_NE(any->digests(), nullptr);
  Words digests;
  for (const std::uint64_t key : universe.keys) digests.push_back(digest_of(Hash(), key).value);
  std::vector<std::uint64_t> answers((digests.size() + 63) / 64);
  any->digests()->may_contain(digests, answers);
  for (std::size_t i = 0; i < digests.size(); ++i) {
    ASSERT_EQ((answers[i / 64] >> (i % 64) & 1) != 0, universe.is_member(universe.keys[i]));
    any->digests()->prefetch(digests[i]);
  }
  const Description d = any->describe();
  EXPECT_EQ(d.family, "exact");
  EXPECT_EQ(d.keys, universe.members.size());
  EXPECT_NE(std::find_if(d.more.begin(), d.more.end(),
                         [](const auto& fact) { return fact.second.find("meaningless") != std::string::npos; }),
            d.more.end());
  EXPECT_FALSE(file->load());  // takes no more keys
}

TEST_F(ExactFile, PartsNeedTheKey) {
  const Parted parted(5000);
  const auto set =
      BasicExact<KeyedHash>::build(all(parted.members), all(parted.keys), {.parts = {.field = 1}}, {}, keyed());
  ASSERT_TRUE(save(path("f"), *set, {.keys = parted.members.size()}));
  const auto file = File::open(path("f"), {.secret = keyed()});
  ASSERT_TRUE(file) << file.error().detail;
  EXPECT_EQ(parted.wrong(*exact_in<KeyedHash>(*file)), 0u);
  const auto any = file->any();
  EXPECT_EQ(any->digests(), nullptr);  // a digest does not tell its part
  for (std::size_t i = 0; i < parted.keys.size(); ++i) {
    ASSERT_EQ(any->may_contain(bytes_of(parted.keys[i])), set->contains(parted.keys[i]));
  }
  EXPECT_EQ(File::open(path("f")).error().code, Errc::bad_key);
}

// Through the C API, as every binding does.
TEST_F(ExactFile, IsReadThroughTheCApi) {
  const Parted parted(3000);
  for (const bool in_parts : {false, true}) {
    const auto set = Exact::build(all(parted.members), all(parted.keys), {.parts = {.field = in_parts ? 1u : 0u}});
    ASSERT_TRUE(save(path("f"), *set, {.keys = parted.members.size()}));
    perhaps_filter* opened = nullptr;
    ASSERT_EQ(perhaps_open(path("f").c_str(), nullptr, &opened), PERHAPS_OK) << perhaps_last_error();
    const std::unique_ptr<perhaps_filter, void (*)(perhaps_filter*)> filter(opened, &perhaps_free);
    for (const std::string_view key : parted.keys) {
      const perhaps_key one = {key.data(), key.size()};
      std::uint64_t answer = 0;
      ASSERT_EQ(perhaps_query(filter.get(), &one, 1, &answer), PERHAPS_OK);
      ASSERT_EQ(answer, set->contains(key)) << key;
    }
    EXPECT_NE(perhaps_insert(filter.get(), nullptr, 0, nullptr), PERHAPS_OK);
    perhaps_filter* copied = nullptr;
    ASSERT_EQ(perhaps_copy(filter.get(), &copied), PERHAPS_OK) << perhaps_last_error();
    const std::unique_ptr<perhaps_filter, void (*)(perhaps_filter*)> copy(copied, &perhaps_free);
    EXPECT_EQ(perhaps_byte_size(copy.get()), set->byte_size());
    ASSERT_EQ(perhaps_save(copy.get(), path("g").c_str()), PERHAPS_OK) << perhaps_last_error();
    EXPECT_TRUE(read(path("f")) == read(path("g")));
  }
}

// Damage that a checksum notices is refused; if nobody looks at checksums, lookups stay inside the bytes.
TEST_F(ExactFile, DamageIsRefusedOrHarmless) {
  const Parted parted(samples(4000));
  for (const ExactRequest& request : {ExactRequest{}, ExactRequest{.parts = {.field = 1}}}) {
    const auto set = Exact::build(all(parted.members), all(parted.keys), request);
    ASSERT_TRUE(save(path("f"), *set, {.keys = 1}));
    const auto whole = read(path("f"));
    for (std::size_t size = 0; size < whole.size(); ++size) {
      EXPECT_FALSE(File::over(Bytes(whole).first(size))) << size;
    }
    for (std::size_t bit = 0; bit < 8 * whole.size(); bit += 1 + bit % 7) {
      auto damaged = whole;
      damaged[bit / 8] ^= std::byte{1} << (bit % 8);
      EXPECT_FALSE(File::over(damaged)) << bit;
      const auto unseen = File::over(damaged, {.verify = false, .secret = {}});
      if (!unseen) continue;
      std::vector<std::uint64_t> answers((parted.keys.size() + 63) / 64);
      const auto view = exact_in<Hash>(*unseen);
      view->contains(all(parted.keys), answers);
    }
  }
}

TEST_F(ExactFile, NumbersAreNotTrusted) {
  const Parted parted(samples(4000));
  const auto set = Exact::build(all(parted.members), all(parted.keys), {.parts = {.field = 1}});
  const Image image(*set);
  ASSERT_TRUE(ExactView::over(image.numbers, image.spans()));
  std::vector<std::uint64_t> answers((parted.keys.size() + 63) / 64);
  for (std::size_t i = 0; i < image.numbers.size(); ++i) {
    for (const std::uint64_t value : {std::uint64_t{0}, std::uint64_t{1}, image.numbers[i] + 1, image.numbers[i] - 1,
                                      std::uint64_t{1} << 32, UINT64_MAX}) {
      Words numbers = image.numbers;
      numbers[i] = value;
      if (const auto view = ExactView::over(numbers, image.spans())) view->contains(all(parted.keys), answers);
    }
  }
  for (std::size_t i = 0; i < image.sections.size(); ++i) {
    auto sections = image.spans();
    sections[i] = sections[i].first(sections[i].size() - 1);
    EXPECT_FALSE(ExactView::over(image.numbers, sections)) << i;
    sections.erase(sections.begin() + static_cast<std::ptrdiff_t>(i));
    EXPECT_FALSE(ExactView::over(image.numbers, sections)) << i;
  }
  Words fewer = image.numbers;
  fewer.pop_back();
  EXPECT_FALSE(ExactView::over(fewer, image.spans()));
  EXPECT_FALSE(ExactView::over({}, {}));
}

// Every later library writes these bytes, and reads them.
TEST_F(ExactFile, Golden) {
  const Parted parted(3000);
  for (const bool in_parts : {false, true}) {
    const std::string name = in_parts ? "exact-parts-3000" : "exact-3000";
    const auto set = Exact::build(all(parted.members), all(parted.keys), {.parts = {.field = in_parts ? 1u : 0u}});
    const Record record{.keys = parted.members.size(), .capacity = parted.members.size()};
    ASSERT_TRUE(save(path(name), *set, record));
    const fs::path golden = fs::path(PERHAPS_TEST_DATA) / "golden/perhaps" / (name + ".perhaps");
    if (std::getenv("PERHAPS_UPDATE_GOLDEN") != nullptr)
      fs::copy_file(path(name), golden, fs::copy_options::overwrite_existing);
    EXPECT_TRUE(read(path(name)) == read(golden)) << name << ": the bytes have changed";
    const auto file = File::open(golden);
    ASSERT_TRUE(file) << file.error().detail;
    EXPECT_EQ(parted.wrong(*exact_in<Hash>(*file)), 0u);
  }
}

}  // namespace
}  // namespace perhaps::test
