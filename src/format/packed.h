// The filters that our own plug-ins write into the tables of LevelDB and RocksDB: packed bytes of digests made by Hash
// (perhaps/engine/packed.h), under the name of their policy.
#pragma once
#include <memory>

#include "format/codec.h"

namespace perhaps::format {

inline constexpr std::string_view kPackedPolicy = "perhaps.packed2";

// Bytes that make no sense are an error, as is a filter that could not be built.
Result<std::shared_ptr<const AnyFilter>> open_packed(std::string_view format, Bytes bytes);

// Why a filter of a policy that is not read here is left out.
std::string ignored_policy(std::string_view policy);

}  // namespace perhaps::format
