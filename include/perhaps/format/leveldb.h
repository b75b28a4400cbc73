// The Bloom filter that LevelDB's built-in policy keeps for each 2 KiB window of a table, for a filter policy: byte for
// byte what LevelDB writes. doc/formats/leveldb.md describes the bytes; whole files are opened by format/format.h.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "perhaps/hash.h"

namespace perhaps::format::leveldb {

// The filter of these keys; duplicates count.
PERHAPS_API std::vector<std::byte> build(std::span<const Bytes> keys, std::uint64_t bits_per_key);
// Answers as LevelDB's own reader, except for filters of less than two bytes: LevelDB answers *no* to every key,
// this *perhaps*.
PERHAPS_API bool may_contain(Bytes filter, Bytes key) noexcept;

}  // namespace perhaps::format::leveldb
