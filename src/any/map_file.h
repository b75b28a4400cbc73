// Maps in files, for the container and for AnyFilter.
#pragma once
#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "perhaps/any_map.h"

namespace perhaps {

constexpr bool is_map(Kind kind) noexcept { return kind == Kind::map || kind == Kind::coded; }
// Whether the parameters and sections make a map that can be queried.
Result<void> check_map(const Header& header);
// REQUIRES: check_map(header)
std::unique_ptr<AnyMap> map_of(const Header& header, const AnyHasher& hasher);
// The words that its values stand for; they borrow from the header's section.
Result<std::vector<std::string_view>> texts_in(const Header& header);

// A map behind the interface of filters, so that whatever opens files can describe it: it answers *perhaps* to the keys
// that it finds, which without check bits are all keys.
class MapAsFilter final : public AnyFilter, private DigestProbe {
 public:
  MapAsFilter(std::unique_ptr<AnyMap> map, Record record) : map_(std::move(map)), record_(std::move(record)) {}

  using AnyFilter::may_contain;
  std::uint64_t may_contain(std::span<const Bytes> keys) const noexcept override {
    std::array<std::uint64_t, kBatch> values;
    std::uint64_t found = 0;
    map_->find(keys, values, std::span(&found, 1));
    return found;
  }
  std::uint64_t byte_size() const noexcept override { return map_->byte_size(); }
  const Record& record() const noexcept override { return record_; }
  const DigestProbe* digests() const noexcept override { return this; }
  Description describe() const override { return map_->describe(); }

 private:
  AnyHasher hasher() const noexcept override { return map_->hasher(); }
  void may_contain(std::span<const std::uint64_t> digests, std::span<std::uint64_t> answers) const noexcept override {
    std::array<std::uint64_t, kBatch> values;
    for (std::size_t from = 0; from < digests.size(); from += kBatch) {
      map_->find_digests(digests.subspan(from, std::min(kBatch, digests.size() - from)), values,
                         answers.subspan(from / kBatch, 1));
    }
  }
  void prefetch(std::uint64_t) const noexcept override {}

  std::unique_ptr<AnyMap> map_;
  Record record_;
};

}  // namespace perhaps
