// Batch kernels of the library, chosen at run time for the CPU at hand (src/kernel). Each is equal, bit for bit, to the
// reference in the header of its family. Not part of the API: filters call these.
//
// `_integers` hashes 64-bit integer keys on the way. `ahead`: ask memory for what key i + distance needs before probing
// key i; the caller says whether the table is far away.
#pragma once
#include <cstddef>
#include <cstdint>

#include "perhaps/detail/config.h"
#include "perhaps/hash.h"
#include "perhaps/sizing.h"

namespace perhaps {
struct RibbonShape;
}

namespace perhaps::detail {

PERHAPS_API void line_query(LineShape shape, const std::byte* table, const std::uint64_t* digests, std::size_t count,
                            std::uint64_t* answers, bool ahead) noexcept;
PERHAPS_API void line_insert(LineShape shape, std::byte* table, const std::uint64_t* digests, std::size_t count,
                             bool ahead) noexcept;
PERHAPS_API void line_query_integers(LineShape shape, const std::byte* table, const std::uint64_t* keys, Hash hash,
                                     std::size_t count, std::uint64_t* answers, bool ahead) noexcept;
PERHAPS_API void line_insert_integers(LineShape shape, std::byte* table, const std::uint64_t* keys, Hash hash,
                                      std::size_t count, bool ahead) noexcept;

PERHAPS_API void block_query(BlockShape shape, const std::byte* table, const std::uint64_t* digests, std::size_t count,
                             std::uint64_t* answers, bool ahead) noexcept;
PERHAPS_API void block_insert(BlockShape shape, std::byte* table, const std::uint64_t* digests, std::size_t count,
                              bool ahead) noexcept;
PERHAPS_API void block_query_integers(BlockShape shape, const std::byte* table, const std::uint64_t* keys, Hash hash,
                                      std::size_t count, std::uint64_t* answers, bool ahead) noexcept;
PERHAPS_API void block_insert_integers(BlockShape shape, std::byte* table, const std::uint64_t* keys, Hash hash,
                                       std::size_t count, bool ahead) noexcept;

PERHAPS_API void ribbon_query(RibbonShape shape, const std::byte* table, const std::uint64_t* digests,
                              std::size_t count, std::uint64_t* answers, bool ahead) noexcept;
PERHAPS_API void ribbon_query_integers(RibbonShape shape, const std::byte* table, const std::uint64_t* keys, Hash hash,
                                       std::size_t count, std::uint64_t* answers, bool ahead) noexcept;

// Larger than the L2 cache: a batch gains from prefetching. Smaller: it only pays for it.
PERHAPS_API bool far_away(std::uint64_t table_bytes) noexcept;

}  // namespace perhaps::detail
