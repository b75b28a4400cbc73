// What every program that builds a filter of keys is told: `perhaps build` and perhaps-mpi.
#pragma once
#include <cstdint>
#include <string>

#include "key_options.h"
#include "options.h"
#include "perhaps/any_filter.h"

namespace perhaps::cli {

struct FilterArgs {
  KeyOptions keys;
  std::string output;
  std::string family{name_of(Kind::line)};
  const Family* about = nullptr;
  Sizing sizing;
  std::uint64_t keys_expected = 0;
  Keyed keyed;
  std::string note;
  bool json = false;
};

}  // namespace perhaps::cli
