// What `verify` proved, as a file: anyone who has the filter and the key lists can prove it again (verify --check).
//
//   {"certificate": 1, "tool": "perhaps 0.2.0",
//    "filter": {"file", "bytes", "sha256"}, "format": "", "set": [..], "keyed": false,
//    "recipe": "lines", "missing": "fail",
//    "keys": [{"file", "bytes", "sha256"}, ..],
//    "absent": {"files": [{"file", "bytes", "sha256"}, ..], "count", "seed", "range_size"},
//    "result": {"keys", "false_negatives", .., as verify --json prints them}}
//
// Only that of a range filter has a range_size, and the fields of ranges in its result.
// Names of files are relative to the folder of the certificate, so that a folder with all of them can be handed on.
#pragma once
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace perhaps::cli {

struct Certificate {
  // A file, known by its content.
  struct Listed {
    std::string file;
    std::uint64_t bytes = 0;
    std::string sha256;
  };
  static Listed listed(const std::string& file);  // throws Failure

  Listed filter;
  std::string format;  // of another system; empty: recognised, or ours
  std::vector<std::string> sets;
  bool keyed = false;
  std::string recipe;
  std::string missing;
  std::vector<Listed> keys;
  std::vector<Listed> absent;  // none: random keys
  std::uint64_t count = 0;     // of random keys, and of empty ranges
  std::uint64_t seed = 0;
  std::uint64_t range_size = 0;                             // of a range filter; 0: not one
  std::vector<std::pair<std::string, std::string>> result;  // name and value, as JSON

  // Throws Failure.
  void write(const std::string& path) const;
  static Certificate read(const std::string& path);

  struct Difference {
    std::string name;
    std::string recorded;
    std::string found;
  };
  // How `found`, which was measured now, differs. Names and the version of the tool do not count.
  std::vector<Difference> differences(const Certificate& found) const;
};

}  // namespace perhaps::cli
