// How a filter travels between files and a Redis server: as RedisBloom's own stream, the header and pieces of at most
// 16 MiB, so that neither side holds the filter twice and no reply is too large. A line container travels as the one
// link of a LAYOUT LINE filter, a growing one as a LAYOUT GROWING filter: their tables have the same bytes.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "perhaps/any_filter.h"
#include "perhaps/growing.h"
#include "perhaps/hash.h"
#include "perhaps/line_bloom.h"

namespace perhaps::cli {

// The header of a LAYOUT LINE filter of one link, as SCANDUMP gives it: RedisBloom's, with an option of our own.
//   0 items u64 | 8 links u32 | 12 options u32 | 16 growth u32
//   20 bytes u64 | 28 bits u64 | 36 items u64 | 44 rate f64 | 52 bits per item f64 | 60 probes u32 | 64 capacity u64
//   72 zero u8
struct LineHeader {
  LineShape shape;
  Record record;

  std::vector<std::byte> bytes() const;
  static LineHeader from(Bytes header, const std::string& key);  // throws Failure, which names the key
};

// The header of a LAYOUT GROWING filter, as SCANDUMP gives it.
//   0 "perhapsG" | 8 first u64 | 16 step u64 | 24 rate f64
struct GrowingHeader {
  GrowingShape shape;

  std::vector<std::byte> bytes(const std::string& name) const;      // throws Failure, which names the file
  static GrowingHeader from(Bytes header, const std::string& key);  // throws Failure, which names the key
};

// What was copied, in either direction.
std::string json_of_copy(const std::string& file, const std::string& key, std::string_view format, std::uint64_t bytes,
                         std::optional<std::uint64_t> shards = {}, std::optional<std::uint64_t> here = {});

}  // namespace perhaps::cli
