// XXH64 and XXH32, the older functions of xxHash, which foreign formats use. Defined in xxhash.cc.
#pragma once
#include "perhaps/hash.h"

namespace perhaps {

std::uint64_t xxh64(Bytes bytes, std::uint64_t seed) noexcept;
std::uint32_t xxh32(Bytes bytes, std::uint32_t seed) noexcept;

}  // namespace perhaps
