// perhaps-bench: speeds, as ratios from one interleaved run (interleaved.h), and false-positive rates (fpr.h).
#include <dlfcn.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <stdexcept>

#include "contender.h"
#include "fpr.h"
#include "grow.h"
#include "interleaved.h"
#include "kernel/instruction_set.h"
#include "maps.h"
#include "merge.h"
#include "options.h"
#include "pin.h"
#include "ranges.h"
#include "report.h"
#include "route.h"
#include "sizing.h"

namespace perhaps::bench {
namespace {

using Machine = std::map<std::string, std::string>;

std::string first_line(const char* path, const std::string& prefix) {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(prefix)) continue;
    const std::size_t colon = line.find(':');
    return prefix.empty() || colon == std::string::npos ? line : line.substr(line.find_first_not_of(" \t", colon + 1));
  }
  return "unknown";
}

template <class Key>
void append(std::vector<Entry<Key>>& all, const std::vector<Entry<Key>>& more) {
  all.insert(all.end(), more.begin(), more.end());
}

std::string folder_of_program() {
  std::array<char, 4096> path;
  const auto size = readlink("/proc/self/exe", path.data(), path.size());
  const std::string whole(path.data(), size > 0 ? static_cast<std::size_t>(size) : 0);
  return whole.substr(0, whole.rfind('/') + 1);
}

void use_kernels(const std::string& isa) {
  const auto rows = kernel::instruction_sets();
  const auto found = std::find_if(rows.begin(), rows.end(), [&](const auto* row) { return row->name == isa; });
  if (found == rows.end()) throw std::invalid_argument("this CPU or this build has no kernels named " + isa);
  setenv("PERHAPS_ISA", isa.c_str(), 1);  // For modules, which have kernels of their own.
  kernel::use(**found);
}

// Adds the contenders of modules, given or lying beside the program, to our own.
void load_contenders(std::vector<std::string> modules) {
  auto& numbers = registry<std::uint64_t>();
  auto& strings = registry<std::string_view>();
  for (const char* beside : {"perhaps-bench-native.so", "perhaps-bench-contenders.so"}) {
    const std::string path = folder_of_program() + beside;
    if (access(path.c_str(), R_OK) == 0) modules.push_back(path);
  }
  for (const std::string& path : modules) {
    void* module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    void* entry = module == nullptr ? nullptr : dlsym(module, "perhaps_bench_contenders");
    if (entry == nullptr) throw std::runtime_error(std::string("cannot load contenders: ") + dlerror());
    const Contenders more = reinterpret_cast<Contenders (*)()>(entry)();
    append(numbers, *more.numbers);
    append(strings, *more.strings);
  }
  std::stable_sort(numbers.begin(), numbers.end(),
                   [](const auto& a, const auto& b) { return a.about.kind < b.about.kind; });
  std::stable_sort(strings.begin(), strings.end(),
                   [](const auto& a, const auto& b) { return a.about.kind < b.about.kind; });
}

std::uint64_t text_keys(const Options& options) { return options.quick ? 1'000'000 : 10'000'000; }

void list(const Options& options) {
  for (const auto* row : kernel::instruction_sets()) std::printf("kernels    %s\n", row->name);
  for (const auto& entry : registry<std::uint64_t>()) std::printf("contender  %s\n", entry.about.name.c_str());
  for (const auto& entry : registry<std::string_view>())
    std::printf("contender  %s (strings)\n", entry.about.name.c_str());
  for (const std::uint64_t n : options.keys) {
    for (const char* group : kGroups) {
      for (const auto& table : Bench::plan<std::uint64_t>(n, group, options.quick))
        std::printf("table      %s\n", table.title().c_str());
    }
    if (n <= kMaxGrown) std::printf("table      %s\n", grow_table(n).title().c_str());
    if (n <= kMaxMapped) std::printf("table      %s\n", maps_table(n).title().c_str());
    if (n <= kMaxMerged) std::printf("table      %s\n", merge_table(n).title().c_str());
    if (n <= kMaxRouted) std::printf("table      %s\n", route_table(n).title().c_str());
    if (n >= kMinRanged) {
      for (const Table& table : range_tables(n)) std::printf("table      %s\n", table.title().c_str());
    }
    std::printf("table      %s\n", sizing_table(n).title().c_str());
  }
  for (const auto& table : Bench::plan<std::string_view>(text_keys(options), "", options.quick))
    std::printf("table      %s\n", table.title().c_str());
}

Machine about_machine(const Pin& pin) {
  return {
      {"cpu", first_line("/proc/cpuinfo", "model name")},
      {"pinned to", std::to_string(pin.cpu()) + " of " + std::to_string(pin.cpus())},
      {"L2 bytes", std::to_string(sysconf(_SC_LEVEL2_CACHE_SIZE))},
      {"L3 bytes", std::to_string(sysconf(_SC_LEVEL3_CACHE_SIZE))},
      {"huge pages", first_line("/sys/kernel/mm/transparent_hugepage/enabled", "")},
      {"kernels", kernel::active().name},
      {"compiler", __VERSION__},
      {"load before", first_line("/proc/loadavg", "")},
  };
}

void print_introduction(const Machine& about) {
  for (const auto& [name, value] : about) std::printf("%-12s %s\n", name.c_str(), value.c_str());
  std::vector<std::string> missing;
  if (!PERHAPS_BENCH_LEVELDB) missing.emplace_back("libleveldb-dev");
  if (!PERHAPS_BENCH_LIBBLOOM) missing.emplace_back("libbloom-dev");
  if (!PERHAPS_BENCH_ABSL) missing.emplace_back("libabsl-dev");
  for (const auto& package : missing) {
    std::printf("\n*** NOT MEASURED: %s was not there when this was configured ***\n", package.c_str());
  }
  std::printf(
      "\nA ratio is the median over the rounds of the ratio within one round. \"Times as fast\" compares the same "
      "form;\n"
      "a ' marks a peer without it, queried one key at a time (or building with one thread). ! = a peer's measured\n"
      "rate is more than 1.5 times its own formula.\n");
}

int run(const Options& options) {
  if (!options.isa.empty()) use_kernels(options.isa);
  load_contenders(options.modules);
  if (options.list) {
    list(options);
    return 0;
  }
  const Pin pin(options.cpu);
  const Machine about = about_machine(pin);
  print_introduction(about);

  const auto& numbers = registry<std::uint64_t>();
  Bench bench(options, pin);
  for (const std::uint64_t n : options.keys) {
    if (n == 0) throw std::invalid_argument("--keys: at least one");
    bench.run<std::uint64_t>(n, kGroups[0], numbers);
    // The others build slowly, and --quick must stay quick.
    if (options.quick && !options.keys_given && n > 1'000'000) continue;
    for (std::size_t i = 1; i < kGroups.size(); ++i) bench.run<std::uint64_t>(n, kGroups[i], numbers);
    if (n <= kMaxGrown) bench.run_grow(n);
    if (n <= kMaxMapped) bench.run_maps(n);
    if (n <= kMaxMerged) bench.run_merge(n);
    if (n <= kMaxRouted) bench.run_route(n);
    if (n >= kMinRanged) bench.run_ranges(n);
    bench.run_sizing(n);
  }
  bench.run<std::string_view>(text_keys(options), "", registry<std::string_view>());
  print_summary(bench.tables());
  if (!options.json.empty()) write_json(options.json, about, bench.tables());
  if (!options.svg.empty()) write_svg(options.svg, bench.tables());
  return bench.refused() ? 1 : 0;
}

}  // namespace
}  // namespace perhaps::bench

int main(int argc, char** argv) {
  try {
    const auto [options, exit_code] = perhaps::bench::parse(argc, argv);
    if (exit_code >= 0) return exit_code;
    return options.fpr ? perhaps::bench::print_rates(options.seed) : perhaps::bench::run(options);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "perhaps-bench: %s\n", error.what());
    return 2;
  }
}
