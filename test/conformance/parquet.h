// Parquet: how a column encodes a key, and where in the file its filter is.
#pragma once
#include <algorithm>
#include <array>

#include "conformance/engines.h"

namespace perhaps::conformance {

// In PLAIN encoding.
inline Buffer value_of(const Buffer& key, const std::string& type) {
  std::array<std::byte, 8> first{};
  std::copy_n(key.begin(), std::min(key.size(), first.size()), first.begin());
  const auto number = detail::load<std::uint64_t>(first.data());
  const auto bytes = []<class Word>(Word word) {
    Buffer raw(sizeof word);
    detail::store(raw.data(), word);
    return raw;
  };
  if (type == "BIGINT") return bytes(number);
  if (type == "INTEGER") return bytes(static_cast<std::uint32_t>(key.size() < 4 ? key.size() : number));
  if (type == "DOUBLE") {
    const double value = static_cast<double>(static_cast<std::int64_t>(number) % 100000) / 4;
    return bytes(detail::bit_cast<std::uint64_t>(value));
  }
  return key;  // BLOB, VARCHAR
}

inline Keys values_of(const nlohmann::json& one, Keys keys) {
  if (param(one, "kind") != "parquet_file") return keys;
  for (Buffer& key : keys) key = value_of(key, param(one, "type"));
  return keys;
}

// The file, or the first filter of the case's column in a Parquet file.
inline Buffer filter_inside(const nlohmann::json& one, const format::Codec& codec, const format::Params& params,
                            const Buffer& file) {
  if (param(one, "kind") != "parquet_file") return file;
  const auto opened = codec.open({.bytes = file}, params);
  if (!opened || opened->entries.empty()) return {};
  const Bytes inside = Bytes(file).subspan(opened->entries[0].offset, opened->entries[0].size);
  return {inside.begin(), inside.end()};
}

}  // namespace perhaps::conformance
