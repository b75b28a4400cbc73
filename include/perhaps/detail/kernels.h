// The batch kernels of the library, chosen at run time for the CPU at hand (src/kernel). Each is equal, bit for bit, to
// the reference in the header of its family. Not part of the API: a layout names its kernel, and detail/batch.h calls
// it.
#pragma once
#include <cstddef>
#include <cstdint>

#include "perhaps/detail/config.h"
#include "perhaps/filter.h"

namespace perhaps {
struct BloomShape;
struct LineShape;
struct BlockShape;
struct CountingShape;
struct CuckooShape;
struct QuotientShape;
struct WindowShape;
struct FuseShape;
struct RibbonShape;
}  // namespace perhaps

namespace perhaps::detail {

template <class Word = std::uint64_t>
struct Batch;

template <class Shape>
using QueryKernel = void (*)(const Shape& shape, const std::byte* table, const Batch<>& batch,
                             std::uint64_t* answers) noexcept;
// Returns how many were inserted.
template <class Shape>
using InsertKernel = std::size_t (*)(const Shape& shape, std::byte* table, const Batch<>& batch) noexcept;

// One for each instruction set.
struct Kernels {
  QueryKernel<BloomShape> classic_query;
  QueryKernel<LineShape> line_query;
  InsertKernel<LineShape> line_insert;
  QueryKernel<BlockShape> block_query;
  InsertKernel<BlockShape> block_insert;
  QueryKernel<CountingShape> counting_query;
  InsertKernel<CountingShape> counting_insert;
  QueryKernel<CuckooShape> cuckoo_query;
  InsertKernel<CuckooShape> cuckoo_insert;
  QueryKernel<QuotientShape> quotient_query;
  InsertKernel<QuotientShape> quotient_insert;
  QueryKernel<WindowShape> window_query;
  InsertKernel<WindowShape> window_insert;
  QueryKernel<FuseShape> fuse_query;
  QueryKernel<RibbonShape> ribbon_query;

  // Bit i of `seen`: key i was perhaps in the window before.
  void (*window_insert_seen)(const WindowShape& shape, std::byte* table, const Batch<>& batch,
                             std::uint64_t* seen) noexcept;
  // One key, whose steps are too many to be inlined.
  Inserted (*quotient_insert_one)(const QuotientShape& shape, std::byte* table, std::uint64_t fingerprint) noexcept;
  Erased (*quotient_erase_one)(const QuotientShape& shape, std::byte* table, std::uint64_t fingerprint) noexcept;
};

// The ones in use: the best that this CPU has, or those that PERHAPS_ISA in the environment names.
PERHAPS_API const Kernels& kernels() noexcept;

// Whether a table is larger than the L2 cache. If it is, a batch gains from prefetching; if not, it only pays for it.
PERHAPS_API bool far_away(std::uint64_t table_bytes) noexcept;

}  // namespace perhaps::detail
