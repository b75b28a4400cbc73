// What `perhaps bench lsm` asks of a storage engine.
#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

namespace perhaps::bench {

struct LsmOptions {
  std::string engine = "rocksdb";
  std::uint64_t keys = 1'000'000;
  std::uint64_t value = 100;
  std::uint64_t levels = 4;
  std::uint64_t ratio = 10;
  std::uint64_t lookups = 200'000;
  double absent = 0.9;
  bool skew = false;                           // keys are asked for by Zipf's law
  std::uint64_t cache = 0;                     // 0: a quarter of level 1
  std::vector<std::uint64_t> level_keys = {};  // of levels 0, 1, 2 ..

  std::uint64_t even_bytes() const { return static_cast<std::uint64_t>(kBits / 8 * static_cast<double>(keys)); }
  static constexpr double kBits = 10;  // of the settings that are compared
};

// The numbers of the keys that are looked up; from options.keys on they are absent.
struct Questions {
  explicit Questions(const LsmOptions& options);
  std::vector<std::uint64_t> absent, mix;  // options.lookups of each
};

// The tables of one level, as a run of lookups met them. Those that are looked into cost a data block, which is read or
// found in the block cache.
struct LevelCounts {
  std::uint64_t skipped = 0;  // a filter said no
  std::uint64_t in_vain = 0;  // looked into, and the key was not there
  std::uint64_t found = 0;    // looked into, and it was

  LevelCounts& operator+=(const LevelCounts& other) {
    skipped += other.skipped, in_vain += other.in_vain, found += other.found;
    return *this;
  }
};
struct Counted {
  std::uint64_t file_reads = 0;
  std::vector<LevelCounts> levels;
};

// A database with one kind of filter.
class Database {
 public:
  virtual ~Database() = default;
  // The same keys for every setting, from the last level up.
  virtual void fill() = 0;
  virtual std::uint64_t filter_bytes() = 0;
  virtual bool get(const std::string& key) = 0;
  // How many of them are there. An engine that has no such call says so.
  static constexpr std::size_t kMultiGet = 32;
  virtual bool has_multiget() const { return false; }
  virtual std::size_t multiget(const std::vector<std::string>&) { return 0; }
  // Between the two, lookups are counted.
  virtual void start_counting() = 0;
  virtual Counted counted() = 0;
};

struct Setting {
  enum class Role { none, own, ours, spread, other };
  std::string name;
  Role role;  // in the picture, and in what is compared
  std::unique_ptr<Database> database;
};
// The databases are made in folders of their own below `folder`.
std::vector<Setting> rocksdb_settings(const LsmOptions& options, const std::filesystem::path& folder);
std::vector<Setting> leveldb_settings(const LsmOptions& options, const std::filesystem::path& folder);

// Called after each database; throws to end the run.
using StepDone = void (*)(std::size_t done, std::size_t of, const std::string& name);

std::string lsm_key(std::uint64_t i);
inline std::string lsm_value(const LsmOptions& options, std::uint64_t i) {
  return std::string(options.value, static_cast<char>('a' + i % 26));
}

}  // namespace perhaps::bench
