// perhaps remove: takes keys out of a filter that can forget, in a new file that replaces the old one.
#include <array>

#include "command.h"
#include "filter_file.h"
#include "json.h"
#include "keys.h"
#include "options.h"
#include "print.h"
#include "progress.h"

namespace perhaps::cli {
namespace remove {
namespace {

struct Options {
  std::string filter;
  KeyOptions keys;
  Keyed keyed;
  bool json = false;
};

int run(Options& options) {
  Changing file(options.filter, options.keyed, /*erases=*/true);
  Record& record = file.record;
  AnyMutable* const filter = file.filter.get();
  const double wrong = filter->describe().wrong_erase.value_or(0);
  read_stdin_if_none(options.keys);
  Keys keys(options.keys);

  std::uint64_t asked = 0;
  ErasedCounts counts;
  {
    Progress progress("removing", keys.stored_bytes());
    std::array<std::uint64_t, Parser::kColumn> digests;
    keys.for_each(progress, [&](const Batch& batch, const Source*) {
      const auto mine = std::span(digests).first(batch.keys.size());
      digest_keys(file.hasher, options.keys.as, batch.keys, mine);
      const ErasedCounts some = take(filter->erase_digests(mine));
      counts.removed += some.removed;
      counts.absent += some.absent;
      counts.kept += some.kept;
      asked += batch.keys.size();
      return true;
    });
  }
  record.keys = filter->record().keys;
  save_filter(*filter, options.filter, record);
  file.lock.release();

  const Description d = capped(filter->describe(), record.keys);
  if (options.json) {
    Json json;
    json.add("file", options.filter).add("given", asked).add("removed", counts.removed).add("absent", counts.absent);
    json.add("kept", counts.kept).add("keys", record.keys).add("fill", d.fill).add("fpr", d.fpr);
    Out().write(json.text() + "\n");
  } else {
    const std::string kept = counts.kept == 0 ? "" : fmt::format(", {} kept (saturated)", grouped(counts.kept));
    Out().write(fmt::format("{}: {} removed, {} were not there{}; {} keys now, fpr {}\n", options.filter,
                            grouped(counts.removed), grouped(counts.absent), kept, grouped(record.keys),
                            percent(d.fpr)));
  }
  if (counts.absent != 0) {
    warn(
        fmt::format("{} of the keys were never added, or removed before: one in {} such keys looks present, and takes "
                    "another key out with it (--guard-bits of build makes that rarer)",
                    grouped(counts.absent), wrong > 0 ? grouped(1 / wrong) : std::string("very many")));
  }
  if (d.needs_rebuild)
    warn(fmt::format("{}: is now worse than a fresh filter of its keys: build another", options.filter));
  return kYes;
}

}  // namespace
}  // namespace remove

Command::Run remove_command(CLI::App& app) {
  auto options = std::make_shared<remove::Options>();
  app.add_option("filter", options->filter, "The filter file")->type_name("FILTER")->required();
  declare_json(app, options->json);
  declare_keyed(app, options->keyed);
  declare_keys(app, options->keys);
  return [options] { return remove::run(*options); };
}

}  // namespace perhaps::cli
