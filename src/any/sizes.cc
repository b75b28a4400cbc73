// What a filter of each family would need, by the models of sizing.h.
#include <algorithm>
#include <cmath>

#include "any/request.h"

namespace perhaps {
namespace {

// A chain that began small and then received this many keys.
FamilySize chain_size(const Growth& growth, std::uint64_t keys) {
  FamilySize size{.kind = Kind::scalable};
  std::uint64_t capacity = growth.first;
  std::uint64_t left = keys;
  double none = 0;  // log of the probability that no link answers *perhaps*
  for (std::uint64_t i = 0; i == 0 || left != 0; ++i, capacity = growth.after(capacity)) {
    const Request link{.keys = capacity, .fpr = growth.share(i)};
    const std::uint64_t here = std::min(left, capacity);
    left -= here;
    const auto add = [&](const auto& shape) {
      size.bytes += shape.bytes();
      none += std::log1p(-std::min(shape.fpr(static_cast<double>(here)), 1 - 0x1p-53));
    };
    if (growth.fpr < kClassicLinksBelow) {
      add(BloomShape::for_keys(link));
    } else {
      add(LineShape::for_keys(link));
    }
  }
  size.bits = size.bytes * 8;
  size.fpr = std::abs(std::expm1(none));
  return size;
}

}  // namespace

Result<FamilySize> size_of(Kind kind, const AnyRequest& request) {
  if (kind == Kind::scalable) {
    auto growth = growth_for(request);
    if (!growth) return std::move(growth).error();
    return chain_size({.fpr = growth->fpr}, request.keys);
  }
  Result<FamilySize> size = no_family(kind);
  for_layout(kind, [&]<class L>() {
    auto wanted = request_for<L>(request);
    if (!wanted) {
      size = std::move(wanted).error();
      return;
    }
    const auto shape = L::Shape::for_keys(*wanted);
    size = FamilySize{.kind = kind,
                      .bytes = shape.bytes(),
                      .bits = bits_of(shape),
                      .probes = probes_of(shape),
                      .fpr = shape.fpr(static_cast<double>(request.keys))};
  });
  return size;
}

std::vector<FamilySize> size_table(const Request& request) {
  std::vector<FamilySize> table;
  for (const Family& family : families()) {
    if (auto size = size_of(family.kind, request)) table.push_back(*size);
  }
  return table;
}

}  // namespace perhaps
