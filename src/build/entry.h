// What a static structure is built from: digests, or for a map digests that have a value each.
#pragma once
#include <compare>
#include <cstdint>

namespace perhaps::build {

// A key of a map. Sorted by digest; equal keys are those with the same value, too.
struct Entry {
  std::uint64_t digest;
  std::uint64_t value;
  friend auto operator<=>(const Entry&, const Entry&) = default;  // NOLINT(modernize-use-nullptr): in what it makes
};

constexpr std::uint64_t digest_of(std::uint64_t digest) noexcept { return digest; }
constexpr std::uint64_t digest_of(const Entry& entry) noexcept { return entry.digest; }

}  // namespace perhaps::build
