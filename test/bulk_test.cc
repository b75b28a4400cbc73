// Promise: a filter filled by many threads has the bytes that one thread would have written. Would notice: a digest
// that stays in a buffer, a part that two threads write at the same time (also under ThreadSanitizer), a share of a
// thread that is skipped.
#include "perhaps/bulk.h"

#include "support/no_false_negatives.h"

namespace perhaps::test {
namespace {

template <class F>
struct Bulk : ::testing::Test {};
TYPED_TEST_SUITE(Bulk, FamiliesAndHashers, FamilyNames);

TYPED_TEST(Bulk, ParallelInsertWritesTheSameBytes) {
  using H = typename TypeParam::hasher_type;
  const auto hasher = hasher_of<H>(12);
  const auto keys = keys_of(kIntegerPatterns[0], kWorthAThread + 20'001);
  const auto digests = digests_of(hasher, keys);
  const auto shape = TypeParam::Shape::for_keys({.keys = keys.size(), .fpr = 0.01});
  TypeParam alone(shape, hasher);
  for (const auto& d : digests) alone.insert(d);
  for (const unsigned threads : {1u, 3u}) {
    TypeParam from_digests(shape, hasher);
    insert_parallel(from_digests, std::span<const Digest<H>>(digests), threads);
    EXPECT_TRUE(same_bytes(from_digests.bytes(), alone.bytes())) << threads << " threads, digests";
    TypeParam from_keys(shape, hasher);
    insert_parallel(from_keys, std::span<const std::uint64_t>(keys), threads);
    EXPECT_TRUE(same_bytes(from_keys.bytes(), alone.bytes())) << threads << " threads, integers";
  }
}

TYPED_TEST(Bulk, ParallelInsertOfTexts) {
  const auto hasher = hasher_of<typename TypeParam::hasher_type>(12);
  const Texts texts(kTextPatterns[0], 100'003);
  const auto shape = TypeParam::Shape::for_keys({.keys = texts.views.size(), .fpr = 0.01});
  TypeParam alone(shape, hasher);
  for (const auto& text : texts.views) alone.insert(text);
  TypeParam filter(shape, hasher);
  insert_parallel(filter, std::span<const std::string_view>(texts.views), 2);
  EXPECT_TRUE(same_bytes(filter.bytes(), alone.bytes()));
}

// Lanes used directly: uneven shares, batches of all sizes, filters of one unit and of fewer units than parts, and
// buffers that are still half full at the end.
TYPED_TEST(Bulk, LanesWriteTheSameBytes) {
  using H = typename TypeParam::hasher_type;
  using L = typename TypeParam::layout;
  const auto hasher = hasher_of<H>(12);
  for (const std::uint64_t room : {1u, 40u, 20'000u}) {
    const auto digests = random_digests(hasher, 3, 20'000);
    const auto shape = TypeParam::Shape::for_keys({.keys = room, .fpr = 0.1});
    TypeParam alone(shape, hasher);
    for (const auto& d : digests) alone.insert(d);
    for (const unsigned threads : {1u, 2u, 3u, 8u}) {
      TypeParam filter(shape, hasher);
      {
        BulkInsert<L, H> bulk(filter, threads);
        std::vector<std::jthread> workers;
        for (unsigned t = 0; t < threads; ++t) {
          workers.emplace_back([&, t] {
            auto lane = bulk.lane();
            const std::size_t from = digests.size() * t * t / threads / threads;
            const std::size_t to = digests.size() * (t + 1) * (t + 1) / threads / threads;
            for (std::size_t at = from, step = 0; at < to; at += step) {
              step = std::min<std::size_t>(to - at, 1 + (at * 7) % 300);
              lane.insert(std::span<const Digest<H>>(digests).subspan(at, step));
            }
          });
        }
      }
      EXPECT_TRUE(same_bytes(filter.bytes(), alone.bytes())) << threads << " threads, room for " << room;
    }
  }
}

// Too large for copies: parts under locks, or shared inserts. 600,000 keys fill some of the buffers several times.
TYPED_TEST(Bulk, LargeFiltersToo) {
  using H = typename TypeParam::hasher_type;
  const auto hasher = hasher_of<H>(12);
  const auto digests = random_digests(hasher, 5, 600'000);
  const auto shape = TypeParam::Shape::for_keys({.keys = 1, .max_bytes = std::uint64_t{50} << 20});
  TypeParam alone(shape, hasher);
  alone.insert(std::span<const Digest<H>>(digests));
  TypeParam together(shape, hasher);
  insert_parallel(together, std::span<const Digest<H>>(digests), 2);
  EXPECT_TRUE(same_bytes(together.bytes(), alone.bytes()));
}

TYPED_TEST(Bulk, AFlushedLaneHasInsertedEverything) {
  using H = typename TypeParam::hasher_type;
  const auto hasher = hasher_of<H>(12);
  const auto digests = random_digests(hasher, 4, 1000);
  TypeParam filter(Request{.keys = 1000, .fpr = 0.01}, hasher);
  BulkInsert<typename TypeParam::layout, H> bulk(filter, 2);
  const auto first = bulk.lane();
  auto lane = bulk.lane();  // has a copy that must be merged
  lane.insert(std::span<const Digest<H>>(digests));
  lane.flush();
  for (const auto& d : digests) ASSERT_TRUE(filter.may_contain(d));
}

}  // namespace
}  // namespace perhaps::test
