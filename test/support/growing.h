// A growing filter and a std::unordered_map of keys and their copies that must agree: no key is ever missed.
#pragma once
#include <gtest/gtest.h>

#include <random>
#include <unordered_map>
#include <vector>

#include "perhaps/growing.h"
#include "support/families.h"
#include "support/keys.h"

namespace perhaps::test {

inline std::uint64_t waiting_parts(const Growing& filter) { return detail::growing_waiting(filter.bytes().data()); }

class GrowingModel {
 public:
  GrowingModel(const Request& request, std::uint64_t seed) : filter_(request), seed_(seed), random_(seed) {}

  // Three inserts for each erase, so that it grows; a few merges with a small filter of its own history.
  void run(std::uint64_t operations, std::uint64_t every) {
    SCOPED_TRACE("seed " + std::to_string(seed_));
    for (std::uint64_t i = 0; i < operations; ++i) {
      ASSERT_NO_FATAL_FAILURE(step(random_() % 4)) << "operation " << i;
      if (i % (operations / 4 + 1) == operations / 5) {
        ASSERT_NO_FATAL_FAILURE(merge(operations / 50 + 7));
      }
      if ((i + 1) % every == 0 || i + 1 == operations) {
        ASSERT_NO_FATAL_FAILURE(compare()) << "operation " << i;
      }
    }
  }
  const Growing& filter() const { return filter_; }

 private:
  void step(std::uint64_t what) {
    if (what != 0 || keys_.empty()) {
      // One insert in eight repeats an earlier key.
      const std::uint64_t key = !keys_.empty() && random_() % 8 == 0 ? keys_[random_() % keys_.size()] : random_();
      ASSERT_NE(filter_.insert(digest(key)), Inserted::full);
      ++copies_[key];
      keys_.push_back(key);
      return;
    }
    const std::size_t at = random_() % keys_.size();
    const std::uint64_t key = keys_[at];
    ASSERT_EQ(filter_.erase(digest(key)), Erased::removed) << key;
    if (--copies_[key] == 0) copies_.erase(key);
    keys_[at] = keys_.back();
    keys_.pop_back();
  }
  void merge(std::uint64_t count) {
    Growing other(Request{.keys = 0, .fpr = 0.01});
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t key = random_();
      ASSERT_NE(other.insert(digest(key)), Inserted::full);
      ++copies_[key];
      keys_.push_back(key);
    }
    auto both = perhaps::merge(filter_.view(), other.view());
    ASSERT_TRUE(both) << both.error().detail;
    filter_ = *std::move(both);
  }
  void compare() {
    const auto sound = GrowingLayout::verify(filter_.shape(), filter_.bytes());
    ASSERT_TRUE(sound) << sound.error().detail;
    ASSERT_EQ(filter_.keys(), keys_.size());
    for (const auto& [key, copies] : copies_) {
      ASSERT_TRUE(filter_.may_contain(digest(key))) << key;
      ASSERT_GE(count(filter_, digest(key)), copies) << key;
    }
  }
  static Digest<Hash> digest(std::uint64_t key) { return Hash()(key); }

  Growing filter_;
  std::uint64_t seed_;
  std::mt19937_64 random_;
  std::unordered_map<std::uint64_t, std::uint64_t> copies_;
  std::vector<std::uint64_t> keys_;
};

}  // namespace perhaps::test
