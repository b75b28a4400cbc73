// What a container may hold besides the families: maps, exact sets and ranges. Whatever opens files asks here, and
// nowhere else, so that a program that opens filters only can bring functions of its own and leave the rest out (the
// npm package does: web/filters_only.cc).
#pragma once
#include <cstdint>
#include <memory>
#include <span>

#include "any/own_filter.h"
#include "perhaps/file/container.h"

namespace perhaps {

constexpr bool is_other(Kind kind) noexcept {
  return kind == Kind::map || kind == Kind::coded || kind == Kind::exact || kind == Kind::range;
}
// The parameters and sections make what they say.  REQUIRES: is_other(header.kind)
Result<void> check_other(const Header& header);
// REQUIRES: check_other(header)
std::unique_ptr<AnyFilter> open_other(const Header& header, const AnyHasher& hasher);
// Finds nothing if the probe is of a family.
void find_other(const DigestProbe* probe, OwnFilter& own);
// Integers in a file of ranges.  REQUIRES: file.header().kind == Kind::range
Result<void> query_range(const File& file, std::span<const std::uint64_t> integers, std::uint64_t* answers);

}  // namespace perhaps
