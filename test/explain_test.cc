// Promises: an explanation says what a lookup reads. Its verdict is the filter's answer, and follows from the checks by
// the rule that it names. Would notice: a position that the lookup does not read, a check that does not decide.
#include "any/explain.h"

#include <gtest/gtest.h>

#include <algorithm>

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
  const bool steps = kind != Kind::quotient && kind != Kind::growing && kind != Kind::window && kind != Kind::fuse;
  EXPECT_EQ(shown > 3 * kKeys, steps) << "most keys of a family that is shown have steps";
}

INSTANTIATE_TEST_SUITE_P(Families, ExplainTest, testing::ValuesIn(families().begin(), families().end()),
                         [](const auto& of) { return std::string(of.param.name); });

// Each check decides: the bits at its position, changed, change what it finds.
TEST(ExplainedTest, EveryPositionIsWhereTheLookupReads) {
  for (const Kind kind : {Kind::line, Kind::block, Kind::classic, Kind::counting}) {
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

TEST(ExplainedTest, TextsAndNumbersHaveTheDigestsOfTheHash) {
  const auto filter = built(Kind::line, 10);
  EXPECT_EQ(digest_for(*filter, std::uint64_t{42}), digest_of(Hash(), 42).value);
  EXPECT_EQ(digest_for(*filter, bytes_of(std::string_view("42"))), digest_of(Hash(), "42").value);
}

}  // namespace
}  // namespace perhaps
