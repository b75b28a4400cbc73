// Builds a filter of each family from the sample, and measures it.
//
// Lookups are made in batches, as `query` makes them. Single lookups are shown but do not count: through the run-time
// interface each is a batch of one and pays for the start of a batch (cuckoo: 163 ns, against 10 ns per key in a batch
// of 1024), which the single lookup of a typed filter, not measured here, need not do.
//
// Times are CPU times. The memory of a build is the largest growth of the resident set of this process (Linux;
// elsewhere unknown).
#pragma once
#include <cstdint>
#include <memory>
#include <numbers>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "advise_sample.h"
#include "key_options.h"
#include "options.h"
#include "perhaps/any_filter.h"

namespace perhaps::cli::advise {

// An ability that the filter must have (--needs).
struct Need {
  std::string_view word;
  bool (*met)(const Family&);
  std::string (*why_not)(const Family&);
};

// In any currency.
struct Prices {
  static constexpr double kMonth = 30.0 * 24 * 3600;  // seconds
  double wrong = 0;                                   // of a million wrong answers
  double memory = 0;                                  // of a gigabyte for a month
  std::uint64_t lookups = 0;                          // of absent keys, in a second

  bool any() const noexcept { return wrong != 0 || memory != 0 || lookups != 0; }
  bool given() const noexcept { return wrong != 0 && memory != 0 && lookups != 0; }
  // For a month:
  double of_lookups(double fpr) const noexcept { return static_cast<double>(lookups) * kMonth * fpr * wrong / 1e6; }
  double of_memory(double bytes) const noexcept { return bytes / 1e9 * memory; }
  // advise.cc has the derivation.
  double best_rate(double keys) const noexcept { return of_memory(keys / 8) / (std::numbers::ln2 * of_lookups(1)); }
};

struct Options {
  KeyOptions keys;
  std::uint64_t imagined = 0;  // that many keys, which are not there yet
  Prices prices;
  KeyOptions queries;
  Sizing sizing;
  std::vector<const Need*> needs;
  double saves = 100e3;  // ns
  bool saves_given = false;
  std::uint64_t sample = 2'000'000;
  bool json = false;

  bool by_fpr() const noexcept { return sizing.by_fpr(); }
  double bit_price() const noexcept { return by_fpr() ? std::numbers::ln2 * sizing.fpr * saves : 0; }
};

struct Candidate {
  const Family* family;
  std::uint32_t arity = 0;  // of fuse
  std::string reason;       // why it is not ranked
  std::unique_ptr<AnyOwner> filter;
  std::vector<double> build_s;
  std::vector<double> single;
  std::vector<double> batch;
  std::uint64_t hits = 0;
  std::uint64_t sample_bytes = 0;
  std::optional<double> sample_peak;  // bytes
  // For all keys:
  double bytes = 0;
  double bits_per_key = 0;
  std::optional<double> build_bytes;
  double build_seconds = 0;
  double single_ns = 0;
  double batch_ns = 0;
  double fpr_measured = 0;
  double fpr_model = 0;
  bool measurable = false;
  double cost = 0;
  double total = 0;

  double fpr() const noexcept { return measurable ? fpr_measured : fpr_model; }
  std::string name() const {
    return arity == 0 ? std::string(family->name) : fmt::format("{} {}", family->name, arity);
  }
  std::string can() const {
    std::string text = family->inserts ? "add" : "-";
    if (family->erases) text += ", delete";
    if (family->merges) text += ", merge";
    if (family->grows) text += ", grow";
    if (family->forgets) text += "; forgets";
    return text;
  }
};

std::vector<Candidate> candidates_for(const Options& options, const Sample& sample);
void measure(const Options& options, const Sample& sample, const Questions& questions,
             std::vector<Candidate>& candidates);
// What was measured, for all keys; ranks the candidates by total cost.
void conclude(const Options& options, const Sample& sample, const Questions& questions,
              std::vector<Candidate>& candidates);

}  // namespace perhaps::cli::advise
