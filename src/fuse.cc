// The check of a fuse table of unknown origin.
#include "perhaps/fuse.h"

namespace perhaps {

Result<void> FuseLayout::check(const FuseShape& shape, Bytes table) {
  return detail::check_shards(family, shape.shard_bits, table, [&](Bytes shard) {
    if (shard.size() < 16) return false;
    const auto g = detail::FuseGeometry::at(shard.data());
    if (g.segments == 0 ? g.length != 0 : g.length == 0) return false;
    return g.bytes(shape.arity, shape.bits) <= shard.size();
  });
}

}  // namespace perhaps
