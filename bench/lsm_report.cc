#include "lsm_report.h"

#include "cli/json.h"
#include "cli/print.h"

namespace perhaps::bench {
namespace {

using cli::grouped;
using cli::Json;
using cli::percent;
using cli::table;

// The rate of the filters of all levels, for absent keys.
double fpr_of(const Counted& absent) {
  LevelCounts sum;
  for (const LevelCounts& level : absent.levels) sum += level;
  const auto queries = static_cast<double>(sum.skipped + sum.in_vain);
  return queries > 0 ? static_cast<double>(sum.in_vain) / queries : 0;
}

std::string times_text(double a, double b) { return b > 0 ? fmt::format("{:.2f}", a / b) : "-"; }

}  // namespace

std::string lsm_text(const Run& run) {
  const bool multiget = run.settings[0].database->has_multiget();
  std::vector<std::vector<std::string>> rows = {
      {"filters", "bits/key", "bytes", "reads/absent", "reads/lookup", "fpr", "absent Get/s", "Get/s"}};
  if (multiget) rows[0].push_back("absent MultiGet/s");
  rows[0].push_back("build");
  for (std::size_t i = 0; i < run.settings.size(); ++i) {
    const Measured& m = run.measured[i];
    rows.push_back({run.settings[i].name, fmt::format("{:.2f}", run.bits_per_key(m)), grouped(m.filter_bytes),
                    fmt::format("{:.5f}", run.reads(m.absent)), fmt::format("{:.5f}", run.reads(m.mix)),
                    percent(fpr_of(m.absent)), grouped(m.get.per_second()), grouped(m.get_mix.per_second())});
    if (multiget) rows.back().push_back(grouped(m.multiget.per_second()));
    rows.back().push_back(fmt::format("{:.1f} s", m.build));
  }
  std::string out = table(rows, multiget ? "lrrrrrrrrr" : "lrrrrrrrr");
  const Measured &none = *run.of(Setting::Role::none), &own = *run.of(Setting::Role::own),
                 &ours = *run.of(Setting::Role::ours);
  out += (fmt::format("reads for an absent key: {} times fewer with the engine's own filter than without\n",
                      times_text(run.reads(none.absent), run.reads(own.absent))));
  out += (fmt::format("ours beside the engine's own: {} times its rate, {} times its Gets of absent keys per second",
                      times_text(fpr_of(ours.absent), fpr_of(own.absent)),
                      times_text(ours.get.per_second(), own.get.per_second())));
  if (multiget)
    out += (fmt::format(", {} times its MultiGets", times_text(ours.multiget.per_second(), own.multiget.per_second())));
  out += ("\n");
  for (std::size_t i = 0; i < run.settings.size(); ++i) {
    if (!run.settings[i].name.starts_with("allocating")) continue;
    const Measured& m = run.measured[i];
    out += (fmt::format("{}: {} times fewer reads for an absent key than the engine's own, in {} of its memory\n",
                        run.settings[i].name, times_text(run.reads(own.absent), run.reads(m.absent)),
                        times_text(static_cast<double>(m.filter_bytes), static_cast<double>(own.filter_bytes))));
  }
  return out;
}

std::string lsm_json(const Run& run) {
  const auto levels_of = [](const Counted& counted) {
    std::vector<std::string> levels;
    for (const LevelCounts& level : counted.levels) {
      levels.push_back(
          Json().add("skipped", level.skipped).add("in_vain", level.in_vain).add("found", level.found).text());
    }
    return Json::array(levels);
  };
  std::vector<std::string> settings;
  for (std::size_t i = 0; i < run.settings.size(); ++i) {
    const Measured& m = run.measured[i];
    Json json;
    json.add("filters", run.settings[i].name).add("filter_bytes", m.filter_bytes);
    json.add("bits_per_key", run.bits_per_key(m)).add("reads_absent", run.reads(m.absent));
    json.add("reads_mix", run.reads(m.mix)).add("fpr", fpr_of(m.absent)).add("get_absent", m.get.per_second());
    json.add("get_mix", m.get_mix.per_second());
    if (run.settings[i].database->has_multiget()) json.add("multiget_absent", m.multiget.per_second());
    json.add("build_seconds", m.build).raw("levels_absent", levels_of(m.absent)).raw("levels_mix", levels_of(m.mix));
    settings.push_back(json.text());
  }
  const LsmOptions& o = run.options;
  return Json()
      .add("engine", o.engine)
      .add("keys", o.keys)
      .add("value", o.value)
      .add("lookups", o.lookups)
      .add("absent", o.absent)
      .add("skew", o.skew)
      .add("cache", o.cache)
      .raw("settings", Json::array(settings))
      .text();
}

}  // namespace perhaps::bench
