// Promises: an explanation says what a lookup reads. Its verdict is the filter's answer, and follows from the checks by
// the rule that it names. Would notice: a position that the lookup does not read, a check that does not decide.
#include "any/explain.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "any/own_filter.h"
#include "perhaps/file/container.h"

namespace perhaps {
namespace {

std::unique_ptr<AnyOwner> built(Kind kind, std::size_t keys) {
  auto builder = make_builder(kind, {.keys = keys, .fpr = 0.05}, Hash());
  EXPECT_TRUE(builder);
  {
    const auto lanes = (*builder)->lanes(1);
    for (std::uint64_t i = 0; i < keys; ++i) {
      const std::uint64_t digest = digest_of(Hash(), i).value;
      EXPECT_TRUE(lanes[0]->insert_digests(std::span(&digest, 1)));
    }
  }
  auto filter = (*builder)->finish();
  EXPECT_TRUE(filter);
  return *std::move(filter);
}

bool follows(const ExplainedPart& part) {
  if (part.rule == "xor") {
    std::uint64_t together = 0;
    for (const Check& check : part.checks) together ^= check.found;
    return together == part.checks.at(0).wanted;
  }
  const auto holds = [](const Check& check) { return check.holds; };
  if (part.rule == "all") return std::ranges::all_of(part.checks, holds);
  return std::ranges::any_of(part.checks, holds);
}

// The bytes of the table, which the filter was built in.
std::span<std::byte> table_of(const AnyOwner& filter) {
  const OwnFilter own = own_filter_of(filter);
  const Bytes bytes = own.header(*filter.digests(), {}).sections.at(0).bytes;
  return {const_cast<std::byte*>(bytes.data()), bytes.size()};
}

class ExplainTest : public testing::TestWithParam<Family> {};

TEST_P(ExplainTest, TheVerdictFollowsFromTheChecksAndIsTheAnswer) {
  constexpr std::size_t kKeys = 1000;
  const Kind kind = GetParam().kind;
  const auto filter = built(kind, kKeys);
  std::size_t shown = 0;
  for (std::uint64_t key = 0; key < 4 * kKeys; ++key) {
    const Explanation e = explain(*filter, digest_for(*filter, key));
    ASSERT_EQ(e.family, name_of(kind));
    EXPECT_EQ(e.perhaps, filter->digests()->may_contain(std::span(&*e.digest, 1)) != 0) << key;
    bool any = false;
    for (const ExplainedPart& part : e.parts) {
      any |= part.perhaps;
      if (part.rule == "none") continue;
      ++shown;
      EXPECT_EQ(follows(part), part.perhaps) << key;
    }
    EXPECT_EQ(any, e.perhaps) << key;
    if (key < kKeys) {
      EXPECT_TRUE(e.perhaps) << key;
    }
  }
  EXPECT_GE(shown, 4 * kKeys) << "every key of every family has steps";
}

INSTANTIATE_TEST_SUITE_P(Families, ExplainTest, testing::ValuesIn(families().begin(), families().end()),
                         [](const auto& of) { return std::string(of.param.name); });

// Each check decides: the bits at its position, cleared, turn the answer of a key that is in into *no*.
TEST(ExplainedTest, EveryPositionIsWhereTheLookupReads) {
  for (const Kind kind : {Kind::line, Kind::block, Kind::classic, Kind::counting, Kind::window}) {
    const auto filter = built(kind, 300);
    const auto table = table_of(*filter);
    for (std::uint64_t key = 0; key < 50; ++key) {
      const std::uint64_t digest = digest_for(*filter, key);
      const Explanation explained = explain(*filter, digest);
      for (const Check& check : explained.parts.at(0).checks) {
        std::byte& byte = table[check.at / 8];
        const std::byte before = byte;
        byte &= ~static_cast<std::byte>(((1u << check.bits) - 1) << check.at % 8);
        EXPECT_EQ(filter->digests()->may_contain(std::span(&digest, 1)), 0u) << name_of(kind) << " " << check.at;
        byte = before;
      }
    }
  }
}

// The first coefficient of a key is 1, and each slot of a fuse filter counts: one bit, flipped, is a *no*.
TEST(ExplainedTest, EveryColumnAndSlotIsWhereTheLookupReads) {
  for (const Kind kind : {Kind::ribbon, Kind::fuse}) {
    const auto filter = built(kind, 3000);
    const auto table = table_of(*filter);
    std::size_t flipped = 0;
    for (std::uint64_t key = 0; key < 300; ++key) {
      const std::uint64_t digest = digest_for(*filter, key);
      const Explanation explained = explain(*filter, digest);
      if (explained.parts.at(0).steps.front().first == "part") continue;  // dense: any coefficient may be 0
      for (const Check& check : explained.parts.at(0).checks) {
        const std::byte bit{static_cast<unsigned char>(1u << check.at % 8)};
        table[check.at / 8] ^= bit;
        EXPECT_EQ(filter->digests()->may_contain(std::span(&digest, 1)), 0u) << name_of(kind) << " " << check.at;
        table[check.at / 8] ^= bit;
        ++flipped;
      }
    }
    EXPECT_GT(flipped, 600u);
  }
}

// Small ribbons are one dense part, which has a second chunk from 65 slots on, and at 5 % an extra column.
TEST(ExplainedTest, TheDensePartOfARibbonIsShown) {
  for (const std::size_t keys : {1, 20, 64, 65, 200}) {
    const auto filter = built(Kind::ribbon, keys);
    std::size_t widest = 0;
    std::size_t narrowest = 99;
    for (std::uint64_t key = 0; key < 1000; ++key) {
      const Explanation e = explain(*filter, digest_for(*filter, key));
      const ExplainedPart& part = e.parts.at(0);
      ASSERT_EQ(part.steps.at(0).second, "dense: each equation goes over all of its slots");
      EXPECT_EQ(follows(part), part.perhaps) << key;
      EXPECT_TRUE(key >= keys || e.perhaps) << key;
      widest = std::max(widest, part.checks.size());
      narrowest = std::min(narrowest, part.checks.size());
    }
    EXPECT_EQ(widest, narrowest + 1) << "some keys check one column more: 5 % is not a power of two";
  }
}

// A slot that holds the fingerprint is the one that the lookup finds: without it and its copies the key is gone.
TEST(ExplainedTest, EveryRunIsWhereTheLookupReads) {
  for (const Kind kind : {Kind::quotient, Kind::growing}) {
    const auto filter = built(kind, 1000);
    const auto table = table_of(*filter);
    std::size_t only = 0;
    for (std::uint64_t key = 0; key < 200; ++key) {
      const std::uint64_t digest = digest_for(*filter, key);
      const ExplainedPart part = explain(*filter, digest).parts.at(0);
      ASSERT_EQ(part.rule, "any");
      ASSERT_TRUE(part.checks.back().holds);
      const Check& check = part.checks.back();
      std::uint64_t before;
      std::byte* const at = table.data() + check.at / 8;
      std::memcpy(&before, at, 8);
      // Its highest bit is the first of the remainder.
      const std::uint64_t top = check.at % 8 + check.bits - 1;
      at[top / 8] ^= std::byte{static_cast<unsigned char>(1u << top % 8)};
      only += filter->digests()->may_contain(std::span(&digest, 1)) == 0;
      std::memcpy(at, &before, 8);
    }
    EXPECT_GT(only, 150u) << name_of(kind) << ": few keys share a fingerprint with another";
  }
}

// Bits of another system's filter: those that its own lookup reads.
TEST(ExplainedTest, TheBitsOfClassicFiltersOfOtherSystemsAreShown) {
  std::vector<std::string> texts;
  for (int i = 0; i < 100; ++i) texts.push_back("key" + std::to_string(i));
  std::vector<Bytes> keys;
  for (const std::string& text : texts) keys.push_back(bytes_of(text));
  std::size_t shown = 0;
  for (const format::Codec* codec : format::codecs()) {
    if (codec->build == nullptr) continue;
    const format::Params params(*codec);
    auto bytes = codec->build(keys, params);
    if (!bytes) continue;  // wants parameters
    const auto opened = codec->open({.bytes = *bytes, .file_name = {}}, params);
    if (!opened) continue;
    const Description described = opened->whole->describe();
    for (int i = 0; i < 300; ++i) {
      const std::string text = "key" + std::to_string(i);
      const Explanation e = explain_foreign(*opened, described, bytes_of(text));
      bool any = false;
      for (const ExplainedPart& part : e.parts) {
        any |= part.perhaps;
        if (part.rule == "none") continue;
        shown += i == 0;
        EXPECT_EQ(follows(part), part.perhaps) << codec->name << " " << text;
        EXPECT_FALSE(part.checks.empty()) << codec->name;
      }
      EXPECT_EQ(any, e.perhaps) << codec->name;
      EXPECT_TRUE(i >= 100 || e.perhaps) << codec->name;
    }
  }
  EXPECT_GE(shown, 8u) << "classic filters of other systems";
}

TEST(ExplainedTest, TextsAndNumbersHaveTheDigestsOfTheHash) {
  const auto filter = built(Kind::line, 10);
  EXPECT_EQ(digest_for(*filter, std::uint64_t{42}), digest_of(Hash(), 42).value);
  EXPECT_EQ(digest_for(*filter, bytes_of(std::string_view("42"))), digest_of(Hash(), "42").value);
}

}  // namespace
}  // namespace perhaps
