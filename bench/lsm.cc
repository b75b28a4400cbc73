// perhaps bench lsm: what filters save in real databases, counted by the engine.
//
// For each setting the same keys are written to a database of its own: for RocksDB to levels 1, 2 .., each `ratio`
// times as large as the one above it and spread over the whole range of keys; for LevelDB as it likes. Nothing is
// compressed; filters and indexes stay in memory, the block cache is small. All databases are open at once and take
// turns; a speed is the best of the rounds, each of which asks for the same keys. Times are those of the processor: of
// the thread that asks, of all threads for a build.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <stdexcept>

#include "cli/command.h"
#include "cli/options.h"
#include "cli/panel.h"
#include "cli/print.h"
#include "lsm.h"
#include "number.h"
#include "perhaps/container.h"
#include "stopwatch.h"

namespace perhaps::bench {

// Numbers from `keys` on are absent.
std::string lsm_key(std::uint64_t i) { return plot::format("%016llx", static_cast<unsigned long long>(key_number(i))); }

}  // namespace perhaps::bench

namespace perhaps::cli {
namespace {

using bench::Counted;
using bench::Database;
using bench::LevelCounts;
using bench::LsmOptions;
using bench::Setting;
using Role = Setting::Role;

struct Options : LsmOptions {
  std::string folder, svg;
  bool json = false;
};

constexpr std::uint64_t kRounds = 15;

// Seconds a lookup, best round.
struct Best {
  double seconds = INFINITY;
  void take(double s, std::uint64_t lookups) { seconds = std::min(seconds, s / static_cast<double>(lookups)); }
  double per_second() const { return std::isinf(seconds) ? 0 : 1 / seconds; }
};

struct Measured {
  double build = 0;  // seconds of the processor
  std::uint64_t filter_bytes = 0;
  Counted absent, mix;  // counts of `lookups` lookups
  Best get, get_mix, multiget;
};

struct Run {
  const Options& options;
  std::vector<Setting> settings = {};
  std::vector<Measured> measured = {};

  double bits_per_key(const Measured& m) const {
    return 8 * static_cast<double>(m.filter_bytes) / static_cast<double>(options.keys);
  }
  double reads(const Counted& counted) const {
    return static_cast<double>(counted.file_reads) / static_cast<double>(options.lookups);
  }
  const Measured* of(Role role) const {
    for (std::size_t i = 0; i < settings.size(); ++i) {
      if (settings[i].role == role) return &measured[i];
    }
    return nullptr;
  }
};

// Of a question about an absent key, to the filters of all levels.
double fpr_of(const Counted& absent) {
  LevelCounts sum;
  for (const LevelCounts& level : absent.levels) sum += level;
  const auto asked = static_cast<double>(sum.skipped + sum.in_vain);
  return asked > 0 ? static_cast<double>(sum.in_vain) / asked : 0;
}

// Lookup i of the mix: every tenth key or so is present.
std::uint64_t mixed_number(const Options& options, std::uint64_t i) {
  const bool absent = static_cast<double>(bench::key_number(i) % 1000) < 1000 * options.absent;
  return absent ? options.keys + i : bench::key_number(i + 1) % options.keys;
}

void ask(const Options& options, Database& database, std::uint64_t number) {
  if (database.get(bench::lsm_key(number)) != (number < options.keys)) fail("a wrong answer");
}

Counted count(const Options& options, Database& database, bool mixed) {
  database.start_counting();
  for (std::uint64_t i = 0; i < options.lookups; ++i)
    ask(options, database, mixed ? mixed_number(options, i) : options.keys + i);
  return database.counted();
}

void time(const Options& options, Database& database, Measured& measured) {
  constexpr std::uint64_t kEach = Database::kMultiGet;
  const std::uint64_t lookups = std::max<std::uint64_t>(options.lookups / 10 / kEach, 1) * kEach;
  measured.get.take(bench::seconds([&] {
                      for (std::uint64_t i = 0; i < lookups; ++i) ask(options, database, options.keys + i);
                    }),
                    lookups);
  measured.get_mix.take(bench::seconds([&] {
                          for (std::uint64_t i = 0; i < lookups; ++i) ask(options, database, mixed_number(options, i));
                        }),
                        lookups);
  if (!database.has_multiget()) return;
  std::vector<std::string> keys(kEach);
  measured.multiget.take(bench::seconds([&] {
                           for (std::uint64_t i = 0; i < lookups; i += kEach) {
                             for (std::uint64_t j = 0; j < kEach; ++j) keys[j] = bench::lsm_key(options.keys + i + j);
                             if (database.multiget(keys) != 0) fail("a wrong answer");
                           }
                         }),
                         lookups);
}

std::string times_text(double a, double b) { return b > 0 ? fmt::format("{:.2f}", a / b) : "-"; }

void print(const Run& run) {
  const bool multiget = run.settings[0].database->has_multiget();
  std::vector<std::vector<std::string>> rows = {
      {"filters", "bits/key", "bytes", "reads/absent", "reads/lookup", "fpr", "absent Get/s", "Get/s"}};
  if (multiget) rows[0].push_back("absent MultiGet/s");
  rows[0].push_back("build");
  for (std::size_t i = 0; i < run.settings.size(); ++i) {
    const Measured& m = run.measured[i];
    rows.push_back({run.settings[i].name, fmt::format("{:.2f}", run.bits_per_key(m)), grouped(m.filter_bytes),
                    fmt::format("{:.5f}", run.reads(m.absent)), fmt::format("{:.5f}", run.reads(m.mix)),
                    percent(fpr_of(m.absent)), grouped(m.get.per_second()), grouped(m.get_mix.per_second())});
    if (multiget) rows.back().push_back(grouped(m.multiget.per_second()));
    rows.back().push_back(fmt::format("{:.1f} s", m.build));
  }
  Out out;
  out.write(table(rows, multiget ? "lrrrrrrrrr" : "lrrrrrrrr"));
  const Measured &none = *run.of(Role::none), &own = *run.of(Role::own), &ours = *run.of(Role::ours);
  out.write(fmt::format("reads for an absent key: {} times fewer with the engine's own filter than without\n",
                        times_text(run.reads(none.absent), run.reads(own.absent))));
  out.write(fmt::format("ours beside the engine's own: {} times its rate, {} times its Gets of absent keys a second",
                        times_text(fpr_of(ours.absent), fpr_of(own.absent)),
                        times_text(ours.get.per_second(), own.get.per_second())));
  if (multiget)
    out.write(
        fmt::format(", {} times its MultiGets", times_text(ours.multiget.per_second(), own.multiget.per_second())));
  out.write("\n");
  for (std::size_t i = 0; i < run.settings.size(); ++i) {
    if (!run.settings[i].name.starts_with("allocating")) continue;
    const Measured& m = run.measured[i];
    out.write(fmt::format("{}: {} times fewer reads for an absent key than the engine's own, in {} of its memory\n",
                          run.settings[i].name, times_text(run.reads(own.absent), run.reads(m.absent)),
                          times_text(static_cast<double>(m.filter_bytes), static_cast<double>(own.filter_bytes))));
  }
}

std::string json_of(const Run& run) {
  const auto levels_of = [](const Counted& counted) {
    std::vector<std::string> levels;
    for (const LevelCounts& level : counted.levels) {
      levels.push_back(
          Json().add("skipped", level.skipped).add("in_vain", level.in_vain).add("found", level.found).text());
    }
    return Json::array(levels);
  };
  std::vector<std::string> settings;
  for (std::size_t i = 0; i < run.settings.size(); ++i) {
    const Measured& m = run.measured[i];
    Json json;
    json.add("filters", run.settings[i].name).add("filter_bytes", m.filter_bytes);
    json.add("bits_per_key", run.bits_per_key(m)).add("reads_absent", run.reads(m.absent));
    json.add("reads_mix", run.reads(m.mix)).add("fpr", fpr_of(m.absent)).add("get_absent", m.get.per_second());
    json.add("get_mix", m.get_mix.per_second());
    if (run.settings[i].database->has_multiget()) json.add("multiget_absent", m.multiget.per_second());
    json.add("build_seconds", m.build).raw("levels_absent", levels_of(m.absent)).raw("levels_mix", levels_of(m.mix));
    settings.push_back(json.text());
  }
  const Options& o = run.options;
  return Json()
      .add("engine", o.engine)
      .add("keys", o.keys)
      .add("value", o.value)
      .add("lookups", o.lookups)
      .add("absent", o.absent)
      .add("cache", o.cache)
      .raw("settings", Json::array(settings))
      .text();
}

// The way of a lookup from left to right, one row a setting: of 100 lookups, how many ask each level, and what comes of
// it.
std::string svg_of(const Run& run) {
  constexpr double kLeft = 260, kMemory = 110, kCell = 190, kBar = 166, kRow = 84, kTop = 128, kRight = 150;
  constexpr const char *kSkipped = "#9cc9de", *kInVain = "#c2410c", *kFound = "#3f8f4f", *kText = "#1f2933",
                       *kDim = "#6b7680";
  std::vector<std::size_t> rows;
  for (std::size_t i = 0; i < run.settings.size(); ++i) {
    if (run.settings[i].role != Role::other) rows.push_back(i);
  }
  std::size_t levels = 1;
  for (const std::size_t i : rows) levels = std::max(levels, run.measured[i].mix.levels.size());
  // The memtable, the levels, the sum.
  const auto left_of = [](std::size_t column) {
    return column == 0 ? kLeft : kLeft + kMemory + kCell * static_cast<double>(column - 1);
  };
  const double width = left_of(levels + 1) + kRight;
  const double height = kTop + kRow * static_cast<double>(rows.size()) + 24;
  std::string out;
  const auto text = [&](double x, double y, const char* colour, int size, const std::string& words,
                        const char* more = "") {
    out += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" fill=\"{}\" font-size=\"{}\"{}>{}</text>\n", x, y, colour, size,
                       more, words);
  };
  const auto box = [&](double x, double y, double w, double h, const char* colour) {
    out += fmt::format("<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" fill=\"{}\"/>\n", x, y, w, h,
                       colour);
  };
  out += fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0:.0f} {1:.0f}\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
      "font-family=\"Helvetica, Arial, sans-serif\">\n<rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
      width, height);
  constexpr const char* kBold = " font-weight=\"bold\"";
  text(20, 32, kText, 19,
       fmt::format("The way of a lookup through {}", run.options.engine == "leveldb" ? "LevelDB" : "RocksDB"), kBold);
  text(20, 54, kDim, 13,
       fmt::format("{} keys, values of {} bytes; {:.0f} of 100 lookups are of absent keys. Numbers: per 100 lookups.",
                   grouped(run.options.keys), run.options.value, 100 * run.options.absent));
  double x = 20;
  for (const auto& [colour, words] : {std::pair(kSkipped, "skipped by its filter"), std::pair(kInVain, "read in vain"),
                                      std::pair(kFound, "read and found")}) {
    box(x, 68, 12, 12, colour);
    text(x + 18, 78.5, kText, 12, words);
    x += 150;
  }
  // Heads, and the way.
  for (std::size_t column = 0; column <= levels; ++column) {
    const double at = left_of(column);
    text(at, kTop - 14, kText, 14, column == 0 ? "memtable" : fmt::format("level {}", column - 1), kBold);
    text(left_of(column + 1) - 28, kTop - 14, kDim, 14, "&#8594;");
  }
  text(left_of(levels + 1), kTop - 14, kText, 14, "reads a lookup", kBold);
  const auto share = [&](std::uint64_t n) {
    return 100 * static_cast<double>(n) / static_cast<double>(run.options.lookups);
  };
  const auto number = [](double n) { return n == 0 ? "0" : n < 0.001 ? "&lt; 0.001" : fmt::format("{:.3g}", n); };
  for (std::size_t row = 0; row < rows.size(); ++row) {
    const Measured& m = run.measured[rows[row]];
    const double y = kTop + kRow * static_cast<double>(row);
    box(20, y - 4, width - 40, 1, "#dde3e8");
    text(20, y + 22, kText, 14, run.settings[rows[row]].name, kBold);
    text(20, y + 40, kDim, 12, m.filter_bytes == 0 ? "" : fmt::format("{:.2f} bits a key", run.bits_per_key(m)));
    text(kLeft, y + 22, kDim, 12, "empty");
    for (std::size_t level = 0; level < m.mix.levels.size(); ++level) {
      const LevelCounts& n = m.mix.levels[level];
      double at = left_of(level + 1);
      if (n.skipped + n.in_vain + n.found == 0) {
        text(at, y + 22, kDim, 12, "no table asked");
        continue;
      }
      // A level that several tables are asked on has a full bar as well.
      const double scale = kBar / std::max(100.0, share(n.skipped + n.in_vain + n.found));
      text(at, y + 46, kInVain, 12, fmt::format("{} in vain", number(share(n.in_vain))));
      text(at, y + 62, kDim, 12, fmt::format("{} skipped, {} found", number(share(n.skipped)), number(share(n.found))));
      box(at, y + 10, kBar, 18, "#f0f3f5");
      for (const auto& [count, colour] :
           {std::pair(n.skipped, kSkipped), std::pair(n.in_vain, kInVain), std::pair(n.found, kFound)}) {
        // What is there can be seen.
        const double wide = count == 0 ? 0 : std::max(scale * share(count), 1.0);
        if (wide > 0) box(at, y + 10, wide, 18, colour);
        at += wide;
      }
    }
    text(left_of(levels + 1), y + 26, kText, 18, fmt::format("{:.3f}", run.reads(m.mix)), kBold);
    text(left_of(levels + 1), y + 46, kDim, 12, fmt::format("{:.4f} if absent", run.reads(m.absent)));
  }
  return out + "</svg>\n";
}

// Taken away at the end, whatever the end.
struct Folder {
  explicit Folder(const std::string& wanted) : path(wanted), temporary(wanted.empty()) {
    if (!temporary) {
      // What an earlier run left there would be counted as well.
      std::error_code none;
      if (!std::filesystem::is_empty(path, none) && !none) fail("{}: not empty", wanted);
      return;
    }
    std::string name = (std::filesystem::temp_directory_path() / "perhaps-lsm-").string() + std::string(6, 'X');
    if (::mkdtemp(name.data()) == nullptr) fail("{}: cannot be made", name);
    path = name;
  }
  ~Folder() {
    std::error_code ignored;
    if (temporary) std::filesystem::remove_all(path, ignored);
  }
  std::filesystem::path path;
  bool temporary;
};

int run(Options& options) {
  if (options.levels > 6 || options.ratio < 2) fail("1 to 6 levels, and a ratio of 2 or more");
  if (options.keys < 1000 || options.lookups < 1000) fail("1000 keys and lookups, or more");
  if (!options.svg.empty()) check_output(options.svg);
  double shares = 0;
  for (std::uint64_t i = 0; i < options.levels; ++i)
    shares += std::pow(static_cast<double>(options.ratio), static_cast<double>(i));
  options.level_keys = {0};
  std::uint64_t left = options.keys;
  for (std::uint64_t i = 0; i + 1 < options.levels; ++i) {
    const double share = std::pow(static_cast<double>(options.ratio), static_cast<double>(i)) / shares;
    options.level_keys.push_back(static_cast<std::uint64_t>(static_cast<double>(options.keys) * share));
    left -= options.level_keys.back();
  }
  options.level_keys.push_back(left);
  if (options.level_keys[1] == 0) fail("--keys {}: level 1 would have none; take {} or more", options.keys, shares);
  // A level that fits into the cache needs no filter, and would tell nothing.
  if (options.cache == 0) options.cache = std::max<std::uint64_t>(options.level_keys[1] * (options.value + 16) / 4, 1);

  const Folder folder(options.folder);
  Run run{options};
  // In the folder, and gone before it is.
  run.settings =
      options.engine == "leveldb" ? leveldb_settings(options, folder.path) : rocksdb_settings(options, folder.path);
  run.measured.resize(run.settings.size());
  for (std::size_t i = 0; i < run.settings.size(); ++i) {
    Database& database = *run.settings[i].database;
    Measured& measured = run.measured[i];
    measured.build = bench::seconds([&] { database.fill(); }, CLOCK_PROCESS_CPUTIME_ID);
    check_interrupt();
    measured.filter_bytes = database.filter_bytes();
    measured.absent = count(options, database, false);
    measured.mix = count(options, database, true);
    check_interrupt();
    if (is_terminal(STDERR_FILENO)) say("", fmt::format("{}: built and counted", run.settings[i].name));
  }
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    for (std::size_t i = 0; i < run.settings.size(); ++i) time(options, *run.settings[i].database, run.measured[i]);
    check_interrupt();
  }
  if (!options.svg.empty()) take(write_file(options.svg, bytes_of(svg_of(run))));
  if (options.json) {
    Out().write(json_of(run) + "\n");
  } else {
    print(run);
  }
  return kYes;
}

Command::Run lsm_command(CLI::App& app) {
  auto options = std::make_shared<Options>();
  add_words(app, "--engine", options->engine, {"rocksdb", "leveldb"}, "Whose databases; default: rocksdb");
  add_count(app, "--keys", options->keys, "N", "Keys in each database; default: 1M");
  add_count(app, "--value", options->value, "BYTES", "Of a value; default: 100");
  app.add_option_function<std::string>(
         "--absent",
         [options](const std::string& given) {
           const auto share = parse_share(given);
           if (!share || *share < 0 || *share > 1) fail("--absent {}: must be a share, as 0.9 or 90%", given);
           options->absent = *share;
         },
         "Of the lookups, how many are of absent keys; default: 0.9")
      ->type_name("SHARE");
  add_count(app, "--lookups", options->lookups, "N", "Of each kind, in each database; default: 200k");
  add_count(app, "--levels", options->levels, "N", "Full levels, of RocksDB; default: 4");
  add_count(app, "--ratio", options->ratio, "N", "Of a level to the one above it, of RocksDB; default: 10");
  add_count(app, "--cache", options->cache, "BYTES", "Block cache of RocksDB; default: a quarter of level 1");
  app.add_option("--folder", options->folder, "For the databases, which stay there; default: a temporary one")
      ->type_name("DIR");
  app.add_option("--svg", options->svg, "Draw the way of a lookup, level by level")->type_name("FILE");
  declare_json(app, options->json);
  return [options] { return run(*options); };
}

constexpr std::string_view kExamples[] = {
    "perhaps bench lsm --keys 50k --lookups 20k",
    "perhaps bench lsm --engine leveldb --keys 50k --lookups 20k --svg way.svg",
};
constexpr Command kCommands[] = {
    {"bench lsm", "what filters save in a real database",
     "Builds databases on disk with no filter, with the engine's own and with ours, and asks them for keys that are "
     "there and keys that are not. For each: bits a key and bytes of the filters, reads from files for a lookup of an "
     "absent key and for one of the mix, the false-positive rate, lookups a second (the best of some rounds, the "
     "processor's time), and the time to build. A database takes some N * (VALUE + 30) bytes; there are nine of "
     "RocksDB and four of LevelDB.",
     kExamples, &lsm_command},
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
