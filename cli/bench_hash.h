// What `perhaps bench` and `perhaps bench hash` share.
#pragma once
#include <algorithm>
#include <cstdint>
#include <ctime>
#include <string>
#include <vector>

#include "json.h"
#include "options.h"

namespace perhaps::cli::bench {

struct Options {
  std::string what = "families";
  std::uint64_t keys = 1'000'000;
  std::vector<std::string> filters;  // none: all
  Sizing sizing;
  std::uint32_t threads = 1;
  std::string svg;
  bool json = false;
};

constexpr int kRounds = 7;

inline double now_ns(clockid_t clock) noexcept {
  timespec now{};
  ::clock_gettime(clock, &now);
  return static_cast<double>(now.tv_sec) * 1e9 + static_cast<double>(now.tv_nsec);
}

// The same work, some times. By default in CPU time: what other programs do meanwhile does not count.
class Times {
 public:
  // `count`: of the keys in `work`.
  template <class Work>
  void add(double count, Work work, clockid_t clock = CLOCK_PROCESS_CPUTIME_ID) {
    const double from = now_ns(clock);
    work();
    const double ns = (now_ns(clock) - from) / count;
    ns_.insert(std::ranges::upper_bound(ns_, ns), ns);
  }
  std::uint64_t rounds() const noexcept { return ns_.size(); }
  double median() const { return ns_[ns_.size() / 2]; }
  double low() const { return ns_[ns_.size() / 4]; }  // quartiles
  double high() const { return ns_[ns_.size() - 1 - ns_.size() / 4]; }
  // 2.31 ± 0.04
  std::string text() const { return fmt::format("{:.2f} ± {:.2f}", median(), (high() - low()) / 2); }
  void add_to(Json& json, const std::string& name) const {
    json.add(name, median()).add(name + "_low", low()).add(name + "_high", high());
  }

 private:
  std::vector<double> ns_;  // ascending
};

int run_hash(const Options& options);

}  // namespace perhaps::cli::bench
