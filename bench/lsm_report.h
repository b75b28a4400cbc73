// What `perhaps bench lsm` measured, as text, as JSON and as a picture.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "lsm.h"

namespace perhaps::bench {

// Seconds per lookup, in the best round.
struct Best {
  double seconds = INFINITY;
  void take(double s, std::uint64_t lookups) { seconds = std::min(seconds, s / static_cast<double>(lookups)); }
  double per_second() const { return std::isinf(seconds) ? 0 : 1 / seconds; }
};

struct Measured {
  double build = 0;  // seconds of CPU time
  std::uint64_t filter_bytes = 0;
  Counted absent, mix;  // counts of `lookups` lookups
  Best get, get_mix, multiget;
};

struct Run {
  const LsmOptions& options;
  std::vector<Setting> settings = {};
  std::vector<Measured> measured = {};

  double bits_per_key(const Measured& m) const {
    return 8 * static_cast<double>(m.filter_bytes) / static_cast<double>(options.keys);
  }
  double reads(const Counted& counted) const {
    return static_cast<double>(counted.file_reads) / static_cast<double>(options.lookups);
  }
  const Measured* of(Setting::Role role) const {
    for (std::size_t i = 0; i < settings.size(); ++i) {
      if (settings[i].role == role) return &measured[i];
    }
    return nullptr;
  }
};

std::string lsm_text(const Run& run);
std::string lsm_json(const Run& run);
std::string lsm_svg(const Run& run);

}  // namespace perhaps::bench
