// How many bits per key each family takes at which rate, as a panel of a picture.
#pragma once
#include <cmath>
#include <string>
#include <vector>

#include "perhaps/any_filter.h"
#include "svg.h"

namespace perhaps::plot {

// Of middle brightness: they show on white and on black.
inline constexpr const char* kColours[] = {"#0284c7", "#ea580c", "#7c3aed", "#059669", "#db2777",
                                           "#ca8a04", "#dc2626", "#0d9488", "#65a30d", "#9333ea"};
inline constexpr const char* kLimitColour = "#808080";
inline constexpr const char* kDashed = "stroke-dasharray=\"2 4\"";

// The line of that name; a new one in the next colour.
inline Line& line_named(std::vector<Line>& lines, const std::string& label) {
  for (Line& line : lines)
    if (line.label == label) return line;
  return lines.emplace_back(
      Line{.label = label, .colour = kColours[lines.size() % std::size(kColours)], .style = {}, .points = {}});
}

// By the models, for `keys` keys; `marks` are filters (rate, bits per key) to point out.
inline std::string size_panel(std::uint64_t keys, const std::vector<Point>& marks) {
  constexpr double kFrom = 0.1;
  constexpr double kTo = 1e-5;
  const Panel panel(80, 80, 400, 400,
                    {.from = kFrom,
                     .to = kTo,
                     .logarithmic = true,
                     .ticks = {{0.1, "10 %"}, {0.01, "1 %"}, {1e-3, "0.1 %"}, {1e-4, "0.01 %"}, {1e-5, "0.001 %"}},
                     .title = "false-positive rate"},
                    {.from = 3,
                     .to = 256,
                     .logarithmic = true,
                     .ticks = {{4, "4"}, {8, "8"}, {16, "16"}, {32, "32"}, {64, "64"}, {128, "128"}, {256, "256"}},
                     .title = "bits per key"});
  const auto visible = [&](const Point& p) { return p.x <= kFrom && p.x >= kTo && p.y >= 3 && p.y <= 256; };
  std::vector<Line> lines;
  Line limit{.label = "limit: no filter can do with less", .colour = kLimitColour, .style = kDashed, .points = {}};
  for (double exponent = -1; exponent >= -5.001; exponent -= 0.125) {
    const double fpr = std::pow(10, exponent);
    limit.points.push_back({fpr, bits_per_key_limit(fpr)});
    for (const FamilySize& size : size_table({.keys = keys, .fpr = fpr})) {
      const Point point{fpr, 8 * static_cast<double>(size.bytes) / static_cast<double>(keys)};
      if (point.y <= 256) line_named(lines, std::string(name_of(size.kind))).points.push_back(point);
    }
  }
  lines.push_back(limit);
  std::string out = panel.frame("Memory: bits per key for a rate of your choice") + panel.draw(lines);
  for (const Point& point : marks) {
    if (visible(point)) out += panel.mark(point, "#111");
  }
  return out;
}

}  // namespace perhaps::plot
