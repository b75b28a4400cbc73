#include "perhaps/any_filter.h"

#include <algorithm>
#include <array>

#include "any/builder.h"
#include "any/other_kinds.h"
#include "any/request.h"
#include "any/scalable.h"
#include "any/sets.h"
#include "perhaps/file/container.h"

namespace perhaps {

std::string_view name_of(const AnyHasher& hasher) noexcept {
  return std::visit([](const auto& h) { return std::string_view(h.name); }, hasher);
}

void hash_many(const AnyHasher& hasher, std::span<const Bytes> keys, std::span<std::uint64_t> out) noexcept {
  std::visit(
      [&]<class H>(const H& h) {
        std::array<Digest<H>, kBatch> digests;
        for (std::size_t from = 0; from < keys.size(); from += kBatch) {
          const auto batch = keys.subspan(from, std::min(kBatch, keys.size() - from));
          digests_of(h, batch, std::span(digests));
          for (std::size_t i = 0; i < batch.size(); ++i) out[from + i] = digests[i].value;
        }
      },
      hasher);
}

const Record& AnyFilter::record() const noexcept {
  static const Record none;
  return none;
}

namespace {

Result<std::unique_ptr<AnyMutable>> make_chain(const AnyRequest& request, const AnyHasher& hasher) {
  const auto growth = growth_for(request);
  if (!growth) return growth.error();
  std::unique_ptr<AnyMutable> made;
  const auto chain = [&]<class L>() {
    made = std::make_unique<AnyScalable<L>>(Scalable<Flat<L, EitherHash>>(*growth, hasher),
                                            Record{.keys = 0, .capacity = 0});
  };
  if (growth->fpr < kClassicLinksBelow) {
    chain.template operator()<BloomLayout<Multiplicative>>();
  } else {
    chain.template operator()<LineLayout>();
  }
  return made;
}

// REQUIRES: File::over, which has checked all that this depends on, and header.kind == L::kind
template <class L>
FlatView<L, EitherHash> view_in(const Header& header, const AnyHasher& hasher) {
  auto view = FlatView<L, EitherHash>::over(header.sections[0].bytes, *L::Shape::from(header.params), hasher);
  assert(view);
  return *view;
}

}  // namespace

Result<std::unique_ptr<AnyMutable>> make_any(Kind kind, const AnyRequest& request, const AnyHasher& hasher) {
  if (kind == Kind::scalable) return make_chain(request, hasher);
  Result<std::unique_ptr<AnyMutable>> made = no_family(kind);
  for_layout(kind, [&]<class L>() {
    if constexpr (MutableLayout<L>) {
      const auto wanted = request_for<L>(request);
      if (!wanted) {
        made = wanted.error();
        return;
      }
      made = std::unique_ptr<AnyMutable>(std::make_unique<AnyFlatOwner<L>>(
          Flat<L, EitherHash>(*wanted, hasher), Record{.keys = 0, .capacity = request.keys}));
    } else {
      made = Error{Errc::unsupported, "a " + std::string(L::family) + " filter is built from all of its keys at once"};
    }
  });
  return made;
}

// These two are here, not in container.cc, so that every family is compiled behind AnyFilter in one file only.
std::unique_ptr<AnyFilter> File::any() const& {
  if (header_.kind == Kind::sets) {
    return std::make_unique<AnySets>(*SetIndexView::over(header_, hasher_), header_.record);
  }
  if (is_other(header_.kind)) return open_other(header_, hasher_);
  std::unique_ptr<AnyFilter> filter;
  if (header_.kind == Kind::scalable) {
    for_each_link_layout([&]<class L>() {
      if (header_.params[0] != static_cast<std::uint64_t>(L::kind)) return;
      filter = std::make_unique<AnyScalableView<L>>(*scalable_view<L>(header_, hasher_), header_.record);
    });
  }
  for_each_layout([&]<class L>() {
    if (L::kind != header_.kind) return;
    filter = std::make_unique<AnyFlatView<L>>(view_in<L>(header_, hasher_), header_.record);
  });
  return filter;
}
Result<std::unique_ptr<AnyMutable>> File::load() const {
  Result<std::unique_ptr<AnyMutable>> filter =
      Error{Errc::unsupported,
            name_ + ": a " + std::string(name_of(header_.kind)) + " filter takes no more keys: build another"};
  if (header_.kind == Kind::scalable) {
    for_each_link_layout([&]<class L>() {
      if (header_.params[0] != static_cast<std::uint64_t>(L::kind)) return;
      filter = std::unique_ptr<AnyMutable>(std::make_unique<AnyScalable<L>>(
          Scalable<Flat<L, EitherHash>>(*scalable_view<L>(header_, hasher_)), header_.record));
    });
  }
  for_layout(header_.kind, [&]<class L>() {
    if constexpr (MutableLayout<L>) {
      filter = std::unique_ptr<AnyMutable>(
          std::make_unique<AnyFlatOwner<L>>(Flat<L, EitherHash>(view_in<L>(header_, hasher_)), header_.record));
    }
  });
  return filter;
}

Result<std::unique_ptr<AnyBuilder>> make_builder(Kind kind, const AnyRequest& request, const AnyHasher& hasher,
                                                 const BuildOptions& options) {
  const Family* const about = find_family(kind);
  if (about == nullptr) return no_family(kind);
  if (about->in_order) {
    auto empty = make_any(kind, request, hasher);
    if (!empty) return std::move(empty).error();
    return std::unique_ptr<AnyBuilder>(std::make_unique<StreamBuilder>(*std::move(empty)));
  }
  Result<std::unique_ptr<AnyBuilder>> builder = no_family(kind);
  for_layout(kind, [&]<class L>() {
    const auto wanted = request_for<L>(request);
    if (!wanted) {
      builder = wanted.error();
      return;
    }
    if constexpr (BitLayout<L>) {
      builder = std::unique_ptr<AnyBuilder>(std::make_unique<BitBuilder<L>>(*wanted, hasher));
    } else if constexpr (StaticLayout<L>) {
      builder = std::unique_ptr<AnyBuilder>(std::make_unique<StaticSetBuilder<L>>(*wanted, hasher, options));
    } else {
      builder = std::unique_ptr<AnyBuilder>(std::make_unique<SetBuilder<L>>(*wanted, hasher));
    }
  });
  return builder;
}

}  // namespace perhaps
