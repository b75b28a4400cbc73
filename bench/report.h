// Tables of one run: as text, as JSON, as one picture.
#pragma once
#include <map>
#include <string>
#include <vector>

#include "contender.h"

namespace perhaps::bench {

struct Row {
  About about;
  std::uint64_t bytes = 0;
  double bits_per_key = 0;
  double fpr = 0;                                 // measured
  double fpr_model = 0;                           // by the contender's own formula
  std::string refused;                            // why no speed is shown
  std::map<std::string, std::vector<double>> ns;  // column -> ns per key, one figure for each round
};

struct Table {
  std::string group;  // of the contenders in it
  std::string section;
  std::uint64_t keys = 0;
  std::string mix;  // of the queries; empty for a build
  std::vector<std::string> columns;
  std::vector<Row> rows;

  std::string title() const;
};

double median(std::vector<double> values);
// The median over the rounds of a / b within one round: what disturbs the machine for longer than a round disturbs
// both.
double ratio(const std::vector<double>& a, const std::vector<double>& b);

std::string short_number(std::uint64_t keys);  // 1e6, 25000

void print(const Table& table);
// For every column in which others were measured: the best of ours against the best of theirs. On a terminal, a ratio
// below 1 is red: another one is faster (or, of the peak, smaller).
void print_summary(const std::vector<Table>& tables);
void write_json(const std::string& path, const std::map<std::string, std::string>& about,
                const std::vector<Table>& tables);
void write_svg(const std::string& path, const std::vector<Table>& tables);

}  // namespace perhaps::bench
