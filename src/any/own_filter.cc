#include "any/own_filter.h"

#include "any/flat.h"
#include "any/other_kinds.h"
#include "any/scalable.h"

namespace perhaps {
namespace {

template <class L>
Header header_in(const FlatProbe<L>& probe, const Record& record) {
  const auto view = probe.view();
  Header header = Header::of<L>(view.shape(), view.hasher());
  header.record = record;
  header.sections = {{.type = 0, .bytes = view.bytes()}};
  return header;
}
template <class L>
Header header_in(const ScalableProbe<L>& probe, const Record& record) {
  return header_of(probe.chain(), record);
}

template <class Probe>
void find(const DigestProbe* probe, OwnFilter& own) {
  if (dynamic_cast<const Probe*>(probe) == nullptr) return;
  own.may_contain_integers = [](const DigestProbe& as, std::span<const std::uint64_t> integers,
                                std::span<std::uint64_t> answers) noexcept {
    static_cast<const Probe&>(as).may_contain_integers(integers, answers);
  };
  own.header = [](const DigestProbe& as, const Record& record) {
    return header_in(static_cast<const Probe&>(as), record);
  };
}

}  // namespace

OwnFilter own_filter_of(const AnyFilter& filter) {
  const DigestProbe* const probe = filter.digests();
  OwnFilter own;
  for_each_layout([&]<class L>() { find<FlatProbe<L>>(probe, own); });
  for_each_link_layout([&]<class L>() { find<ScalableProbe<L>>(probe, own); });
  find_other(probe, own);
  return own;
}

}  // namespace perhaps
