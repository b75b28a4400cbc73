// The C API for keys that are hashed already. Private: the Python extension hashes a list of texts where they are, as
// it could hand over the texts themselves only with a reference to each.
#pragma once
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "perhaps.h"
#include "perhaps/any_filter.h"

namespace perhaps {

// How the filter hashes. Nothing: it is another system's, and knows bytes only.
std::optional<AnyHasher> hasher_of(const perhaps_filter& filter);

// As perhaps_query and perhaps_insert, of digests by that hasher.
void query_digests(const perhaps_filter& filter, std::span<const std::uint64_t> digests,
                   std::uint64_t* answers) noexcept;
perhaps_status insert_digests(perhaps_filter& filter, std::span<const std::uint64_t> digests) noexcept;

}  // namespace perhaps
