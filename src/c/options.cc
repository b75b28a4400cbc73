#include "c/options.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstring>
#include <string>
#include <utility>

#include "c/status.h"

namespace perhaps {

KeyedHash keyed(const unsigned char* secret) {
  KeyedHash::Secret bytes;
  std::memcpy(bytes.data(), secret, bytes.size());
  return KeyedHash(bytes);
}

Result<Plan> plan_of(const perhaps_options& options) {
  Plan plan;
  const std::string_view name = options.family == nullptr ? "line" : options.family;
  const auto kind = kind_named(name);
  if (!kind || find_family(*kind) == nullptr) {
    std::string all;
    for (const Family& family : families()) all += (all.empty() ? "" : ", ") + std::string(family.name);
    return out_of_range("'" + std::string(name) + "' is not a family; there are " + all);
  }
  plan.kind = *kind;
  plan.request = {.keys = options.keys,
                  .fpr = options.fpr == 0 ? AnyRequest{}.fpr : options.fpr,
                  .bits_per_key = options.bits_per_key,
                  .max_bytes = options.max_bytes,
                  .guard_bits = options.guard_bits,
                  .arity = options.arity};
  if (options.secret != nullptr) {
    if (options.seed != nullptr) return out_of_range("seed: a keyed hash has a secret and no seed");
    plan.hasher = keyed(options.secret);
  } else {
    plan.hasher = options.seed == nullptr ? Hash() : Hash(*options.seed);
  }
  plan.threads = std::max(options.threads, 1u);
  return plan;
}

Result<const format::Codec*> codec_named(std::string_view name) {
  if (const format::Codec* const codec = format::find(name)) return codec;
  return out_of_range("'" + std::string(name) + "' is not a format");
}

Result<format::Params> params_of(const format::Codec& codec, const char* text) {
  format::Params params(codec);
  std::string_view left = text == nullptr ? "" : text;
  while (!left.empty()) {
    const std::string_view one = left.substr(0, left.find(' '));
    left.remove_prefix(std::min(left.size(), one.size() + 1));
    if (one.empty()) continue;
    const std::size_t equals = one.find('=');
    if (equals == std::string_view::npos) return out_of_range("'" + std::string(one) + "' is not name=value");
    if (params.given(one.substr(0, equals))) return out_of_range(std::string(one) + ": set twice");
    if (auto done = params.set(one.substr(0, equals), one.substr(equals + 1)); !done) return done.error();
  }
  return params;
}

namespace {

// A number of the options for the parameter that has this meaning.
Result<void> apply(const format::Codec& codec, format::Params& params, format::Param::Means means, const char* field,
                   const std::string& value) {
  const auto param =
      std::find_if(codec.params.begin(), codec.params.end(), [&](const auto& p) { return p.means == means; });
  if (param == codec.params.end())
    return refused(std::string(codec.name) + ": " + field + ": the format has no such parameter");
  if (params.given(param->name))
    return out_of_range(std::string(codec.name) + ": " + field + " and " + std::string(param->name) + " are the same");
  return params.set(param->name, value);
}

std::string shortest(double value) {
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%.17g", value);
  return text.data();
}

}  // namespace

Result<format::Params> params_of(const format::Codec& codec, const perhaps_options& options) {
  using Means = format::Param::Means;
  auto params = params_of(codec, options.parameters);
  if (!params) return params;
  const std::pair<const char*, bool> ours[] = {
      {"family", options.family != nullptr},   {"max_bytes", options.max_bytes != 0},
      {"guard_bits", options.guard_bits != 0}, {"arity", options.arity != 0},
      {"seed", options.seed != nullptr},       {"secret", options.secret != nullptr}};
  for (const auto& [field, given] : ours) {
    if (given) return refused(std::string(codec.name) + ": " + field + ": only our own filters have it");
  }
  Result<void> done;
  if (done && options.fpr != 0) done = apply(codec, *params, Means::fpr, "fpr", shortest(options.fpr));
  if (done && options.bits_per_key != 0)
    done = apply(codec, *params, Means::bits_per_key, "bits_per_key", shortest(options.bits_per_key));
  if (done && options.keys != 0) done = apply(codec, *params, Means::keys, "keys", std::to_string(options.keys));
  if (!done) return done.error();
  return params;
}

}  // namespace perhaps
