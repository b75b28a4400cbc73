#include "format/packed.h"

#include <array>

#include "perhaps/engine/packed.h"

namespace perhaps::format {
namespace {

class PackedFilter final : public AnyFilter {
 public:
  PackedFilter(std::string_view format, PackedView view) noexcept : format_(format), view_(view) {}

  using AnyFilter::may_contain;
  std::uint64_t may_contain(std::span<const Bytes> keys) const noexcept override {
    std::array<std::uint64_t, kBatch> digests;
    hash_many(Hash(), keys, digests);
    std::uint64_t answers = 0;
    view_.may_contain(std::span<const std::uint64_t>(digests.data(), keys.size()), std::span(&answers, 1));
    return answers;
  }
  std::uint64_t byte_size() const noexcept override { return view_.byte_size(); }
  Description describe() const override {
    Description d = view_.describe();
    d.format = format_;
    return d;
  }

 private:
  std::string_view format_;
  PackedView view_;
};

}  // namespace

Result<std::shared_ptr<const AnyFilter>> open_packed(std::string_view format, Bytes bytes) {
  const auto view = PackedView::over(bytes);
  if (!view.usable())
    return bad(Errc::bad_parameter, format, "the filter, ", bytes.size(), " bytes of ", kPackedPolicy,
               ", answers perhaps for every key: it could not be built, or is damaged");
  return std::shared_ptr<const AnyFilter>(std::make_shared<PackedFilter>(format, view));
}

std::string ignored_policy(std::string_view policy) {
  if (policy == "perhaps.packed")
    return "ignored: a filter of perhaps 0.1 (perhaps.packed), which is no longer queried; compaction replaces it";
  return "ignored: a filter of another policy, " + std::string(policy);
}

}  // namespace perhaps::format
