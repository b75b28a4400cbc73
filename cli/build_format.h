// perhaps build --format: keys -> the bytes of another system.
#pragma once
#include <string>
#include <vector>

#include "any_file.h"
#include "keys.h"

namespace perhaps::cli {

// A general option that a format has its own name for.
struct Wish {
  format::Param::Means means;
  std::string_view option;  // "--fpr"
  std::string value;
};

struct FormatBuild {
  FormatArgs format;
  std::vector<Wish> wishes;
  KeyOptions keys;
  std::string output;
  std::uint64_t shards = 0;  // not 0: a file of shards, or of the one that keys.shard chooses
  bool allow_empty = false;
  bool json = false;
};

int build_format(const FormatBuild& build);

// "--fpr", "--bits-per-key", "--keys-expected"; empty for a parameter that only --set reaches.
std::string_view option_for(format::Param::Means means) noexcept;
// Writes the file atomically, as save_filter does.
void save_bytes(Bytes bytes, const std::string& path);

}  // namespace perhaps::cli
