// The model of the counting Bloom filter.
//
// As for the line filter (bloom.cc): the rate is a sum over sets S of probed counters, (-1)^|S| * P(no key touches S),
// and a key touches S if it falls on the line and then hits it, so P = (1 - hit / lines)^keys. Let the query begin
// at lane 0: it has two counters in some lanes, one or none in others. A key begins at any lane. Two counters of a key
// in one lane are distinct, so they both miss s of the 16 with probability (16 - s)(15 - s) / (16 * 15).
#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <mutex>

#include "perhaps/counting_bloom.h"
#include "sizing/model.h"
#include "sizing/shape_error.h"

namespace perhaps {
namespace {

using namespace model;

constexpr std::uint64_t kMaxLines = std::uint64_t{1} << 50;
constexpr int kLanes = 8;
constexpr int kMax = static_cast<int>(CountingShape::kMaxProbes);

// How many of `probes` from lane 0 on fall on `lane`.
int in_lane(int probes, int lane) { return probes / kLanes + (lane < probes % kLanes ? 1 : 0); }

Terms make_terms(int probed, int set) {
  const auto miss = [](int counters, int s) -> long double {
    if (counters == 0) return 1;
    const long double one = (16 - s) / 16.0L;
    return counters == 1 ? one : one * static_cast<long double>(15 - s) / 15;
  };
  // Equal but for rounding: they meet under a rounded name.
  std::map<std::int64_t, Term> merged;
  std::array<int, kLanes> subset{};
  const std::function<void(int, long double)> visit = [&](int lane, long double weight) {
    if (lane == kLanes) {
      long double misses = 0;
      for (int start = 0; start < kLanes; ++start) {
        long double all = 1;
        for (int i = 0; i < kLanes; ++i) all *= miss(in_lane(set, i), subset[(start + i) % kLanes]);
        misses += all;
      }
      const long double hit = 1 - misses / kLanes;
      Term& term = merged[std::llround(hit * 0x1p56L)];
      term.hit = hit;
      term.weight += weight;
      return;
    }
    const int counters = in_lane(probed, lane);
    for (int s = 0; s <= counters; ++s) {
      subset[lane] = s;
      visit(lane + 1, weight * (s == 1 ? -counters : 1));
    }
  };
  visit(0, 1);
  Terms terms;
  for (const auto& [name, term] : merged) terms.push_back(term);
  return terms;
}

const Terms& terms_of(std::uint32_t probed, std::uint32_t set) {
  assert(probed >= 1 && probed <= set && set <= CountingShape::kMaxProbes);
  static std::once_flag made[kMax + 1][kMax + 1];
  static Terms terms[kMax + 1][kMax + 1];
  std::call_once(made[probed][set],
                 [=] { terms[probed][set] = make_terms(static_cast<int>(probed), static_cast<int>(set)); });
  return terms[probed][set];
}

// All of the first `probed` counters of an absent key are in use, where every key uses `set`.
double rate(std::uint32_t probed, std::uint32_t set, std::uint64_t lines, double keys) {
  return std::min(1.0, sum(terms_of(probed, set), static_cast<double>(lines), keys) + equal_digests(keys));
}

// As first_good, but content with 1/4096 too many: a rate with guards is expensive to compute.
template <class Good>
std::uint64_t nearly_first_good(std::uint64_t guess, std::uint64_t limit, Good good) {
  std::uint64_t bad = 0;
  std::uint64_t known_good = limit;
  for (guess = std::clamp<std::uint64_t>(guess, 1, limit); guess < limit; guess *= 2) {
    if (good(guess)) {
      known_good = guess;
      break;
    }
    bad = guess;
  }
  while (known_good - bad > 1 + known_good / 4096) {
    const std::uint64_t middle = bad + (known_good - bad) / 2;
    (good(middle) ? known_good : bad) = middle;
  }
  return known_good;
}

}  // namespace

double CountingShape::fpr(double keys) const { return rate(probes, counters(), lines, keys); }

double CountingShape::wrong_erase(double keys) const { return rate(counters(), counters(), lines, keys); }

double CountingShape::fill(double keys) const {
  return -std::expm1(keys * std::log1p(-counters() / (128 * static_cast<double>(lines))));
}

double CountingShape::keys_for(double fpr) const {
  return keys_until(fpr, [this](double keys) { return this->fpr(keys); });
}

CountingShape CountingShape::for_keys(const GuardedRequest& r) {
  const double keys = static_cast<double>(std::max<std::uint64_t>(r.keys, 1));
  const double guard = std::ldexp(1.0, -static_cast<int>(std::min<std::uint32_t>(r.guard_bits, 32)));
  CountingShape best;
  if (r.max_bytes != 0 || r.bits_per_key != 0) {
    const double wanted =
        r.max_bytes != 0 ? std::floor(static_cast<double>(r.max_bytes) / 64) : std::ceil(keys * r.bits_per_key / 512);
    best.lines = static_cast<std::uint64_t>(std::clamp(wanted, 1.0, static_cast<double>(kMaxLines)));
    // First the best number of all counters of a key; then as many of them for queries as the guards can spare.
    double least = kInfinity;
    std::uint32_t most = 1;
    for (std::uint32_t set = 1; set <= kMaxProbes; ++set) {
      const double wrong = rate(set, set, best.lines, keys);
      if (wrong < least) least = wrong, most = set;
    }
    best.probes = most;
    while (best.probes > 1 && least > guard * rate(best.probes, most, best.lines, keys)) --best.probes;
    best.guards = most - best.probes;
    return best;
  }
  assert(r.fpr > 0 && r.fpr < 1);
  const double fpr = std::clamp(r.fpr, 1e-12, 0.999);
  const double wrong = std::max(fpr * guard, 1e-12);
  best.lines = kMaxLines;
  best.probes = kMaxProbes;
  std::uint64_t guess = static_cast<std::uint64_t>(std::min(keys * -std::log2(wrong) / 128, 1e15)) + 1;
  for (std::uint32_t set = 1; set <= kMaxProbes; ++set) {
    const auto good = [&](std::uint64_t n) { return rate(set, set, n, keys) <= wrong; };
    if (best.lines > 1 && !good(best.lines - 1)) continue;  // no better than what there is
    const std::uint64_t lines = nearly_first_good(guess, best.lines, good);
    if (lines >= best.lines && set > 1) continue;
    best.lines = lines;
    best.probes = set;
  }
  if (r.guard_bits == 0) return best;
  // The fewest for queries that keep the rate.
  const std::uint32_t set = best.probes;
  while (best.probes > 1 && rate(best.probes - 1, set, best.lines, keys) <= fpr) --best.probes;
  best.guards = set - best.probes;
  return best;
}

Facts CountingShape::facts() const {
  Facts facts = {{"lines", std::to_string(lines)}, {"counters", std::to_string(counter_bits) + " bits"}};
  if (guards != 0) facts.emplace_back("guards", std::to_string(guards) + " counters that only remove reads");
  return facts;
}

Result<CountingShape> CountingShape::from(std::span<const std::uint64_t> numbers) {
  if (numbers.size() != 4) return wrong_count("counting", 4, numbers.size());
  if (numbers[0] < 1 || numbers[0] > UINT64_MAX / 512) return out_of_range("counting", "lines", numbers[0]);
  if (numbers[1] < 1 || numbers[1] > kMaxProbes) return out_of_range("counting", "probes", numbers[1]);
  if (numbers[2] > kMaxProbes - numbers[1]) return out_of_range("counting", "guards", numbers[2]);
  if (numbers[3] != 4 && numbers[3] != 1) return out_of_range("counting", "bits in a counter", numbers[3]);
  return CountingShape{numbers[0], static_cast<std::uint32_t>(numbers[1]), static_cast<std::uint32_t>(numbers[2]),
                       static_cast<std::uint32_t>(numbers[3])};
}

}  // namespace perhaps
