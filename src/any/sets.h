// A file of many sets behind the run-time interface: as one filter, it says whether any set may have the key.
#pragma once
#include <algorithm>
#include <bit>

#include "perhaps/engine/set_index.h"

namespace perhaps {

class AnySets final : public AnyFilter, private DigestProbe {
 public:
  AnySets(SetIndexView index, Record record) : index_(std::move(index)), record_(std::move(record)) {}

  using AnyFilter::may_contain;
  std::uint64_t may_contain(std::span<const Bytes> keys) const noexcept override {
    std::array<std::uint64_t, kBatch> digests;
    hash_many(index_.hasher(), keys, digests);
    return any_of(std::span<const std::uint64_t>(digests.data(), keys.size()));
  }
  std::uint64_t byte_size() const noexcept override { return index_.byte_size(); }
  const Record& record() const noexcept override { return record_; }
  const DigestProbe* digests() const noexcept override { return this; }

  Description describe() const override {
    std::uint64_t sets = 0;
    double none = 1;
    for (const auto& set : index_.sets()) {
      if (set.name.empty()) continue;
      ++sets;
      none *= 1 - index_.shape().column.fpr(static_cast<double>(set.keys));
    }
    Description d;
    d.format = "perhaps";
    d.family = name_of(Kind::sets);
    d.hash = name_of(index_.hasher());
    d.keys = record_.keys;
    d.keys_estimated = static_cast<double>(record_.keys);
    d.bytes = index_.byte_size();
    d.bits = d.bytes * 8;
    d.probes = index_.shape().column.probes;
    d.fpr = 1 - none;
    d.fill = static_cast<double>(sets) / static_cast<double>(index_.shape().slots);
    d.more = {{"sets", std::to_string(sets)}, {"rows", std::to_string(index_.shape().column.bits)}};
    return d;
  }

 private:
  AnyHasher hasher() const noexcept override { return index_.hasher(); }
  void may_contain(std::span<const std::uint64_t> digests, std::span<std::uint64_t> answers) const noexcept override {
    for (std::size_t from = 0; from < digests.size(); from += kBatch) {
      answers[from / kBatch] = any_of(digests.subspan(from, std::min(kBatch, digests.size() - from)));
    }
  }
  void prefetch(std::uint64_t digest) const noexcept override { index_.prefetch(digest); }

  std::uint64_t any_of(std::span<const std::uint64_t> digests) const noexcept {
    std::uint64_t answer = 0;
    for (std::size_t i = 0; i < digests.size(); ++i) {
      answer |= std::uint64_t{index_.any_may_contain(digests[i])} << i;
    }
    return answer;
  }

  SetIndexView index_;
  Record record_;
};

}  // namespace perhaps
