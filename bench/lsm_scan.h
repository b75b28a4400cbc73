// What filters save for scans: `perhaps bench lsm --scan`.
#pragma once
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "lsm.h"

namespace perhaps::bench {

// A database whose scans leave out tables, in its own way or not at all.
class ScanDatabase {
 public:
  virtual ~ScanDatabase() = default;
  virtual void fill() = 0;
  virtual std::uint64_t filter_bytes() = 0;
  // The keys from lower up to but without upper: how many there are.
  virtual std::uint64_t scan(const std::string& lower, const std::string& upper) = 0;
  // Blocks read from files by scans since the last call.
  virtual std::uint64_t blocks_read() = 0;
};
struct ScanSetting {
  std::string name;
  std::unique_ptr<ScanDatabase> database;
};
std::vector<ScanSetting> rocksdb_scan_settings(const LsmOptions& options, const std::filesystem::path& folder);

// Fills and scans all of them, and says what was read. Throws std::runtime_error if a scan finds too many or few keys.
std::string scan_report(const LsmOptions& options, std::vector<ScanSetting>& settings, bool json, StepDone step_done);

}  // namespace perhaps::bench
