// Arrays of keys of the C API, a chunk at a time on the stack: nothing is allocated on the way to an answer.
#pragma once
#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>

#include "perhaps.h"
#include "perhaps/any_filter.h"

namespace perhaps {

constexpr std::size_t kChunk = 1024;
constexpr std::size_t words_of(std::size_t keys) noexcept { return (keys + kBatch - 1) / kBatch; }

inline Bytes bytes_of(const perhaps_key& key) noexcept { return {static_cast<const std::byte*>(key.data), key.size}; }

// Hands keys to `use` as spans of at most kChunk, until it returns false. The caller's array is not one of Bytes, and
// is translated on the stack.
template <class Use>
bool in_chunks(std::span<const perhaps_key> keys, Use use) {
  std::array<Bytes, kChunk> chunk;
  for (std::size_t from = 0; from < keys.size(); from += kChunk) {
    const std::size_t count = std::min(kChunk, keys.size() - from);
    for (std::size_t i = 0; i < count; ++i) chunk[i] = bytes_of(keys[from + i]);
    if (!use(std::span<const Bytes>(chunk.data(), count))) return false;
  }
  return true;
}
// The same as digests.
template <class Key, class Use>
bool in_digests(const AnyHasher& hasher, std::span<const Key> keys, Use use) {
  std::array<std::uint64_t, kChunk> digests;
  if constexpr (std::same_as<Key, perhaps_key>) {
    return in_chunks(keys, [&](std::span<const Bytes> chunk) {
      hash_many(hasher, chunk, digests);
      return use(std::span<const std::uint64_t>(digests.data(), chunk.size()));
    });
  } else {
    for (std::size_t from = 0; from < keys.size(); from += kChunk) {
      const auto chunk = keys.subspan(from, std::min(kChunk, keys.size() - from));
      std::visit(
          [&](const auto& h) {
            for (std::size_t i = 0; i < chunk.size(); ++i) digests[i] = digest_of(h, chunk[i]).value;
          },
          hasher);
      if (!use(std::span<const std::uint64_t>(digests.data(), chunk.size()))) return false;
    }
    return true;
  }
}

}  // namespace perhaps
