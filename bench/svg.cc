// One picture of a run: bits a key over the false-positive rate, and ns over the size of the table. Plain SVG text.
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <fstream>
#include <stdexcept>

#include "perhaps/sizing.h"
#include "report.h"

namespace perhaps::bench {
namespace {

struct Point {
  double x;
  double y;
};

struct Line {
  std::string label;
  std::string colour;
  std::string style;  // further attributes of the path
  std::vector<Point> points;
  bool dots = false;
};

std::string format(const char* pattern, ...) {
  std::array<char, 1024> text;
  va_list arguments;
  va_start(arguments, pattern);
  std::vsnprintf(text.data(), text.size(), pattern, arguments);
  va_end(arguments);
  return text.data();
}

struct Tick {
  double at;
  std::string label;
};

// A panel maps its ranges, each linear or logarithmic, to a rectangle; labels stand at the right end of their lines and
// are pushed apart where they would overlap.
class Panel {
 public:
  struct Axis {
    double from;
    double to;
    bool logarithmic;
    std::vector<Tick> ticks;
    std::string title;
  };

  Panel(double left, double top, double width, double height, Axis x, Axis y)
      : left_(left), top_(top), width_(width), height_(height), x_(std::move(x)), y_(std::move(y)) {}

  std::string frame(const std::string& title) const {
    std::string out =
        format("<text class=\"title\" x=\"%.0f\" y=\"%.0f\">%s</text>\n", left_, top_ - 16, title.c_str());
    for (const Tick& tick : x_.ticks) {
      const double at = left_ + width_ * share(x_, tick.at);
      out += format("<line class=\"grid\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>", at, top_, at,
                    top_ + height_);
      out += format("<text class=\"tick\" text-anchor=\"middle\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", at,
                    top_ + height_ + 18, tick.label.c_str());
    }
    for (const Tick& tick : y_.ticks) {
      const double at = top_ + height_ * (1 - share(y_, tick.at));
      out += format("<line class=\"grid\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>", left_, at, left_ + width_,
                    at);
      out += format("<text class=\"tick\" text-anchor=\"end\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", left_ - 8, at + 4,
                    tick.label.c_str());
    }
    out += format("<text class=\"axis\" text-anchor=\"middle\" x=\"%.1f\" y=\"%.1f\">%s</text>\n", left_ + width_ / 2,
                  top_ + height_ + 40, x_.title.c_str());
    out +=
        format("<text class=\"axis\" text-anchor=\"middle\" transform=\"translate(%.1f %.1f) rotate(-90)\">%s</text>\n",
               left_ - 44, top_ + height_ / 2, y_.title.c_str());
    return out;
  }

  std::string draw(const std::vector<Line>& lines) const {
    std::string out;
    struct Label {
      double y;
      const Line* line;
    };
    std::vector<Label> labels;
    for (const Line& line : lines) {
      if (line.points.empty()) continue;
      std::string path;
      for (const Point& point : line.points) {
        const double x = left_ + width_ * share(x_, point.x);
        const double y = top_ + height_ * (1 - share(y_, point.y));
        path += format("%s%.1f %.1f", path.empty() ? "M" : " L", x, y);
        if (line.dots)
          out += format("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/>\n", x, y, line.colour.c_str());
      }
      if (line.points.size() > 1) {
        out += format("<path d=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"2\" %s/>\n", path.c_str(),
                      line.colour.c_str(), line.style.c_str());
      }
      if (!line.label.empty()) labels.push_back({top_ + height_ * (1 - share(y_, line.points.back().y)), &line});
    }
    std::sort(labels.begin(), labels.end(), [](const Label& a, const Label& b) { return a.y < b.y; });
    constexpr double kGap = 15;
    for (std::size_t pass = 0; pass < 50; ++pass) {
      for (std::size_t i = 1; i < labels.size(); ++i) {
        const double overlap = kGap - (labels[i].y - labels[i - 1].y);
        if (overlap <= 0) continue;
        labels[i - 1].y -= overlap / 2;
        labels[i].y += overlap / 2;
      }
    }
    for (const Label& label : labels) {
      const Point& end = label.line->points.back();
      const double x = left_ + width_ * share(x_, end.x);
      const double y = top_ + height_ * (1 - share(y_, end.y));
      out += format("<path d=\"M%.1f %.1f L%.1f %.1f\" stroke=\"#bbb\" fill=\"none\"/>", x + 5, y, left_ + width_ + 14,
                    label.y);
      out += format("<text class=\"label\" x=\"%.1f\" y=\"%.1f\" fill=\"%s\">%s</text>\n", left_ + width_ + 18,
                    label.y + 4, label.line->colour.c_str(), label.line->label.c_str());
    }
    return out;
  }

  // A measured point.
  std::string mark(Point point, const std::string& colour) const {
    return format("<circle cx=\"%.1f\" cy=\"%.1f\" r=\"4\" fill=\"%s\" stroke=\"white\"/>\n",
                  left_ + width_ * share(x_, point.x), top_ + height_ * (1 - share(y_, point.y)), colour.c_str());
  }

  // The name of a measured point: line `index` of a list inside the panel, below the curves.
  std::string name(Point point, const std::string& colour, const std::string& label, std::size_t index) const {
    const double x = left_ + width_ * share(x_, point.x);
    const double y = top_ + height_ * (1 - share(y_, point.y));
    const double list_x = left_ + width_ * 0.42;
    const double list_y = top_ + height_ * 0.83 + 15 * static_cast<double>(index);
    return format(
        "<path d=\"M%.1f %.1f L%.1f %.1f\" stroke=\"#ccc\" fill=\"none\"/>"
        "<text class=\"mark\" x=\"%.1f\" y=\"%.1f\" fill=\"%s\">%s</text>\n",
        x, y, list_x - 4, list_y - 4, list_x, list_y, colour.c_str(), label.c_str());
  }

  bool holds(Point point) const {
    const double x = share(x_, point.x);
    const double y = share(y_, point.y);
    return x >= 0 && x <= 1 && y >= 0 && y <= 1;
  }

 private:
  static double share(const Axis& axis, double value) {
    if (!axis.logarithmic) return (value - axis.from) / (axis.to - axis.from);
    return std::log(value / axis.from) / std::log(axis.to / axis.from);
  }

  double left_;
  double top_;
  double width_;
  double height_;
  Axis x_;
  Axis y_;
};

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
                     .title = "bits a key"});
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
      {.from = least_ns / 1.5, .to = most_ns * 1.5, .logarithmic = true, .ticks = times, .title = "ns a key, log"});
  std::vector<Line> drawn;
  for (const auto& [label, line] : lines) drawn.push_back(line);
  return panel.frame("Time: absent keys, one thread; dashed = one key at a time") + panel.draw(drawn);
}

}  // namespace

void write_svg(const std::string& path, const std::vector<Table>& tables, const std::vector<Rate>& rates) {
  std::ofstream out(path);
  out << "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"1320\" height=\"580\" viewBox=\"0 0 1320 580\" "
         "font-family=\"DejaVu Sans, Helvetica, Arial, sans-serif\">\n"
         "<style>.title{font-size:16px;font-weight:bold}.tick{font-size:12px;fill:#444}.axis{font-size:13px;fill:#222}"
         ".label{font-size:12px}.mark{font-size:11px}.grid{stroke:#e3e3e3}</style>\n"
         "<rect width=\"1320\" height=\"580\" fill=\"white\"/>\n"
      << space(tables, rates) << speed(tables) << "</svg>\n";
  if (!out.flush()) throw std::runtime_error("cannot write " + path);
}

}  // namespace perhaps::bench
