// A quotient filter and a std::multiset of fingerprints that must always agree.
#pragma once
#include <gtest/gtest.h>

#include <random>
#include <set>
#include <vector>

#include "perhaps/quotient.h"
#include "support/families.h"
#include "support/keys.h"

namespace perhaps::test {

inline std::vector<std::uint64_t> contents(QuotientShape shape, Bytes table) {
  QuotientReader reader(shape, table.data());
  std::vector<std::uint64_t> all;
  std::array<std::uint64_t, 33> some;
  for (std::size_t n = reader.read(some); n != 0; n = reader.read(some))
    all.insert(all.end(), some.data(), some.data() + n);
  return all;
}

class QuotientModel {
 public:
  // Keys are drawn from `distinct` digests: if there are few, runs of equal fingerprints are long.
  QuotientModel(QuotientShape shape, std::uint64_t seed, std::uint64_t distinct)
      : filter_(shape), shape_(shape), seed_(seed), distinct_(distinct), random_(seed) {}

  // The share of inserts alternates between high and low, so that the filter fills and empties; after every `every`
  // operations, contents, bytes and soundness are checked.
  void run(std::uint64_t operations, std::uint64_t every) {
    SCOPED_TRACE("seed " + std::to_string(seed_) + ", " + std::to_string(shape_.buckets) + " buckets, " +
                 std::to_string(shape_.remainder_bits) + " + " + std::to_string(shape_.guard_bits) + " bits, " +
                 std::to_string(distinct_) + " keys");
    for (std::uint64_t i = 0; i < operations; ++i) {
      const bool filling = (i / (2 * shape_.buckets + 100)) % 2 == 0;
      ASSERT_NO_FATAL_FAILURE(step(random_() % 16, filling ? 8 : 3)) << "operation " << i;
      if ((i + 1) % every == 0 || i + 1 == operations) {
        ASSERT_NO_FATAL_FAILURE(compare()) << "operation " << i;
      }
    }
  }

 private:
  void step(std::uint64_t dice, std::uint64_t inserts) {
    const auto d = Digest<Hash>::made_by(Hash(), Stream{seed_}.at(random_() % distinct_));
    const std::uint64_t f = QuotientLayout::fingerprint_of(shape_, d.word());
    const std::uint64_t lowest = f >> shape_.guard_bits << shape_.guard_bits;
    const auto from = model_.lower_bound(lowest);
    const bool there = from != model_.end() && *from >> shape_.guard_bits == f >> shape_.guard_bits;
    if (dice < inserts) {
      const Inserted said = filter_.insert(d);
      if (model_.size() == shape_.capacity()) {
        ASSERT_EQ(said, Inserted::full);
        return;
      }
      if (said == Inserted::full) {
        // Below capacity only if all slots from that of the key to the end of the table are taken.
        ASSERT_GT(model_.size(), shape_.slots() - shape_.buckets);
        return;
      }
      ASSERT_EQ(said == Inserted::present, there);
      model_.insert(f);
    } else if (dice < 11) {
      const auto it = model_.find(f);
      ASSERT_EQ(filter_.erase(d), it == model_.end() ? Erased::absent : Erased::removed);
      if (it != model_.end()) model_.erase(it);
    } else if (dice < 14) {
      ASSERT_EQ(filter_.may_contain(d), there);
    } else {
      std::uint64_t wanted = 0;
      for (auto it = from; wanted < 300 && it != model_.end() && *it >> shape_.guard_bits == f >> shape_.guard_bits;
           ++it)
        ++wanted;
      ASSERT_EQ(std::min<std::uint64_t>(count(filter_, d), 300), wanted);
    }
  }

  void compare() {
    ASSERT_EQ(filter_.keys(), model_.size());
    const std::vector<std::uint64_t> wanted(model_.begin(), model_.end());
    ASSERT_EQ(contents(shape_, filter_.bytes()), wanted);
    ASSERT_TRUE(QuotientLayout::verify(shape_, filter_.bytes()));
    Quotient written(shape_);
    QuotientWriter writer(shape_, written.writable_bytes().data());
    ASSERT_TRUE(writer.append(wanted) && writer.finish());
    ASSERT_TRUE(same_bytes(written.bytes(), filter_.bytes()));
  }

  Quotient filter_;
  QuotientShape shape_;
  std::uint64_t seed_;
  std::uint64_t distinct_;
  std::mt19937_64 random_;
  std::multiset<std::uint64_t> model_;
};

}  // namespace perhaps::test
