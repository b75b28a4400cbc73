#include "report.h"

#include <unistd.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <stdexcept>

namespace perhaps::bench {
namespace {

const std::vector<double>* figures(const Row& row, const std::string& column) {
  const auto found = row.ns.find(column);
  return row.refused.empty() && found != row.ns.end() && !found->second.empty() ? &found->second : nullptr;
}

// A peer without a batch call is queried key by key, and its build inserts key by key.
std::string stand_in(const std::string& column) {
  if (column == "mask" || column == "batch") return "single";
  if (column == "insert") return "1 thread";
  return {};
}

int width(const std::string& column) { return std::max(9, static_cast<int>(column.size())); }

void heading(const std::string& text, const std::vector<std::string>& columns, const char* extra = "") {
  std::printf("  %-28s%s", text.c_str(), extra);
  for (const auto& column : columns) std::printf("%*s ", width(column), column.c_str());
  std::printf("\n");
}

// rows / against[row], column by column; nothing is printed if no row has a figure.
template <class Cell>
void ratios(const std::string& text, const Table& table, Kind kind, Cell cell) {
  bool begun = false;
  for (const Row& row : table.rows) {
    if (row.about.kind != kind) continue;
    std::string line;
    bool any = false;
    for (const auto& column : table.columns) {
      const std::string shown = cell(row, column);
      any |= !shown.empty();
      char field[32];
      std::snprintf(field, sizeof field, "%*s%s", width(column), shown.empty() ? "-" : shown.c_str(),
                    shown.ends_with('\'') ? "" : " ");
      line += field;
    }
    if (!any) continue;
    if (!begun) heading(text, table.columns);
    begun = true;
    std::printf("  %-28s%s\n", ("  " + row.about.name).c_str(), line.c_str());
  }
}

std::string times(double value) {
  char text[32];
  std::snprintf(text, sizeof text, value < 9.995 ? "%.2f" : "%.1f", value);
  return text;
}

const Row* find(const Table& table, const std::string& name) {
  for (const Row& row : table.rows) {
    if (row.about.name == name) return &row;
  }
  return nullptr;
}

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result + '"';
}

const char* word(Kind kind) {
  switch (kind) {
    case Kind::limit:
      return "limit";
    case Kind::ours:
      return "ours";
    case Kind::native:
      return "native";
    case Kind::peer:
      return "peer";
  }
  return "";
}

// The row of that kind with the least median; a peer without a batch call is queried key by key.
const Row* best(const Table& table, Kind kind, const std::string& column, const std::vector<double>** best_figures) {
  const Row* found = nullptr;
  for (const Row& row : table.rows) {
    if (row.about.kind != kind) continue;
    const auto* ns = figures(row, column);
    if (ns == nullptr && kind == Kind::peer) ns = figures(row, stand_in(column));
    if (ns == nullptr || (found != nullptr && median(*ns) >= median(**best_figures))) continue;
    found = &row;
    *best_figures = ns;
  }
  return found;
}

void print_ratio(double value, bool in_colour) {
  const bool red = in_colour && value < 1;
  std::printf(" %s%8s%s", red ? "\033[31m" : "", times(value).c_str(), red ? "\033[0m" : "");
}

}  // namespace

double median(std::vector<double> values) {
  if (values.empty()) return std::nan("");
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 != 0 ? values[half] : (values[half - 1] + values[half]) / 2;
}

double ratio(const std::vector<double>& a, const std::vector<double>& b) {
  if (a.size() != b.size()) return median(a) / median(b);
  std::vector<double> each;
  for (std::size_t i = 0; i < a.size(); ++i) each.push_back(a[i] / b[i]);
  return median(each);
}

std::string short_number(std::uint64_t keys) {
  int zeros = 0;
  std::uint64_t head = keys;
  for (; head != 0 && head % 10 == 0; head /= 10) ++zeros;
  return zeros < 3 ? std::to_string(keys) : std::to_string(head) + "e" + std::to_string(zeros);
}

std::string Table::title() const {
  return (group.empty() ? "" : group + " ") + section + " " + short_number(keys) + (mix.empty() ? "" : " " + mix);
}

void print(const Table& table) {
  std::printf("\n%s\n", table.title().c_str());
  heading("ns per key (median)", table.columns, "  b/key   FPR %  ");
  for (const Row& row : table.rows) {
    std::printf("  %-28s", ("  " + row.about.name).c_str());
    if (row.about.kind == Kind::limit) {
      std::printf("%17s", "");
    } else {
      std::printf("%7.2f %7.4f%s ", row.bits_per_key, 100 * row.fpr, row.fpr > 1.5 * row.fpr_model ? "!" : " ");
    }
    if (!row.refused.empty()) {
      std::printf("  no speed: %s\n", row.refused.c_str());
      continue;
    }
    for (const auto& column : table.columns) {
      const auto* ns = figures(row, column);
      ns == nullptr ? std::printf("%*s ", width(column), "-") : std::printf("%*.2f ", width(column), median(*ns));
    }
    std::printf("\n");
  }
  const auto over_limit = [&](const Row& row, const std::string& column) -> std::string {
    const Row* limit = find(table, row.about.limit);
    const auto* ours = figures(row, column);
    const auto* bound = limit == nullptr ? nullptr : figures(*limit, column);
    return ours == nullptr || bound == nullptr ? "" : times(ratio(*ours, *bound));
  };
  ratios("ours / the limit", table, Kind::ours, over_limit);
  ratios("ours, native / the limit", table, Kind::native, over_limit);
  if (table.section == "build") {
    ratios("ours / the limit, writing", table, Kind::ours,
           [&](const Row& row, const std::string& column) -> std::string {
             const Row* limit = find(table, "limit 10.24, writing");
             const auto* ours = figures(row, column);
             const auto* bound = limit == nullptr ? nullptr : figures(*limit, column);
             return ours == nullptr || bound == nullptr ? "" : times(ratio(*ours, *bound));
           });
    for (const Row& row : table.rows) {
      const auto* one = figures(row, "1 thread, wall");
      const auto* two = figures(row, "2 threads, wall");
      if (one != nullptr && two != nullptr) {
        std::printf("  two threads / one: %s is %s times as fast\n", row.about.name.c_str(),
                    times(ratio(*one, *two)).c_str());
      }
    }
  }
  if (table.section == "strings") {
    for (const Row& row : table.rows) {
      const auto* single = figures(row, "single");
      const auto* batch = figures(row, "batch");
      if (single != nullptr && batch != nullptr) {
        std::printf("  batch / single: %s is %s times as fast\n", row.about.name.c_str(),
                    times(ratio(*single, *batch)).c_str());
      }
    }
  }
  for (const Row& ours : table.rows) {
    if (!ours.about.headline) continue;
    ratios("times as fast: " + ours.about.name, table, Kind::peer, [&](const Row& peer, const std::string& column) {
      const auto* mine = figures(ours, column);
      const auto* theirs = figures(peer, column);
      const bool other = theirs == nullptr;
      if (other) theirs = figures(peer, stand_in(column));
      return mine == nullptr || theirs == nullptr ? std::string() : times(ratio(*theirs, *mine)) + (other ? "'" : "");
    });
  }
  ratios("speed / own -march=native", table, Kind::ours, [&](const Row& row, const std::string& column) -> std::string {
    const Row* native = find(table, row.about.name + ", native");
    const auto* ours = figures(row, column);
    const auto* theirs = native == nullptr ? nullptr : figures(*native, column);
    return ours == nullptr || theirs == nullptr ? "" : times(ratio(*theirs, *ours));
  });
  std::fflush(stdout);
}

void print_summary(const std::vector<Table>& tables) {
  const bool in_colour = isatty(STDOUT_FILENO) == 1;
  bool begun = false;
  for (const Table& table : tables) {
    for (const auto& column : table.columns) {
      const std::vector<double>* theirs = nullptr;
      const std::vector<double>* plain = nullptr;
      const std::vector<double>* native = nullptr;
      const Row* peer = best(table, Kind::peer, column, &theirs);
      const Row* ours = best(table, Kind::ours, column, &plain);
      if (peer == nullptr || ours == nullptr) continue;
      if (!begun) {
        std::printf("\nours / best contender (above 1: ours is better)\n  %-28s%-16s%-26s%-26s%9s%9s\n", "table",
                    "column", "ours", "best contender", "ratio", "native");
      }
      begun = true;
      const auto with_figure = [](const Row& row, double figure) {
        char text[64];
        std::snprintf(text, sizeof text, "%.17s %.2f", row.about.name.c_str(), figure);
        return std::string(text);
      };
      std::printf("  %-28s%-16s%-26s%-26s", table.title().c_str(), column.c_str(),
                  with_figure(*ours, median(*plain)).c_str(), with_figure(*peer, median(*theirs)).c_str());
      print_ratio(ratio(*theirs, *plain), in_colour);
      if (best(table, Kind::native, column, &native) != nullptr) print_ratio(ratio(*theirs, *native), in_colour);
      std::printf("\n");
    }
  }
  std::fflush(stdout);
}

void write_json(const std::string& path, const std::map<std::string, std::string>& about,
                const std::vector<Table>& tables) {
  std::ofstream out(path);
  out << "{\n  \"about\": {";
  const char* comma = "";
  for (const auto& [name, value] : about)
    out << comma << "\n    " << quoted(name) << ": " << quoted(value), comma = ",";
  out << "\n  },\n  \"tables\": [";
  comma = "";
  for (const Table& table : tables) {
    out << comma << "\n    {\"group\": " << quoted(table.group) << ", \"section\": " << quoted(table.section)
        << ", \"keys\": " << table.keys << ", \"mix\": " << quoted(table.mix) << ", \"rows\": [";
    comma = ",";
    const char* row_comma = "";
    for (const Row& row : table.rows) {
      out << row_comma << "\n      {\"name\": " << quoted(row.about.name)
          << ", \"kind\": " << quoted(word(row.about.kind)) << ", \"bytes\": " << row.bytes
          << ", \"bits_per_key\": " << row.bits_per_key << ", \"fpr\": " << row.fpr
          << ", \"fpr_model\": " << row.fpr_model << ", \"refused\": " << quoted(row.refused) << ", \"ns\": {";
      row_comma = ",";
      const char* column_comma = "";
      for (const auto& [column, ns] : row.ns) {
        if (!row.refused.empty()) break;
        out << column_comma << quoted(column) << ": [";
        column_comma = ", ";
        for (std::size_t i = 0; i < ns.size(); ++i) out << (i == 0 ? "" : ", ") << ns[i];
        out << "]";
      }
      out << "}}";
    }
    out << "]}";
  }
  out << "\n  ]\n}\n";
  if (!out.flush()) throw std::runtime_error("cannot write " + path);
}

}  // namespace perhaps::bench
