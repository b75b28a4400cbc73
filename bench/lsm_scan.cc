// Blocks read per scan. Keys are 16 hex digits of random numbers of 64 bits, so their gaps are 2^64 / keys on average.
//
//   empty     ranges of numbers without a key: anywhere, or beginning right behind a key
//   found     ranges that begin at a key and hold no other
#include "lsm_scan.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>

#include "cli/json.h"
#include "cli/print.h"
#include "number.h"

namespace perhaps::bench {
namespace {

using cli::grouped;
using cli::Json;

struct Kind {
  const char* name;
  std::uint64_t size;  // of the range, in numbers
  bool beside;         // right behind a key
  bool found;
};
constexpr Kind kKinds[] = {
    {"100", 100, false, false},
    {"100, beside a key", 100, true, false},
    {"2^20", std::uint64_t{1} << 20, false, false},
    {"2^20, beside a key", std::uint64_t{1} << 20, true, false},
    {"2^40", std::uint64_t{1} << 40, false, false},
    {"100, one key found", 100, false, true},
};

std::string text_of(std::uint64_t number) { return fmt::format("{:016x}", number); }

// Range number i of a kind that has no key but the one that it begins with.
bool range_of(const Kind& kind, const std::vector<std::uint64_t>& keys, std::uint64_t i, std::uint64_t& low) {
  const std::uint64_t random = key_number((std::uint64_t{1} << 40) + i);
  low = kind.found ? keys[random % keys.size()] : kind.beside ? keys[random % keys.size()] + 1 : random;
  if (low == 0 || low > UINT64_MAX - kind.size) return false;
  const auto next = std::lower_bound(keys.begin(), keys.end(), kind.found ? low + 1 : low);
  return next == keys.end() || *next - low >= kind.size;
}

double blocks_per_scan(const LsmOptions& options, const Kind& kind, const std::vector<std::uint64_t>& keys,
                       ScanDatabase& database) {
  database.blocks_read();
  std::uint64_t scans = 0;
  for (std::uint64_t i = 0; scans < options.lookups && i < 20 * options.lookups; ++i) {
    std::uint64_t low = 0;
    if (!range_of(kind, keys, i, low)) continue;
    ++scans;
    if (database.scan(text_of(low), text_of(low + kind.size)) != kind.found) {
      throw std::runtime_error("a scan found a wrong number of keys");
    }
  }
  return scans == 0 ? 0 : static_cast<double>(database.blocks_read()) / static_cast<double>(scans);
}

}  // namespace

std::string scan_report(const LsmOptions& options, std::vector<ScanSetting>& settings, bool json, StepDone step_done) {
  std::vector<std::uint64_t> keys(options.keys);
  for (std::uint64_t i = 0; i < options.keys; ++i) keys[i] = key_number(i);
  std::sort(keys.begin(), keys.end());
  std::vector<std::vector<std::string>> rows = {{"filters", "bits/key"}};
  for (const Kind& kind : kKinds) rows[0].push_back(kind.name);
  std::vector<std::string> objects;
  for (auto& [name, database] : settings) {
    database->fill();
    const std::uint64_t bytes = database->filter_bytes();
    const double bits = 8 * static_cast<double>(bytes) / static_cast<double>(options.keys);
    rows.push_back({name, fmt::format("{:.2f}", bits)});
    std::vector<std::string> scans;
    for (const Kind& kind : kKinds) {
      const double blocks = blocks_per_scan(options, kind, keys, *database);
      rows.back().push_back(fmt::format("{:.4f}", blocks));
      Json one;
      one.add("size", kind.size).add("beside", kind.beside).add("found", kind.found).add("blocks", blocks);
      scans.push_back(one.text());
    }
    step_done(objects.size() + 1, settings.size(), name);
    Json object;
    object.add("filters", name).add("filter_bytes", bytes).add("bits_per_key", bits);
    objects.push_back(object.raw("scans", Json::array(scans)).text());
  }
  if (json) {
    Json all;
    all.add("engine", options.engine).add("keys", options.keys).add("value", options.value);
    return all.add("lookups", options.lookups).raw("settings", Json::array(objects)).text() + "\n";
  }
  return fmt::format("blocks read per scan of so many numbers, {} scans each; empty but for the last column\n",
                     grouped(options.lookups)) +
         cli::table(rows, "lrrrrrrr");
}

}  // namespace perhaps::bench
