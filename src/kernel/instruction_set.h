// The kernels of one instruction set. The first set is the portable reference; every other one must equal it.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "perhaps/detail/bits.h"
#include "perhaps/detail/kernels.h"

namespace perhaps {
struct GrowingShape;
struct RibbonMapShape;
}  // namespace perhaps
namespace perhaps::detail {
struct QuotientCursor;
struct QuotientPen;
}  // namespace perhaps::detail
namespace perhaps::ribbon {
template <class Word, class Result>
struct Walk;
template <class Keys>
class FrontBand;
template <class Keys>
class DigestBand;
template <class Keys>
class PositionBand;
template <class Keys>
struct FrontBands;
struct Fingerprints;
template <class R>
struct Values;

// The loops that solve a ribbon of `Keys`, whose equations have results of type `Result`.
template <class Keys, class Result>
struct Solver {
  void (*walk)(const Walk<std::uint64_t, Result>&, std::uint64_t* state) noexcept;
  void (*band_front)(FrontBand<Keys>&) noexcept;
  void (*band_fronts)(const FrontBands<Keys>&) noexcept;
  void (*band_digests)(DigestBand<Keys>&) noexcept;
  void (*band_positions)(PositionBand<Keys>&) noexcept;
};
}  // namespace perhaps::ribbon

namespace perhaps::kernel {

// Where 64 digests belong in a cuckoo table: offsets of both buckets behind the head, in bytes (in half bytes where
// fingerprint_bits is odd), and fingerprints.
struct CuckooPlaces {
  alignas(64) std::uint64_t first[64];
  alignas(64) std::uint64_t second[64];
  alignas(64) std::uint64_t fingerprint[64];
};

// Lookups in packed bytes of one form.
struct DenseQuery {
  bool (*one)(Bytes filter, std::uint64_t word) noexcept;
  // Bit i of answers[i / 64] belongs to digests[i].
  void (*many)(Bytes filter, std::span<const std::uint64_t> digests, std::uint64_t* answers) noexcept;
};

// Seeds of a dense filter that are tried at once.
inline constexpr std::size_t kDenseSeeds = 8;

// What the layouts name, and what only the library calls.
struct InstructionSet : detail::Kernels {
  const char* name;

  void (*cuckoo_place)(const CuckooShape&, const std::uint64_t* digests, CuckooPlaces*) noexcept;  // 64 digests
  std::size_t (*quotient_read)(detail::QuotientCursor&, std::uint64_t* out, std::size_t room) noexcept;
  bool (*quotient_write)(detail::QuotientPen&, const std::uint64_t* fingerprints, std::size_t count) noexcept;
  ribbon::Solver<ribbon::Fingerprints, std::uint32_t> ribbon_solver;
  ribbon::Solver<ribbon::Values<std::uint64_t>, std::uint64_t> ribbon_map_solver;
  ribbon::Solver<ribbon::Values<detail::Wide>, detail::Wide> ribbon_wide_map_solver;  // of more than 64 columns
  void (*ribbon_walk_wide)(const ribbon::Walk<detail::Wide, std::uint32_t>&, detail::Wide* state) noexcept;
  // Bit i of `found` and values[i] belong to key i; a key that is not found has the value 0.
  void (*ribbon_find)(const RibbonMapShape& shape, const std::byte* table, const detail::Batch<>& batch,
                      std::uint64_t* values, std::uint64_t* found) noexcept;
  detail::QueryKernel<GrowingShape> growing_query;
  detail::InsertKernel<GrowingShape> growing_insert;
  Inserted (*growing_insert_one)(const GrowingShape& shape, std::byte* table, std::uint64_t mixed) noexcept;
  Erased (*growing_erase_one)(const GrowingShape& shape, std::byte* table, std::uint64_t mixed) noexcept;
  // The position behind that many zeros from bit `at` on; UINT64_MAX if the `words` words of 8 bytes from there on have
  // fewer.  REQUIRES: zeros >= 1, words >= 1
  std::uint64_t (*range_skip_zeros)(const std::byte* bits, std::uint64_t at, std::uint64_t zeros,
                                    std::uint64_t words) noexcept;
  DenseQuery dense_query;
  DenseQuery dense_groups_query;
  // Of kDenseSeeds square systems over GF(2) at once, bit i of the answer says whether system i is regular. Row r of
  // system i is rows[r * kDenseSeeds + i], aligned to 64 bytes; they are changed. Null: not worth it.
  // REQUIRES: 1 <= n <= 64, no bits from n on
  std::uint32_t (*dense_regular)(std::uint64_t* rows, std::size_t n) noexcept;
};

// Those that this CPU has, best last. The tests and the bench walk them.
std::span<const InstructionSet* const> instruction_sets() noexcept;
// The one in use: the last one, or the one named by PERHAPS_ISA in the environment.
const InstructionSet& active() noexcept;
// Makes `set` the one in use, for tests and benchmarks; not while other threads are probing.
void use(const InstructionSet& set) noexcept;

// What kernels are compiled for. Each family fills its part of a set (dispatch.cc); a family without a form for the
// target leaves what is there, which is that of the next lower one.
enum class Target : std::uint8_t { portable, sse4, avx2, avx512, neon, simd128 };
void classic_kernels(Target target, InstructionSet& set);
void line_kernels(Target target, InstructionSet& set);
void block_kernels(Target target, InstructionSet& set);
void counting_kernels(Target target, InstructionSet& set);
void cuckoo_kernels(Target target, InstructionSet& set);
void quotient_kernels(Target target, InstructionSet& set);
void growing_kernels(Target target, InstructionSet& set);
void window_kernels(Target target, InstructionSet& set);
void fuse_kernels(Target target, InstructionSet& set);
void ribbon_kernels(Target target, InstructionSet& set);
void range_kernels(Target target, InstructionSet& set);
void dense_kernels(Target target, InstructionSet& set);
void ribbon_build_kernels(Target target, InstructionSet& set);
void ribbon_map_build_kernels(Target target, InstructionSet& set);

}  // namespace perhaps::kernel
