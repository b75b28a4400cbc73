// Promise: every family can be built, saved, opened, queried, copied and, if it says so, inserted into, erased from and
// merged, through one interface; its file does not depend on the threads, and every later version reads it. Would
// notice: a key that is missing after any of these steps, a rate above the requested one, a family whose abilities
// differ from what it claims, bytes that depend on threads, a golden file that changed, a damaged file that leads a
// probe out of bounds.
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "perhaps/perhaps.h"
#include "support/families.h"

namespace perhaps {
namespace {

static_assert(ErasableFilter<CountingBloom> && ErasableFilter<Cuckoo> && ErasableFilter<Quotient>);
static_assert(ErasableFilter<CuckooSpan> && MutableFilter<Window> && MutableFilter<ScalableBloom>);
static_assert(Filter<Fuse> && Filter<Ribbon> && !MutableFilter<Fuse> && !MutableFilter<Ribbon>);
static_assert(FlatFilter<CuckooView> && FlatFilter<FuseView> && FlatFilter<RibbonView> && !FlatFilter<ScalableBloom>);
static_assert(!ErasableFilter<LineBloom> && !ErasableFilter<Window>);

namespace fs = std::filesystem;

struct Case {
  Kind family;
  bool keyed;
};

KeyedHash keyed() {
  KeyedHash::Secret secret;
  for (unsigned i = 0; i < secret.size(); ++i) secret[i] = std::byte(i);
  return KeyedHash(secret);
}

std::vector<Case> every_case() {
  std::vector<Case> cases;
  for (const Family& family : families()) {
    cases.push_back({family.kind, false});
    cases.push_back({family.kind, true});
  }
  return cases;
}

// "<prefix>0", "<prefix>1" ..
struct Keys {
  Keys(std::string_view prefix, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) text.push_back(std::string(prefix) + std::to_string(i));
    for (const std::string& key : text) bytes.push_back(bytes_of(key));
  }
  Keys(const Keys&) = delete;
  std::vector<std::string> text;
  std::vector<Bytes> bytes;
};

std::string read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in) << path;
  return {std::istreambuf_iterator<char>(in), {}};
}

std::size_t count_perhaps(const AnyFilter& filter, std::span<const Bytes> keys) {
  std::vector<std::uint64_t> answers(keys.size() / kBatch + 1);
  filter.may_contain(keys, answers);
  std::size_t count = 0;
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const bool column = (answers[i / 64] >> i % 64 & 1) != 0;
    EXPECT_EQ(column, filter.may_contain(keys[i])) << "the column and the single lookup differ";
    count += column;
  }
  return count;
}

class AnyFamilyTest : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    std::string name = testing::UnitTest::GetInstance()->current_test_info()->name();
    std::replace(name.begin(), name.end(), '/', '-');
    folder_ = fs::temp_directory_path() / ("any_family_" + std::to_string(getpid()) + name);
    fs::create_directory(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  const Family& about() const { return *find_family(GetParam().family); }
  AnyHasher hasher() const { return GetParam().keyed ? AnyHasher(keyed()) : AnyHasher(Hash(7)); }
  OpenOptions open_options(bool verify = true) const {
    return {.verify = verify, .secret = GetParam().keyed ? std::optional(keyed()) : std::nullopt};
  }

  std::unique_ptr<AnyOwner> build(std::span<const Bytes> keys, Request request, unsigned threads = 1) const {
    if (request.keys == 0) request.keys = about().sized_first ? keys.size() : 0;
    auto builder = make_builder(about().kind, request, hasher(), {.threads = threads});
    EXPECT_TRUE(builder);
    {
      auto lanes = (*builder)->lanes(threads);
      std::vector<std::jthread> workers;
      for (std::size_t t = 0; t < lanes.size(); ++t) {
        workers.emplace_back([&, t] {
          const std::size_t from = keys.size() * t / lanes.size();
          const auto mine = keys.subspan(from, keys.size() * (t + 1) / lanes.size() - from);
          // Half as keys and half as digests.
          EXPECT_TRUE(lanes[t]->insert(mine.first(mine.size() / 2)));
          std::vector<std::uint64_t> digests(mine.size() - mine.size() / 2);
          hash_many(hasher(), mine.subspan(mine.size() / 2), digests);
          EXPECT_TRUE(lanes[t]->insert_digests(digests));
        });
      }
    }
    auto built = (*builder)->finish();
    EXPECT_TRUE(built) << built.error().detail;
    return *std::move(built);
  }

  fs::path folder_;
};

INSTANTIATE_TEST_SUITE_P(Every, AnyFamilyTest, testing::ValuesIn(every_case()), [](const auto& each) {
  return std::string(name_of(each.param.family)) + (each.param.keyed ? "_keyed" : "_plain");
});

TEST_P(AnyFamilyTest, NoKeyIsMissingAfterAnyStepAndTheRateIsKept) {
  constexpr double kFpr = 0.02;
  const Keys absent("absent", 50'000);
  for (const std::size_t n : {0u, 1u, 2u, 65u, 1000u, 30'000u}) {
    SCOPED_TRACE(n);
    const Keys keys("key", n);
    const auto built = build(keys.bytes, {.fpr = kFpr});
    EXPECT_EQ(count_perhaps(*built, keys.bytes), n);
    // 5 sigma of 50,000 at 2 % are 157; a small set may deviate as a whole. A fuse filter has a rate above zero even
    // without keys.
    const std::size_t most = n == 0 && about().kind != Kind::fuse ? 0 : n == 0 || n >= 1000 ? 1157 : 50'000;
    EXPECT_LE(count_perhaps(*built, absent.bytes), most);

    const fs::path path = folder_ / "f";
    ASSERT_TRUE(built->save(path, built->record()));
    const auto file = File::open(path, open_options());
    ASSERT_TRUE(file) << file.error().detail;
    EXPECT_EQ(name_of(file->header().kind), about().name);
    const auto view = file->any();
    ASSERT_NE(view, nullptr);
    EXPECT_EQ(count_perhaps(*view, keys.bytes), n);
    EXPECT_EQ(count_perhaps(*view, absent.bytes), count_perhaps(*built, absent.bytes));
    EXPECT_EQ(view->byte_size(), built->byte_size());

    const Description d = view->describe();
    EXPECT_EQ(d.family, about().name);
    EXPECT_EQ(d.bytes, view->byte_size());
    if (n >= 1000) {
      EXPECT_NEAR(d.keys_estimated, static_cast<double>(n), 0.05 * static_cast<double>(n));
      EXPECT_LE(d.fpr, 1.1 * kFpr);
      EXPECT_GT(d.fpr, kFpr / 20) << "a short chain is far below the rate";
    }
  }
}

TEST_P(AnyFamilyTest, TheBytesDoNotDependOnThreadsNorOnRepeatedKeys) {
  if (about().in_order) GTEST_SKIP() << "keys are inserted in order, through one lane";
  const Keys keys("key", 20'000);
  std::vector<Bytes> doubled(keys.bytes.rbegin(), keys.bytes.rend());
  doubled.insert(doubled.end(), keys.bytes.begin(), keys.bytes.end());
  std::string expected;
  for (const unsigned threads : {1u, 2u, 3u}) {
    for (const auto& list : {keys.bytes, doubled}) {
      const auto built = build(list, {.keys = about().sized_first ? keys.bytes.size() : 0}, threads);
      ASSERT_TRUE(built->save(folder_ / "f", {}));
      const std::string bytes = read(folder_ / "f");
      if (expected.empty()) expected = bytes;
      EXPECT_TRUE(bytes == expected) << threads << " threads, " << list.size() << " keys";
    }
  }
}

TEST_P(AnyFamilyTest, WhatAFamilyClaimsItCanDoAndNothingElse) {
  const Keys keys("key", 5000);
  const Keys more("more", 5000);
  const std::size_t room = 12'000;
  const auto built = build(keys.bytes, {.keys = room});
  ASSERT_TRUE(built->save(folder_ / "f", built->record()));
  const auto file = File::open(folder_ / "f", open_options());
  ASSERT_TRUE(file);
  auto loaded = file->load();
  ASSERT_EQ(bool(loaded), about().inserts) << "inserts";
  EXPECT_EQ(bool(make_any(about().kind, {.keys = 10}, hasher())), about().inserts);
  if (!loaded) {
    EXPECT_EQ(loaded.error().code, Errc::unsupported);
    return;
  }
  ASSERT_EQ((*loaded)->insert(more.bytes), more.bytes.size());
  EXPECT_EQ(count_perhaps(**loaded, keys.bytes), keys.bytes.size());
  EXPECT_EQ(count_perhaps(**loaded, more.bytes), more.bytes.size());

  // The other half, in a separate filter.
  auto second = file->load();
  const auto others = build(more.bytes, {.keys = room});
  const auto merged = (*second)->merge(*others);
  ASSERT_EQ(bool(merged), about().merges) << "merges";
  if (merged) {
    EXPECT_EQ(count_perhaps(**second, keys.bytes), keys.bytes.size());
    EXPECT_EQ(count_perhaps(**second, more.bytes), more.bytes.size());
    EXPECT_EQ((*second)->record().keys, 10'000u);
    ASSERT_TRUE((*second)->save(folder_ / "both", (*second)->record()));
    EXPECT_TRUE(File::open(folder_ / "both", open_options()));
  } else {
    EXPECT_EQ(merged.error().code, Errc::unsupported);
    EXPECT_EQ(count_perhaps(**second, keys.bytes), keys.bytes.size()) << "a refusal changes nothing";
  }

  std::vector<std::uint64_t> digests(more.bytes.size());
  hash_many(hasher(), more.bytes, digests);
  const auto erased = (*loaded)->erase_digests(digests);
  ASSERT_EQ(bool(erased), about().erases) << "erases";
  EXPECT_EQ(count_perhaps(**loaded, keys.bytes), keys.bytes.size());
  if (erased) {
    EXPECT_EQ(erased->removed + erased->kept, digests.size());
    EXPECT_EQ((*loaded)->record().keys, keys.bytes.size());
    // The filter is now as if these keys had never been inserted, so nearly all of them are gone.
    EXPECT_LE(count_perhaps(**loaded, more.bytes), 150u);
    EXPECT_GE((*loaded)->erase_digests(digests)->absent, 4850u);
  }
}

// Every later library reads these files. The keys are "key0" to "key299", and each file was written when the layout of
// its family was frozen.
TEST_P(AnyFamilyTest, GoldenFilesAreWrittenAndReadToTheBit) {
  const Keys keys("key", 300);
  const std::string name = std::string(about().name) + (GetParam().keyed ? "-300-keyed" : "-300");
  const fs::path golden = fs::path(PERHAPS_TEST_DATA) / "golden/perhaps" / (name + ".perhaps");
  const auto built = build(keys.bytes, {.fpr = 0.001});
  ASSERT_TRUE(built->save(folder_ / name, built->record()));
  if (std::getenv("PERHAPS_UPDATE_GOLDEN") != nullptr)
    fs::copy_file(folder_ / name, golden, fs::copy_options::overwrite_existing);
  EXPECT_TRUE(read(folder_ / name) == read(golden)) << name << ": the bytes of version 2 have changed";
  const auto file = File::open(golden, open_options());
  ASSERT_TRUE(file) << file.error().detail;
  EXPECT_EQ(count_perhaps(*file->any(), keys.bytes), keys.bytes.size());
}

// Flips every bit of the parameters in the header and of the first 4 KiB of the table, one at a time. With checksums
// each flip is noticed. Without them, flips in the table are not, and no probe, insert or erase may leave the table
// (the sanitizers check).
TEST_P(AnyFamilyTest, ADamagedFileIsRefusedOrHarmless) {
  const Keys keys("key", 700);
  const Keys some("other", 64);
  const auto built = build(keys.bytes, {.fpr = 0.01});
  ASSERT_TRUE(built->save(folder_ / "f", built->record()));
  const std::string whole = read(folder_ / "f");
  std::vector<std::uint64_t> digests(some.bytes.size());
  hash_many(hasher(), some.bytes, digests);
  const std::size_t most = std::min<std::size_t>(whole.size(), 4096);
  for (std::size_t bit = 0; bit < most * 8; bit += bit < 2048 ? 1 : 7) {
    std::string damaged = whole;
    damaged[bit / 8] = static_cast<char>(damaged[bit / 8] ^ (1 << bit % 8));
    const Bytes bytes = std::as_bytes(std::span(damaged));
    EXPECT_FALSE(File::over(bytes, open_options())) << "bit " << bit;
    const auto file = File::over(bytes, open_options(false));
    if (!file) continue;
    const auto view = file->any();
    ASSERT_NE(view, nullptr);
    (void)view->may_contain(std::span(some.bytes));
    if (bit % 16 != 0) continue;
    (void)view->describe();
    if (auto copy = file->load()) {
      (void)(*copy)->insert(some.bytes);
      (void)(*copy)->erase_digests(digests);
      (void)(*copy)->merge(*built);
    }
  }
}

TEST(SizeTable, PredictsTheSizeOfABuild) {
  const Keys keys("key", 40'000);
  for (const double fpr : {0.05, 0.001}) {
    for (const FamilySize& size : size_table({.keys = keys.bytes.size(), .fpr = fpr})) {
      ASSERT_NE(find_family(size.kind), nullptr) << name_of(size.kind);
      const Family& about = *find_family(size.kind);
      auto builder = make_builder(size.kind, {.keys = about.sized_first ? keys.bytes.size() : 0, .fpr = fpr}, Hash());
      ASSERT_TRUE(builder);
      ASSERT_TRUE((*builder)->lanes(1)[0]->insert(keys.bytes));
      const auto built = (*builder)->finish();
      ASSERT_TRUE(built);
      EXPECT_NEAR(static_cast<double>((*built)->byte_size()), static_cast<double>(size.bytes),
                  0.01 * static_cast<double>(size.bytes))
          << about.name;
      EXPECT_LE(size.fpr, 1.0001 * fpr) << about.name;
    }
  }
}

// The requests that a family honours are those it says it does, and the refusal names the family and the field.
TEST(Requests, WhatAFamilyCannotHonourIsRefusedByName) {
  const struct {
    std::string field;
    AnyRequest request;
    bool Family::*honoured;
  } wishes[] = {
      {"guard_bits", {.keys = 100, .guard_bits = 2}, &Family::takes_guard},
      {"arity", {.keys = 100, .arity = 4}, &Family::takes_arity},
      {"bits_per_key", {.keys = 100, .bits_per_key = 20}, &Family::takes_any_size},
      {"max_bytes", {.keys = 100, .max_bytes = 1 << 16}, &Family::takes_any_size},
  };
  for (const Family& family : families()) {
    for (const auto& [field, request, honoured] : wishes) {
      SCOPED_TRACE(std::string(family.name) + ", " + field);
      const auto size = size_of(family.kind, request);
      const auto made = make_builder(family.kind, request, Hash());
      EXPECT_EQ(bool(size), family.*honoured);
      EXPECT_EQ(bool(made), family.*honoured);
      if (family.*honoured) continue;
      for (const Error& error : {size.error(), made.error()}) {
        EXPECT_EQ(error.code, Errc::unsupported);
        EXPECT_TRUE(error.detail.starts_with(std::string(family.name) + ": " + field)) << error.detail;
      }
      if (family.inserts) {
        EXPECT_EQ(make_any(family.kind, request, Hash()).error().detail, made.error().detail);
      }
    }
    for (const AnyRequest& wrong : {AnyRequest{.fpr = 0}, AnyRequest{.fpr = 1}, AnyRequest{.fpr = -1}}) {
      EXPECT_EQ(make_builder(family.kind, wrong, Hash()).error().code, Errc::bad_parameter) << family.name;
    }
  }
  EXPECT_EQ(make_any(Kind::cuckoo, {.keys = 9, .guard_bits = 17}, Hash()).error().code, Errc::bad_parameter);
  EXPECT_EQ(make_builder(Kind::fuse, {.keys = 9, .arity = 5}, Hash()).error().code, Errc::bad_parameter);
  // One bit per slot is the least that a static family can take: a smaller limit was exceeded without a word.
  const Keys keys("key ", 20'000);
  for (const Family& family : families()) {
    if (family.inserts) continue;
    const auto builder = std::move(*make_builder(family.kind, {.keys = 20'000, .max_bytes = 1000}, Hash()));
    EXPECT_TRUE(builder->lanes(1)[0]->insert(keys.bytes));
    const auto built = builder->finish();
    ASSERT_FALSE(built) << family.name;
    EXPECT_EQ(built.error().code, Errc::full) << family.name;
    EXPECT_NE(built.error().detail.find("20000 distinct keys need"), std::string::npos) << built.error().detail;
  }
  EXPECT_EQ(make_builder(Kind::sets, {}, Hash()).error().code, Errc::unsupported);
  EXPECT_EQ(make_any(Kind::dense, {}, Hash()).error().code, Errc::unsupported);
  EXPECT_EQ(make_any(Kind{77}, {}, Hash()).error().code, Errc::unsupported);
}

// Asking a family for what it does not have does not compile.
template <class Shape>
concept TakesGuard = requires {
  Shape::for_keys({.keys = 1, .guard_bits = 1});
};
template <class Shape>
concept TakesArity = requires {
  Shape::for_keys({.keys = 1, .arity = 4});
};
static_assert(TakesGuard<CuckooShape> && TakesGuard<QuotientShape> && TakesGuard<CountingShape>);
static_assert(!TakesGuard<LineShape> && !TakesGuard<FuseShape> && !TakesGuard<WindowShape>);
static_assert(TakesArity<FuseShape> && !TakesArity<RibbonShape> && !TakesArity<CuckooShape>);

// A family whose insert only sets bits is held to the promises of the typed suites, too.
template <class L, class... F>
consteval bool listed(testing::Types<F...>) {
  return (std::same_as<L, typename F::layout> || ...);
}
template <class Type>
consteval bool in_typed_suites() {
  if constexpr (BitLayout<Type>) return listed<Type>(test::Families{});
  return true;
}
#define PERHAPS_FAMILY(name, number, Type, summary) \
  static_assert(in_typed_suites<Type>(), "family " #name ": missing in Families (test/support/families.h)");
PERHAPS_FAMILIES(PERHAPS_FAMILY)
#undef PERHAPS_FAMILY

TEST(Families, EveryKindHasOneNameThatLeadsBackToIt) {
  for (const Family& family : families()) {
    EXPECT_EQ(family.name, name_of(family.kind));
    EXPECT_EQ(kind_named(family.name), family.kind);
    EXPECT_EQ(find_family(family.kind), &family);
    EXPECT_FALSE(family.summary.empty());
  }
  for (const Kind form : {Kind::sets, Kind::dense}) {
    EXPECT_EQ(kind_named(name_of(form)), form);
    EXPECT_EQ(find_family(form), nullptr);
  }
  EXPECT_EQ(kind_named("lines"), std::nullopt);
  EXPECT_EQ(kind_named(""), std::nullopt);
}

}  // namespace
}  // namespace perhaps
