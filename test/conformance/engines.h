// LevelDB and RocksDB: which codec a case is for, which keys its table holds, and how the filters of a table are made
// again from these keys and from where the table was cut.
#pragma once
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "perhaps/format.h"

namespace perhaps::conformance {

using Buffer = std::vector<std::byte>;
using Keys = std::vector<Buffer>;
using Done = std::function<void(bool, const std::string&)>;

inline std::string param(const nlohmann::json& one, const char* name) {
  const auto& params = one.at("params");
  return params.contains(name) && params.at(name).is_string() ? params.at(name).get<std::string>() : std::string();
}

inline bool is_table(const nlohmann::json& one) { return param(one, "kind").starts_with("sst_file"); }

inline const format::Codec* engine_codec_of(const nlohmann::json& one) {
  const std::string system = one.at("system");
  if (is_table(one)) return format::find(system + "-table");
  if (system == "leveldb") return format::find(system);
  // Damaged filters have no implementation: opening dispatches on their last bytes.
  const std::string impl = param(one, "impl");
  return format::find("rocksdb-" + (impl.empty() ? "fastlocal" : impl.substr(0, impl.find('_'))));
}

// The length of a filter that the allocator chose is known only to its file.
inline format::Params with_length(const nlohmann::json& one, format::Params params, const Buffer& file) {
  if (param(one, "impl").ends_with("_offm")) (void)params.set("ln", std::to_string(file.size() - 5));
  return params;
}

inline Keys engine_keys_inside(const nlohmann::json&, const Keys& keys) { return keys; }

inline void rebuild_table(const nlohmann::json&, const format::Params&, const Keys&, const Buffer&, const Done&) {}

}  // namespace perhaps::conformance
