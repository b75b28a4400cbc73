// Parquet: what a column makes of a key, and where in the file its filter is.
#pragma once
#include <algorithm>
#include <cstring>

#include "conformance/engines.h"

namespace perhaps::conformance {

// In PLAIN encoding.
inline Buffer value_of(const Buffer& key, const std::string& type) {
  const auto number = [&]<class T>(T value) {
    if (!key.empty()) std::memcpy(&value, key.data(), std::min(key.size(), sizeof value));
    return value;
  };
  const auto bytes = [](const auto& value) {
    const Bytes raw = std::as_bytes(std::span(&value, 1));
    return Buffer(raw.begin(), raw.end());
  };
  if (type == "BIGINT") return bytes(number(std::int64_t{0}));
  if (type == "INTEGER") {
    return bytes(key.size() < 4 ? static_cast<std::int32_t>(key.size()) : number(std::int32_t{0}));
  }
  if (type == "DOUBLE") return bytes(static_cast<double>(number(std::int64_t{0}) % 100000) / 4);
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
