// perhaps bench lsm: what filters save in real databases, counted by the engine.
//
// For each setting the same keys are written to a database of its own: for RocksDB to levels 1, 2 .., each `ratio`
// times as large as the one above it and spread over the whole range of keys; LevelDB decides for itself. Nothing is
// compressed; filters and indexes stay in memory, the block cache is small. All databases are open at once and take
// turns; a speed is the best of the rounds, each of which queries the same keys. Times are CPU times: of the querying
// thread, and of all threads for a build.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <stdexcept>

#include "cli/command.h"
#include "cli/filter_file.h"
#include "cli/interrupt.h"
#include "cli/options.h"
#include "cli/print.h"
#include "cli/temp_folder.h"
#include "lsm.h"
#include "lsm_blocks.h"
#include "lsm_report.h"
#include "lsm_scan.h"
#include "number.h"
#include "perhaps/file/writer.h"
#include "stopwatch.h"
#include "zipf.h"

namespace perhaps::bench {

// Numbers from `keys` on are absent.
std::string lsm_key(std::uint64_t i) { return fmt::format("{:016x}", key_number(i)); }

Questions::Questions(const LsmOptions& options) {
  const Zipf zipf(options.keys);
  // Hot keys lie anywhere among the others, and on any level.
  const auto hot = [&](std::uint64_t i) {
    return key_number(zipf.rank(key_number((std::uint64_t{1} << 41) + i))) % options.keys;
  };
  for (std::uint64_t i = 0; i < options.lookups; ++i) {
    absent.push_back(options.keys + (options.skew ? hot(i) : i));
    // Which lookups of the mix are of absent keys does not depend on the keys.
    const bool is_absent = static_cast<double>(key_number(i) % 1000) < 1000 * options.absent;
    const std::uint64_t present = options.skew ? hot(options.lookups + i) : key_number(i + 1) % options.keys;
    mix.push_back(is_absent ? absent.back() : present);
  }
}

}  // namespace perhaps::bench

namespace perhaps::cli {
namespace {

using bench::Counted;
using bench::Database;
using bench::LsmOptions;
using bench::Measured;
using bench::Questions;
using bench::Run;

struct Options : LsmOptions {
  std::string folder, svg;
  bool json = false;
  bool scan = false;
  bool blocks = false;
};

constexpr std::uint64_t kRounds = 15;

void look_up(const Options& options, Database& database, std::uint64_t number) {
  if (database.get(bench::lsm_key(number)) != (number < options.keys)) fail("a wrong answer");
}

Counted count(const Options& options, Database& database, const std::vector<std::uint64_t>& numbers) {
  database.start_counting();
  for (const std::uint64_t number : numbers) look_up(options, database, number);
  return database.counted();
}

void time(const Options& options, const Questions& questions, Database& database, Measured& measured) {
  constexpr std::uint64_t kEach = Database::kMultiGet;
  const std::uint64_t lookups = std::max<std::uint64_t>(options.lookups / 10 / kEach, 1) * kEach;
  const auto seconds_of = [&](const std::vector<std::uint64_t>& numbers) {
    return bench::seconds([&] {
      for (std::uint64_t i = 0; i < lookups; ++i) look_up(options, database, numbers[i]);
    });
  };
  measured.get.take(seconds_of(questions.absent), lookups);
  measured.get_mix.take(seconds_of(questions.mix), lookups);
  if (!database.has_multiget()) return;
  std::vector<std::string> keys(kEach);
  measured.multiget.take(bench::seconds([&] {
                           for (std::uint64_t i = 0; i < lookups; i += kEach) {
                             for (std::uint64_t j = 0; j < kEach; ++j)
                               keys[j] = bench::lsm_key(questions.absent[i + j]);
                             if (database.multiget(keys) != 0) fail("a wrong answer");
                           }
                         }),
                         lookups);
}

// A line for each step, also if nobody watches: a run of 1e7 keys takes half an hour.
void say_step(std::size_t done, std::size_t of, const std::string& what) {
  say("", fmt::format("{} of {}: {}", done, of, what));
}
void say_and_check(std::size_t done, std::size_t of, const std::string& name) {
  check_interrupt();
  say_step(done, of, name + ", built and counted");
}

// The one that is wanted, which stays, or a temporary one.
struct Folder {
  explicit Folder(const std::string& wanted) : path(wanted) {
    if (wanted.empty()) {
      path = temporary.emplace("perhaps-lsm-").path();
      return;
    }
    // Files of an earlier run would be counted as well.
    std::error_code none;
    if (!std::filesystem::is_empty(path, none) && !none) fail("{}: not empty", wanted);
    // RocksDB makes the folders above a database, LevelDB does not.
    std::error_code error;
    std::filesystem::create_directories(path, error);
    if (error) fail("{}: {}", wanted, error.message());
  }
  std::filesystem::path path;
  std::optional<TempFolder> temporary;
};

// Each level has `ratio` times the keys of the one above it; level 0 is empty.
std::vector<std::uint64_t> level_keys(const Options& options) {
  double shares = 0;
  for (std::uint64_t i = 0; i < options.levels; ++i)
    shares += std::pow(static_cast<double>(options.ratio), static_cast<double>(i));
  std::vector<std::uint64_t> result = {0};
  std::uint64_t left = options.keys;
  for (std::uint64_t i = 0; i + 1 < options.levels; ++i) {
    const double share = std::pow(static_cast<double>(options.ratio), static_cast<double>(i)) / shares;
    result.push_back(static_cast<std::uint64_t>(static_cast<double>(options.keys) * share));
    left -= result.back();
  }
  result.push_back(left);
  if (result[1] == 0) fail("--keys {}: level 1 would have none; take {} or more", options.keys, shares);
  return result;
}

int run(Options& options) {
  if (options.levels > 6 || options.ratio < 2) fail("1 to 6 levels, and a ratio of 2 or more");
  if (options.keys < 1000 || options.lookups < 1000) fail("1000 keys and lookups, or more");
  if (!options.svg.empty()) check_output(options.svg);
  options.level_keys = level_keys(options);
  // A level that fits into the cache needs no filter.
  if (options.cache == 0) options.cache = std::max<std::uint64_t>(options.level_keys[1] * (options.value + 16) / 4, 1);

  const Folder folder(options.folder);
  if (options.scan) {
    if (options.engine != "rocksdb") fail("--scan: LevelDB has no filter for scans; --engine rocksdb has");
    auto settings = rocksdb_scan_settings(options, folder.path);
    Out().write(scan_report(options, settings, options.json, &say_and_check));
    return kYes;
  }
  const Questions questions(options);
  if (options.blocks) {
    if (options.engine != "rocksdb") fail("--blocks: LevelDB has one way to keep filters; --engine rocksdb has six");
    Out().write(blocks_report(options, questions, folder.path, options.json, &say_and_check));
    return kYes;
  }
  Run run{options};
  // Destroyed before their folder is.
  run.settings =
      options.engine == "leveldb" ? leveldb_settings(options, folder.path) : rocksdb_settings(options, folder.path);
  run.measured.resize(run.settings.size());
  for (std::size_t i = 0; i < run.settings.size(); ++i) {
    Database& database = *run.settings[i].database;
    Measured& measured = run.measured[i];
    measured.build = bench::seconds([&] { database.fill(); }, CLOCK_PROCESS_CPUTIME_ID);
    check_interrupt();
    measured.filter_bytes = database.filter_bytes();
    measured.absent = count(options, database, questions.absent);
    measured.mix = count(options, database, questions.mix);
    say_and_check(i + 1, run.settings.size(), run.settings[i].name);
  }
  for (std::uint64_t round = 1; round <= kRounds; ++round) {
    for (std::size_t i = 0; i < run.settings.size(); ++i)
      time(options, questions, *run.settings[i].database, run.measured[i]);
    check_interrupt();
    if (round % 5 == 0) say_step(round, kRounds, "rounds of speeds");
  }
  if (!options.svg.empty()) take(write_file(options.svg, bytes_of(lsm_svg(run))));
  Out().write(options.json ? lsm_json(run) + "\n" : lsm_text(run));
  return kYes;
}

Command::Run lsm_command(CLI::App& app) {
  auto options = std::make_shared<Options>();
  add_words(app, "--engine", options->engine, {"rocksdb", "leveldb"}, "Whose databases; default: rocksdb");
  add_count(app, "--keys", options->keys, "N", "Keys in each database; default: 1M");
  add_count(app, "--value", options->value, "BYTES", "Size of a value; default: 100");
  app.add_option_function<std::string>(
         "--absent",
         [options](const std::string& given) {
           const auto share = parse_share(given);
           if (!share || *share < 0 || *share > 1) fail("--absent {}: must be a share, as 0.9 or 90%", given);
           options->absent = *share;
         },
         "The share of lookups that are of absent keys; default: 0.9")
      ->type_name("SHARE");
  add_count(app, "--lookups", options->lookups, "N", "Lookups of each kind in each database; default: 200k");
  add_count(app, "--levels", options->levels, "N", "RocksDB: number of full levels; default: 4");
  add_count(app, "--ratio", options->ratio, "N", "RocksDB: size of a level over that of the one above it; default: 10");
  add_count(app, "--cache", options->cache, "BYTES", "RocksDB: size of the block cache; default: a quarter of level 1");
  auto* const skew = app.add_flag("--skew", options->skew,
                                  "Some keys are asked for much more often than others: Zipf's law, exponent 0.99");
  auto* const blocks = app.add_flag("--blocks", options->blocks,
                                    "Whole filters beside filters in pieces, read when tables are opened or through "
                                    "the block cache, pinned there or not: what lookups of absent keys read");
  auto* const scan = app.add_flag(
      "--scan", options->scan,
      "Scans of ranges instead of lookups: blocks read with range filters, with a Bloom filter of prefixes, without");
  scan->excludes(skew)->excludes(blocks);
  app.add_option("--folder", options->folder, "Folder of the databases, which are kept; default: a temporary one")
      ->type_name("DIR");
  app.add_option("--svg", options->svg, "Draw the path of a lookup, level by level")
      ->type_name("FILE")
      ->excludes(scan)
      ->excludes(blocks);
  declare_json(app, options->json);
  return [options] { return run(*options); };
}

constexpr std::string_view kExamples[] = {
    "perhaps bench lsm --keys 50k --lookups 20k",
    "perhaps bench lsm --engine leveldb --keys 50k --lookups 20k --svg way.svg",
    "perhaps bench lsm --scan --keys 50k --lookups 5k",
    "perhaps bench lsm --blocks --skew --keys 50k --lookups 5k",
};
constexpr JsonField kFields[] = {
    {"engine", "string", ""},
    {"keys", "integer", ""},
    {"value", "integer", "bytes"},
    {"lookups", "integer", ""},
    {"absent", "number", "share of the lookups"},
    {"skew", "boolean", "keys by Zipf's law"},
    {"cache", "integer", "bytes"},
    {"settings[].filters", "string", ""},
    {"settings[].filter_bytes", "integer", ""},
    {"settings[].bits_per_key", "number", ""},
    {"settings[].reads_absent", "number", "from files, for a lookup of an absent key"},
    {"settings[].reads_mix", "number", ""},
    {"settings[].fpr", "number", ""},
    {"settings[].get_absent", "number", "per second"},
    {"settings[].get_mix", "number", ""},
    {"settings[].multiget_absent", "number?", "of RocksDB"},
    {"settings[].build_seconds", "number", ""},
    {"settings[].levels_absent", "array",
     "objects: skipped, in_vain and found, integers: tables of each level; the last two were looked into"},
    {"settings[].levels_mix", "array", ""},
};
constexpr JsonField kScanFields[] = {
    {"engine", "string", ""},
    {"keys", "integer", ""},
    {"value", "integer", "bytes"},
    {"lookups", "integer", "scans of each kind"},
    {"settings[].filters", "string", ""},
    {"settings[].filter_bytes", "integer", ""},
    {"settings[].bits_per_key", "number", ""},
    {"settings[].scans", "array",
     "objects: size, integer, of the range; beside, boolean, right behind a key; found, boolean, one key is in it; "
     "blocks, number, read per scan"},
};
constexpr JsonField kBlocksFields[] = {
    {"engine", "string", ""},
    {"keys", "integer", ""},
    {"value", "integer", "bytes"},
    {"lookups", "integer", "of absent keys"},
    {"skew", "boolean", "keys by Zipf's law"},
    {"settings[].filters", "string", ""},
    {"settings[].cache", "integer", "bytes"},
    {"settings[].filter_bytes", "integer", ""},
    {"settings[].bits_per_key", "number", ""},
    {"settings[].opening_bytes", "integer", "read from files when the database was opened"},
    {"settings[].memory_opened", "integer", "bytes that open tables and the block cache then take"},
    {"settings[].memory", "integer", "and after the lookups"},
    {"settings[].filter_blocks", "number", "read from files, per lookup"},
    {"settings[].index_blocks", "number", ""},
    {"settings[].data_blocks", "number", ""},
    {"settings[].bytes", "number", "read from files, per lookup"},
};
constexpr JsonShape kJson[] = {{"", JsonShape::object, kFields},
                               {"--scan", JsonShape::object, kScanFields},
                               {"--blocks", JsonShape::object, kBlocksFields}};
constexpr Command kCommands[] = {
    {"bench lsm", "what filters save in a real database",
     "Builds databases on disk with no filter, with the engine's own and with ours, and looks up keys that are there "
     "and keys that are not. For each: bits per key and bytes of the filters, reads from files for a lookup of an "
     "absent key and for one of the mix, the false-positive rate, lookups per second (CPU time, "
     "the best of some rounds), and the time to build. A database takes some N * (VALUE + 30) bytes; there are nine of "
     "RocksDB and four of LevelDB.",
     kExamples, &lsm_command, kJson},
};

int run_lsm(int argc, char** argv) { return run_command(kCommands[0], argc, argv); }

}  // namespace

std::span<const Command> commands() noexcept { return kCommands; }
const Command* find_command(std::string_view name) noexcept { return name == "bench lsm" ? kCommands : nullptr; }
std::vector<std::string> other_commands() { return {}; }

}  // namespace perhaps::cli

int main(int argc, char** argv) {
  perhaps::cli::catch_signals();
  return perhaps::cli::run_program(perhaps::cli::run_lsm, argc, argv);
}
