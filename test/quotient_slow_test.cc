// Promise: as in quotient_test.cc, but longer: 1e7 random inserts, erases, queries and counts compared with a
// std::multiset, with no false negative and equal contents and bytes throughout; and merging, resizing and building
// with a million keys. Would notice: a state that only many operations reach. Seeds are fixed and printed on failure.
#include "support/kernels.h"
#include "support/quotient.h"

namespace perhaps::test {
namespace {

TEST(QuotientSlow, TenMillionOperationsEqualAMultiset) {
  struct Row {
    QuotientShape shape;
    std::uint64_t distinct;
    std::uint64_t operations;
  };
  const kernel::InstructionSet& before = kernel::active();
  const auto rows = kernel::instruction_sets();
  std::uint64_t turn = 0;
  for (const Row& row : {Row{{100'000, 9, 0}, 150'000, 4'000'000}, Row{{30'011, 6, 3}, 40'000, 2'000'000},
                         Row{{4096, 12, 0}, 40, 1'000'000}, Row{{20'000, 20, 8}, 300, 1'000'000},
                         Row{{1000, 1, 0}, 5000, 1'000'000}, Row{{65'536, 13, 2}, 70'000, 1'000'000}}) {
    kernel::use(*rows[turn % rows.size()]);
    QuotientModel model(row.shape, ++turn, row.distinct);
    ASSERT_NO_FATAL_FAILURE(model.run(row.operations, row.operations / 8));
  }
  kernel::use(before);
}

TEST(QuotientSlow, AMillionKeysMergeResizeAndBuild) {
  constexpr std::uint64_t kKeys = 1'000'000;
  const QuotientShape shape = QuotientShape::for_keys({.keys = kKeys, .fpr = 1e-3});
  const auto in_a = random_digests(Hash(), 1, kKeys);
  const auto in_b = random_digests(Hash(), 2, kKeys);
  const auto a = build_quotient(shape, std::span(in_a), Hash());
  ASSERT_TRUE(a);
  Quotient b(shape);
  ASSERT_EQ(b.insert(std::span(in_b)), kKeys);
  auto both = merge(a->view(), b.view());
  ASSERT_TRUE(both);
  EXPECT_EQ(both->shape().buckets, 2 * shape.buckets);
  EXPECT_TRUE(QuotientLayout::verify(both->shape(), both->bytes()));
  for (const auto* digests : {&in_a, &in_b}) {
    std::uint64_t no = 0;
    for (const auto& d : *digests) no += !both->may_contain(d);
    EXPECT_EQ(no, 0u);
  }
  for (const auto& d : in_a) ASSERT_EQ(both->erase(d), Erased::removed);
  auto back = resize(both->view(), shape);
  ASSERT_TRUE(back);
  EXPECT_TRUE(same_bytes(back->bytes(), b.bytes()));
}

}  // namespace
}  // namespace perhaps::test
