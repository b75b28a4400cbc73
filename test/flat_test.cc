// Promise: owners, views, spans and shared views are one filter seen four ways; they copy, move and refuse as values
// do. Would notice: a view that outlives an assignment wrongly, a copy that shares bits, a shape that is accepted
// without the bytes for it.
#include "perhaps/flat.h"

#include <set>

#include "support/no_false_negatives.h"

namespace perhaps::test {
namespace {

static_assert(std::is_trivially_copyable_v<LineBloomView> && std::is_trivially_copyable_v<BloomView>);
static_assert(FlatFilter<LineBloom> && FlatFilter<BlockBloomView> && FlatFilter<Bloom>);
static_assert(MutableFilter<LineBloom> && MutableFilter<LineBloomSpan> && MutableFilter<Bloom>);
static_assert(!MutableFilter<LineBloomView> && !ErasableFilter<LineBloom>);
static_assert(std::is_nothrow_move_constructible_v<LineBloom>);

template <class F>
struct Values : ::testing::Test {
  static F of(std::uint64_t from, std::uint64_t to) {
    F filter(Request{.keys = 1000, .fpr = 0.01}, hasher_of<typename F::hasher_type>(8));
    for (std::uint64_t key = from; key < to; ++key) filter.insert(key);
    return filter;
  }
  static bool holds(const F& filter, std::uint64_t from, std::uint64_t to) {
    for (std::uint64_t key = from; key < to; ++key) {
      if (!filter.may_contain(key)) return false;
    }
    return true;
  }
};
TYPED_TEST_SUITE(Values, FamiliesAndHashers, FamilyNames);

TYPED_TEST(Values, CopiesAreApart) {
  auto original = TestFixture::of(0, 500);
  const auto before = original;
  auto copy = original;
  EXPECT_NE(copy.bytes().data(), original.bytes().data());
  for (std::uint64_t key = 500; key < 1000; ++key) copy.insert(key);
  EXPECT_TRUE(same_bytes(original.bytes(), before.bytes()));
  EXPECT_TRUE(TestFixture::holds(copy, 0, 1000));
  original = copy;
  EXPECT_TRUE(same_bytes(original.bytes(), copy.bytes()));
  original.clear();
  EXPECT_TRUE(TestFixture::holds(copy, 0, 1000));
}

TYPED_TEST(Values, MovesTakeTheBytesAlong) {
  auto from = TestFixture::of(0, 500);
  const std::byte* where = from.bytes().data();
  auto to = std::move(from);
  EXPECT_EQ(to.bytes().data(), where);
  EXPECT_TRUE(TestFixture::holds(to, 0, 500));
  from = TestFixture::of(500, 700);
  EXPECT_TRUE(TestFixture::holds(from, 500, 700));
  from = std::move(to);
  EXPECT_EQ(from.bytes().data(), where);
  EXPECT_TRUE(TestFixture::holds(from, 0, 500));
  auto& same = from;
  from = same;
  EXPECT_TRUE(TestFixture::holds(from, 0, 500));
  std::swap(from, to = TestFixture::of(1, 2));
  EXPECT_TRUE(TestFixture::holds(to, 0, 500));
}

TYPED_TEST(Values, AssignmentTakesShapeAndHasher) {
  using H = typename TypeParam::hasher_type;
  TypeParam small(Request{.keys = 10, .fpr = 0.1}, hasher_of<H>(1));
  TypeParam large(Request{.keys = 10'000, .fpr = 0.001}, hasher_of<H>(2));
  large.insert("key");
  small = large;
  EXPECT_EQ(small.shape(), large.shape());
  EXPECT_EQ(small.hasher(), large.hasher());
  EXPECT_TRUE(small.may_contain("key"));
}

TYPED_TEST(Values, ClearedIsEmpty) {
  auto filter = TestFixture::of(0, 500);
  filter.clear();
  EXPECT_TRUE(std::ranges::all_of(filter.bytes(), [](std::byte b) { return b == std::byte{0}; }));
  EXPECT_FALSE(filter.may_contain(1));
  EXPECT_EQ(filter.insert(1), Inserted::added);
}

TYPED_TEST(Values, AnOwnerCanBeMadeOfAView) {
  const auto filter = TestFixture::of(0, 500);
  const auto view = filter.view();
  const auto again = view;
  const TypeParam copy(again);
  EXPECT_NE(copy.bytes().data(), filter.bytes().data());
  EXPECT_TRUE(same_bytes(copy.bytes(), filter.bytes()));
  EXPECT_EQ(copy.hasher(), filter.hasher());
  EXPECT_EQ(copy.shape(), filter.shape());
}

TYPED_TEST(Values, InsertSaysWhetherTheKeyLookedNew) {
  TypeParam filter(Request{.keys = 1000, .fpr = 0.01}, hasher_of<typename TypeParam::hasher_type>(1));
  for (std::uint64_t key = 0; key < 1000; ++key) {
    const bool known = filter.may_contain(key);
    EXPECT_EQ(filter.insert(key), known ? Inserted::present : Inserted::added);
    EXPECT_EQ(filter.insert(key), Inserted::present);
    EXPECT_EQ(filter.shared().insert(key), Inserted::present);
  }
}

// The same bytes by every way in.
TYPED_TEST(Values, EveryWayInWritesTheSameBytes) {
  const auto hasher = hasher_of<typename TypeParam::hasher_type>(8);
  const auto keys = keys_of(kIntegerPatterns[0], 2000);
  const auto digests = digests_of(hasher, keys);
  const auto shape = TypeParam::Shape::for_keys({.keys = 2000, .fpr = 0.01});
  std::vector<std::byte> wanted(shape.bytes());
  for (const auto& d : digests) set_all(shape, wanted, d.value);
  for (std::uint64_t turn = 0; turn < 5 * kernel::rows().size(); ++turn) {
    TypeParam filter(shape, hasher);
    insert_somehow(filter, std::span<const std::uint64_t>(keys), std::span(digests), turn);
    EXPECT_TRUE(same_bytes(filter.bytes(), wanted)) << turn;
  }
}

TYPED_TEST(Values, AViewNeedsAllItsBytes) {
  const auto filter = TestFixture::of(0, 10);
  const auto bytes = filter.bytes();
  ASSERT_TRUE(TypeParam::View::over(bytes, filter.shape(), filter.hasher()));
  const auto cut = TypeParam::View::over(bytes.first(bytes.size() - 1), filter.shape(), filter.hasher());
  ASSERT_FALSE(cut);
  EXPECT_EQ(cut.error().code, Errc::truncated);
  EXPECT_NE(cut.error().detail.find(std::to_string(bytes.size())), std::string::npos) << cut.error().detail;
  std::vector<std::byte> short_table(bytes.size() - 1);
  EXPECT_FALSE(TypeParam::Span::over(short_table, filter.shape(), filter.hasher()));
  EXPECT_FALSE(TypeParam::Shared::over(short_table, filter.shape(), filter.hasher()));
}

TEST(FlatShapes, OutOfRangeShapesAreRefusedWhateverTheBytes) {
  std::vector<std::byte> table(1 << 16);
  const auto refused = [](auto result) { return !result && result.error().code == Errc::bad_parameter; };
  EXPECT_TRUE(refused(BloomView::over(table, {.bits = 0, .probes = 1})));
  EXPECT_TRUE(refused(BloomView::over(table, {.bits = 8, .probes = 0})));
  EXPECT_TRUE(refused(BloomView::over(table, {.bits = 8, .probes = 31})));
  EXPECT_TRUE(refused(LineBloomView::over(table, {.lines = 0, .probes = 8})));
  EXPECT_TRUE(refused(LineBloomView::over(table, {.lines = 1, .probes = 0})));
  EXPECT_TRUE(refused(LineBloomView::over(table, {.lines = 1, .probes = 17})));
  EXPECT_TRUE(refused(LineBloomView::over(table, {.lines = UINT64_MAX / 64 + 2, .probes = 8})));
  EXPECT_TRUE(refused(BlockBloomView::over(table, {.blocks = 0})));
  EXPECT_TRUE(refused(BlockBloomView::over(table, {.blocks = BlockShape::kMaxBlocks + 1})));
  EXPECT_FALSE(BloomView::over(table, {.bits = UINT64_MAX, .probes = 1}));
}

TEST(FlatShared, NeedsWholeAlignedWords) {
  alignas(8) std::array<std::byte, 80> table{};
  const BloomShape shape{.bits = 100, .probes = 3};
  EXPECT_TRUE(BloomShared::over(std::span(table).first(16), shape));
  EXPECT_FALSE(BloomShared::over(std::span(table).subspan(1, 16), shape));
  EXPECT_FALSE(BloomShared::over(std::span(table).first(13), shape));
}

// Past the end of the answers nothing is written, and unused bits of the last word are 0.
TEST(FlatColumn, WritesTheWordsItNeedsAndNoMore) {
  LineBloom filter({.keys = 1000, .fpr = 0.01});
  const auto keys = keys_of(kIntegerPatterns[1], 130);
  filter.insert(std::span<const std::uint64_t>(keys));
  std::vector<std::uint64_t> answers(4, 0x77);
  filter.may_contain(std::span<const std::uint64_t>(keys), answers);
  EXPECT_EQ(answers, (std::vector<std::uint64_t>{UINT64_MAX, UINT64_MAX, 3, 0x77}));
  filter.may_contain(std::span<const std::uint64_t>(), answers);
  EXPECT_EQ(answers[0], UINT64_MAX);
}

// What must not compile: a filter under a secret that nobody chose, an owner or a span assigned through what it derives
// from (its table would no longer be its memory), a key mistaken for a digest, a span of bytes mistaken for a column.
template <class F>
concept MadeWithoutSecret = requires {
  F(Request{.keys = 1});
};
template <class F, class K>
concept InsertsColumnOf = requires(F f, std::span<K> keys) {
  f.insert(keys);
};
template <class F>
concept TakesBareWord = requires(F f) {
  f.insert({std::uint64_t{42}});
};
static_assert(MadeWithoutSecret<LineBloom> && !std::is_default_constructible_v<KeyedHash>);
static_assert(!std::is_assignable_v<FlatProbes<LineLayout, Hash>&, LineBloomView>);
static_assert(std::is_convertible_v<LineBloom&, LineBloomView> && std::is_convertible_v<LineBloomSpan, LineBloomView>);
static_assert(!std::is_convertible_v<const LineBloom&, LineBloomSpan>);
static_assert(std::is_trivially_copyable_v<LineBloomView> && std::is_trivially_copyable_v<LineBloomSpan>);
static_assert(!TakesBareWord<LineBloom>);
static_assert(InsertsColumnOf<LineBloom, std::uint64_t> && InsertsColumnOf<LineBloom, const std::string_view>);
static_assert(!InsertsColumnOf<LineBloom, const std::uint8_t>);

}  // namespace
}  // namespace perhaps::test
