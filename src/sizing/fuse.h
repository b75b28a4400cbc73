// The geometry of a shard of a fuse filter. Integers only: it decides where bytes lie.
#pragma once
#include "perhaps/fuse.h"

namespace perhaps::sizing {

detail::FuseGeometry fuse_geometry(std::uint32_t arity, std::uint64_t keys) noexcept;

}  // namespace perhaps::sizing
