// Ratios from one interleaved run.
//
// All contenders of a table are alive at once and take turns, so that whatever the machine does meanwhile happens to
// all of them; a ratio is the median over the rounds of the ratio within a round. One thread, pinned, except where a
// table says threads. Before a round a contender is queried once, untimed, so that its table is in the cache as far as
// it fits; no two calls in a row get the same keys, so that a large table is never in the cache because of the last
// call.
//
// No speed without correctness: every key must be found, every form of a lookup must give the same answers, and
// the measured false-positive rate must be that of the model (five standard deviations).
#pragma once
#include <cstdint>
#include <memory>
#include <regex>
#include <span>
#include <string>
#include <vector>

#include "contender.h"
#include "options.h"
#include "pin.h"
#include "report.h"

namespace perhaps::bench {

class Bench {
 public:
  Bench(const Options& options, const Pin& pin)
      : options_(options), pin_(pin), only_(options.only), contenders_(options.contenders) {}

  template <class Key>
  void run(std::uint64_t n, const std::string& group, const std::vector<Entry<Key>>& entries);
  void run_grow(std::uint64_t n);
  void run_maps(std::uint64_t n);
  void run_merge(std::uint64_t n);
  void run_route(std::uint64_t n);
  void run_ranges(std::uint64_t n);
  void run_sizing(std::uint64_t n);

  bool wanted(const Table& table) const { return std::regex_search(table.title(), only_); }
  template <class Key>
  bool wanted(const Entry<Key>& entry, const std::string& group, std::uint64_t n) const {
    return entry.about.group == group && n <= (options_.quick ? entry.about.max_quick_keys : entry.about.max_keys) &&
           std::regex_search(entry.about.name, contenders_);
  }
  const std::vector<Table>& tables() const { return tables_; }
  bool refused() const { return refused_; }

  // The tables of n keys, before anything is measured.
  template <class Key>
  static std::vector<Table> plan(std::uint64_t n, const std::string& group, bool quick);

 private:
  template <class Key>
  struct Alive {
    const About* about;
    std::unique_ptr<Contender<Key>> contender;
    Row row;
  };

  std::uint64_t rounds(std::uint64_t n) const {
    if (options_.rounds != 0) return options_.rounds;
    return options_.quick ? 5 : n >= 100'000'000 ? 7 : 15;
  }

  template <class Key>
  void build(Table* table, std::vector<Alive<Key>>& alive, std::span<const Key> keys);
  template <class Key>
  void verify(Alive<Key>& one, std::span<const Key> keys);
  template <class Key>
  void query(Table& table, std::vector<Alive<Key>>& alive, std::span<const Key> keys);

  const Options& options_;
  const Pin& pin_;
  std::regex only_;
  std::regex contenders_;
  std::vector<Table> tables_;
  bool refused_ = false;
};

}  // namespace perhaps::bench
