// The batch kernels of the ribbon filter and of the ribbon map (perhaps/ribbon.h, perhaps/ribbon_map.h).
#include "perhaps/ribbon_map.h"

#include <utility>

namespace perhaps::kernel {
namespace {

// Key by key, sixteen ahead.
void find_by_key(const RibbonMapShape& shape, const std::byte* table, const detail::Batch<>& batch,
                 std::uint64_t* values, std::uint64_t* found) noexcept {
  std::uint64_t* next = values;
  const auto place = [](std::uint64_t h) { return h; };
  const auto prefetch = [=](std::uint64_t h) { RibbonMapLayout::prefetch(shape, table, h); };
  const auto find = [=, &next](std::uint64_t, std::uint64_t h) {
    *next = 0;
    return RibbonMapLayout::find(shape, table, h, next++);
  };
  detail::query_keys<16, detail::Inlined>(batch, found, shape.bytes(), detail::Steps{place, prefetch, find});
}

}  // namespace
}  // namespace perhaps::kernel

#define PERHAPS_KERNELS "kernel/ribbon.inc"
#define PERHAPS_KERNELS_ON PERHAPS_ON_CPU
#include "kernel/each_target.inc"

namespace perhaps::kernel {
namespace {

void portable_kernels(InstructionSet& set) {
  set.ribbon_query = detail::query_by_key<RibbonLayout, 64>;
  set.ribbon_find = find_by_key;
}

}  // namespace

PERHAPS_CHOOSE_KERNELS(ribbon)

}  // namespace perhaps::kernel
