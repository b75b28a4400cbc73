// Promise: a filter whose family is chosen at run time answers, combines, describes and saves itself exactly as the
// typed filter of the same family does. Would notice: an overload that hides another, a lane that loses keys, a count
// that drifts, a refusal that does not say why.
#include "perhaps/any_filter.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <thread>

#include "perhaps/file/container.h"

namespace perhaps {
namespace {

struct Case {
  Kind family;
  bool keyed;
};

std::string name_of_case(const testing::TestParamInfo<Case>& info) {
  return std::string(name_of(info.param.family)) + (info.param.keyed ? "_keyed" : "_plain");
}

KeyedHash keyed(unsigned char first = 0) {
  KeyedHash::Secret secret;
  for (unsigned i = 0; i < secret.size(); ++i) secret[i] = std::byte(first + i);
  return KeyedHash(secret);
}

// Keys with their bytes: "<prefix>0", "<prefix>1" ..
struct Keys {
  Keys(std::string_view prefix, std::size_t count) {
    for (std::size_t i = 0; i < count; ++i) text.push_back(std::string(prefix) + std::to_string(i));
    for (const std::string& key : text) bytes.push_back(bytes_of(key));
  }
  Keys(const Keys&) = delete;
  std::span<const Bytes> first(std::size_t n) const { return std::span(bytes).first(n); }
  std::vector<std::string> text;
  std::vector<Bytes> bytes;
};

std::string table_of(const AnyOwner& filter, const std::filesystem::path& scratch, std::optional<KeyedHash> secret) {
  EXPECT_TRUE(filter.save(scratch, {}));
  auto file = File::open(scratch, {.secret = secret});
  EXPECT_TRUE(file);
  const Bytes table = file->header().sections[0].bytes;
  return {reinterpret_cast<const char*>(table.data()), table.size()};
}

class AnyFilterTest : public testing::TestWithParam<Case> {
 protected:
  AnyHasher hasher() const { return GetParam().keyed ? AnyHasher(keyed()) : AnyHasher(Hash(7)); }
  AnyHasher other_hasher() const { return GetParam().keyed ? AnyHasher(keyed(9)) : AnyHasher(Hash(8)); }
  std::optional<KeyedHash> secret() const { return GetParam().keyed ? std::optional(keyed()) : std::nullopt; }
  std::unique_ptr<AnyMutable> make(const Request& request) const {
    return std::move(*make_any(GetParam().family, request, hasher()));
  }
  void SetUp() override {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    std::string name = info->name();
    std::replace(name.begin(), name.end(), '/', '-');
    folder_ = std::filesystem::temp_directory_path() / ("any_filter_" + std::to_string(getpid()) + name);
    std::filesystem::create_directory(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  std::filesystem::path folder_;
};

// Every family whose insert only sets bits; any_family_test has what all families share.
std::vector<Case> every_case() {
  std::vector<Case> cases;
  for (const Family& family : families()) {
    if (!family.sets_bits) continue;
    cases.push_back({family.kind, false});
    cases.push_back({family.kind, true});
  }
  return cases;
}

INSTANTIATE_TEST_SUITE_P(Every, AnyFilterTest, testing::ValuesIn(every_case()), name_of_case);

TEST_P(AnyFilterTest, AnswersOneKeyABatchAndAColumnAlike) {
  const Keys in("in", 1000);
  const Keys out("out", 1000);
  const auto filter = make({.keys = 1000});
  ASSERT_EQ(filter->insert(in.bytes), (in.bytes).size());

  std::vector<Bytes> mixed;
  for (std::size_t i = 0; i < 1000; ++i) mixed.push_back(i % 3 == 0 ? in.bytes[i] : out.bytes[i]);
  std::vector<bool> expected;
  for (const Bytes& key : mixed) expected.push_back(filter->may_contain(key));
  for (std::size_t i = 0; i < 1000; i += 3) EXPECT_TRUE(expected[i]) << in.text[i];
  EXPECT_LT(std::count(expected.begin(), expected.end(), true), 334 + 40);  // 7 of 666 expected, 5 sigma are 20

  for (const std::size_t size : {0u, 1u, 2u, 63u, 64u}) {
    const std::uint64_t answers = filter->may_contain(std::span(mixed).first(size));
    for (std::size_t i = 0; i < 64; ++i) EXPECT_EQ(answers >> i & 1, i < size && expected[i]) << size << " " << i;
  }
  for (const std::size_t size : {0u, 1u, 63u, 64u, 65u, 127u, 128u, 1000u}) {
    constexpr std::uint64_t kUntouched = 0xabababababababab;
    std::vector<std::uint64_t> answers(17, kUntouched);
    filter->may_contain(std::span(mixed).first(size), answers);
    const std::size_t words = (size + kBatch - 1) / kBatch;
    for (std::size_t i = 0; i < words * kBatch; ++i) {
      EXPECT_EQ(answers[i / kBatch] >> i % kBatch & 1, i < size && expected[i]) << size << " " << i;
    }
    for (std::size_t i = words; i < answers.size(); ++i) EXPECT_EQ(answers[i], kUntouched) << size;
  }
}

TEST_P(AnyFilterTest, AnswersDigestsAsItAnswersTheirKeys) {
  const Keys in("in", 500);
  const Keys out("out", 500);
  const auto filter = make({.keys = 500, .fpr = 0.1});
  ASSERT_EQ(filter->insert(in.bytes), (in.bytes).size());
  const DigestProbe* probe = filter->digests();
  ASSERT_NE(probe, nullptr);
  EXPECT_EQ(probe->hasher(), hasher());

  for (const Keys* keys : {&in, &out}) {
    std::vector<std::uint64_t> digests(keys->bytes.size());
    hash_many(probe->hasher(), keys->bytes, digests);
    for (const std::size_t size : {0u, 1u, 63u, 64u, 65u, 500u}) {
      std::vector<std::uint64_t> by_key(8, 1), by_digest(8, 1);
      filter->may_contain(keys->first(size), by_key);
      for (const std::uint64_t digest : digests) probe->prefetch(digest);
      probe->may_contain(std::span(digests).first(size), by_digest);
      EXPECT_EQ(by_key, by_digest) << size;
      if (size <= kBatch) {
        EXPECT_EQ(probe->may_contain(std::span<const std::uint64_t>(digests).first(size)),
                  filter->may_contain(keys->first(size)));
      }
    }
    for (std::size_t i = 0; i < keys->bytes.size(); ++i) {
      const std::uint64_t alone =
          std::visit([&](const auto& h) { return digest_of(h, keys->text[i]).value; }, probe->hasher());
      EXPECT_EQ(digests[i], alone);
    }
  }
}

TEST_P(AnyFilterTest, LanesMakeTheSameBytesWhateverTheirNumber) {
  const Keys keys("key", 20'000);
  const auto alone = make({.keys = 20'000});
  ASSERT_EQ(alone->insert(keys.bytes), (keys.bytes).size());
  const std::string expected = table_of(*alone, folder_ / "alone", secret());
  EXPECT_EQ(alone->record().keys, 20'000u);

  for (const unsigned threads : {1u, 2u, 3u}) {
    const auto builder = make_builder(GetParam().family, {.keys = 20'000}, hasher());
    ASSERT_TRUE(builder);
    {
      auto lanes = (*builder)->lanes(threads);
      ASSERT_EQ(lanes.size(), threads);
      std::vector<std::jthread> workers;
      for (unsigned t = 0; t < threads; ++t) {
        workers.emplace_back([&, t, lane = std::move(lanes[t])] {
          const std::size_t from = 20'000 * t / threads;
          const auto mine = std::span(keys.bytes).subspan(from, 20'000 * (t + 1) / threads - from);
          // Half as keys and half as digests.
          EXPECT_TRUE(lane->insert(mine.first(mine.size() / 2)));
          std::vector<std::uint64_t> digests(mine.size() - mine.size() / 2);
          hash_many(hasher(), mine.subspan(mine.size() / 2), digests);
          EXPECT_TRUE(lane->insert_digests(digests));
        });
      }
    }
    const auto filter = (*builder)->finish();
    ASSERT_TRUE(filter);
    EXPECT_EQ(table_of(**filter, folder_ / "lanes", secret()), expected) << threads << " threads";
    EXPECT_EQ((*filter)->record().keys, 20'000u);
  }
}

TEST_P(AnyFilterTest, UnionIsTheFilterOfBothKeyLists) {
  const Keys a("a", 500);
  const Keys b("b", 700);
  const auto both = make({.keys = 1200});
  ASSERT_EQ(both->insert(a.bytes), (a.bytes).size());
  ASSERT_EQ(both->insert(b.bytes), (b.bytes).size());
  const auto left = make({.keys = 1200});
  const auto right = make({.keys = 1200});
  ASSERT_EQ(left->insert(a.bytes), (a.bytes).size());
  ASSERT_EQ(right->insert(b.bytes), (b.bytes).size());
  ASSERT_TRUE(left->merge(*right));
  EXPECT_EQ(table_of(*left, folder_ / "x", secret()), table_of(*both, folder_ / "y", secret()));
  EXPECT_EQ(left->record().keys, 1200u);
  EXPECT_EQ(left->record().capacity, 1200u);
}

TEST_P(AnyFilterTest, IntersectionKeepsTheCommonKeysAndFewOthers) {
  const Keys common("c", 300);
  const Keys a("a", 300);
  const Keys b("b", 400);
  const auto left = make({.keys = 2000, .fpr = 0.001});
  const auto right = make({.keys = 2000, .fpr = 0.001});
  for (const auto& filter : {left.get(), right.get()}) {
    ASSERT_EQ(filter->insert(common.bytes), common.bytes.size());
  }
  ASSERT_EQ(left->insert(a.bytes), (a.bytes).size());
  ASSERT_EQ(right->insert(b.bytes), (b.bytes).size());
  const double before = left->describe().fpr;
  ASSERT_TRUE(left->intersect(*right));
  for (const Bytes& key : common.bytes) EXPECT_TRUE(left->may_contain(key));
  int others = 0;
  for (const Keys* keys : {&a, &b}) {
    for (const Bytes& key : keys->bytes) others += left->may_contain(key);
  }
  EXPECT_LT(others, 20);
  EXPECT_LE(left->describe().fpr, before);
  EXPECT_EQ(left->record().keys, 600u);
}

// The other filter may be a view over a file instead of an owner.
TEST_P(AnyFilterTest, UnitesWithAFileThatIsOnlyMapped) {
  const Keys a("a", 500);
  const auto saved = make({.keys = 500});
  ASSERT_EQ(saved->insert(a.bytes), (a.bytes).size());
  ASSERT_TRUE(saved->save(folder_ / "a", saved->record()));
  auto file = File::open(folder_ / "a", {.secret = secret()});
  ASSERT_TRUE(file);
  const auto filter = make({.keys = 500});
  ASSERT_TRUE(filter->merge(*file->any()));
  EXPECT_EQ(table_of(*filter, folder_ / "x", secret()), table_of(*saved, folder_ / "y", secret()));
  EXPECT_EQ(filter->record().keys, 500u);
}

TEST_P(AnyFilterTest, RefusesToCombineUnlikeFiltersAndSaysWhy) {
  const std::string family(name_of(GetParam().family));
  const std::string hash(name_of(hasher()));
  const auto filter = make({.keys = 1000, .bits_per_key = 12});
  const auto refusal = [&](const AnyFilter& other) {
    const std::string before = table_of(*filter, folder_ / "before", secret());
    const auto merged = filter->merge(other);
    const auto intersected = filter->intersect(other);
    EXPECT_EQ(table_of(*filter, folder_ / "after", secret()), before);
    EXPECT_FALSE(merged);
    EXPECT_FALSE(intersected);
    if (merged || intersected) return std::string();
    EXPECT_EQ(merged.error().code, Errc::mismatch);
    EXPECT_EQ(merged.error().detail, intersected.error().detail);
    return merged.error().detail;
  };

  const auto size_of = [](const AnyFilter& f) {
    const Description d = f.describe();
    return d.family == "classic" ? std::to_string(d.bits) : d.more[0].second;
  };
  const auto larger = make({.keys = 2000, .bits_per_key = 12});
  const std::string unit = family == "classic" ? "bits" : family + "s";
  EXPECT_EQ(refusal(*larger),
            family + ": the filters differ in " + unit + ": " + size_of(*filter) + " and " + size_of(*larger));

  const auto seeded = std::move(*make_any(GetParam().family, {.keys = 1000, .bits_per_key = 12}, other_hasher()));
  EXPECT_EQ(refusal(*seeded), family + ": the filters hash with different seeds or keys");

  const Kind other_family = GetParam().family == Kind::line ? Kind::block : Kind::line;
  const auto unlike = std::move(*make_any(other_family, {.keys = 1000, .bits_per_key = 12}, hasher()));
  EXPECT_EQ(refusal(*unlike), "the filters differ in kind: " + family + " with " + hash + ", and " +
                                  std::string(name_of(other_family)) + " with " + hash);

  const AnyHasher other_scheme = GetParam().keyed ? AnyHasher(Hash()) : AnyHasher(keyed());
  const auto rehashed = std::move(*make_any(GetParam().family, {.keys = 1000, .bits_per_key = 12}, other_scheme));
  EXPECT_EQ(refusal(*rehashed), "the filters differ in kind: " + family + " with " + hash + ", and " + family +
                                    " with " + std::string(name_of(other_scheme)));
}

TEST(AnyFilter, ShapesOfDifferentProbesAreRefused) {
  const auto two = std::move(*make_any(Kind::line, {.keys = 2000, .max_bytes = 640}, Hash()));
  const auto many = std::move(*make_any(Kind::line, {.keys = 10, .max_bytes = 640}, Hash()));
  const auto refused = two->merge(*many);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().detail, "line: the filters differ in probes: " + std::to_string(two->describe().probes) +
                                        " and " + std::to_string(many->describe().probes));
}

TEST_P(AnyFilterTest, FoldIsTheFilterOfHalfTheSizeUntilItsSizeIsOdd) {
  const Keys keys("key", 400);
  const auto whole = make({.keys = 400, .max_bytes = 6 * 64});
  ASSERT_EQ(whole->insert(keys.bytes), (keys.bytes).size());
  const auto half = whole->fold();
  ASSERT_TRUE(half);
  EXPECT_EQ((*half)->byte_size(), whole->byte_size() / 2);
  EXPECT_EQ((*half)->record().keys, 400u);
  for (const Bytes& key : keys.bytes) EXPECT_TRUE((*half)->may_contain(key));

  Result<std::unique_ptr<AnyMutable>> last = (*whole).fold();
  while (last) {
    auto next = (*last)->fold();
    if (!next) {
      EXPECT_EQ(next.error().code, Errc::mismatch);
      const std::string family(name_of(GetParam().family));
      const Description d = (*last)->describe();
      const bool by_bits = d.more.empty() || d.more[0].first == "seed";
      const std::string size = by_bits ? std::to_string(d.bits) + " bits" : d.more[0].second + " " + d.more[0].first;
      EXPECT_EQ(next.error().detail, family + ": " + size + " cannot be halved");
    }
    last = std::move(next);
  }
}

TEST_P(AnyFilterTest, ComesBackFromItsFile) {
  const Keys in("in", 2000);
  const Keys out("out", 2000);
  const auto filter = make({.keys = 2500});
  ASSERT_EQ(filter->insert(in.bytes), (in.bytes).size());
  const std::string path = folder_ / "f.perhaps";
  ASSERT_TRUE(filter->save(path, filter->record()));
  auto file = File::open(path, {.secret = secret()});
  ASSERT_TRUE(file) << file.error().detail;
  EXPECT_EQ(file->hasher(), hasher());
  const auto mapped = file->any();
  auto loaded = file->load();
  ASSERT_TRUE(loaded);
  const AnyFilter* const copies[] = {mapped.get(), loaded->get()};
  for (const AnyFilter* copy : copies) {
    for (const Keys* keys : {&in, &out}) {
      std::vector<std::uint64_t> before(32), after(32);
      filter->may_contain(keys->bytes, before);
      copy->may_contain(keys->bytes, after);
      EXPECT_EQ(before, after);
    }
    EXPECT_EQ(copy->record().keys, 2000u);
    EXPECT_EQ(copy->record().capacity, 2500u);
    EXPECT_EQ(copy->byte_size(), filter->byte_size());
    const Description a = copy->describe();
    const Description b = filter->describe();
    EXPECT_EQ(std::tie(a.format, a.family, a.hash, a.keys, a.capacity, a.keys_estimated, a.bits, a.bytes, a.probes,
                       a.fill, a.fpr, a.fpr_at_capacity, a.more),
              std::tie(b.format, b.family, b.hash, b.keys, b.capacity, b.keys_estimated, b.bits, b.bytes, b.probes,
                       b.fill, b.fpr, b.fpr_at_capacity, b.more));
  }
  ASSERT_EQ((*loaded)->insert(out.bytes), (out.bytes).size());
  EXPECT_EQ((*loaded)->record().keys, 4000u);
  ASSERT_TRUE((*loaded)->save(path, (*loaded)->record()));
  for (const Bytes& key : out.bytes) EXPECT_FALSE(mapped->may_contain(key) && !filter->may_contain(key));
  auto again = File::open(path, {.secret = secret()});
  ASSERT_TRUE(again);
  for (const Bytes& key : out.bytes) EXPECT_TRUE(again->any()->may_contain(key));
}

TEST_P(AnyFilterTest, DescribesItself) {
  const Keys keys("key", 10'000);
  const auto filter = make({.keys = 10'000, .fpr = 0.01});
  const Description empty = filter->describe();
  EXPECT_EQ(empty.fill, 0);
  EXPECT_EQ(empty.fpr, 0);
  EXPECT_EQ(empty.keys, 0u);
  EXPECT_EQ(empty.keys_estimated, 0);

  ASSERT_EQ(filter->insert(keys.bytes), (keys.bytes).size());
  const Description d = filter->describe();
  EXPECT_EQ(d.format, "perhaps");
  EXPECT_EQ(d.family, name_of(GetParam().family));
  EXPECT_EQ(d.hash, GetParam().keyed ? "siphash-1-3" : "xxh3-64");
  EXPECT_EQ(d.keys, 10'000u);
  EXPECT_EQ(d.capacity, 10'000u);
  EXPECT_NEAR(d.keys_estimated, 10'000, 250);
  EXPECT_EQ(d.bytes, filter->byte_size());
  EXPECT_EQ(d.bytes, (d.bits + 7) / 8);
  EXPECT_GE(d.probes, 5u);
  EXPECT_LE(d.probes, 9u);
  EXPECT_GT(d.fill, 0.4);
  EXPECT_LT(d.fill, 0.6);
  EXPECT_NEAR(d.fpr, 0.01, 0.001);
  EXPECT_NEAR(d.fpr_at_capacity, 0.01, 0.0005);
  const bool has_seed =
      std::find(d.more.begin(), d.more.end(), std::pair<std::string, std::string>("seed", "7")) != d.more.end();
  EXPECT_EQ(has_seed, !GetParam().keyed);
}

TEST(AnyFilter, AKindThatIsNoFamilyIsRefusedByName) {
  const auto made = make_any(Kind::sets, {.keys = 1}, Hash());
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Errc::unsupported);
  EXPECT_EQ(made.error().detail, "sets is not a family that can be built");
}

// A filter implemented outside the library: no digests, nothing recorded.
TEST(AnyFilter, CanBeImplementedOutsideAndIsNotCombined) {
  class Everything : public AnyFilter {
   public:
    using AnyFilter::may_contain;
    std::uint64_t may_contain(std::span<const Bytes> keys) const noexcept override {
      return keys.size() == kBatch ? ~std::uint64_t{0} : (std::uint64_t{1} << keys.size()) - 1;
    }
    void may_contain(std::span<const Bytes>, std::span<std::uint64_t> answers) const noexcept override {
      for (std::uint64_t& a : answers) a = ~std::uint64_t{0};
    }
    std::uint64_t byte_size() const noexcept override { return 0; }
    Description describe() const override {
      Description d;
      d.family = "everything";
      d.hash = "none";
      return d;
    }
  };
  const Everything other;
  EXPECT_TRUE(other.may_contain(bytes_of("x")));
  EXPECT_EQ(other.digests(), nullptr);
  EXPECT_EQ(other.record().keys, 0u);
  const auto filter = std::move(*make_any(Kind::line, {.keys = 10}, Hash()));
  const auto refused = filter->merge(other);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().detail, "the filters differ in kind: line with xxh3-64, and everything with none");
}

TEST(AnyFilter, SizeTableHasEveryFamilyAtTheRateItPromises) {
  const auto sizes = size_table({.keys = 1'000'000, .fpr = 0.001});
  ASSERT_EQ(sizes.size(), families().size());
  for (const FamilySize& size : sizes) {
    const Family* const family = find_family(size.kind);
    ASSERT_NE(family, nullptr);
    EXPECT_LE(size.fpr, 0.001) << family->name;
    if (!family->sets_bits) continue;  // any_family_test
    const auto made = make_any(size.kind, {.keys = 1'000'000, .fpr = 0.001}, Hash());
    ASSERT_TRUE(made) << family->name;
    const Description d = (*made)->describe();
    EXPECT_EQ(size.bytes, d.bytes);
    EXPECT_EQ(size.bits, d.bits);
    EXPECT_EQ(size.probes, d.probes);
    EXPECT_EQ(size.fpr, d.fpr_at_capacity);
    EXPECT_LE(size.fpr, 0.001);
    EXPECT_GT(size.fpr, 0.00095);
  }
}

}  // namespace
}  // namespace perhaps
