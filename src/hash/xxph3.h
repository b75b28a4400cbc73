// XXPH3: the 64-bit hash of RocksDB's filters since 6.6, with seed 0. It is a preview of XXH3 that RocksDB froze, and
// differs from the final XXH3 at every length.
#pragma once
#include "perhaps/hash.h"

namespace perhaps {

std::uint64_t xxph3(Bytes bytes) noexcept;

}  // namespace perhaps
