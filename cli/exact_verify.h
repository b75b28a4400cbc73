// perhaps verify --universe: proves that an exact set has no error.
#pragma once
#include <string>
#include <vector>

#include "key_options.h"
#include "perhaps/any_filter.h"

namespace perhaps::cli {

struct ExactLists {
  std::vector<std::string> members;
  std::vector<std::string> universe;
};
// Queries every key of both lists; kNo if one answer is wrong.
int verify_exact(const AnyFilter& filter, const std::string& name, const KeyOptions& keys, const ExactLists& lists,
                 bool json);

}  // namespace perhaps::cli
