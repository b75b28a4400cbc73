// The filters of a file of shards (perhaps/file/shards.h) as one filter: each key is looked up in its shard.
#pragma once
#include <algorithm>
#include <array>
#include <bit>
#include <cassert>
#include <memory>
#include <vector>

#include "perhaps/any_filter.h"
#include "perhaps/file/shards.h"

namespace perhaps::cli {

class Sharded final : public AnyFilter {
 public:
  // filters[i] is of shard i; null: it is not in this file, so that its keys are perhaps there.
  explicit Sharded(std::vector<std::shared_ptr<const AnyFilter>> filters) : filters_(std::move(filters)) {}

  using AnyFilter::may_contain;
  std::uint64_t may_contain(std::span<const Bytes> keys) const noexcept override {
    assert(keys.size() <= kBatch);
    std::array<std::uint64_t, kBatch> shards;
    for (std::size_t i = 0; i < keys.size(); ++i) shards[i] = shard_of(keys[i], filters_.size());
    std::uint64_t answers = 0;
    std::uint64_t left = keys.empty() ? 0 : ~std::uint64_t{0} >> (kBatch - keys.size());
    while (left != 0) {
      const std::uint64_t shard = shards[static_cast<std::size_t>(std::countr_zero(left))];
      std::array<Bytes, kBatch> own;
      std::array<std::uint8_t, kBatch> places;
      std::size_t count = 0;
      for (std::uint64_t rest = left; rest != 0; rest &= rest - 1) {
        const auto i = static_cast<std::uint8_t>(std::countr_zero(rest));
        if (shards[i] != shard) continue;
        own[count] = keys[i];
        places[count++] = i;
        left &= ~(std::uint64_t{1} << i);
      }
      const AnyFilter* const filter = filters_[shard].get();
      const std::uint64_t found =
          filter == nullptr ? ~std::uint64_t{0} : filter->may_contain(std::span<const Bytes>(own.data(), count));
      for (std::size_t i = 0; i < count; ++i) answers |= (found >> i & 1) << places[i];
    }
    return answers;
  }
  std::uint64_t byte_size() const noexcept override {
    std::uint64_t bytes = 0;
    for (const auto& filter : filters_) bytes += filter == nullptr ? 0 : filter->byte_size();
    return bytes;
  }
  // Sums; of rates the mean over all shards, because a key is looked up in one of them.
  Description describe() const override {
    Description all;
    all.format = "shards";
    double fill = 0;
    for (const auto& filter : filters_) {
      if (filter == nullptr) {
        all.fpr += 1;
        all.fpr_at_capacity += 1;
        continue;
      }
      const Description one = filter->describe();
      all.family = one.family;
      all.hash = one.hash;
      if (one.keys) all.keys = all.keys.value_or(0) + *one.keys;
      if (one.capacity) all.capacity = all.capacity.value_or(0) + *one.capacity;
      all.keys_estimated += one.keys_estimated;
      all.bits += one.bits;
      all.bytes += one.bytes;
      all.probes = std::max(all.probes, one.probes);
      fill += one.fill * static_cast<double>(one.bits);
      all.fpr += one.fpr;
      all.fpr_at_capacity += one.fpr_at_capacity;
    }
    const auto count = static_cast<double>(filters_.size());
    all.fill = all.bits == 0 ? 0 : fill / static_cast<double>(all.bits);
    all.fpr /= count;
    all.fpr_at_capacity /= count;
    const auto here = filters_.size() - static_cast<std::size_t>(std::count(filters_.begin(), filters_.end(), nullptr));
    all.more.emplace_back("shards", here == filters_.size()
                                        ? std::to_string(here)
                                        : std::to_string(here) + " of " + std::to_string(filters_.size()));
    return all;
  }

 private:
  std::vector<std::shared_ptr<const AnyFilter>> filters_;
};

}  // namespace perhaps::cli
