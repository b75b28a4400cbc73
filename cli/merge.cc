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

namespace perhaps::cli {
namespace merge {
namespace {

struct Options {
  std::vector<std::string> filters;
  std::string output;
  Keyed keyed;
  bool intersect = false;
  bool json = false;
};

// Files of shards of one partition become one file; each shard is in one of them.
int join(const Options& options) {
  if (options.intersect) fail("--intersect: shards have no keys in common");
  std::vector<std::unique_ptr<FileBytes>> files;
  std::vector<Shard> shards;
  std::uint64_t count = 0;
  for (const std::string& path : options.filters) {
    files.push_back(std::make_unique<FileBytes>(path));
    const Shards one = take(Shards::over(files.back()->bytes(), path));
    if (count != 0 && one.count() != count) {
      fail("{} and {} cannot be merged: {} and {} shards", options.filters.front(), path, count, one.count());
    }
    count = one.count();
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

int run(const Options& options) {
  check_output(options.output);
  if (is_shards(FileBytes(options.filters.front()).bytes())) return join(options);
  std::unique_ptr<AnyMutable> result;
  Record record;
  std::uint64_t fewest = UINT64_MAX;
  Progress progress("merging", 0);
  for (const std::string& path : options.filters) {
    const Opened opened = open_filter(path, {.keyed = options.keyed});
    const Record theirs = opened.file.header().record;
    fewest = std::min(fewest, theirs.keys);
    if (result == nullptr) {
      result = load_filter(opened.file);
      record = theirs;
      continue;
    }
    const auto done = options.intersect ? result->intersect(*opened.filter) : result->merge(*opened.filter);
    if (!done) fail("{} and {} cannot be merged: {}", options.filters.front(), path, done.error().detail);
    record.keys += theirs.keys;
    record.capacity = std::max({record.capacity, theirs.capacity, result->record().capacity});
    record.keep_common(theirs);
    progress.advance(opened.filter->byte_size(), 0);
  }
  // The intersection has no more keys than its smallest part, whatever the estimate says: that of a full filter is
  // infinite.
  const Description d = capped(result->describe(), options.intersect ? fewest : record.keys);
  if (options.intersect) record.keys = static_cast<std::uint64_t>(std::llround(std::max(0.0, d.keys_estimated)));
  save_filter(*result, options.output, record);
  if (options.json) {
    Json json;
    json.add("file", options.output).add("filters", static_cast<std::uint64_t>(options.filters.size()));
    json.add("keys", record.keys).add("keys_distinct", d.keys_estimated).add("bytes", d.bytes);
    json.add("fill", d.fill).add("fpr", d.fpr);
    Out().write(json.text() + "\n");
  } else {
    Out().write(fmt::format("{}: {} of {} filters, about {} distinct keys, fpr {}\n", options.output,
                            options.intersect ? "intersection" : "union", options.filters.size(),
                            grouped(d.keys_estimated), percent(d.fpr)));
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
  declare_json(app, options->json);
  declare_keyed(app, options->keyed);
  return [options] { return merge::run(*options); };
}

}  // namespace perhaps::cli
