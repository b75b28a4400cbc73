// perhaps allocate: how many bits per key the filters of each level of an LSM tree should have.
#include "perhaps/engine/allocate.h"
#include "filter_file.h"
#include "json.h"
#include "perhaps/file/writer.h"

#include <cmath>

#include "command.h"
#include "options.h"
#include "perhaps/file/container.h"
#include "print.h"
#include "svg.h"
#include "tree.h"

namespace perhaps::cli {
namespace allocate {
namespace {

struct Options : Tree {
  std::string filter = "line";
  std::string plot;
  bool json = false;
};

constexpr const char* kBestColour = "#0b6e99";
constexpr const char* kEvenColour = "#8a8a8a";

plot::Panel levels_panel(const Allocation& best, const Allocation& even) {
  double most = 1;
  for (const Allocation* a : {&best, &even}) {
    for (const auto& share : a->levels) most = std::max(most, share.bits_per_key);
  }
  plot::Panel::Axis x{.from = 0.5,
                      .to = static_cast<double>(best.levels.size()) + 0.5,
                      .logarithmic = false,
                      .ticks = {},
                      .title = "level"};
  for (std::size_t i = 1; i <= best.levels.size(); ++i) x.ticks.push_back({static_cast<double>(i), std::to_string(i)});
  plot::Panel::Axis y{
      .from = 0, .to = std::ceil(most / 4) * 4, .logarithmic = false, .ticks = {}, .title = "bits per key"};
  for (double bits = 0; bits <= y.to; bits += 4) y.ticks.push_back({bits, fmt::format("{:.0f}", bits)});
  return {80, 80, 380, 380, std::move(x), std::move(y)};
}

plot::Line levels_line(const Allocation& allocation, const char* label, const char* colour, const char* style) {
  plot::Line line{.label = label, .colour = colour, .style = style, .points = {}, .dots = true};
  for (std::size_t i = 0; i < allocation.levels.size(); ++i) {
    line.points.push_back({static_cast<double>(i + 1), allocation.levels[i].bits_per_key});
  }
  return line;
}

// Wasted reads over memory, around the budget.
std::string reads_panel(const LevelBudget& spread, const LevelBudget& evenly, std::uint64_t budget) {
  const auto at = static_cast<double>(budget);
  plot::Line best{.label = "spread", .colour = kBestColour, .style = {}, .points = {}};
  plot::Line even{.label = "even", .colour = kEvenColour, .style = "stroke-dasharray=\"7 4\"", .points = {}};
  double least = 1;
  double most = 0;
  for (double share = 0.25; share <= 2.001; share *= std::pow(2, 0.125)) {
    const auto bytes = static_cast<std::uint64_t>(at * share);
    best.points.push_back({share * at, spread.best(bytes).wasted});
    even.points.push_back({share * at, evenly.even(bytes).wasted});
    least = std::min(least, best.points.back().y);
    most = std::max({most, best.points.back().y, even.points.back().y});
  }
  plot::Panel::Axis x{.from = at / 4, .to = at * 2, .logarithmic = true, .ticks = {}, .title = "memory of the filters"};
  for (const double share : {0.25, 0.5, 1.0, 2.0}) x.ticks.push_back({at * share, bytes_text(at * share)});
  plot::Panel::Axis y{.from = std::max(least, 1e-12) / 1.2,
                      .to = most * 1.2,
                      .logarithmic = true,
                      .ticks = {},
                      .title = "wasted reads per lookup"};
  for (double tick = 1e-12; tick < 1e4; tick *= 10) {
    if (tick >= y.from && tick <= y.to) y.ticks.push_back({tick, fmt::format("{:g}", tick)});
  }
  const plot::Panel panel(680, 80, 380, 380, std::move(x), std::move(y));
  return panel.frame("Absent keys, over the memory") + panel.draw({best, even}) +
         panel.mark({at, spread.best(budget).wasted}, kBestColour) +
         panel.mark({at, evenly.even(budget).wasted}, kEvenColour);
}

void draw(const Options& options, const LevelBudget& spread, const LevelBudget& evenly) {
  const Allocation best = spread.best(options.budget);
  const Allocation even = evenly.even(options.budget);
  const plot::Panel panel = levels_panel(best, even);
  const std::string levels = panel.frame("Bits per key in " + bytes_text(static_cast<double>(options.budget))) +
                             panel.draw({levels_line(best, "spread", kBestColour, ""),
                                         levels_line(even, "even", kEvenColour, "stroke-dasharray=\"7 4\"")});
  const std::string picture = plot::picture(1180, 540, levels + reads_panel(spread, evenly, options.budget));
  take(write_file(options.plot, bytes_of(picture)));
}

// Bits per key of each level, beside an even allocation.
std::string bars(const Allocation& best, double even_bits) {
  double most = even_bits;
  for (const auto& share : best.levels) most = std::max(most, share.bits_per_key);
  const auto row = [&](const std::string& name, double bits) {
    return fmt::format("{:>5}  {}  {:.2f}\n", name, bar(most > 0 ? bits / most : 0, 50), bits);
  };
  std::string rows;
  for (std::size_t i = 0; i < best.levels.size(); ++i) rows += row(std::to_string(i + 1), best.levels[i].bits_per_key);
  return rows + row("even", even_bits);
}

int run(Options& options) {
  options.family = *kind_named(options.filter);
  take(check(options));
  if (!options.plot.empty()) check_output(options.plot);
  const auto [evenly, spread, best, even, small, even_ribbon] = take(spread_budget(options));
  if (!options.plot.empty()) draw(options, spread, evenly);
  Out out;
  if (options.json) {
    std::vector<std::string> rows;
    for (std::size_t i = 0; i < best.levels.size(); ++i) {
      Json row;
      row.add("level", std::uint64_t{i + 1}).add("keys", spread.levels()[i].keys);
      row.add("family", name_of(spread.levels()[i].family)).add("cost", spread.levels()[i].cost);
      row.add("bytes", best.levels[i].bytes).add("bits_per_key", best.levels[i].bits_per_key);
      row.add("fpr", best.levels[i].fpr).add("even_bytes", even.levels[i].bytes);
      row.add("even_bits_per_key", even.levels[i].bits_per_key).add("even_fpr", even.levels[i].fpr);
      rows.push_back(row.text());
    }
    Json json;
    json.add("budget", options.budget).add("bytes", best.bytes).add("wasted_reads", best.wasted);
    json.add("even_bytes", even.bytes).add("even_wasted_reads", even.wasted);
    if (options.ribbon > 0) json.add("even_ribbon_wasted_reads", even_ribbon.wasted);
    json.add("bytes_for_even_reads", small.bytes).raw("levels", Json::array(rows));
    out.write(json.text() + "\n");
    return kYes;
  }
  std::vector<std::vector<std::string>> rows = {
      {"level", "keys", "filter", "bits/key", "bytes", "fpr", "even bits/key", "even fpr"}};
  for (std::size_t i = 0; i < best.levels.size(); ++i) {
    const Allocation::Share& share = best.levels[i];
    rows.push_back({std::to_string(i + 1), grouped(spread.levels()[i].keys),
                    share.bytes == 0 ? "none" : std::string(name_of(spread.levels()[i].family)),
                    fmt::format("{:.2f}", share.bits_per_key), grouped(share.bytes), percent(share.fpr),
                    fmt::format("{:.2f}", even.levels[i].bits_per_key), percent(even.levels[i].fpr)});
  }
  const auto bits_of = [&](const Allocation& all) {
    return static_cast<double>(all.bytes) * 8 / static_cast<double>(options.keys);
  };
  rows.push_back({"all", grouped(options.keys), "", fmt::format("{:.2f}", bits_of(best)), grouped(best.bytes), "",
                  fmt::format("{:.2f}", bits_of(even)), ""});
  out.write(table(rows, "rrlrrrrr") + "bits per key\n" + bars(best, bits_of(even)));
  out.write(fmt::format("useless reads per lookup of an absent key: {} spread, {} even", expected(best.wasted),
                        expected(even.wasted)));
  if (best.wasted > 0) out.write(fmt::format(", {:.2f} times fewer", even.wasted / best.wasted));
  if (options.ribbon > 0) {
    out.write(
        fmt::format("\nwith the same bits per key in ribbon filters on every level: {}", expected(even_ribbon.wasted)));
    if (best.wasted > 0) out.write(fmt::format(", {:.2f} times as many as spread", even_ribbon.wasted / best.wasted));
  }
  out.write(fmt::format("\nas few as even with {}", bytes_text(static_cast<double>(small.bytes))));
  if (small.bytes < even.bytes) {
    const double saved = 1 - static_cast<double>(small.bytes) / static_cast<double>(even.bytes);
    out.write(fmt::format(", {:.1f} % less memory", saved * 100));
  }
  out.write("\n");
  return kYes;
}

}  // namespace
}  // namespace allocate

Command::Run allocate_command(CLI::App& app) {
  auto options = std::make_shared<allocate::Options>();
  add_count(app, "--levels", options->levels, "N", "Levels of the tree (4)");
  app.add_option("--ratio", options->ratio, "How many times larger each level is than the one before it (10)")
      ->type_name("R");
  add_count(app, "--keys", options->keys, "N", "Keys in all levels together")->required();
  add_count(app, "--budget", options->budget, "BYTES", "Memory for all filters together")->required();
  add_words(app, "--filter", options->filter,
            family_names([](const Family& f) { return f.packs && !f.erases && !f.in_order; }),
            "The family of the filters (line)");
  add_count(app, "--ribbon", options->ribbon, "N", "Ribbon filters on the last N levels");
  add_count(app, "--runs", options->runs, "N",
            "Overlapping tables on the first level, all of which a lookup queries (1)");
  app.add_option("--plot", options->plot, "Draw it, and the reads over the memory")->type_name("FILE.svg");
  declare_json(app, options->json);
  return [options] { return allocate::run(*options); };
}

}  // namespace perhaps::cli
