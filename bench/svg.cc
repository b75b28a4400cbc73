// One picture of a run: bits per key over the false-positive rate, and ns over the size of the table. Plain SVG text.
#include <cmath>
#include <fstream>
#include <stdexcept>

#include "cli/svg.h"
#include "perhaps/sizing.h"
#include "report.h"

namespace perhaps::bench {
namespace {

using plot::format;
using plot::Line;
using plot::Panel;
using plot::Point;
using plot::Tick;

constexpr const char* kLineColour = "#0b6e99";
constexpr const char* kBlockColour = "#c2410c";
constexpr const char* kClassicColour = "#6d28d9";
constexpr const char* kLimitColour = "#111";
constexpr const char* kPeerColours[] = {"#8a8a8a", "#5b7f5b", "#a07b3b", "#8c5f7a", "#4f6d8f", "#7d7d4f"};

std::string colour_of(const Row& row, std::size_t index) {
  if (row.about.name == "line") return kLineColour;
  if (row.about.name == "block") return kBlockColour;
  if (row.about.name == "classic") return kClassicColour;
  if (row.about.kind == Kind::limit) return kLimitColour;
  return kPeerColours[index % std::size(kPeerColours)];
}

template <class Shape>
Line model(const std::string& label, const std::string& colour) {
  constexpr double kKeys = 1'000'000;
  Line line{.label = label, .colour = colour, .style = {}, .points = {}};
  for (double exponent = -1; exponent >= -5.001; exponent -= 0.125) {
    const double fpr = std::pow(10, exponent);
    const auto shape = Shape::for_keys({.keys = static_cast<std::uint64_t>(kKeys), .fpr = fpr});
    const double bits = 8.0 * static_cast<double>(shape.bytes()) / kKeys;
    if (bits <= 34) line.points.push_back({fpr, bits});
  }
  return line;
}

std::string space(const std::vector<Table>& tables, const std::vector<Rate>& rates) {
  const Panel panel(80, 80, 420, 420,
                    {.from = 0.1,
                     .to = 1e-5,
                     .logarithmic = true,
                     .ticks = {{0.1, "10 %"}, {0.01, "1 %"}, {1e-3, "0.1 %"}, {1e-4, "0.01 %"}, {1e-5, "0.001 %"}},
                     .title = "false-positive rate"},
                    {.from = 0,
                     .to = 34,
                     .logarithmic = false,
                     .ticks = {{0, "0"}, {8, "8"}, {16, "16"}, {24, "24"}, {32, "32"}},
                     .title = "bits per key"});
  std::vector<Line> lines{model<BloomShape>("classic", kClassicColour), model<LineShape>("line", kLineColour),
                          model<BlockShape>("block", kBlockColour)};
  Line limit{.label = "limit", .colour = kLimitColour, .style = "stroke-dasharray=\"2 4\"", .points = {}};
  for (double exponent = -1; exponent >= -5.001; exponent -= 1) {
    limit.points.push_back({std::pow(10, exponent), bits_per_key_limit(std::pow(10, exponent))});
  }
  lines.push_back(limit);
  std::string out = panel.frame("Space: model (lines), measured (points)") + panel.draw(lines);
  for (const Rate& rate : rates) {
    const Point point{rate.fpr, rate.bits_per_key};
    const char* colour = rate.family == "line" ? kLineColour : rate.family == "block" ? kBlockColour : kClassicColour;
    if (rate.fpr > 0 && panel.holds(point)) out += panel.mark(point, colour);
  }
  // Peers, as the largest table of lookups saw them.
  const Table* last = nullptr;
  for (const Table& table : tables) {
    if (table.group.empty() && table.section == "lookup" && (last == nullptr || table.keys > last->keys)) last = &table;
  }
  if (last == nullptr) return out;
  std::size_t peers = 0;
  std::size_t named = 0;
  for (const Row& row : last->rows) {
    if (row.about.kind != Kind::peer) continue;
    const std::string colour = colour_of(row, peers++);
    const Point point{row.fpr, row.bits_per_key};
    if (row.fpr <= 0 || !panel.holds(point)) continue;
    out += panel.name(point, colour, row.about.name + ", " + short_number(last->keys) + " keys", named++);
    out += panel.mark(point, colour);
  }
  return out;
}

std::string speed(const std::vector<Table>& tables) {
  std::map<std::string, Line> lines;
  std::map<std::string, std::string> peers;
  double most_bytes = 0;
  double least_bytes = 1e18;
  double most_ns = 0;
  double least_ns = 1e9;
  for (const Table& table : tables) {
    if (!table.group.empty() || table.section != "lookup" || table.mix != "absent") continue;
    for (const Row& row : table.rows) {
      const bool ours = row.about.name == "line" || row.about.name == "block";
      if (row.about.kind == Kind::native || row.about.name == "limit 10.67" || !row.refused.empty()) continue;
      if (row.about.kind == Kind::ours && !ours) continue;
      for (const char* form : {"single", "batch"}) {
        const auto found = row.ns.find(form);
        const bool batch = std::string_view(form) == "batch";
        if (found == row.ns.end() || (row.about.kind == Kind::limit && !batch)) continue;
        const double ns = median(found->second);
        // Over the size of the line filter, so that equal numbers of keys stand above each other.
        const double bytes = 10.24 / 8 * static_cast<double>(table.keys);
        const std::string label =
            row.about.kind == Kind::limit ? "limit: one line, prefetched" : row.about.name + " " + form;
        if (row.about.kind == Kind::peer && !peers.contains(row.about.name)) {
          peers[row.about.name] = kPeerColours[peers.size() % std::size(kPeerColours)];
        }
        Line& line = lines[label];
        line.label = label;
        line.colour = row.about.kind == Kind::peer ? peers[row.about.name] : colour_of(row, 0);
        line.style = row.about.kind == Kind::limit ? "stroke-dasharray=\"2 4\""
                     : batch                       ? ""
                                                   : "stroke-dasharray=\"7 4\"";
        line.dots = true;
        line.points.push_back({bytes, ns});
        most_bytes = std::max(most_bytes, bytes);
        least_bytes = std::min(least_bytes, bytes);
        most_ns = std::max(most_ns, ns);
        least_ns = std::min(least_ns, ns);
      }
    }
  }
  if (lines.empty()) return {};
  std::vector<Tick> sizes;
  for (double bytes = 1 << 13; bytes <= 1e12; bytes *= 8) {
    if (bytes < least_bytes / 2 || bytes > most_bytes * 2) continue;
    sizes.push_back({bytes, bytes < 1 << 20   ? format("%.0f KiB", bytes / (1 << 10))
                            : bytes < 1 << 30 ? format("%.0f MiB", bytes / (1 << 20))
                                              : format("%.0f GiB", bytes / (1 << 30))});
  }
  std::vector<Tick> times;
  for (const double ns : {1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0}) {
    if (ns >= least_ns / 1.5 && ns <= most_ns * 1.5) times.push_back({ns, format("%.0f", ns)});
  }
  const Panel panel(
      680, 80, 420, 420,
      {.from = least_bytes / 2,
       .to = most_bytes * 2,
       .logarithmic = true,
       .ticks = sizes,
       .title = "table (of the line filter), log"},
      {.from = least_ns / 1.5, .to = most_ns * 1.5, .logarithmic = true, .ticks = times, .title = "ns per key, log"});
  std::vector<Line> drawn;
  for (const auto& [label, line] : lines) drawn.push_back(line);
  return panel.frame("Time: absent keys, one thread; dashed = one key at a time") + panel.draw(drawn);
}

}  // namespace

void write_svg(const std::string& path, const std::vector<Table>& tables, const std::vector<Rate>& rates) {
  std::ofstream out(path);
  out << plot::picture(1320, 580, space(tables, rates) + speed(tables));
  if (!out.flush()) throw std::runtime_error("cannot write " + path);
}

}  // namespace perhaps::bench
