// The fields that `info --json` and `explain --json` have, on the command line and on the page: `Json` is cli/json.h's
// or web/json.h's.
#pragma once
#include <array>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>

#include "any/explain.h"
#include "perhaps/any_filter.h"

namespace perhaps::cli {

inline std::string hex(std::uint64_t value) {
  std::array<char, 24> text;
  std::snprintf(text.data(), text.size(), "0x%016llx", static_cast<unsigned long long>(value));
  return text.data();
}
inline std::optional<std::string> hex(const std::optional<std::uint64_t>& value) {
  return value ? std::optional(hex(*value)) : std::nullopt;
}

template <class Json>
std::string json_of(const Facts& facts) {
  Json json;
  for (const auto& [name, value] : facts) json.add(name, value);
  return json.text();
}

// A description as it is printed: the figures of a filter, whatever its origin.
template <class Json>
void add_figures(Json& json, const Description& d) {
  json.add("family", d.family).add("hash", d.hash).add("keys", d.keys);
  json.add("keys_distinct", d.keys_estimated).add("capacity", d.capacity).add("bits", d.bits).add("bytes", d.bytes);
  const auto per_key =
      d.keys && *d.keys != 0 ? std::optional(static_cast<double>(d.bits) / static_cast<double>(*d.keys)) : std::nullopt;
  json.add("bits_per_key", per_key).add("probes", d.probes).add("fill", d.fill).add("fpr", d.fpr);
  json.add("fpr_at_capacity", d.capacity ? std::optional(d.fpr_at_capacity) : std::nullopt);
  if (d.wrong_erase) json.add("wrong_remove", *d.wrong_erase).add("needs_rebuild", d.needs_rebuild);
  json.raw("more", json_of<Json>(d.more));
}

template <class Json>
std::string json_of(const Check& check) {
  Json json;
  json.add("what", check.what).add("at", check.at).add("bits", check.bits);
  // What has more than 53 bits does not fit into the numbers of every reader.
  if (check.bits > 53 && check.what != "column") {
    json.add("wanted", hex(check.wanted)).add("found", hex(check.found));
  } else {
    json.add("wanted", check.wanted).add("found", check.found);
  }
  json.add("holds", check.holds);
  if (check.what == "column") json.add("content", hex(check.content));
  return json.text();
}

template <class Json>
std::string json_of(const ExplainedPart& part) {
  Json json;
  json.add("name", part.name).raw("steps", json_of<Json>(part.steps)).add("rule", part.rule);
  return json.raw("checks", Json::array_of(part.checks, [](const Check& check) { return json_of<Json>(check); }))
      .add("perhaps", part.perhaps)
      .text();
}

template <class Json>
void add_explanation(Json& json, const Explanation& e) {
  json.add("family", e.family).add("hash", e.hash).add("digest", hex(e.digest)).add("word", hex(e.word));
  json.raw("parts", Json::array_of(e.parts, [](const ExplainedPart& part) { return json_of<Json>(part); }))
      .add("answer", e.perhaps ? "perhaps" : "no");
}

}  // namespace perhaps::cli
