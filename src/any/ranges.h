// A range filter behind the run-time interface, where it answers single keys.
#pragma once
#include <utility>

#include "perhaps/file/range_file.h"

namespace perhaps {

class AnyRanges final : public AnyFilter {
 public:
  AnyRanges(const RangeView& filter, Record record) : filter_(filter), record_(std::move(record)) {}

  using AnyFilter::may_contain;
  std::uint64_t may_contain(std::span<const Bytes> keys) const noexcept override {
    std::uint64_t answers = 0;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const bool perhaps = filter_.coding() == RangeView::Coding::text ? filter_.may_contain(keys[i])
                           : keys[i].size() == 8 ? filter_.may_contain(detail::load<std::uint64_t>(keys[i].data()))
                                                 : true;
      answers |= std::uint64_t{perhaps} << i;
    }
    return answers;
  }
  std::uint64_t byte_size() const noexcept override { return filter_.byte_size(); }
  const Record& record() const noexcept override { return record_; }

  Description describe() const override {
    const RangeShape& shape = filter_.shape();
    const bool text = filter_.coding() == RangeView::Coding::text;
    Description d;
    d.format = "perhaps";
    d.family = name_of(Kind::range);
    d.hash = Hash::name;
    d.keys = record_.keys;
    d.capacity = record_.capacity;
    d.keys_estimated = static_cast<double>(shape.keys);
    d.bytes = filter_.byte_size();
    d.bits = d.bytes * 8;
    d.fill = static_cast<double>(shape.keys) / static_cast<double>(shape.universe);
    d.fpr = d.fpr_at_capacity = filter_.fpr(1);
    d.more = {{"keys as", text ? "text" : "integers"},
              {"places", std::to_string(shape.universe)},
              {"fpr of 100", std::to_string(filter_.fpr(100))}};
    if (text) d.more.emplace_back("positions", std::to_string(filter_.code().positions().size()));
    return d;
  }

 private:
  RangeView filter_;
  Record record_;
};

}  // namespace perhaps
