// Promise: owners, views, spans and shared handles are four ways to access one filter; they copy and move like values.
// Would notice: a view that is wrong after an assignment, a copy that shares bits, a shape that is accepted without
// the bytes for it.
#include "perhaps/flat.h"

#include <set>

#include "perhaps/counting_bloom.h"
#include "perhaps/cuckoo.h"
#include "perhaps/fuse.h"
#include "perhaps/growing.h"
#include "perhaps/quotient.h"
#include "perhaps/ribbon.h"
#include "perhaps/window.h"
#include "support/kernels.h"
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

TYPED_TEST(Values, CopiesAreIndependent) {
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

TYPED_TEST(Values, EveryKindOfInsertWritesTheSameBytes) {
  const auto hasher = hasher_of<typename TypeParam::hasher_type>(8);
  const auto keys = keys_of(kIntegerPatterns[0], 2000);
  const auto digests = digests_of(hasher, keys);
  const auto shape = TypeParam::Shape::for_keys({.keys = 2000, .fpr = 0.01});
  std::vector<std::byte> wanted(shape.bytes());
  for (const auto& d : digests) set_all(shape, wanted, d.word());
  for (std::uint64_t turn = 0; turn < 5 * kernel::instruction_sets().size(); ++turn) {
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

// Nothing is written past the end of the answers, and unused bits of the last word are 0.
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

// What must not compile: a keyed filter without a secret, an owner or a span assigned through its base class (its table
// would no longer be its own memory), a key mistaken for a digest, a span of bytes mistaken for a column.
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
// Nor a view, a span or the bytes of an owner that is gone with the expression.
template <class F>
concept LendsItsBytes = requires(F f) {
  std::forward<F>(f).bytes();
};
template <class F>
concept LendsAView = requires(F f) {
  std::forward<F>(f).view();
};
template <class F>
concept LendsASpan = requires(F f) {
  std::forward<F>(f).span();
};
template <class F>
concept LendsItselfToThreads = requires(F f) {
  std::forward<F>(f).shared();
};
template <class F>
concept LendsToWriters = requires(F f) {
  std::forward<F>(f).writable_bytes();
};
template <class Owner>
constexpr bool kLendsOnlyWithAName =
    std::is_convertible_v<Owner&, typename Owner::View>&& std::is_convertible_v<const Owner&, typename Owner::View> &&
    !std::is_convertible_v<Owner, typename Owner::View> && !std::is_convertible_v<const Owner, typename Owner::View> &&
    LendsItsBytes<Owner&> && !LendsItsBytes<Owner> && LendsAView<Owner&> && !LendsAView<Owner>;
static_assert(kLendsOnlyWithAName<LineBloom> && kLendsOnlyWithAName<BlockBloom> && kLendsOnlyWithAName<Bloom>);
static_assert(kLendsOnlyWithAName<CountingBloom> && kLendsOnlyWithAName<Cuckoo> && kLendsOnlyWithAName<Quotient>);
static_assert(kLendsOnlyWithAName<Window> && kLendsOnlyWithAName<Fuse> && kLendsOnlyWithAName<Ribbon>);
static_assert(LendsASpan<LineBloom&> && !LendsASpan<LineBloom> && LendsToWriters<LineBloom&>);
static_assert(LendsItselfToThreads<LineBloom&> && !LendsItselfToThreads<LineBloom> && !LendsToWriters<LineBloom>);

// An owner that was moved from: every answer is *perhaps*, one by one and in batches near and far, with every kernel;
// keys change nothing; it can be copied, viewed and assigned to.
template <class F>
struct MovedFrom : ::testing::Test {
  static F full() {
    const auto keys = keys_of(kIntegerPatterns[1], 1000);
    const std::span<const std::uint64_t> column(keys);
    if constexpr (requires { F::build(column, Request{}); }) {
      return *F::build(column, {.fpr = 0.01});
    } else {
      F filter({.keys = 1000, .fpr = 0.01});
      for (const std::uint64_t key : keys) filter.insert(key);
      return filter;
    }
  }
  static void expect_perhaps(const F& filter) {
    using L = typename F::layout;
    std::vector<std::uint64_t> digests(200);
    for (std::size_t i = 0; i < digests.size(); ++i) digests[i] = Stream{7}.at(i);
    digests[0] = 0, digests[1] = UINT64_MAX;
    for (const std::uint64_t h : digests) {
      ASSERT_TRUE(L::template may_contain<detail::isa::Portable>(filter.shape(), filter.bytes().data(), h));
      ASSERT_TRUE(L::template may_contain<detail::isa::Here>(filter.shape(), filter.bytes().data(), h));
      L::prefetch(filter.shape(), filter.bytes().data(), h);
    }
    with_every_kernel([&](const kernel::InstructionSet& set) {
      for (const bool ahead : {false, true}) {
        std::vector<std::uint64_t> answers(4);
        detail::query_batch<L>(filter.shape(), filter.bytes().data(),
                               {.words = digests.data(), .count = digests.size(), .ahead = ahead}, answers.data());
        ASSERT_EQ(answers, (std::vector<std::uint64_t>{UINT64_MAX, UINT64_MAX, UINT64_MAX, 0xff})) << set.name;
      }
    });
    EXPECT_TRUE(filter.may_contain("a key"));
    EXPECT_EQ(filter.bytes().size(), filter.byte_size());
    EXPECT_LE(filter.byte_size(), 256u);
    EXPECT_TRUE(filter.shape().valid());
  }
};
using Owners =
    ::testing::Types<LineBloom, BlockBloom, Bloom, CountingBloom, Cuckoo, Quotient, Growing, Window, Fuse, Ribbon>;
TYPED_TEST_SUITE(MovedFrom, Owners);

TYPED_TEST(MovedFrom, AnswersPerhapsToEverything) {
  TypeParam from = TestFixture::full();
  const TypeParam to = std::move(from);
  TestFixture::expect_perhaps(from);  // NOLINT(bugprone-use-after-move)
  const TypeParam copy = from;
  TestFixture::expect_perhaps(copy);
  EXPECT_TRUE(from.view().may_contain(42));
  if constexpr (requires { from.insert(42); }) {
    const std::vector<std::uint64_t> keys = {1, 2, 3};
    EXPECT_EQ(from.insert(42), Inserted::present);
    static_cast<void>(from.insert(std::span<const std::uint64_t>(keys)));
    from.clear();
    EXPECT_TRUE(from.writable_bytes().empty());
    TestFixture::expect_perhaps(from);
  }
  if constexpr (requires { from.erase(42); }) {
    EXPECT_EQ(from.erase(42), Erased::kept);
  }
  from = to;
  EXPECT_EQ(from.byte_size(), to.byte_size());
  EXPECT_TRUE(same_bytes(from.bytes(), to.bytes()));
}

static_assert(InsertsColumnOf<LineBloom, std::uint64_t> && InsertsColumnOf<LineBloom, const std::string_view>);
static_assert(!InsertsColumnOf<LineBloom, const std::uint8_t>);

}  // namespace
}  // namespace perhaps::test
