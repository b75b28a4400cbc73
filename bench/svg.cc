// The picture of a run, for people who have ten seconds: on the left how many bits a key takes at which rate, by the
// models and for every family; on the right how long a lookup takes over the number of keys, ours beside the limit and
// the others. Plain SVG text. `make bench BENCH_ARGS='--svg doc/bench.svg'` makes the one in the README.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <stdexcept>

#include "cli/size_plot.h"
#include "perhaps/any_filter.h"
#include "report.h"

namespace perhaps::bench {
namespace {

using plot::format;
using plot::kColours;
using plot::kDashed;
using plot::kLimitColour;
using plot::Line;
using plot::line_named;
using plot::Panel;
using plot::Tick;

constexpr const char* kShort = "stroke-dasharray=\"7 4\"";

// What of a table is drawn, and under which name; empty: nothing.
std::string label_of(const Row& row, std::string_view form) {
  const bool batch = form == "batch";
  if (!row.refused.empty()) return {};
  if (row.about.name == "limit 10.24") return batch ? "limit: one prefetched cache line" : "";
  if (row.about.name == "line") return batch ? "perhaps LineBloom, batch" : "perhaps LineBloom, one by one";
  if (row.about.kind == Kind::peer) return batch ? "" : row.about.name;
  return {};
}

std::string time(const std::vector<Table>& tables) {
  std::vector<Line> lines;
  double most_keys = 0, least_keys = 1e18, most_ns = 0, least_ns = 1e9;
  for (const Table& table : tables) {
    if (!table.group.empty() || table.section != "lookup" || table.mix != "absent") continue;
    for (const Row& row : table.rows) {
      for (const auto& [form, rounds] : row.ns) {
        const std::string label = label_of(row, form);
        if (label.empty()) continue;
        Line& line = line_named(lines, label);
        line.dots = true;
        if (row.about.kind == Kind::limit) line.colour = kLimitColour, line.style = kDashed;
        if (row.about.name == "line") line.colour = kColours[0], line.style = form == "batch" ? "" : kShort;
        const auto keys = static_cast<double>(table.keys);
        const double ns = median(rounds);
        line.points.push_back({keys, ns});
        most_keys = std::max(most_keys, keys);
        least_keys = std::min(least_keys, keys);
        most_ns = std::max(most_ns, ns);
        least_ns = std::min(least_ns, ns);
      }
    }
  }
  if (lines.empty()) return {};
  std::vector<Tick> sizes;
  for (double keys = 1000; keys <= 2 * most_keys; keys *= 10)
    if (keys * 2 >= least_keys) sizes.push_back({keys, short_number(static_cast<std::uint64_t>(keys))});
  std::vector<Tick> times;
  for (const double ns : {1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0})
    if (ns >= least_ns / 1.5 && ns <= most_ns * 1.5) times.push_back({ns, format("%.0f", ns)});
  const Panel panel(
      800, 80, 400, 400,
      {.from = least_keys / 2, .to = most_keys * 2, .logarithmic = true, .ticks = sizes, .title = "keys in the filter"},
      {.from = least_ns / 1.5, .to = most_ns * 1.5, .logarithmic = true, .ticks = times, .title = "ns per lookup"});
  return panel.frame("Time: lookups of absent keys at 1 %, one thread") + panel.draw(lines);
}

}  // namespace

void write_svg(const std::string& path, const std::vector<Table>& tables) {
  const std::string second = time(tables);
  std::ofstream out(path);
  out << plot::picture(second.empty() ? 740 : 1430, 550, plot::size_panel(1'000'000, {}) + second);
  if (!out.flush()) throw std::runtime_error("cannot write " + path);
}

}  // namespace perhaps::bench
