// What a case of the conformance suite needs: which codec, which keys, and how its bytes are rebuilt.
#pragma once
#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "conformance/engines.h"
#include "conformance/parquet.h"
#include "perhaps/format/format.h"

namespace perhaps::conformance {

inline const format::Codec* codec_of(const nlohmann::json& one) {
  const std::string system = one.at("system");
  if (system == "xor_singleheader") {
    std::string kind = param(one, "kind");
    if (kind.starts_with("binary_")) kind.erase(0, 7);
    return format::find(kind.substr(0, kind.find('_')));
  }
  if (system == "leveldb" || system == "rocksdb") return engine_codec_of(one);
  if (system == "redisbloom")
    return format::find(param(one, "kind") == "bf_scandump" ? "redisbloom-bf" : "redisbloom-cf");
  return format::find(system);
}

// Parameters that the case expresses in another way.
inline void set_more(const nlohmann::json& one, format::Params& params) {
  if (one.at("system") == "xor_singleheader" && param(one, "kind").ends_with("_pack"))
    static_cast<void>(params.set("packed", "true"));
  if (param(one, "writer").starts_with("DuckDB")) static_cast<void>(params.set("sizing", "duckdb"));
}

// The keys of the case that are in the file.
inline Keys keys_inside(const nlohmann::json& one, const Keys& keys) {
  return values_of(one, engine_keys_inside(one, keys));
}

// The probes as given to the system.
inline Keys probes_of(const nlohmann::json& one, Keys probes) { return values_of(one, std::move(probes)); }

// Whether the real reader answers *no* because it detects damage. Ours answers *perhaps*.
inline bool fails_closed(const nlohmann::json& one, const Buffer& file) {
  if (!param(one, "kind").ends_with("_mangled")) return false;
  const std::string system = one.at("system");
  return (system == "leveldb" && param(one, "kind") == "raw_policy_mangled" && file.size() < 2) ||
         (system == "rocksdb" && !file.empty() && file.size() < 5);
}

// Calls `done` once for each run of bytes that is rebuilt.
inline void rebuild(const nlohmann::json& one, const format::Codec& codec, const format::Params& params,
                    const Keys& keys, const Buffer& file, const std::function<void(bool, const std::string&)>& done) {
  if (param(one, "kind").starts_with("sst_file")) return rebuild_table(one, keys, file, done);
  if (codec.build == nullptr || param(one, "kind").ends_with("_mangled")) return;
  const Buffer theirs = filter_inside(one, codec, params, file);
  const Keys inside = values_of(one, keys);
  const std::vector<Bytes> views(inside.begin(), inside.end());
  const auto built = codec.build(views, with_length(one, params, file));
  if (!built) return done(false, built.error().detail);
  done(*built == theirs, first_difference(*built, theirs));
}

}  // namespace perhaps::conformance
