// XXPH3: the 64-bit hash of RocksDB's filters since 6.6, seed 0. A preview of XXH3 that RocksDB froze: for no length
// does it equal the XXH3 of today's xxHash.
#pragma once
#include "perhaps/hash.h"

namespace perhaps {

std::uint64_t xxph3(Bytes bytes) noexcept;

}  // namespace perhaps
