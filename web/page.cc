// What the page in the browser shows and the npm package does without: explanations, conversions, curves, trees and
// intervals (web/module.h). web/page/tools.js calls it.
#include <cmath>
#include <cstring>
#include <span>
#include <vector>

#include "any/explain.h"
#include "c/handle.h"
#include "cli/json_fields.h"
#include "cli/tree.h"
#include "cli/wilson.h"
#include "perhaps/any_filter.h"
#include "perhaps/file/shards.h"
#include "perhaps/format/format.h"
#include "web/choose.h"
#include "web/json.h"
#include "web/module.h"

namespace perhaps::web {
namespace {

std::string text_of(const Explanation& e) {
  Json json;
  cli::add_explanation(json, e);
  return json.text();
}

Explanation explained(const perhaps_filter& handle, Bytes key, const std::uint64_t* integer) {
  const AnyFilter& filter = *handle.filter;
  if (filter.digests() != nullptr)
    return explain(filter, integer != nullptr ? digest_for(filter, *integer) : digest_for(filter, key));
  if (handle.codec != nullptr) return explain_foreign(handle.opened, handle.opened.whole->describe(), key);
  // An exact set in parts, of which a digest does not tell its own.
  const Description d = filter.describe();
  Explanation to;
  to.family = d.family;
  to.hash = d.hash;
  to.perhaps = filter.may_contain(key);
  return to;
}

// Reads for a key that is in the tree, on each level by its share of keys: one, and those in vain on the levels before.
double present_reads(std::span<const Level> levels, const Allocation& allocation) {
  double all = 0;
  double sum = 0;
  double before = 0;
  for (std::size_t i = 0; i < levels.size(); ++i) {
    const auto keys = static_cast<double>(levels[i].keys);
    all += keys;
    sum += keys * (1 + before);
    before += levels[i].cost * allocation.levels[i].fpr;
  }
  return all > 0 ? sum / all : 0;
}

Result<std::string> tree_text(const cli::Tree& tree) {
  if (auto good = check(tree); !good) return good.error();
  const auto all = spread_budget(tree);
  if (!all) return all.error();
  const Allocation& best = all->best;
  const Allocation& even = all->even;
  const auto levels = all->spread.levels();
  Json json;
  json.add("budget", tree.budget).add("bytes", best.bytes).add("wasted_reads", best.wasted);
  json.add("even_bytes", even.bytes).add("even_wasted_reads", even.wasted);
  if (tree.ribbon > 0) json.add("even_ribbon_wasted_reads", all->even_ribbon.wasted);
  json.add("present_reads", present_reads(levels, best)).add("even_present_reads", present_reads(levels, even));
  std::size_t i = 0;
  const std::string rows = Json::array_of(levels, [&](const Level& level) {
    const Allocation::Share& share = best.levels[i];
    const Allocation::Share& even_share = even.levels[i++];
    Json row;
    row.add("level", std::uint64_t{i}).add("keys", level.keys).add("family", name_of(level.family));
    row.add("cost", level.cost).add("bytes", share.bytes).add("bits_per_key", share.bits_per_key);
    row.add("fpr", share.fpr).add("even_bytes", even_share.bytes).add("even_bits_per_key", even_share.bits_per_key);
    return row.add("even_fpr", even_share.fpr).text();
  });
  return json.add("bytes_for_even_reads", all->small.bytes).raw("levels", rows).text();
}

}  // namespace
}  // namespace perhaps::web

using namespace perhaps;       // NOLINT(google-build-using-namespace): the functions are C's
using namespace perhaps::web;  // NOLINT(google-build-using-namespace)

// `integer`: the key, if it is a number; else null.
PERHAPS_WEB int web_explain(const perhaps_filter* filter, const void* key, std::size_t size,
                            const std::uint64_t* integer) {
  return guarded([&]() -> Result<std::string> {
    if (integer != nullptr && filter->filter->digests() == nullptr)
      return Error{Errc::unsupported, "this format hashes bytes: it has no integers"};
    return text_of(explained(*filter, {static_cast<const std::byte*>(key), size}, integer));
  });
}
// The same filter in another system's format. `entry`: which one of a file that holds many; -1: the file.
PERHAPS_WEB int web_convert(const perhaps_filter* filter, const char* to, std::int32_t entry) {
  return guarded([&]() -> Result<std::string> {
    const format::Codec* const codec = format::find(to);
    if (codec == nullptr) return Error{Errc::bad_parameter, "'" + std::string(to) + "' is not a format"};
    if (filter->codec == nullptr) {
      return Error{Errc::unsupported,
                   "perhaps to " + std::string(to) + ": the two hash a key differently: build it anew from the keys"};
    }
    format::Opened opened = filter->opened;
    if (entry >= 0 && static_cast<std::size_t>(entry) < opened.entries.size())
      opened.entries = {opened.entries[static_cast<std::size_t>(entry)]};
    const format::Params params(*codec);
    auto made = format::convert({.bytes = filter->source, .file_name = filter->file_name}, opened, *codec, params);
    if (!made) return std::move(made).error();
    // Nothing is given out that does not open again.
    if (auto back = codec->open({.bytes = made->bytes, .file_name = {}}, params); !back) return std::move(back).error();
    return std::string(reinterpret_cast<const char*>(made->bytes.data()), made->bytes.size());
  });
}

// Bits per key of every family over rates from 10 % to 0.001 %: the lines of `perhaps size --plot`.
PERHAPS_WEB int web_curves(double keys) {
  return guarded([&]() -> Result<std::string> {
    std::vector<double> exponents;
    for (double exponent = -1; exponent >= -5.001; exponent -= 0.125) exponents.push_back(exponent);
    return Json::array_of(exponents, [&](double exponent) {
      const double fpr = std::pow(10, exponent);
      Json json;
      json.add("fpr", fpr).add("limit", bits_per_key_limit(fpr));
      for (const FamilySize& size : size_table({.keys = whole(keys), .fpr = fpr}))
        json.add(name_of(size.kind), 8 * static_cast<double>(size.bytes) / keys);
      return json.text();
    });
  });
}
// As `perhaps allocate --json`.
PERHAPS_WEB int web_allocate(std::uint32_t levels, double ratio, double keys, double budget, const char* family,
                             std::uint32_t ribbon, std::uint32_t runs) {
  return guarded([&]() -> Result<std::string> {
    const auto kind = kind_named(family);
    if (!kind) return Error{Errc::bad_parameter, "'" + std::string(family) + "' is not a family"};
    return tree_text({levels, ratio, whole(keys), whole(budget), *kind, ribbon, runs});
  });
}
// Which family: a bit for each of web/choose.h's needs, in their order.
PERHAPS_WEB int web_choose(std::uint32_t needs) {
  return guarded([&]() -> Result<std::string> {
    const auto bit = [&](int i) { return (needs >> i & 1) != 0; };
    const Choice choice = choose({bit(0), bit(1), bit(2), bit(3), bit(4), bit(5)});
    Json json;
    json.add("family", choice.family->name).add("summary", choice.family->summary).add("reason", choice.reason);
    return json.raw("unmet", Json::array_of(choice.unmet, [](const std::string& one) { return quoted(one); })).text();
  });
}
// Whether the bytes are a file of shards: then how many the set has, and where those that are here lie. Checks all
// bytes.
PERHAPS_WEB int web_is_shards(const void* bytes, std::size_t size) {
  return is_shards({static_cast<const std::byte*>(bytes), size}) ? 1 : 0;
}
PERHAPS_WEB int web_shards(const std::byte* bytes, std::size_t size, const char* name) {
  return guarded([&]() -> Result<std::string> {
    const auto shards = Shards::over({bytes, size}, name);
    if (!shards) return shards.error();
    Json json;
    json.add("count", shards->count());
    return json
        .raw("here", Json::array_of(shards->here(),
                                    [&](const Shard& shard) {
                                      Json one;
                                      one.add("index", shard.index);
                                      one.add("offset", std::uint64_t(shard.bytes.data() - bytes));
                                      return one.add("size", std::uint64_t{shard.bytes.size()}).text();
                                    }))
        .text();
  });
}
PERHAPS_WEB double web_shard_of(const void* key, std::size_t size, double count) {
  return static_cast<double>(shard_of({static_cast<const std::byte*>(key), size}, whole(count)));
}
// Between which rates the true one lies, at 95 % confidence, if `hits` of `tries` lookups of absent keys hit.
PERHAPS_WEB int web_interval(double hits, double tries) {
  return guarded([&]() -> Result<std::string> {
    const cli::Interval interval = cli::wilson(whole(hits), whole(tries), 1.96);
    Json json;
    return json.add("low", interval.low).add("high", interval.high).text();
  });
}
