#include "any/own_filter.h"

#include "any/flat.h"
#include "any/scalable.h"

namespace perhaps {
namespace {

template <class L, class H>
const FlatView<L, H> filter_in(const FlatProbe<L, H>& probe) noexcept {
  return probe.view();
}
template <class L, class H>
const ScalableProbes<L, H>& filter_in(const ScalableProbe<L, H>& probe) noexcept {
  return probe.chain();
}

template <class L, class H>
Header header_of(const FlatView<L, H>& view, Record record) {
  Header header = Header::of<L>(view.shape(), view.hasher());
  header.record = std::move(record);
  header.sections = {{.type = 0, .bytes = view.bytes()}};
  return header;
}

template <class Probe>
void find(const DigestProbe* probe, OwnFilter& own) {
  if (dynamic_cast<const Probe*>(probe) == nullptr) return;
  own.may_contain_integers = [](const DigestProbe& as, std::span<const std::uint64_t> integers,
                                std::span<std::uint64_t> answers) noexcept {
    const auto& filter = filter_in(static_cast<const Probe&>(as));
    // A batch of one would spend most of its time on its own preparation.
    if (integers.size() == 1) {
      answers[0] = filter.may_contain(integers[0]) ? 1 : 0;
    } else {
      filter.may_contain(integers, answers);
    }
  };
  own.header = [](const DigestProbe& as, Record record) {
    return header_of(filter_in(static_cast<const Probe&>(as)), record);
  };
}

}  // namespace

OwnFilter own_filter_of(const AnyFilter& filter) {
  const DigestProbe* const probe = filter.digests();
  OwnFilter own;
  for_each_layout([&]<class L>() {
    find<FlatProbe<L, Hash>>(probe, own);
    find<FlatProbe<L, KeyedHash>>(probe, own);
  });
  for_each_link_layout([&]<class L>() {
    find<ScalableProbe<L, Hash>>(probe, own);
    find<ScalableProbe<L, KeyedHash>>(probe, own);
  });
  return own;
}

}  // namespace perhaps
