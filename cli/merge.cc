// perhaps merge: several filters of one shape become one.
#include <algorithm>
#include <cmath>

#include "any_file.h"
#include "command.h"
#include "filter_file.h"
#include "interrupt.h"
#include "json.h"
#include "options.h"
#include "perhaps/file/shards.h"
#include "print.h"
#include "progress.h"
#include "ranges.h"

namespace perhaps::cli {
namespace merge {
namespace {

struct Options {
  std::vector<std::string> filters;
  std::string output;
  Keyed keyed;
  bool intersect = false;
  bool given = false;
  std::string note;
  bool json = false;
};

// Files of shards of one partition become one file; each shard is in one of them.
int join(const Options& options) {
  if (options.intersect) fail("--intersect: shards have no keys in common");
  std::vector<std::unique_ptr<FileBytes>> files;
  std::vector<Shard> shards;
  std::uint64_t count = 0;
  Recipe recipe;
  for (const std::string& path : options.filters) {
    files.push_back(std::make_unique<FileBytes>(path));
    const Shards one = take(Shards::over(files.back()->bytes(), path));
    if (count != 0 && one.count() != count) {
      fail("{} and {} cannot be merged: {} and {} shards", options.filters.front(), path, count, one.count());
    }
    count = one.count();
    const Recipe theirs = recipe_of(AnyFile(path, {}, {}).record(), path).value_or(Recipe());
    if (!shards.empty() && !recipe.same_key(theirs)) {
      fail("{} and {} cannot be merged: their keys were made by the recipes '{}' and '{}'", options.filters.front(),
           path, recipe.text(), theirs.text());
    }
    recipe = theirs;
    shards.insert(shards.end(), one.here().begin(), one.here().end());
  }
  std::ranges::sort(shards, {}, &Shard::index);
  const auto twice = std::ranges::adjacent_find(shards, {}, &Shard::index);
  if (twice != shards.end()) fail("shard {} is in two of these files", twice->index);
  {
    const Saving saving;
    take(write_shards(options.output, count, shards));
  }
  if (options.json) {
    Json json;
    json.add("file", options.output).add("filters", static_cast<std::uint64_t>(options.filters.size()));
    json.add("shards", count).add("shards_here", std::uint64_t{shards.size()});
    Out().write(json.text() + "\n");
  } else {
    Out().write(fmt::format("{}: {} of {} shards\n", options.output, shards.size(), count));
  }
  return kYes;
}

// Keys of both must be read in the same way.
void check_recipes(const Options& options, const std::optional<Recipe>& ours, const std::string& path,
                   const Record& other) {
  const std::string& first = options.filters.front();
  const auto theirs = recipe_of(other, path);
  if (options.given || !ours || !theirs || ours->same_key(*theirs)) return;
  fail(
      "{} and {} cannot be merged: their keys were made by the recipes '{}' and '{}' (--recipe given merges them "
      "regardless)",
      first, path, ours->text(), theirs->text());
}

// Distinct keys that are in all filters, by inclusion and exclusion: |A| + |B| - |A or B|, of two filters at a time;
// the bits of the intersection say more than there are, because keys of one filter only share bits. `most` is an upper
// bound at 5 sigma of the three estimates, as if their errors were independent: they are less.
class Common {
 public:
  // REQUIRES: `all` can be merged with `other`
  void see(std::unique_ptr<AnyMutable> all, const AnyFilter& other) {
    const Description a = all->describe();
    const Description b = other.describe();
    if (!all->merge(other)) return;
    const Description both = all->describe();
    const double error = std::sqrt(variance(a) + variance(b) + variance(both));
    if (!std::isfinite(error)) return;  // full: its bits tell nothing
    keys = std::min(keys, std::max(0.0, a.keys_estimated + b.keys_estimated - both.keys_estimated));
    most = std::min(most, std::max(0.0, a.keys_estimated + b.keys_estimated - both.keys_estimated) + 5 * error);
  }
  double keys = INFINITY;
  double most = INFINITY;

 private:
  // Of -bits / probes * ln(1 - fill), for a classic filter. Lines hold uneven numbers of keys: twice that.
  static double variance(const Description& d) {
    if (!(d.fill < 1) || d.probes == 0) return INFINITY;
    const double load = -std::log1p(-d.fill);
    return 2 * static_cast<double>(d.bits) * (std::expm1(load) - load) / (d.probes * d.probes);
  }
};

int run(const Options& options) {
  check_output(options.output);
  if (is_shards(FileBytes(options.filters.front()).bytes())) return join(options);
  if (open_filter(options.filters.front(), {.keyed = options.keyed}).file.header().kind == Kind::range) {
    if (options.intersect) fail("--intersect: places of ranges say nothing about common keys");
    merge_ranges(options.filters, options.output, options.note, {.keyed = options.keyed}, options.json);
    return kYes;
  }
  std::unique_ptr<AnyMutable> result;
  Record record;
  std::uint64_t fewest = UINT64_MAX;
  Common common;
  std::optional<Recipe> recipe;
  Progress progress("merging", 0);
  for (const std::string& path : options.filters) {
    const Opened opened = open_filter(path, {.keyed = options.keyed});
    const Record theirs = opened.file.header().record;
    fewest = std::min(fewest, theirs.keys);
    if (result == nullptr) {
      result = load_filter(opened.file);
      record = theirs;
      recipe = recipe_of(record, path);
      continue;
    }
    check_recipes(options, recipe, path, theirs);
    if (options.intersect)
      common.see(load_filter(open_filter(options.filters.front(), {.keyed = options.keyed}).file), *opened.filter);
    const auto done = options.intersect ? result->intersect(*opened.filter) : result->merge(*opened.filter);
    if (!done) fail("{} and {} cannot be merged: {}", options.filters.front(), path, done.error().detail);
    record.keys += theirs.keys;
    record.capacity = std::max({record.capacity, theirs.capacity, result->record().capacity});
    record.keep_common(theirs);
    progress.advance(opened.filter->byte_size(), 0);
  }
  // The intersection has no more keys than its smallest part, whatever the estimate says: that of a full filter is
  // infinite.
  Description d = capped(result->describe(), options.intersect ? fewest : record.keys);
  if (options.intersect) {
    d.keys_estimated = std::min(d.keys_estimated, common.keys);
    common.most = std::min(common.most, static_cast<double>(fewest));
  }
  if (options.intersect) record.keys = static_cast<std::uint64_t>(std::llround(std::max(0.0, d.keys_estimated)));
  if (recipe) record.about = about_new(*recipe, options.note);
  save_filter(*result, options.output, record);
  if (options.json) {
    Json json;
    json.add("file", options.output).add("filters", static_cast<std::uint64_t>(options.filters.size()));
    json.add("keys", record.keys).add("keys_distinct", d.keys_estimated).add("bytes", d.bytes);
    if (options.intersect) json.add("keys_distinct_most", common.most);
    json.add("fill", d.fill).add("fpr", d.fpr);
    Out().write(json.text() + "\n");
  } else {
    Out().write(
        fmt::format("{}: {} of {} filters, about {} distinct keys{}, fpr {}\n", options.output,
                    options.intersect ? "intersection" : "union", options.filters.size(), grouped(d.keys_estimated),
                    options.intersect ? fmt::format(", at most {}", grouped(common.most)) : "", percent(d.fpr)));
  }
  warn_if_saturated(options.output, d, record);
  return kYes;
}

}  // namespace
}  // namespace merge

Command::Run merge_command(CLI::App& app) {
  auto options = std::make_shared<merge::Options>();
  app.add_option("filters", options->filters, "Filter files")->type_name("FILTER")->required();
  app.add_option("-o,--output", options->output, "The file to write")->type_name("FILE")->required();
  app.add_flag("--intersect", options->intersect, "Keep what is in all of them");
  declare_note(app, options->note);
  app.add_option_function<std::string>(
         "--recipe",
         [options](const std::string& text) {
           if (text != "stored" && text != "given") fail("--recipe {}: must be one of stored|given", text);
           options->given = text == "given";
         },
         "given: merge filters even if their keys were made by different recipes; the first one's is kept")
      ->type_name("stored|given");
  declare_json(app, options->json);
  declare_keyed(app, options->keyed);
  return [options] { return merge::run(*options); };
}

}  // namespace perhaps::cli
