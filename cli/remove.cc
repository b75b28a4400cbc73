// perhaps remove: takes keys out of a filter that can forget, in a new file that replaces the old one.
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
namespace remove {
namespace {

struct Options {
  std::string filter;
  KeyOptions keys;
  Keyed keyed;
  bool partial = false;
  bool json = false;
};

// The damage done by removing keys that were never added. Most are recognised; the share `wrong` looks present.
//   cuckoo, quotient, growing   each removes the fingerprint of one member
//   counting           each lowers all its counters, and a member is lost for every counter that falls from 1 to 0:
//                      if counters are Poisson-distributed, a share of -(1 - fill) ln(1 - fill) / fill of them
struct Harm {
  explicit Harm(const Description& before) : wrong(before.wrong_erase.value_or(0)) {
    if (before.family != name_of(Kind::counting) || !(before.fill > 0 && before.fill < 1)) return;
    std::uint64_t counters = before.probes;
    for (const auto& [name, value] : before.more) {
      if (name == "guards") counters += parse_u64(value).value_or(0);
    }
    const double alone = -(1 - before.fill) * std::log1p(-before.fill) / before.fill;
    members_each = static_cast<double>(counters) * alone;
  }
  // If `absent` keys were recognised and `present` keys were not, so many of the latter were never added / members are
  // lost. The rate is that of the filter before and falls as keys go, so it may predict more than there were.
  double mistaken(std::uint64_t absent, std::uint64_t present) const noexcept {
    return std::min(static_cast<double>(absent) * wrong / (1 - wrong), static_cast<double>(present));
  }
  double lost(std::uint64_t absent, std::uint64_t present) const noexcept {
    return mistaken(absent, present) * members_each;
  }

  double wrong;
  double members_each = 1;
};

// The first few keys that are not in the filter, for the message.
class Strangers {
 public:
  void see(const Batch& batch, const Source* source, std::span<const std::uint64_t> answers) {
    for (std::size_t i = 0; i < batch.keys.size() && names_.size() < 3; ++i) {
      if ((answers[i / 64] >> (i % 64) & 1) != 0) continue;
      const std::string_view text(reinterpret_cast<const char*>(batch.records[i].data()), batch.records[i].size());
      const std::string place = source == nullptr ? "-e" : source->place(batch.records[i].data());
      names_.push_back(fmt::format("{} ({})", Json::quoted(text.substr(0, 60)), place));
    }
  }
  bool full() const noexcept { return names_.size() >= 3; }
  std::string text() const { return fmt::format("{}", fmt::join(names_, ", ")); }

 private:
  std::vector<std::string> names_;
};

int run(Options& options) {
  Changing file(options.filter, options.keyed, /*erases=*/true);
  Record& record = file.record;
  AnyMutable* const filter = file.filter.get();
  const Harm harm(filter->describe());
  options.keys.adopt(recipe_of(record, options.filter), options.filter);
  read_stdin_if_none(options.keys);
  Keys keys(options.keys);

  std::uint64_t asked = 0;
  ErasedCounts counts;
  Strangers strangers;
  {
    Progress progress("removing", keys.stored_bytes());
    std::array<std::uint64_t, Parser::kColumn> digests;
    std::array<std::uint64_t, Parser::kColumn / 64> answers;
    keys.for_each(progress, [&](const Batch& batch, const Source* source) {
      const auto mine = std::span(digests).first(batch.keys.size());
      digest_keys(file.hasher, options.keys.as, batch.keys, mine);
      if (!strangers.full()) {
        filter->digests()->may_contain(mine, answers);
        strangers.see(batch, source, answers);
      }
      const ErasedCounts some = take(filter->erase_digests(mine));
      counts.removed += some.removed;
      counts.absent += some.absent;
      counts.kept += some.kept;
      asked += batch.keys.size();
      return true;
    });
  }
  if (counts.absent != 0 && !options.partial) {
    const double lost = harm.lost(counts.absent, asked - counts.absent);
    fail("{}: not in it: {} of {} keys, {}{}. Nothing was removed; --partial removes the others{}", options.filter,
         grouped(counts.absent), grouped(asked), strangers.text(), counts.absent > 3 ? ", .." : "",
         lost < 0.5 ? ""
                    : fmt::format(", but some keys that were never added look present, and about {} keys that should "
                                  "stay are lost with them",
                                  grouped(lost)));
  }
  record.keys = filter->record().keys;
  save_filter(*filter, options.filter, record);
  file.lock.release();

  const Description d = capped(filter->describe(), record.keys);
  const double mistaken = harm.mistaken(counts.absent, counts.removed + counts.kept);
  const double lost = mistaken * harm.members_each;
  if (options.json) {
    Json json;
    json.add("file", options.filter).add("given", asked).add("removed", counts.removed).add("absent", counts.absent);
    json.add("kept", counts.kept).add("lost", lost).add("keys", record.keys).add("fill", d.fill).add("fpr", d.fpr);
    Out().write(json.text() + "\n");
  } else {
    const std::string kept = counts.kept == 0 ? "" : fmt::format(", {} kept (saturated)", grouped(counts.kept));
    Out().write(fmt::format("{}: {} removed, {} not there{}; {} key{} now, fpr {}\n", options.filter,
                            grouped(counts.removed), grouped(counts.absent), kept, grouped(record.keys),
                            record.keys == 1 ? "" : "s", percent(d.fpr)));
  }
  if (counts.absent != 0) {
    warn(
        fmt::format("{} of the keys {} never added, or removed before. Of such keys one in {} looks present{} "
                    "(--guard-bits of build makes that rarer)",
                    grouped(counts.absent), counts.absent == 1 ? "was" : "were",
                    harm.wrong > 0 ? grouped(1 / harm.wrong) : std::string("very many"),
                    mistaken < 0.5 ? ""
                                   : fmt::format(": about {} did, and about {} keys that should have stayed are lost",
                                                 grouped(mistaken), grouped(lost))));
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
  app.add_flag("--partial", options->partial,
               "Remove those that are in the filter even if others are not; without it, nothing is removed then");
  declare_json(app, options->json);
  declare_keyed(app, options->keyed);
  declare_keys(app, options->keys);
  declare_recipe(app, options->keys);
  return [options] { return remove::run(*options); };
}

}  // namespace perhaps::cli
