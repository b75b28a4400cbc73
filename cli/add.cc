// perhaps add: the old keys and the new ones, in a new file that replaces the old one.
#include <algorithm>
#include <array>
#include <cmath>

#include "command.h"
#include "filter_file.h"
#include "json.h"
#include "keys.h"
#include "options.h"
#include "print.h"
#include "progress.h"

namespace perhaps::cli {
namespace add {
namespace {

struct Options {
  std::string filter;
  KeyOptions keys;
  Keyed keyed;
  bool json = false;
};

int run(Options& options) {
  Changing file(options.filter, options.keyed, /*erases=*/false);
  Record& record = file.record;
  AnyMutable* const filter = file.filter.get();
  options.keys.adopt(recipe_of(record, options.filter), options.filter);
  read_stdin_if_none(options.keys);
  Keys keys(options.keys);

  std::uint64_t asked = 0;
  std::uint64_t added = 0;
  {
    Progress progress("adding", keys.stored_bytes());
    std::array<std::uint64_t, Parser::kColumn> digests;
    std::array<std::uint64_t, Parser::kColumn> fresh;
    std::array<std::uint64_t, Parser::kColumn / 64> answers;
    keys.for_each(progress, [&](const Batch& batch, const Source*) {
      const auto mine = std::span(digests).first(batch.keys.size());
      digest_keys(file.hasher, options.keys.as, batch.keys, mine);
      filter->digests()->may_contain(mine, answers);
      if (const std::size_t in = filter->insert_digests(mine); in < mine.size()) {
        fail("{}: full after {} of the new keys; it was not changed. Build a larger one", options.filter,
             grouped(asked + in));
      }
      // A key twice in one batch is new once.
      std::size_t count = 0;
      for (std::size_t i = 0; i < mine.size(); ++i) {
        fresh[count] = mine[i];
        count += (answers[i / 64] >> (i % 64) & 1) == 0;
      }
      std::sort(fresh.begin(), fresh.begin() + static_cast<std::ptrdiff_t>(count));
      added += static_cast<std::uint64_t>(
          std::unique(fresh.begin(), fresh.begin() + static_cast<std::ptrdiff_t>(count)) - fresh.begin());
      asked += batch.keys.size();
      return true;
    });
  }
  record.keys += asked;
  const bool grown = filter->record().capacity > record.capacity;
  record.capacity = std::max(record.capacity, filter->record().capacity);
  save_filter(*filter, options.filter, record);
  file.lock.release();

  const Description d = capped(filter->describe(), record.keys);
  if (options.json) {
    Json json;
    json.add("file", options.filter).add("given", asked).add("added", added).add("present", asked - added);
    json.add("keys", record.keys).add("keys_distinct", d.keys_estimated).add("fill", d.fill).add("fpr", d.fpr);
    json.add("grown", grown);
    Out().write(json.text() + "\n");
  } else {
    // What can be removed is kept twice if it was added twice; of other keys there is one.
    const bool counts = find_family(*kind_named(d.family))->erases;
    const std::uint64_t now = counts ? record.keys : static_cast<std::uint64_t>(std::llround(d.keys_estimated));
    Out().write(fmt::format("{}: {} added, {} looked present; {}{} key{} now, fpr {}{}\n", options.filter,
                            grouped(added), grouped(asked - added), counts ? "" : "about ", grouped(now),
                            now == 1 ? "" : "s", percent(d.fpr),
                            grown ? fmt::format("; it has grown, for {} keys", grouped(record.capacity)) : ""));
  }
  warn_if_saturated(options.filter, d, record);
  return kYes;
}

}  // namespace
}  // namespace add

Command::Run add_command(CLI::App& app) {
  auto options = std::make_shared<add::Options>();
  app.add_option("filter", options->filter, "The filter file")->type_name("FILTER")->required();
  declare_json(app, options->json);
  declare_keyed(app, options->keyed);
  declare_keys(app, options->keys);
  declare_recipe(app, options->keys);
  return [options] { return add::run(*options); };
}

}  // namespace perhaps::cli
