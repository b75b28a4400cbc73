// Promise: union, intersection and fold never lose a key; union and fold give exactly the bytes that inserting the keys
// would give; filters that cannot be combined are refused with the reason. Would notice: a byte that differs, a lost
// key, a refusal that is missing or gives no reason.
#include "perhaps/algebra.h"

#include "support/no_false_negatives.h"

namespace perhaps::test {
namespace {

template <class F>
struct Algebra : ::testing::Test {
  using Shape = typename F::Shape;
  using H = typename F::hasher_type;

  // Shapes of a few sizes: odd ones, some that fold once, some that fold often.
  static std::vector<Shape> shapes() {
    if constexpr (std::same_as<Shape, BloomShape>) {
      return {{2, 1}, {6, 2}, {8, 3}, {26, 3}, {1022, 7}, {4096, 5}, {10'006, 7}, {100'000, 30}};
    } else if constexpr (std::same_as<Shape, LineShape>) {
      return {{2, 8}, {6, 3}, {64, 8}, {74, 11}, {1000, 16}, {1002, 1}};
    } else {
      return {{2}, {6}, {64}, {1002}};
    }
  }

  static F filled(Shape shape, std::uint64_t from, std::uint64_t to, H hasher = hasher_of<H>(6)) {
    F filter(shape, hasher);
    for (std::uint64_t key = from; key < to; ++key) filter.insert(key);
    return filter;
  }

  static Shape one_more(Shape s) {
    ++(s.*F::layout::fold_units().count);
    return s;
  }
};
TYPED_TEST_SUITE(Algebra, FamiliesAndHashers, FamilyNames);

TYPED_TEST(Algebra, UnionIsTheFilterOfBothLists) {
  for (const auto shape : TestFixture::shapes()) {
    auto into = TestFixture::filled(shape, 0, 300);
    const auto other = TestFixture::filled(shape, 200, 700);
    ASSERT_TRUE(merge(into, other));
    const auto all = TestFixture::filled(shape, 0, 700);
    EXPECT_TRUE(same_bytes(into.bytes(), all.bytes()));
  }
}

TYPED_TEST(Algebra, IntersectionKeepsEveryCommonKeyAndIsNoFullerThanEither) {
  for (const auto shape : TestFixture::shapes()) {
    auto into = TestFixture::filled(shape, 0, 300);
    const auto other = TestFixture::filled(shape, 200, 700);
    const auto before = condition_of(into);
    ASSERT_TRUE(intersect(into, other));
    for (std::uint64_t key = 200; key < 300; ++key) ASSERT_TRUE(into.may_contain(key));
    EXPECT_LE(condition_of(into).fill, before.fill);
    EXPECT_LE(condition_of(into).fill, condition_of(other).fill);
    for (std::uint64_t key = 0; key < 1000; ++key) {
      ASSERT_LE(into.may_contain(key), other.may_contain(key)) << "holds a key that one of them does not";
    }
  }
}

TYPED_TEST(Algebra, FoldIsTheFilterOfHalfTheSize) {
  for (const auto shape : TestFixture::shapes()) {
    auto whole = TestFixture::filled(shape, 0, 200);
    for (auto half = fold(whole); half; half = fold(whole)) {
      const auto built = TestFixture::filled(half->shape(), 0, 200);
      ASSERT_TRUE(same_bytes(half->bytes(), built.bytes()));
      ASSERT_EQ(half->hasher(), whole.hasher());
      whole = *std::move(half);
    }
  }
}

// A thousand keys, folded from a size whose half is not a whole number of bytes.
TYPED_TEST(Algebra, FoldedFiltersHoldTheirKeys) {
  for (const auto shape : TestFixture::shapes()) {
    const auto whole = TestFixture::filled(shape, 0, 1000);
    const auto half = fold(whole.view());
    ASSERT_TRUE(half);
    for (std::uint64_t key = 0; key < 1000; ++key) ASSERT_TRUE(half->may_contain(key));
  }
}

TYPED_TEST(Algebra, RefusalsSayWhy) {
  const auto shape = TestFixture::shapes().back();
  auto into = TestFixture::filled(shape, 0, 100);
  const auto untouched = into;
  const auto refused = [&](const TypeParam& other, const char* reason) {
    for (const auto& result : {merge(into, other), intersect(into, other)}) {
      ASSERT_FALSE(result);
      EXPECT_EQ(result.error().code, Errc::mismatch);
      EXPECT_NE(result.error().detail.find(reason), std::string::npos) << result.error().detail;
      EXPECT_TRUE(result.error().detail.starts_with(TypeParam::layout::family)) << result.error().detail;
    }
    EXPECT_TRUE(same_bytes(into.bytes(), untouched.bytes()));
  };
  refused(TypeParam(shape, hasher_of<typename TypeParam::hasher_type>(7)), "different seeds or keys");
  refused(TypeParam(TestFixture::one_more(shape), into.hasher()), "differ in");
  if constexpr (requires { shape.probes; }) {
    auto fewer = shape;
    fewer.probes = shape.probes == 1 ? 2 : shape.probes - 1;
    refused(TypeParam(fewer, into.hasher()), "differ in probes");
  }
  const auto odd = fold(TypeParam(TestFixture::one_more(shape), hasher_of<typename TypeParam::hasher_type>(1)));
  ASSERT_FALSE(odd);
  EXPECT_EQ(odd.error().code, Errc::mismatch);
  EXPECT_NE(odd.error().detail.find("cannot be halved"), std::string::npos);
}

TYPED_TEST(Algebra, SpansOverForeignMemoryCombineToo) {
  const auto shape = TestFixture::shapes().back();
  auto a = TestFixture::filled(shape, 0, 100);
  const auto b = TestFixture::filled(shape, 50, 200);
  Unaligned copy(a.bytes());
  auto span = *TypeParam::Span::over(copy.bytes(), shape, a.hasher());
  ASSERT_TRUE(merge(span, b.view()));
  const auto wanted = TestFixture::filled(shape, 0, 200);
  EXPECT_TRUE(same_bytes(copy.bytes(), wanted.bytes()));
  ASSERT_TRUE(intersect(span, a));
  EXPECT_TRUE(same_bytes(copy.bytes(), a.bytes()));
}

TYPED_TEST(Algebra, ConditionAtBothEnds) {
  for (const auto shape : TestFixture::shapes()) {
    TypeParam filter(shape, hasher_of<typename TypeParam::hasher_type>(1));
    const auto empty = condition_of(filter);
    EXPECT_EQ(empty.fill, 0);
    EXPECT_EQ(empty.fpr, 0);
    EXPECT_EQ(empty.keys, 0);
    if constexpr (std::same_as<typename TypeParam::Shape, BloomShape>) {
      for (std::uint64_t bit = 0; bit < shape.bits; ++bit) {
        filter.writable_bytes()[bit / 8] |= std::byte{1} << static_cast<int>(bit % 8);
      }
    } else {
      std::ranges::fill(filter.writable_bytes(), std::byte{0xff});
    }
    const auto full = condition_of(filter);
    EXPECT_EQ(full.fill, 1);
    EXPECT_EQ(full.fpr, 1);
    EXPECT_EQ(full.keys, std::numeric_limits<double>::infinity());
    EXPECT_TRUE(filter.may_contain("anything"));
  }
}

}  // namespace
}  // namespace perhaps::test
