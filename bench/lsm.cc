// perhaps-bench-lsm: what filters save in a real RocksDB database, counted by RocksDB.
//
// For each setting the same keys are written to levels 1, 2 .. of a database of its own, each level `ratio` times as
// large as the one above it and spread over the whole range of keys, by compaction to that level, so that a policy sees
// the level. Nothing is compressed; filters and indexes stay in memory, the block cache is small. All databases are
// open at once and take turns; a speed is the median over the rounds. Times are those of the processor: of the thread
// that asks, of all threads for a build. Counts are those of RocksDB's perf context: blocks read from files, and
// answers of filters level by level.
#include <rocksdb/cache.h>
#include <rocksdb/db.h>
#include <rocksdb/perf_context.h>
#include <rocksdb/table.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "cli/panel.h"
#include "number.h"
#include "perhaps_rocksdb.h"
#include "stopwatch.h"

namespace perhaps::bench {
namespace {

constexpr const char* kUsage = R"(perhaps-bench-lsm [options]

  --keys N        keys in each database (default 1e6)
  --value N       bytes a value (default 100)
  --levels N      full levels (default 4)
  --ratio N       of the size of a level to that above it (default 10)
  --lookups N     of each kind, in each database (default 2e5)
  --absent SHARE  of the lookups of the mix (default 0.9)
  --cache BYTES   block cache (default: a quarter of the data of level 1)
  --folder DIR    for the databases, some N * (VALUE + 30) bytes for each of nine settings (default: a temporary one)
  --json FILE, --svg FILE
)";

struct Options {
  std::uint64_t keys = 1'000'000;
  std::uint64_t value = 100;
  std::uint64_t levels = 4;
  double ratio = 10;
  std::uint64_t lookups = 200'000;
  double absent = 0.9;
  std::uint64_t cache = 0;
  std::string folder, json, svg;
};

constexpr double kBits = 10;  // of the settings that are compared
constexpr std::uint64_t kRounds = 9;
constexpr std::size_t kMultiGet = 32;

void check(const ::rocksdb::Status& status) {
  if (!status.ok()) throw std::runtime_error(status.ToString());
}

// Numbers from `keys` on are absent.
std::string key_of(std::uint64_t i) { return plot::format("%016llx", static_cast<unsigned long long>(key_number(i))); }

struct Setting {
  std::string name;
  std::shared_ptr<const ::rocksdb::FilterPolicy> policy;
};

struct LevelCounts {
  std::uint64_t skipped = 0;  // by a filter
  std::uint64_t read = 0;     // blocks looked into, in the cache or in the file
};

struct Measured {
  double build = 0;  // seconds of the processor
  std::uint64_t filter_bytes = 0;
  double reads_absent = 0;   // from files, a lookup of an absent key
  double reads_present = 0;  // of a present key
  double reads_mix = 0;
  double fpr = 0;  // of a question to a filter
  std::vector<LevelCounts> levels;
  std::vector<double> get, get_mix, multiget;  // seconds a lookup, one a round
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

class Database {
 public:
  Database(const Options& options, const Setting& setting, const std::filesystem::path& folder)
      : options_(options), setting_(setting) {
    ::rocksdb::Options open;
    open.create_if_missing = true;
    open.disable_auto_compactions = true;
    open.compression = ::rocksdb::kNoCompression;
    open.write_buffer_size = 64 << 20;
    open.target_file_size_base = 16 << 20;
    open.num_levels = static_cast<int>(options.levels) + 1;
    open.level0_slowdown_writes_trigger = open.level0_stop_writes_trigger = 1 << 20;
    ::rocksdb::BlockBasedTableOptions table;
    table.filter_policy = setting.policy;
    table.block_cache = ::rocksdb::NewLRUCache(options.cache);
    open.table_factory.reset(::rocksdb::NewBlockBasedTableFactory(table));
    ::rocksdb::DB* db = nullptr;
    check(::rocksdb::DB::Open(open, folder.string(), &db));
    db_.reset(db);
  }

  // From the last level up, as a tree would be left by time.
  void fill(const std::vector<std::uint64_t>& level_keys) {
    ::rocksdb::WriteOptions write;
    write.disableWAL = true;
    std::uint64_t from = 0;
    measured.build = seconds(
        [&] {
          for (std::size_t level = level_keys.size() - 1; level >= 1; --level) {
            for (std::uint64_t i = from; i < from + level_keys[level]; ++i)
              check(db_->Put(write, key_of(i), std::string(options_.value, static_cast<char>('a' + i % 26))));
            from += level_keys[level];
            check(db_->Flush({}));
            std::vector<::rocksdb::LiveFileMetaData> files;
            db_->GetLiveFilesMetaData(&files);
            std::vector<std::string> new_files;
            for (const auto& file : files) {
              if (file.level == 0) new_files.push_back(file.name);
            }
            ::rocksdb::CompactionOptions compaction;
            compaction.compression = ::rocksdb::kNoCompression;
            compaction.output_file_size_limit = 16 << 20;
            check(db_->CompactFiles(compaction, new_files, static_cast<int>(level)));
          }
        },
        CLOCK_PROCESS_CPUTIME_ID);
    ::rocksdb::TablePropertiesCollection tables;
    check(db_->GetPropertiesOfAllTables(&tables));
    for (const auto& [name, properties] : tables) measured.filter_bytes += properties->filter_size;
  }

  void get(std::uint64_t i) {
    const auto status = db_->Get({}, db_->DefaultColumnFamily(), key_of(i), &value_);
    value_.Reset();
    if (status.ok() != (i < options_.keys)) throw std::runtime_error(setting_.name + ": a wrong answer");
  }

  void multiget(std::uint64_t from) {
    std::array<std::string, kMultiGet> keys;
    std::array<::rocksdb::Slice, kMultiGet> slices;
    std::array<::rocksdb::PinnableSlice, kMultiGet> values;
    std::array<::rocksdb::Status, kMultiGet> statuses;
    for (std::size_t i = 0; i < kMultiGet; ++i) slices[i] = keys[i] = key_of(from + i);
    db_->MultiGet({}, db_->DefaultColumnFamily(), kMultiGet, slices.data(), values.data(), statuses.data());
    for (const auto& status : statuses) {
      if (!status.IsNotFound()) throw std::runtime_error(setting_.name + ": a wrong answer");
    }
  }

  // Of lookups of the numbers first, first + step ..
  double reads(std::uint64_t first, std::uint64_t step, std::uint64_t count) {
    auto& context = *::rocksdb::get_perf_context();
    context.Reset();
    for (std::uint64_t i = 0; i < count; ++i) get(first + i * step);
    return static_cast<double>(context.block_read_count) / static_cast<double>(count);
  }

  void count() {
    ::rocksdb::SetPerfLevel(::rocksdb::kEnableCount);
    auto& context = *::rocksdb::get_perf_context();
    context.EnablePerLevelPerfContext();
    measured.reads_absent = reads(options_.keys, 1, options_.lookups);
    std::uint64_t skipped = 0, in_vain = 0;
    measured.levels.resize(options_.levels + 1);
    for (const auto& [level, counts] : *context.level_to_perf_context) {
      auto& here = measured.levels.at(level);
      here.skipped = counts.bloom_filter_useful;
      here.read = counts.block_cache_miss_count + counts.block_cache_hit_count;
      skipped += here.skipped;
      in_vain += counts.bloom_filter_full_positive;
    }
    measured.fpr = skipped == 0 ? 1 : static_cast<double>(in_vain) / static_cast<double>(skipped + in_vain);
    const std::uint64_t step = std::max<std::uint64_t>(options_.keys / options_.lookups, 1);
    measured.reads_present = reads(0, step, std::min(options_.lookups, options_.keys / step));
    measured.reads_mix = options_.absent * measured.reads_absent + (1 - options_.absent) * measured.reads_present;
    context.DisablePerLevelPerfContext();
    ::rocksdb::SetPerfLevel(::rocksdb::kDisable);
  }

  void time(std::uint64_t round) {
    const std::uint64_t count = std::max<std::uint64_t>(options_.lookups / kRounds / kMultiGet, 1) * kMultiGet;
    const std::uint64_t absent = options_.keys + round * count;
    const auto each = static_cast<double>(count);
    measured.get.push_back(seconds([&] {
                             for (std::uint64_t i = 0; i < count; ++i) get(absent + i);
                           }) /
                           each);
    const auto tenth = static_cast<std::uint64_t>(std::lround(10 * options_.absent));
    measured.get_mix.push_back(seconds([&] {
                                 for (std::uint64_t i = 0; i < count; ++i)
                                   get(i % 10 < tenth ? absent + i : key_number(absent + i) % options_.keys);
                               }) /
                               each);
    measured.multiget.push_back(seconds([&] {
                                  for (std::uint64_t i = 0; i < count; i += kMultiGet) multiget(absent + i);
                                }) /
                                each);
  }

  Measured measured;
  const std::string& name() const { return setting_.name; }

 private:
  const Options& options_;
  Setting setting_;
  std::unique_ptr<::rocksdb::DB> db_;
  ::rocksdb::PinnableSlice value_;
};

double ratio(double a, double b) { return b > 0 ? a / b : INFINITY; }

void print(const Options& options, const std::vector<std::unique_ptr<Database>>& all) {
  std::printf("%-34s %9s %11s %12s %10s %9s %11s %11s %14s %8s\n", "setting", "bits/key", "bytes", "reads/absent",
              "reads/mix", "FPR", "absent Get/s", "mix Get/s", "absent MGet/s", "build s");
  for (const auto& database : all) {
    const Measured& m = database->measured;
    std::printf("%-34s %9.2f %11llu %12.5f %10.5f %8.4f%% %12.0f %11.0f %14.0f %8.1f\n", database->name().c_str(),
                8.0 * static_cast<double>(m.filter_bytes) / static_cast<double>(options.keys),
                static_cast<unsigned long long>(m.filter_bytes), m.reads_absent, m.reads_mix, 100 * m.fpr,
                1 / median(m.get), 1 / median(m.get_mix), 1 / median(m.multiget), m.build);
  }
}

void print_bars(const std::map<std::string, const Measured*>& by_name) {
  const Measured &none = *by_name.at("none"), &bloom = *by_name.at("RocksDB Bloom 10");
  const Measured &spread = *by_name.at("allocating, Bloom"), &both = *by_name.at("allocating, Bloom and Ribbon");
  const Measured& less = *by_name.at("allocating, 35 % less memory");
  std::printf("\nreads for an absent key\n");
  std::printf("  none / RocksDB Bloom 10                           %8.1f times fewer    bar: 50\n",
              ratio(none.reads_absent, bloom.reads_absent));
  std::printf("  RocksDB Bloom 10 / allocating, Bloom              %8.1f times fewer, in %.3f of the memory  bar: 2\n",
              ratio(bloom.reads_absent, spread.reads_absent),
              ratio(static_cast<double>(spread.filter_bytes), static_cast<double>(bloom.filter_bytes)));
  std::printf("  RocksDB Bloom 10 / allocating, Bloom and Ribbon   %8.1f times fewer, in %.3f of the memory\n",
              ratio(bloom.reads_absent, both.reads_absent),
              ratio(static_cast<double>(both.filter_bytes), static_cast<double>(bloom.filter_bytes)));
  std::printf(
      "  RocksDB Bloom 10 / allocating, 35 %% less memory   %8.1f times fewer, in %.3f of the memory  bar: 1 in 0.7\n",
      ratio(bloom.reads_absent, less.reads_absent),
      ratio(static_cast<double>(less.filter_bytes), static_cast<double>(bloom.filter_bytes)));
  for (const char* ours : {"perhaps line 10", "perhaps dense 10"}) {
    std::vector<double> ratios;
    const Measured& m = *by_name.at(ours);
    for (std::size_t i = 0; i < m.multiget.size(); ++i) ratios.push_back(bloom.multiget[i] / m.multiget[i]);
    std::printf("%s: %.2f times the MultiGets of absent keys, %.2f times the rate   bar: 1, 1\n", ours, median(ratios),
                ratio(m.fpr, bloom.fpr));
  }
}

void write_json(const std::string& path, const Options& options, const std::vector<std::unique_ptr<Database>>& all) {
  std::ofstream out(path);
  out << plot::format("{\"engine\": \"rocksdb\", \"keys\": %llu, \"value\": %llu, \"levels\": %llu, \"ratio\": %g,\n",
                      static_cast<unsigned long long>(options.keys), static_cast<unsigned long long>(options.value),
                      static_cast<unsigned long long>(options.levels), options.ratio);
  out << plot::format(" \"absent\": %g, \"cache\": %llu, \"settings\": [\n", options.absent,
                      static_cast<unsigned long long>(options.cache));
  for (const auto& database : all) {
    const Measured& m = database->measured;
    out << plot::format(
        "  {\"name\": \"%s\", \"filter_bytes\": %llu, \"reads_absent\": %.6g, \"reads_present\": %.6g, "
        "\"reads_mix\": %.6g, \"fpr\": %.6g, \"get_absent\": %.6g, \"get_mix\": %.6g, \"multiget_absent\": %.6g, "
        "\"build_seconds\": %.3g, \"levels\": [",
        database->name().c_str(), static_cast<unsigned long long>(m.filter_bytes), m.reads_absent, m.reads_present,
        m.reads_mix, m.fpr, 1 / median(m.get), 1 / median(m.get_mix), 1 / median(m.multiget), m.build);
    for (std::size_t level = 0; level < m.levels.size(); ++level) {
      out << plot::format("%s{\"skipped\": %llu, \"read\": %llu}", level == 0 ? "" : ", ",
                          static_cast<unsigned long long>(m.levels[level].skipped),
                          static_cast<unsigned long long>(m.levels[level].read));
    }
    out << (database == all.back() ? "]}\n" : "]},\n");
  }
  out << "]}\n";
  if (!out.flush()) throw std::runtime_error(path + ": cannot be written");
}

// The way of a lookup of an absent key, from left to right: on each level, how many of 100,000 are stopped by a filter
// and how many read a block.
void write_svg(const std::string& path, const Options& options, const std::vector<std::unique_ptr<Database>>& all) {
  constexpr double kLeft = 250, kCell = 150, kRow = 34, kTop = 60;
  const auto levels = static_cast<double>(options.levels);
  std::string out = plot::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%.0f\" height=\"%.0f\" font-family=\"sans-serif\" "
      "font-size=\"13\">\n<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n"
      "<text x=\"12\" y=\"24\" font-size=\"15\">Blocks looked into for 100,000 absent keys, level by level "
      "(bars: logarithmic)</text>\n",
      kLeft + kCell * (levels + 1) + 20, kTop + kRow * (static_cast<double>(all.size()) + 1));
  for (std::uint64_t level = 1; level <= options.levels; ++level) {
    out += plot::format("<text x=\"%.0f\" y=\"%.0f\">level %llu</text>", kLeft + kCell * static_cast<double>(level - 1),
                        kTop - 8, static_cast<unsigned long long>(level));
  }
  out += plot::format("<text x=\"%.0f\" y=\"%.0f\">all</text>\n", kLeft + kCell * levels, kTop - 8);
  for (std::size_t row = 0; row < all.size(); ++row) {
    const Measured& m = all[row]->measured;
    const double y = kTop + kRow * static_cast<double>(row);
    out += plot::format("<text x=\"12\" y=\"%.1f\">%s</text>", y + 18, all[row]->name().c_str());
    double sum = 0;
    const auto cell = [&](double column, double reads) {
      // Blue: stopped by a filter. Red: read, on a scale of tenths of tenths, or the best would not be seen.
      const double shown = reads <= 0 ? 0 : std::clamp(1 + std::log10(reads / 1e5) / 5, 0.0, 1.0);
      const double x = kLeft + kCell * column;
      out += plot::format(
          "<rect x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"8\" fill=\"#bcd7e6\"/><rect x=\"%.1f\" y=\"%.1f\" "
          "width=\"%.1f\" height=\"8\" fill=\"#c2410c\"/><text x=\"%.1f\" y=\"%.1f\" fill=\"#444\" "
          "font-size=\"11\">%.0f</text>",
          x, y + 14, kCell - 20, x, y + 14, (kCell - 20) * shown, x, y + 11, reads);
    };
    for (std::uint64_t level = 1; level <= options.levels; ++level) {
      const double reads = 1e5 * static_cast<double>(m.levels[level].read) / static_cast<double>(options.lookups);
      sum += reads;
      cell(static_cast<double>(level - 1), reads);
    }
    cell(levels, sum);
    out += "\n";
  }
  std::ofstream file(path);
  file << out << "</svg>\n";
  if (!file.flush()) throw std::runtime_error(path + ": cannot be written");
}

double number_of(const char* name, const char* text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text, text + std::strlen(text), number);
  if (error != std::errc() || *end != 0 || !(number >= 0) || number > 1e12) {
    throw std::invalid_argument(std::string(name) + ": '" + text + "' is no such number");
  }
  return number;
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i];
    if (i + 1 == argc) throw std::invalid_argument(name == "--help" ? "" : name + ": what?");
    const auto count = [&] { return static_cast<std::uint64_t>(number_of(argv[i], argv[i + 1])); };
    if (name == "--keys") {
      options.keys = count();
    } else if (name == "--value") {
      options.value = count();
    } else if (name == "--levels") {
      options.levels = count();
    } else if (name == "--ratio") {
      options.ratio = number_of(argv[i], argv[i + 1]);
    } else if (name == "--lookups") {
      options.lookups = count();
    } else if (name == "--absent") {
      options.absent = number_of(argv[i], argv[i + 1]);
    } else if (name == "--cache") {
      options.cache = count();
    } else if (name == "--folder") {
      options.folder = argv[i + 1];
    } else if (name == "--json") {
      options.json = argv[i + 1];
    } else if (name == "--svg") {
      options.svg = argv[i + 1];
    } else {
      throw std::invalid_argument(name + ": no such option");
    }
  }
  if (options.levels < 1 || options.levels > 6 || options.ratio < 2 || options.absent > 1 || options.lookups < 1000 ||
      options.keys < 1000) {
    throw std::invalid_argument("1 to 6 levels, a ratio of 2 or more, a share up to 1, 1000 keys and lookups or more");
  }
  return options;
}

std::vector<Setting> settings_for(const std::vector<std::uint64_t>& level_keys, std::uint64_t even_bytes) {
  const auto spread = [&](double share, std::uint32_t ribbon_from) {
    return rocksdb::new_allocating_policy({.bytes = static_cast<std::uint64_t>(share * static_cast<double>(even_bytes)),
                                           .keys = level_keys,
                                           .ribbon_from = ribbon_from});
  };
  std::vector<Setting> all;
  all.push_back({"none", nullptr});
  all.push_back({"RocksDB Bloom 10", rocksdb::PolicyPtr(::rocksdb::NewBloomFilterPolicy(kBits))});
  all.push_back({"RocksDB Ribbon 10", rocksdb::PolicyPtr(::rocksdb::NewRibbonFilterPolicy(kBits, -1))});
  all.push_back({"perhaps line 10", rocksdb::new_filter_policy({.bits_per_key = kBits})});
  all.push_back({"perhaps dense 10", rocksdb::new_filter_policy({.bits_per_key = kBits, .family = "dense"})});
  all.push_back({"perhaps dense 7", rocksdb::new_filter_policy({.bits_per_key = 7, .family = "dense"})});
  all.push_back({"allocating, Bloom", spread(1, 99)});
  all.push_back({"allocating, Bloom and Ribbon", spread(1, 2)});
  all.push_back({"allocating, 35 % less memory", spread(0.65, 2)});
  return all;
}

int run(Options options) {
  std::vector<std::uint64_t> level_keys = {0};
  double shares = 0;
  for (std::uint64_t i = 0; i < options.levels; ++i) shares += std::pow(options.ratio, static_cast<double>(i));
  std::uint64_t left = options.keys;
  for (std::uint64_t i = 0; i + 1 < options.levels; ++i) {
    level_keys.push_back(static_cast<std::uint64_t>(static_cast<double>(options.keys) *
                                                    std::pow(options.ratio, static_cast<double>(i)) / shares));
    left -= level_keys.back();
  }
  level_keys.push_back(left);
  // A level that fits into the cache needs no filter, and would tell nothing.
  if (options.cache == 0) options.cache = level_keys[1] * (options.value + 16) / 4;

  std::filesystem::path folder = options.folder;
  if (options.folder.empty()) {
    std::string name = (std::filesystem::temp_directory_path() / "perhaps-lsm-").string() + std::string(6, 'X');
    if (::mkdtemp(name.data()) == nullptr) throw std::runtime_error(name + ": cannot be made");
    folder = name;
  }
  std::vector<std::unique_ptr<Database>> all;
  const auto even_bytes = static_cast<std::uint64_t>(kBits / 8 * static_cast<double>(options.keys));
  for (const Setting& setting : settings_for(level_keys, even_bytes)) {
    const auto place = folder / std::to_string(all.size());
    std::filesystem::remove_all(place);
    std::filesystem::create_directories(place);
    all.push_back(std::make_unique<Database>(options, setting, place));
    all.back()->fill(level_keys);
    all.back()->count();
    std::fprintf(stderr, "%s: built and counted\n", setting.name.c_str());
  }
  for (std::uint64_t round = 0; round < kRounds; ++round) {
    for (const auto& database : all) database->time(round);
  }
  print(options, all);
  std::map<std::string, const Measured*> by_name;
  for (const auto& database : all) by_name[database->name()] = &database->measured;
  print_bars(by_name);
  if (!options.json.empty()) write_json(options.json, options, all);
  if (!options.svg.empty()) write_svg(options.svg, options, all);
  all.clear();
  if (options.folder.empty()) std::filesystem::remove_all(folder);
  return 0;
}

}  // namespace
}  // namespace perhaps::bench

int main(int argc, char** argv) {
  try {
    return perhaps::bench::run(perhaps::bench::parse(argc, argv));
  } catch (const std::invalid_argument& error) {
    std::fprintf(stderr, "%s\n%s", error.what(), perhaps::bench::kUsage);
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "perhaps-bench-lsm: %s\n", error.what());
    return 1;
  }
}
