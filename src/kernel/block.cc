// The batch kernels of the split-block filter (perhaps/block_bloom.h).
#include "perhaps/block_bloom.h"

#include "kernel/instruction_set.h"
#include "kernel/targets.h"

#if PERHAPS_SIMD
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/block.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#if PERHAPS_ON_TARGET
HWY_BEFORE_NAMESPACE();
namespace perhaps::kernel::HWY_NAMESPACE {
namespace {

#include "kernel/lanes.inc"

void query(const BlockShape& of, const std::byte* table, const detail::Batch<>& batch,
           std::uint64_t* answers) noexcept {
  const auto covered = [=](std::uint64_t where, std::uint64_t h) HWY_ATTR {
    const Words d;
    const auto* block = reinterpret_cast<const std::uint32_t*>(table + where);
    if constexpr (kWidth == 8) return covers(hn::LoadU(d, block), bits(products(static_cast<std::uint32_t>(h), 0)));
    auto missing = hn::Zero(d);
    for (std::size_t at = 0; at < 8; at += kWidth) {
      missing =
          hn::Or(missing, hn::AndNot(hn::LoadU(d, block + at), bits(products(static_cast<std::uint32_t>(h), at))));
    }
    return all_zero(d, missing);
  };
  detail::query_keys<64, Outline>(
      batch, answers, of.bytes(),
      detail::Steps{
          [shape = of](std::uint64_t h) { return BlockLayout::block_of(shape, h) * BlockLayout::kBlockBytes; },
          [=](std::uint64_t where) { detail::prefetch_read(table + where); }, covered});
}

std::size_t insert(const BlockShape& of, std::byte* table, const detail::Batch<>& batch) noexcept {
  const auto set = [=](std::uint64_t where, std::uint64_t h) HWY_ATTR {
    const Words d;
    auto* block = reinterpret_cast<std::uint32_t*>(table + where);
    for (std::size_t at = 0; at < 8; at += kWidth) {
      hn::StoreU(hn::Or(hn::LoadU(d, block + at), bits(products(static_cast<std::uint32_t>(h), at))), d, block + at);
    }
  };
  return detail::insert_keys<64, Outline>(
      batch, of.bytes(),
      detail::Steps{
          [shape = of](std::uint64_t h) { return BlockLayout::block_of(shape, h) * BlockLayout::kBlockBytes; },
          [=](std::uint64_t where) { detail::prefetch_write(table + where); }, set});
}

void simd_kernels(InstructionSet& set) {
  set.block_query = query;
  set.block_insert = insert;
}

}  // namespace
}  // namespace perhaps::kernel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
#endif

#if !PERHAPS_SIMD || HWY_ONCE
namespace perhaps::kernel {
namespace {

void portable_kernels(InstructionSet& set) {
  set.block_query = detail::query_by_key<BlockLayout, 64>;
  set.block_insert = detail::insert_by_key<BlockLayout, 64>;
}

}  // namespace

void block_kernels(Target target, InstructionSet& set) { PERHAPS_FOR_TARGET(target, set) }

}  // namespace perhaps::kernel
#endif
