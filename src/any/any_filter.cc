#include "perhaps/any_filter.h"

#include <algorithm>
#include <array>

#include "any/builder.h"
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
    std::visit(
        [&]<class H>(const H& h) {
          made =
              std::make_unique<AnyScalable<L, H>>(Scalable<Flat<L, H>>(*growth, h), Record{.keys = 0, .capacity = 0});
        },
        hasher);
  };
  if (growth->fpr < kClassicLinksBelow) {
    chain.template operator()<BloomLayout<Multiplicative>>();
  } else {
    chain.template operator()<LineLayout>();
  }
  return made;
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
      std::visit(
          [&]<class H>(const H& h) {
            made = std::unique_ptr<AnyMutable>(std::make_unique<AnyFlatOwner<L, H>>(
                Flat<L, H>(*wanted, h), Record{.keys = 0, .capacity = request.keys}));
          },
          hasher);
    } else {
      made = Error{Errc::unsupported, "a " + std::string(L::family) + " filter is built from all of its keys at once"};
    }
  });
  return made;
}

// These two are here, not in container.cc, so that every family meets every hasher in one file only.
std::unique_ptr<AnyFilter> File::any() const& {
  if (header_.kind == Kind::sets) {
    return std::make_unique<AnySets>(*SetIndexView::over(header_, hasher_), header_.record);
  }
  std::unique_ptr<AnyFilter> filter;
  if (header_.kind == Kind::scalable) {
    for_each_link_layout([&]<class L>() {
      if (header_.params[0] != static_cast<std::uint64_t>(L::kind)) return;
      std::visit(
          [&]<class H>(const H& hasher) {
            filter = std::make_unique<AnyScalableView<L, H>>(*scalable_view<L>(header_, hasher), header_.record);
          },
          hasher_);
    });
  }
  for_each_layout([&]<class L>() {
    if (L::kind != header_.kind) return;
    std::visit(
        [&]<class H>(const H&) {
          auto view = as<FlatView<L, H>>();
          assert(view);  // `over` has checked all that this depends on
          filter = std::make_unique<AnyFlatView<L, H>>(*view, header_.record);
        },
        hasher_);
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
      std::visit(
          [&]<class H>(const H& hasher) {
            filter = std::unique_ptr<AnyMutable>(std::make_unique<AnyScalable<L, H>>(
                Scalable<Flat<L, H>>(*scalable_view<L>(header_, hasher)), header_.record));
          },
          hasher_);
    });
  }
  for_layout(header_.kind, [&]<class L>() {
    if constexpr (MutableLayout<L>) {
      std::visit(
          [&]<class H>(const H&) {
            auto view = as<FlatView<L, H>>();
            assert(view);
            filter =
                std::unique_ptr<AnyMutable>(std::make_unique<AnyFlatOwner<L, H>>(Flat<L, H>(*view), header_.record));
          },
          hasher_);
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
    std::visit(
        [&]<class H>(const H& h) {
          if constexpr (BitLayout<L>) {
            builder = std::unique_ptr<AnyBuilder>(std::make_unique<BitBuilder<L, H>>(*wanted, h));
          } else if constexpr (StaticLayout<L>) {
            builder = std::unique_ptr<AnyBuilder>(std::make_unique<StaticSetBuilder<L, H>>(*wanted, h, options));
          } else {
            builder = std::unique_ptr<AnyBuilder>(std::make_unique<SetBuilder<L, H>>(*wanted, h));
          }
        },
        hasher);
  });
  return builder;
}

}  // namespace perhaps
