// The command line of perhaps-bench.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace perhaps::bench {

struct Options {
  std::vector<std::uint64_t> keys{10'000, 100'000, 1'000'000, 10'000'000, 100'000'000};
  bool keys_given = false;
  std::uint64_t rounds = 0;
  bool quick = false;
  bool list = false;
  bool fpr = false;  // the command `fpr`
  std::uint64_t seed = 1;
  std::string only = ".";
  std::string contenders = ".";
  std::string isa;
  std::string json;
  std::string svg;
  std::vector<std::string> modules;
  int cpu = -1;
};

// Prints help and errors itself: then there are no Options, but an exit code.
struct Parsed {
  Options options;
  int exit_code = -1;  // -1: run
};
Parsed parse(int argc, char** argv);

}  // namespace perhaps::bench
