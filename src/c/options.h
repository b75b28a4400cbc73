// The options of the C API in the library's own words.
#pragma once
#include <string_view>

#include "perhaps.h"
#include "perhaps/any_filter.h"
#include "perhaps/format/format.h"

namespace perhaps {

KeyedHash keyed(const unsigned char* secret);

// One of our own filters, as it was asked for.
struct Plan {
  Kind kind{};
  AnyRequest request;
  AnyHasher hasher;
  unsigned threads = 1;
};
Result<Plan> plan_of(const perhaps_options& options);

Result<const format::Codec*> codec_named(std::string_view name);

// "name=value name=value"
Result<format::Params> params_of(const format::Codec& codec, const char* text);
// The same with the numbers of the options that the format has a parameter for.
Result<format::Params> params_of(const format::Codec& codec, const perhaps_options& options);

}  // namespace perhaps
