#include "perhaps/any_filter.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "any_builder.h"
#include "any_scalable.h"
#include "perhaps/container.h"

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

namespace {

constexpr std::array kFamilies = {
    //     name        summary                                                  sized  order  grows  erases merges
    Family{"line", "one cache line a key; the default", true, false, true, false, true},
    Family{"block", "half a line, fastest single lookup, Parquet's layout", true, false, true, false, true},
    Family{"classic", "classic Bloom: smallest of the three, slowest", true, false, true, false, true},
    Family{"scalable", "a chain of line filters for an unknown number of keys", false, true, true, false, true},
    Family{"counting", "counters of 4 bits, one line a key; keys can be removed", false, false, true, true, true},
    Family{"cuckoo", "fingerprints in buckets of four; keys can be removed", false, false, true, true, false},
    Family{"quotient", "sorted fingerprints; keys can be removed, filters merged and grown", false, false, true, true,
           true},
    Family{"window", "the last N keys of a stream, in constant memory", true, true, true, false, false},
    Family{"fuse", "built once, three or four slots a key, 13 % or 7 % above the limit", false, false, false, false,
           false},
    Family{"ribbon", "built once, within 2 % of the least any filter needs", false, false, false, false, false},
};

// Below this rate a chain's links are classic: a line filter pays too much for its one line.
constexpr double kClassicLinksBelow = 1e-4;

Error unknown(std::string_view family) {
  return {Errc::unsupported, "no filter family is called '" + std::string(family) + "'"};
}

// A chain that began small and was given so many keys.
SizeRow scalable_row(const Request& request) {
  const Growth growth{.fpr = request.fpr};
  SizeRow row{.family = "scalable", .bytes = 0, .bits = 0, .probes = 0, .fpr = 0};
  std::uint64_t capacity = growth.first;
  std::uint64_t left = request.keys;
  double none = 0;  // log of: no link answers
  for (std::uint64_t i = 0; i == 0 || left != 0; ++i, capacity = growth.after(capacity)) {
    const Request link{.keys = capacity, .fpr = growth.share(i)};
    const std::uint64_t keys = std::min(left, capacity);
    left -= keys;
    const auto add = [&](const auto& shape) {
      row.bytes += shape.bytes();
      none += std::log1p(-std::min(shape.fpr(static_cast<double>(keys)), 1 - 0x1p-53));
    };
    if (request.fpr < kClassicLinksBelow) {
      add(BloomShape::for_keys(link));
    } else {
      add(LineShape::for_keys(link));
    }
  }
  row.bits = row.bytes * 8;
  row.fpr = std::abs(std::expm1(none));
  return row;
}

// Calls use.operator()<L>() for the layout of that name; false: there is none.
template <class Use>
bool for_layout(std::string_view family, Use use) {
  bool found = false;
  for_each_layout([&]<class L>() {
    if (L::family != family) return;
    found = true;
    use.template operator()<L>();
  });
  return found;
}

}  // namespace

std::span<const Family> families() noexcept { return kFamilies; }

const Family* find_family(std::string_view name) noexcept {
  const auto found = std::ranges::find(kFamilies, name, &Family::name);
  return found == kFamilies.end() ? nullptr : &*found;
}

Result<std::unique_ptr<AnyMutable>> make_any(std::string_view family, const Request& request, const AnyHasher& hasher) {
  Result<std::unique_ptr<AnyMutable>> made = unknown(family);
  if (family == "scalable") {
    const auto chain = [&]<class L>() {
      std::visit(
          [&]<class H>(const H& h) {
            made = std::unique_ptr<AnyMutable>(std::make_unique<AnyScalable<L, H>>(Scalable<Flat<L, H>>(request, h),
                                                                                   Record{.keys = 0, .capacity = 0}));
          },
          hasher);
    };
    if (request.fpr < kClassicLinksBelow) {
      chain.template operator()<BloomLayout<EnhancedDouble>>();
    } else {
      chain.template operator()<LineLayout>();
    }
    return made;
  }
  for_layout(family, [&]<class L>() {
    if constexpr (MutableLayout<L>) {
      std::visit(
          [&]<class H>(const H& h) {
            made = std::unique_ptr<AnyMutable>(std::make_unique<AnyFlatOwner<L, H>>(
                Flat<L, H>(request, h), Record{.keys = 0, .capacity = request.keys}));
          },
          hasher);
    } else {
      made = Error{Errc::unsupported, "a " + std::string(family) + " filter is built from all of its keys at once"};
    }
  });
  return made;
}

// Here, not in container.cc: what an owner can do is compiled once.
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
  for_each_layout([&]<class L>() {
    if constexpr (MutableLayout<L>) {
      if (L::kind != header_.kind) return;
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

Result<std::unique_ptr<AnyBuilder>> make_builder(std::string_view family, const Request& request,
                                                 const AnyHasher& hasher, const BuildOptions& options) {
  const Family* const about = find_family(family);
  if (about == nullptr) return unknown(family);
  if (about->in_order) {
    auto empty = make_any(family, request, hasher);
    if (!empty) return std::move(empty).error();
    return std::unique_ptr<AnyBuilder>(std::make_unique<StreamBuilder>(*std::move(empty)));
  }
  std::unique_ptr<AnyBuilder> builder;
  for_layout(family, [&]<class L>() {
    std::visit(
        [&]<class H>(const H& h) {
          if constexpr (BitLayout<L>) {
            builder = std::make_unique<BitBuilder<L, H>>(request, h);
          } else if constexpr (StaticLayout<L>) {
            builder = std::make_unique<FrozenBuilder<L, H>>(request, h, options);
          } else {
            builder = std::make_unique<SetBuilder<L, H>>(request, h);
          }
        },
        hasher);
  });
  return builder;
}

std::vector<SizeRow> size_table(const Request& request) {
  std::vector<SizeRow> rows;
  for_each_layout([&]<class L>() {
    const auto shape = L::Shape::for_keys(request);
    rows.push_back({.family = L::family,
                    .bytes = shape.bytes(),
                    .bits = bits_of(shape),
                    .probes = probes_of(shape),
                    .fpr = shape.fpr(static_cast<double>(request.keys))});
  });
  rows.insert(rows.begin() + 3, scalable_row(request));
  return rows;
}

}  // namespace perhaps
