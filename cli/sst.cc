// perhaps sst: the filters of LevelDB and RocksDB tables and of whole databases. With --verify every key is read
// through the engine's own library, and the filter must not deny it.
//
// A program of its own, which `perhaps sst` runs: the tool itself links no engine.
#include <fcntl.h>
#include <leveldb/env.h>
#include <leveldb/iterator.h>
#include <leveldb/options.h>
#include <leveldb/table.h>
#include <rocksdb/comparator.h>
#include <rocksdb/merge_operator.h>
#include <rocksdb/options.h>
#include <rocksdb/sst_file_reader.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <new>
#include <random>
#include <set>

#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>

#include "command.h"
#include "interrupt.h"
#include "json.h"
#include "options.h"
#include "perhaps/file/mapping.h"
#include "perhaps/format/format.h"
#include "print.h"

namespace perhaps::cli {
namespace {

struct Options {
  std::vector<std::string> paths;
  bool verify = false;
  std::uint64_t absent = 100'000;
  bool json = false;
};

// What reading the table through the engine's own library shows.
struct Verified {
  std::uint64_t keys = 0;     // read
  std::uint64_t missing = 0;  // of these, denied
  std::string first_missing;
  std::uint64_t absent = 0;   // queried keys that are not in the table
  std::uint64_t perhaps = 0;  // of these, not denied
  // Nothing: without a filter there is no rate to measure.
  std::optional<double> fpr() const {
    return absent == 0 ? std::nullopt : std::optional(static_cast<double>(perhaps) / static_cast<double>(absent));
  }
};

struct Table {
  std::string path;
  std::string engine;  // leveldb, rocksdb
  std::string filter;  // "fastlocal, 12 partitions"
  std::string holds;   // keys, prefixes
  std::optional<double> keys;
  bool keys_estimated = false;
  std::uint64_t file_bytes = 0;
  std::uint64_t filter_bytes = 0;
  double fpr = 1;
  std::vector<std::string> notes;
  std::optional<Verified> verified;

  std::optional<double> bits_per_key() const {
    const double n = verified && engine == "leveldb" ? static_cast<double>(verified->keys) : keys.value_or(0);
    return n > 0 && filter_bytes != 0 ? std::optional(8 * static_cast<double>(filter_bytes) / n) : std::nullopt;
  }
  double share() const {
    return file_bytes == 0 ? 0 : static_cast<double>(filter_bytes) / static_cast<double>(file_bytes);
  }
};

// Takes keys one by one and queries them 64 at a time, together with keys that are not in the table.
class Asker {
 public:
  // A filter of prefixes alone answers *perhaps* to every key with a known prefix, so there the absent keys are random.
  // Otherwise an absent key is a key of the table and some bytes more, and thus sorts next to it.
  Asker(const AnyFilter& whole, const AnyFilter* seek, double absent_per_key, bool prefixes_alone)
      : whole_(whole), seek_(seek), absent_per_key_(absent_per_key), prefixes_alone_(prefixes_alone) {}

  void take(std::string_view key) {
    inside_.emplace_back(key);
    for (owed_ += absent_per_key_; owed_ >= 1; --owed_) {
      std::string other(key);
      if (prefixes_alone_) {
        for (char& c : other) c = static_cast<char>(random_());
      } else {
        other += fmt::format("~{:016x}", random_());
      }
      outside_.push_back(std::move(other));
      if (outside_.size() == kBatch) ask_outside();
    }
    if (inside_.size() == kBatch) ask_inside();
  }
  Verified finish() {
    ask_inside();
    ask_outside();
    return std::move(verified_);
  }

 private:
  static std::vector<Bytes> views_of(const std::vector<std::string>& keys) {
    std::vector<Bytes> views;
    for (const std::string& key : keys) views.push_back(bytes_of(key));
    return views;
  }
  void ask_inside() {
    check_interrupt();
    const auto views = views_of(inside_);
    std::uint64_t answers = whole_.may_contain(std::span<const Bytes>(views));
    if (seek_ != nullptr) answers &= seek_->may_contain(std::span<const Bytes>(views));
    for (std::size_t i = 0; i < inside_.size(); ++i) {
      if ((answers >> i & 1) != 0) continue;
      if (verified_.missing++ == 0) verified_.first_missing = inside_[i];
    }
    verified_.keys += inside_.size();
    inside_.clear();
  }
  void ask_outside() {
    const auto views = views_of(outside_);
    verified_.perhaps += static_cast<std::uint64_t>(std::popcount(whole_.may_contain(std::span<const Bytes>(views))));
    verified_.absent += outside_.size();
    outside_.clear();
  }

  const AnyFilter& whole_;
  const AnyFilter* seek_;
  double absent_per_key_;
  double owed_ = 0;
  bool prefixes_alone_;
  std::mt19937_64 random_{1};
  std::vector<std::string> inside_, outside_;
  Verified verified_;
};

void read_leveldb(const Table& table, bool internal, Asker& asker) {
  const auto check = [&](const leveldb::Status& status) {
    if (!status.ok()) fail("{}: leveldb: {}", table.path, status.ToString());
  };
  leveldb::RandomAccessFile* raw = nullptr;
  check(leveldb::Env::Default()->NewRandomAccessFile(table.path, &raw));
  const std::unique_ptr<leveldb::RandomAccessFile> file(raw);
  leveldb::Options options;
  options.paranoid_checks = true;
  leveldb::Table* opened = nullptr;
  check(leveldb::Table::Open(options, file.get(), table.file_bytes, &opened));
  const std::unique_ptr<leveldb::Table> owner(opened);
  leveldb::ReadOptions read;
  read.verify_checksums = true;
  read.fill_cache = false;
  const std::unique_ptr<leveldb::Iterator> at(opened->NewIterator(read));
  for (at->SeekToFirst(); at->Valid(); at->Next()) {
    std::string_view key(at->key().data(), at->key().size());
    if (internal) {
      // Sequence number and type.
      if (key.size() < 8) fail("{}: an internal key of {} bytes", table.path, key.size());
      key.remove_suffix(8);
    }
    asker.take(key);
  }
  check(at->status());
}

// Values do not matter here, so any way to merge them will do.
class FirstOperand final : public rocksdb::AssociativeMergeOperator {
 public:
  bool Merge(const rocksdb::Slice&, const rocksdb::Slice*, const rocksdb::Slice& value, std::string* merged,
             rocksdb::Logger*) const override {
    merged->assign(value.data(), value.size());
    return true;
  }
  const char* Name() const override { return "perhaps.FirstOperand"; }
};

void read_rocksdb(const Table& table, Asker& asker) {
  const auto check = [&](const rocksdb::Status& status) {
    if (!status.ok()) fail("{}: rocksdb: {}", table.path, status.ToString());
  };
  rocksdb::Options options;
  options.merge_operator = std::make_shared<FirstOperand>();
  auto reader = std::make_unique<rocksdb::SstFileReader>(options);
  check(reader->Open(table.path));
  const std::string comparator = reader->GetTableProperties()->comparator_name;
  if (comparator == rocksdb::ReverseBytewiseComparator()->Name()) {
    options.comparator = rocksdb::ReverseBytewiseComparator();
    reader = std::make_unique<rocksdb::SstFileReader>(options);
    check(reader->Open(table.path));
  } else if (comparator != options.comparator->Name()) {
    fail("{}: its keys are in the order of {}, which is not known here", table.path, comparator);
  }
  rocksdb::ReadOptions read;
  read.verify_checksums = true;
  read.fill_cache = false;
  read.total_order_seek = true;
  const std::unique_ptr<rocksdb::Iterator> at(reader->NewIterator(read));
  for (at->SeekToFirst(); at->Valid(); at->Next()) asker.take({at->key().data(), at->key().size()});
  check(at->status());
}

// What a description says under this name.
std::string said(const Description& d, std::string_view name) {
  const auto found = std::ranges::find(d.more, name, [](const auto& pair) { return std::string_view(pair.first); });
  return found == d.more.end() ? "" : found->second;
}

std::string kind_of(const format::Opened& opened, const Description& d) {
  if (opened.entries.empty()) return "none";
  std::string kind(opened.entries.front().format.empty() ? d.family : opened.entries.front().format);
  if (opened.format == "leveldb-table") {
    const std::string windows = said(d, "windows");
    return fmt::format("{}, {} windows", opened.entries.front().format.empty() ? d.family : "bloom",
                       windows.substr(0, windows.find(' ')));
  }
  if (kind.starts_with("rocksdb-")) kind.erase(0, 8);
  return opened.entries.front().name == "filter" ? kind + ", full"
                                                 : fmt::format("{}, {} partitions", kind, opened.entries.size());
}

Table read_table(const std::string& path, const Options& options) {
  const Mapping file = take(Mapping::open(path));
  const format::Source source{.bytes = file.bytes(), .file_name = path};
  const auto codec = format::detect(source);
  const bool rocksdb = codec && (*codec)->name == "rocksdb-table";
  if (!rocksdb && (!codec || (*codec)->name != "leveldb-table")) fail("{}: not a table of LevelDB or RocksDB", path);
  auto result = (*codec)->open(source, format::Params(**codec));
  if (!result) fail("{}: {}", path, result.error().detail);
  const format::Opened opened = *std::move(result);
  const Description d = opened.whole->describe();

  Table table;
  table.path = path;
  table.engine = rocksdb ? "rocksdb" : "leveldb";
  table.filter = kind_of(opened, d);
  table.file_bytes = file.bytes().size();
  table.filter_bytes = opened.entries.empty() ? 0 : opened.whole->byte_size();
  table.fpr = d.fpr;
  table.notes = opened.notes;
  table.keys_estimated = !d.keys;
  if (d.keys) {
    table.keys = static_cast<double>(*d.keys);
  } else if (d.keys_estimated > 0) {
    table.keys = d.keys_estimated;
  }
  if (!opened.entries.empty()) table.holds = rocksdb ? said(d, "holds") : "keys";
  if (!options.verify) return table;

  // What cannot be queried here cannot be verified: a table without a filter denies no key, but this one may.
  const auto ignored = std::ranges::find_if(
      table.notes, [](const std::string& note) { return note.starts_with("ignored: a filter of"); });
  if (opened.entries.empty() && ignored != table.notes.end()) fail("{}: not verified; {}", path, *ignored);
  const double entries = rocksdb ? std::atof(said(d, "entries").c_str()) : table.keys.value_or(0);
  const double absent = opened.entries.empty() ? 0 : static_cast<double>(options.absent);
  Asker asker(*opened.whole, opened.seek.get(), absent / std::max(entries, 1.0), table.holds == "prefixes");
  if (rocksdb) {
    read_rocksdb(table, asker);
  } else {
    read_leveldb(table, said(d, "stores") != "plain keys", asker);
  }
  table.verified = asker.finish();
  return table;
}

bool is_table_name(const std::filesystem::path& path) {
  return path.extension() == ".ldb" || path.extension() == ".sst";
}

// Files as they are, folders as the tables in them.
std::vector<std::string> tables_of(const std::vector<std::string>& paths) {
  std::vector<std::string> files;
  for (const std::string& path : paths) {
    std::error_code error;
    if (!std::filesystem::is_directory(path, error)) {
      files.push_back(path);
      continue;
    }
    std::set<std::string> inside;
    for (const auto& entry : std::filesystem::directory_iterator(path, error)) {
      if (is_table_name(entry.path())) inside.insert(entry.path().string());
    }
    if (error) fail("{}: {}", path, error.message());
    if (inside.empty()) fail("{}: no table files (.ldb, .sst)", path);
    files.insert(files.end(), inside.begin(), inside.end());
  }
  return files;
}

struct Total {
  std::uint64_t file_bytes = 0, filter_bytes = 0;
  Verified verified;
  double keys = 0;    // of tables with a filter
  double wasted = 0;  // reads of an absent key that is looked for in every table
  bool estimated = false;

  void add(const Table& table) {
    file_bytes += table.file_bytes;
    filter_bytes += table.filter_bytes;
    wasted += table.fpr;
    if (table.filter_bytes != 0 && table.keys) {
      keys += *table.keys;
      estimated |= table.keys_estimated;
    }
    if (!table.verified) return;
    verified.keys += table.verified->keys;
    verified.missing += table.verified->missing;
    verified.absent += table.verified->absent;
    verified.perhaps += table.verified->perhaps;
  }
  double share() const {
    return file_bytes == 0 ? 0 : static_cast<double>(filter_bytes) / static_cast<double>(file_bytes);
  }
};

std::string json_of(const Table& table) {
  Json json;
  json.add("file", table.path).add("engine", table.engine).add("filter", table.filter).add("holds", table.holds);
  json.add("keys", table.keys).add("keys_estimated", table.keys_estimated).add("bits_per_key", table.bits_per_key());
  json.add("filter_bytes", table.filter_bytes).add("file_bytes", table.file_bytes).add("share", table.share());
  json.add("fpr", table.fpr);
  if (table.verified) {
    const Verified& v = *table.verified;
    json.add("keys_read", v.keys).add("missing", v.missing).add("absent", v.absent);
    if (v.fpr()) json.add("fpr_measured", *v.fpr());
  }
  std::vector<std::string> notes;
  for (const std::string& note : table.notes) notes.push_back(Json::quoted(note));
  return json.raw("notes", Json::array(notes)).text();
}

std::string json_of(const std::vector<Table>& tables) {
  std::vector<std::string> objects;
  for (const Table& table : tables) objects.push_back(json_of(table));
  return Json::array(objects);
}

void print(const std::vector<Table>& tables, const Total& total, bool verify) {
  std::vector<std::vector<std::string>> rows = {
      {"table", "engine", "filter", "of", "keys", "bits/key", "size", "of file", "fpr"}};
  if (verify) rows[0].insert(rows[0].end(), {"measured", "read", "missing"});
  const auto count = [](double n, bool estimated) { return (estimated ? "~" : "") + grouped(n); };
  for (const Table& table : tables) {
    const auto per_key = table.bits_per_key();
    rows.push_back({table.path, table.engine, table.filter, table.holds,
                    table.keys ? count(*table.keys, table.keys_estimated) : "",
                    per_key ? fmt::format("{:.2f}", *per_key) : "", bytes_text(static_cast<double>(table.filter_bytes)),
                    percent(table.share()), percent(table.fpr)});
    if (!table.verified) continue;
    const Verified& v = *table.verified;
    rows.back().insert(rows.back().end(), {v.fpr() ? percent(*v.fpr()) : "", grouped(v.keys), grouped(v.missing)});
  }
  if (tables.size() > 1) {
    rows.push_back(
        {fmt::format("{} tables", grouped(std::uint64_t{tables.size()})), "", "", "",
         count(total.keys, total.estimated),
         total.keys > 0 ? fmt::format("{:.2f}", 8 * static_cast<double>(total.filter_bytes) / total.keys) : "",
         bytes_text(static_cast<double>(total.filter_bytes)), percent(total.share()), ""});
    if (verify) {
      const auto measured = total.verified.fpr();
      rows.back().insert(rows.back().end(), {measured ? percent(*measured) : "", grouped(total.verified.keys),
                                             grouped(total.verified.missing)});
    }
  }
  Out out;
  out.write(table(rows, verify ? "llllrrrrrrrr" : "llllrrrrr"));
  if (tables.size() > 1)
    out.write(fmt::format("an absent key that is looked for in every table costs {} reads\n", expected(total.wasted)));
}

int run(const Options& options) {
  std::vector<Table> tables;
  Total total;
  int code = kYes;
  for (const std::string& path : tables_of(options.paths)) {
    try {
      tables.push_back(read_table(path, options));
    } catch (const Failure& failure) {
      say("", failure.what());
      code = kError;
      continue;
    }
    const Table& table = tables.back();
    total.add(table);
    for (const std::string& note : table.notes) warn(path + ": " + note);
    if (table.verified && table.verified->missing != 0) {
      say("", fmt::format("{}: {} of {} keys are denied, the first is {}", path, grouped(table.verified->missing),
                          grouped(table.verified->keys), Json::quoted(table.verified->first_missing)));
    }
  }
  if (options.json) {
    Out().write(json_of(tables) + "\n");
  } else if (!tables.empty()) {
    print(tables, total, options.verify);
  }
  return code != kYes ? code : total.verified.missing != 0 ? kNo : kYes;
}

Command::Run sst_command(CLI::App& app) {
  auto options = std::make_shared<Options>();
  app.add_option("tables", options->paths, "Table files, or the folder of a database")->type_name("FILE")->required();
  app.add_flag("--verify", options->verify,
               "Read every key through the engine's library: the filter must not deny it; and query absent keys");
  add_count(app, "--absent", options->absent, "N",
            "About how many absent keys to query in each table; default: 100000");
  declare_json(app, options->json);
  return [options] { return run(*options); };
}

constexpr std::string_view kExamples[] = {
    "perhaps sst /var/lib/app/db",
    "perhaps sst --verify 000123.sst",
};
constexpr JsonField kFields[] = {
    {"file", "string", "the table"},
    {"engine", "string", "leveldb or rocksdb"},
    {"filter", "string", "its kind, or none"},
    {"holds", "string", "keys or prefixes"},
    {"keys", "number or null", ""},
    {"keys_estimated", "boolean", ""},
    {"bits_per_key", "number or null", ""},
    {"filter_bytes", "integer", ""},
    {"file_bytes", "integer", ""},
    {"share", "number", "of the file that is filter"},
    {"fpr", "number", "predicted"},
    {"keys_read", "integer?", "with --verify"},
    {"missing", "integer?", "keys that the filter denies"},
    {"absent", "integer?", "absent keys that were queried"},
    {"fpr_measured", "number?", "not for a table without a filter"},
    {"notes", "array", "strings"},
};
constexpr JsonShape kJson[] = {{"", JsonShape::array, kFields}};
constexpr Command kCommands[] = {
    {"sst", "the filters of LevelDB and RocksDB tables",
     "Lists the tables of a database, or table files: the kind of filter, its bits per key, size, predicted "
     "false-positive rate, and share of the file. Keys of LevelDB tables are estimated (~), those of RocksDB are what "
     "the table says. --verify reads what the engine's own library shows: of RocksDB that is the newest version of "
     "each key, without deletions. Exit code: 1 if a filter denies a key that is in its table, 2 on an error.",
     kExamples, &sst_command, kJson},
};

int run(int argc, char** argv) { return run_command(kCommands[0], argc, argv); }

}  // namespace

std::span<const Command> commands() noexcept { return kCommands; }
const Command* find_command(std::string_view name) noexcept { return name == "sst" ? kCommands : nullptr; }
std::vector<std::string> other_commands() { return {}; }

}  // namespace perhaps::cli

int main(int argc, char** argv) {
  perhaps::cli::catch_signals();
  return perhaps::cli::run_program(perhaps::cli::run, argc, argv);
}
