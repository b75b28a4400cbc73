// Lines and points in a frame, as plain SVG text: what the tool and the benchmarks draw with.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstdarg>
#include <cstdio>
#include <string>
#include <vector>

namespace perhaps::plot {

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

[[gnu::format(printf, 1, 2)]] inline std::string format(const char* pattern, ...) {
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

// The whole picture around its panels.
inline std::string picture(int width, int height, const std::string& panels) {
  return format(
             "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" viewBox=\"0 0 %d %d\" "
             "font-family=\"DejaVu Sans, Helvetica, Arial, sans-serif\">\n"
             "<style>.title{font-size:16px;font-weight:bold;fill:#111}.tick{font-size:12px;fill:#444}"
             ".axis{font-size:13px;fill:#222}.label{font-size:12px}.grid{stroke:#e3e3e3}.page{fill:white}"
             "@media(prefers-color-scheme:dark){.page{fill:#0d1117}.title,.axis{fill:#e6edf3}.tick{fill:#b3bcc6}"
             ".grid{stroke:#2d343c}}</style>\n"
             "<rect class=\"page\" width=\"%d\" height=\"%d\"/>\n",
             width, height, width, height, width, height) +
         panels + "</svg>\n";
}

}  // namespace perhaps::plot
