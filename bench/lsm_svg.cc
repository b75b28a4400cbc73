// The path of a lookup from left to right, one row per setting: of 100 lookups, how many query each level, and the
// outcome.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/print.h"
#include "lsm_report.h"

namespace perhaps::bench {
namespace {

constexpr double kLeft = 260, kMemory = 110, kCell = 190, kBar = 166, kRow = 84, kTop = 128, kRight = 150;
constexpr const char *kSkipped = "#9cc9de", *kInVain = "#c2410c", *kFound = "#3f8f4f", *kText = "#1f2933",
                     *kDim = "#6b7680";
constexpr const char* kBold = " font-weight=\"bold\"";

// Columns: the memtable, the levels, the sum.
double left_of(std::size_t column) {
  return column == 0 ? kLeft : kLeft + kMemory + kCell * static_cast<double>(column - 1);
}

std::string number(double n) { return n == 0 ? "0" : n < 0.001 ? "&lt; 0.001" : fmt::format("{:.3g}", n); }

class Picture {
 public:
  explicit Picture(const Run& run) : run_(run) {
    for (std::size_t i = 0; i < run.settings.size(); ++i) {
      if (run.settings[i].role == Setting::Role::other) continue;
      rows_.push_back(i);
      levels_ = std::max(levels_, run.measured[i].mix.levels.size());
    }
    width_ = left_of(levels_ + 1) + kRight;
  }

  std::string svg() && {
    out_ = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" "
        "height=\"{1:.0f}\" font-family=\"Helvetica, Arial, sans-serif\">\n"
        "<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
        width_, kTop + kRow * static_cast<double>(rows_.size()) + 24);
    heading();
    for (std::size_t row = 0; row < rows_.size(); ++row)
      setting(run_.settings[rows_[row]].name, run_.measured[rows_[row]], kTop + kRow * static_cast<double>(row));
    return std::move(out_) + "</svg>\n";
  }

 private:
  void text(double x, double y, const char* colour, int size, const std::string& words, const char* more = "") {
    out_ += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" fill=\"{}\" font-size=\"{}\"{}>{}</text>\n", x, y, colour,
                        size, more, words);
  }
  void box(double x, double y, double w, double h, const char* colour) {
    out_ += fmt::format("<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" fill=\"{}\"/>\n", x, y, w,
                        h, colour);
  }
  double per_100(std::uint64_t n) const {
    return 100 * static_cast<double>(n) / static_cast<double>(run_.options.lookups);
  }

  // Title, legend, and the names of the columns.
  void heading() {
    const LsmOptions& options = run_.options;
    text(20, 32, kText, 19,
         fmt::format("The path of a lookup through {}", options.engine == "leveldb" ? "LevelDB" : "RocksDB"), kBold);
    text(20, 54, kDim, 13,
         fmt::format("{} keys, values of {} bytes; {:.0f} of 100 lookups are of absent keys{}. Numbers: tables per 100 "
                     "lookups; those that are looked into cost a data block, read from a file or found in the cache.",
                     cli::grouped(options.keys), options.value, 100 * options.absent,
                     options.skew ? ", keys by Zipf's law" : ""));
    double x = 20;
    for (const auto& [colour, words] :
         {std::pair(kSkipped, "skipped by its filter"), std::pair(kInVain, "looked into in vain"),
          std::pair(kFound, "looked into, key found")}) {
      box(x, 68, 12, 12, colour);
      text(x + 18, 78.5, kText, 12, words);
      x += 150;
    }
    for (std::size_t column = 0; column <= levels_; ++column) {
      text(left_of(column), kTop - 14, kText, 14, column == 0 ? "memtable" : fmt::format("level {}", column - 1),
           kBold);
      text(left_of(column + 1) - 28, kTop - 14, kDim, 14, "&#8594;");
    }
    text(left_of(levels_ + 1), kTop - 14, kText, 14, "file reads per lookup", kBold);
  }

  void setting(const std::string& name, const Measured& m, double y) {
    box(20, y - 4, width_ - 40, 1, "#dde3e8");
    text(20, y + 22, kText, 14, name, kBold);
    text(20, y + 40, kDim, 12, m.filter_bytes == 0 ? "" : fmt::format("{:.2f} bits per key", run_.bits_per_key(m)));
    text(kLeft, y + 22, kDim, 12, "empty");
    for (std::size_t i = 0; i < m.mix.levels.size(); ++i) level(m.mix.levels[i], left_of(i + 1), y);
    text(left_of(levels_ + 1), y + 26, kText, 18, fmt::format("{:.3f}", run_.reads(m.mix)), kBold);
    text(left_of(levels_ + 1), y + 46, kDim, 12, fmt::format("{:.4f} if absent", run_.reads(m.absent)));
  }

  void level(const LevelCounts& n, double x, double y) {
    if (n.skipped + n.in_vain + n.found == 0) {
      text(x, y + 22, kDim, 12, "no table queried");
      return;
    }
    // A level with several queried tables has a full bar as well.
    const double scale = kBar / std::max(100.0, per_100(n.skipped + n.in_vain + n.found));
    text(x, y + 46, kInVain, 12, fmt::format("{} in vain", number(per_100(n.in_vain))));
    text(x, y + 62, kDim, 12,
         fmt::format("{} skipped, {} found", number(per_100(n.skipped)), number(per_100(n.found))));
    box(x, y + 10, kBar, 18, "#f0f3f5");
    for (const auto& [count, colour] :
         {std::pair(n.skipped, kSkipped), std::pair(n.in_vain, kInVain), std::pair(n.found, kFound)}) {
      const double wide = count == 0 ? 0 : std::max(scale * per_100(count), 1.0);  // what is there can be seen
      if (wide > 0) box(x, y + 10, wide, 18, colour);
      x += wide;
    }
  }

  const Run& run_;
  std::vector<std::size_t> rows_;
  std::size_t levels_ = 1;
  double width_ = 0;
  std::string out_;
};

}  // namespace

std::string lsm_svg(const Run& run) { return Picture(run).svg(); }

}  // namespace perhaps::bench
