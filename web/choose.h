// Which family for what is needed: the rules of the page's section "Choose". What a family can do is what the library
// says of it (perhaps/family.h); here is only which one comes first.
#pragma once
#include <string>
#include <string_view>
#include <vector>

#include "perhaps/any_filter.h"

namespace perhaps::web {

struct Needs {
  bool once = false;     // all keys are known when it is built, and then fixed
  bool remove = false;   // keys are removed again
  bool recent = false;   // only the most recent keys matter
  bool unknown = false;  // nobody knows how many keys will come
  bool merge = false;    // filters are merged, or grow, when the keys are gone
  bool parquet = false;  // Parquet must read the table
};

struct Choice {
  const Family* family;
  std::string_view reason;
  std::vector<std::string> unmet;  // what is asked for and no family can do together with the rest
};

Choice choose(const Needs& needs);

}  // namespace perhaps::web
