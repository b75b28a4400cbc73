#include "perhaps/any_filter.h"

#include "any_flat.h"
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

Result<std::unique_ptr<AnyMutable>> make_any(std::string_view family, const Request& request, const AnyHasher& hasher) {
  std::unique_ptr<AnyMutable> made;
  for_each_layout([&]<class L>() {
    if (L::family != family) return;
    std::visit(
        [&]<class H>(const H& h) {
          made =
              std::make_unique<AnyFlatOwner<L, H>>(Flat<L, H>(request, h), Record{.keys = 0, .capacity = request.keys});
        },
        hasher);
  });
  if (made == nullptr) return Error{Errc::unsupported, "no filter family is called '" + std::string(family) + "'"};
  return made;
}

std::vector<SizeRow> size_table(const Request& request) {
  std::vector<SizeRow> rows;
  for_each_layout([&]<class L>() {
    const auto shape = L::Shape::for_keys(request);
    rows.push_back({.family = L::family,
                    .summary = summary_of<L>(),
                    .bytes = shape.bytes(),
                    .bits = bits_of(shape),
                    .probes = probes_of(shape),
                    .fpr = shape.fpr(static_cast<double>(request.keys))});
  });
  return rows;
}

}  // namespace perhaps
