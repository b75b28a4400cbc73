#include "any/other_kinds.h"

#include <algorithm>

#include "any/exact.h"
#include "any/map_file.h"
#include "any/ranges.h"

namespace perhaps {

Result<void> check_other(const Header& header) {
  if (header.kind == Kind::exact) {
    const auto set = exact_view(header, EitherHash());
    return set ? Result<void>() : set.error();
  }
  if (header.kind == Kind::range) {
    const auto filter = range_in(header);
    return filter ? Result<void>() : filter.error();
  }
  return check_map(header);
}

std::unique_ptr<AnyFilter> open_other(const Header& header, const AnyHasher& hasher) {
  if (header.kind == Kind::exact) return std::make_unique<AnyExact>(*exact_view(header, hasher), header.record);
  if (header.kind == Kind::range) return std::make_unique<AnyRanges>(*range_in(header), header.record);
  return std::make_unique<MapAsFilter>(map_of(header, hasher), header.record);
}

void find_other(const DigestProbe* probe, OwnFilter& own) {
  if (dynamic_cast<const ExactProbe*>(probe) == nullptr) return;
  own.may_contain_integers = [](const DigestProbe& as, std::span<const std::uint64_t> integers,
                                std::span<std::uint64_t> answers) noexcept {
    static_cast<const ExactProbe&>(as).may_contain_integers(integers, answers);
  };
  own.header = [](const DigestProbe& as, const Record& record) {
    return header_of(static_cast<const ExactProbe&>(as).set(), record);
  };
}

Result<void> query_range(const File& file, std::span<const std::uint64_t> integers, std::uint64_t* answers) {
  const auto range = range_in(file);
  if (!range || range->coding() != RangeView::Coding::integers)
    return Error{Errc::unsupported, "the keys of this range filter are text: it has no integers"};
  std::fill_n(answers, (integers.size() + kBatch - 1) / kBatch, 0);
  for (std::size_t i = 0; i < integers.size(); ++i) {
    const bool perhaps = range->may_contain_any(Interval{integers[i], integers[i]});
    answers[i / kBatch] |= std::uint64_t{perhaps} << i % kBatch;
  }
  return {};
}

}  // namespace perhaps
