// The models of the three Bloom filters that only set bits: classic, line and block (sizing.h).
#include "perhaps/sizing.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <vector>

#include "sizing/model.h"
#include "sizing/shape_error.h"

namespace perhaps {
namespace {

using namespace model;

// Where to look first: units that hold `keys` keys at 1.5 times the limit.
std::uint64_t first_guess(double keys, double fpr, double unit_bits, std::uint64_t limit) noexcept {
  const double units = keys * 1.5 * -std::log2(fpr) / unit_bits;
  return units < static_cast<double>(limit) ? static_cast<std::uint64_t>(units) + 1 : limit;
}

double sane_fpr(double fpr) noexcept {
  assert(fpr > 0 && fpr < 1);
  return std::clamp(fpr, kLeastFpr, 0.999);
}

// One unit is a bit, a line or a block.
std::uint64_t units_in(const Request& r, double unit_bits, std::uint64_t max_units) noexcept {
  const double wanted = r.max_bytes != 0 ? std::floor(static_cast<double>(r.max_bytes) * 8 / unit_bits)
                                         : std::ceil(static_cast<double>(r.keys) * r.bits_per_key / unit_bits);
  if (!(wanted > 1)) return 1;
  return wanted >= static_cast<double>(max_units) ? max_units : static_cast<std::uint64_t>(wanted);
}

// `lanes` lanes of `width` bits, one probe in each.
Terms one_probe_per_lane(int lanes, int width) {
  Terms terms;
  long double choose = 1;
  for (int i = 0; i <= lanes; ++i) {
    terms.push_back({i % 2 == 0 ? choose : -choose, 1 - std::pow(1 - 1.0L / width, i)});
    choose = choose * (lanes - i) / (i + 1);
  }
  return terms;
}

// The line layout. A key makes `rounds` full rounds over the lanes and a part of a round of `extra` lanes that begins
// at a lane of its own. Let the query begin at lane 0: it has rounds + 1 bits in lanes 0..extra-1 and rounds in the
// rest. Two bits in one lane coincide with probability 1/64, so inclusion-exclusion over a lane with two bits weighs
// subsets of s distinct bits with 1, -(2 - 1/64), 1 - 1/64.
Terms line_terms(int probes) {
  constexpr int kLanes = 8;
  constexpr long double kWidth = 64;
  const int rounds = probes / kLanes;
  const int extra = probes % kLanes;
  const auto weight = [](int bits, int subset) -> long double {
    if (bits < 2) return subset == 0 ? 1 : -1;
    return subset == 0 ? 1 : subset == 1 ? -2 + 1 / kWidth : 1 - 1 / kWidth;
  };
  // Lanes in other orders give equal terms. Equal but for rounding: they meet under a rounded name and keep their
  // value.
  std::map<std::int64_t, Term> merged;
  std::array<int, kLanes> subset{};
  const std::function<void(int, long double)> visit = [&](int lane, long double w) {
    if (lane == kLanes) {
      long double whole = 1;
      for (const int s : subset) whole *= 1 - s / kWidth;
      const long double in_rounds = rounds == 0 ? 1 : rounds == 1 ? whole : whole * whole;
      long double misses = 0;
      for (int start = 0; start < kLanes; ++start) {
        long double miss = in_rounds;
        for (int i = 0; i < extra; ++i) miss *= 1 - subset[(start + i) % kLanes] / kWidth;
        misses += miss;
      }
      const long double hit = 1 - misses / kLanes;
      Term& term = merged[std::llround(hit * 0x1p56L)];
      term.hit = hit;
      term.weight += w;
      return;
    }
    const int bits = rounds + (lane < extra ? 1 : 0);
    for (int s = 0; s <= bits; ++s) {
      subset[lane] = s;
      visit(lane + 1, w * weight(bits, s));
    }
  };
  visit(0, 1);
  Terms terms;
  for (const auto& [name, term] : merged) terms.push_back(term);
  return terms;
}

const Terms& terms_of_line(std::uint32_t probes) {
  assert(probes >= 1 && probes <= LineShape::kMaxProbes);
  // Each table is made when it is first needed: all of them take some 5 ms, most programs use one.
  static std::array<std::once_flag, LineShape::kMaxProbes + 1> made;
  static std::array<Terms, LineShape::kMaxProbes + 1> terms;
  std::call_once(made[probes], [=] { terms[probes] = line_terms(static_cast<int>(probes)); });
  return terms[probes];
}

const Terms& terms_of_block() {
  static const Terms terms = one_probe_per_lane(8, 32);
  return terms;
}

// k probes of an absent key fall on j distinct bits with probability q_j; all of j given bits are set after N = kn
// random ones with probability f_j. Both by recurrences of positive terms, so that nothing cancels:
//   q_j (i + 1 probes) = q_j j / m + q_{j-1} (m - j + 1) / m        f_j (N + 1) = f_j (1 - j / m) + f_{j-1} j / m
double exact_classic(double m, std::uint32_t probes, std::uint32_t keys) {
  std::array<double, BloomShape::kMaxProbes + 1> q{1};
  std::array<double, BloomShape::kMaxProbes + 1> f{1};
  const std::uint32_t k = probes;
  for (std::uint32_t i = 0; i < k; ++i) {
    for (std::uint32_t j = k; j > 0; --j) q[j] = (q[j] * j + q[j - 1] * std::max(0.0, m - j + 1)) / m;
    q[0] = 0;
  }
  for (std::uint32_t i = 0; i < k * keys; ++i) {
    for (std::uint32_t j = k; j > 0; --j) {
      const double share = std::min(1.0, j / m);
      f[j] += (f[j - 1] - f[j]) * share;
    }
  }
  double rate = 0;
  for (std::uint32_t j = 1; j <= k; ++j) rate += q[j] * f[j];
  return rate;
}

// One of `keys` keys falls on the place of a query, one of `places`, and has its 32 bits.
double equal_words(double keys, double places) { return -std::expm1(keys * std::log1p(-0x1p-32 / places)); }

// A place with one key in it has a Poisson number of others: the probability that `probes` further bits of a query, in
// lanes of 64 where a key sets `each` on average and the first one two, are all set there.
double set_beside(double others, std::uint32_t probes, double each) {
  if (probes == 0) return 1;
  double sum = 0;
  double weight = std::exp(-others);
  if (weight == 0) return 1;  // hundreds of keys in a line, or as many as damaged bytes say: no rate to speak of
  const int end = static_cast<int>(others + 12 * std::sqrt(others) + 20);
  for (int more = 0; more < end; weight *= others / ++more) {
    sum += weight * std::pow(-std::expm1((2 + more * each) * std::log1p(-1.0 / 64)), probes);
  }
  return sum;
}

// The probe count with the lowest rate, of equal ones the least. A whole round counts as if it had `bonus` times the
// lines, expressed as a rate: what it would reach with so many fewer keys. This is the definition; rates of nine to
// fourteen probes take up to 40 us each, so it is used only where the table below does not decide.
std::uint32_t search_probes(std::uint64_t lines, double keys, double bonus) {
  // The rate is an alternating sum. Below this its rounding errors, which differ between machines, would choose.
  constexpr double kNoise = 1e-12;
  const auto rate = [=](std::uint32_t probes, double of) { return std::max(kNoise, LineShape{lines, probes}.fpr(of)); };
  // The rate falls and then rises with the number of probes: climbs from a guess.
  const double guess = 0.62 * 512 * static_cast<double>(lines) / keys;
  auto best = static_cast<std::uint32_t>(std::clamp(guess, 1.0, double{LineShape::kMaxProbes}));
  const std::uint32_t first = best;
  double lowest = rate(best, keys);
  const auto step = [&](std::uint32_t to, bool even_if_equal) {
    const double there = rate(to, keys);
    if (!(there < lowest || (even_if_equal && there == lowest))) return false;
    lowest = there;
    best = to;
    return true;
  };
  while (best < LineShape::kMaxProbes && step(best + 1, false)) {
  }
  while (best <= first && best > 1 && step(best - 1, true)) {
  }
  const std::uint32_t found = best;
  for (const std::uint32_t whole : {8u, 16u}) {
    if (found + 5 < whole || found > whole + 4) continue;
    const double there = rate(whole, keys / bonus);
    if (there < lowest || (there == lowest && whole < best)) lowest = there, best = whole;
  }
  return best;
}

// Keys per line up to which a probe count is best, for a bonus of 1.02: `many` for many lines, and `one` / lines more
// for few. Found by bisection; sizing_test compares with a search over all counts.
struct UpTo {
  std::uint32_t probes;
  double many;
  double one;
};
constexpr UpTo kBestUpTo[] = {{16, 20.1332, 8.170}, {13, 21.0521, 6.790}, {12, 23.9429, 6.320}, {11, 27.4613, 5.800},
                              {10, 29.7289, 4.840}, {8, 52.7075, 3.716},  {6, 61.5648, 2.737},  {5, 77.5624, 2.030},
                              {4, 100.6633, 1.350}, {3, 142.3180, 0.662}, {2, 244.6420, -0.068}};

std::uint32_t best_probes(std::uint64_t lines, double keys, double bonus) {
  constexpr double kUnsure = 0.002;  // of the threshold; the table is within 0.0005
  const double inverse = 1 / static_cast<double>(lines);
  const double load = keys * inverse;
  // With so few keys many counts are at the floor of the rate.
  if (load < 3 + 4 * inverse) return search_probes(lines, keys, bonus);
  for (const UpTo& up_to : kBestUpTo) {
    const double threshold = up_to.many + up_to.one * inverse;
    if (load > threshold * (1 + kUnsure)) continue;
    return load < threshold * (1 - kUnsure) ? up_to.probes : search_probes(lines, keys, bonus);
  }
  return 1;
}

// The share of a line's bits that one key sets.
double line_touch(std::uint32_t probes) noexcept {
  const double extra = (probes % 8) / 8.0;
  const double keep = std::pow(63.0 / 64, probes / 8);
  return 1 - keep * (1 - extra / 64);
}

}  // namespace

double bits_per_key_limit(double fpr) noexcept { return -std::log2(fpr); }

double BloomShape::fill(double keys) const {
  if (bits == 1) return keys > 0 ? 1 : 0;
  return -std::expm1(keys * probes * std::log1p(-1.0 / static_cast<double>(bits)));
}

// E[fill^k] > E[fill]^k: the share of set bits varies from filter to filter, which shows in small ones.
//   few keys    exactly (exact_classic)
//   many        as if the logarithm of the fill were normal: Var(fill) = (zero - zero^2 (1 + kn/m)) / m for kn random
//               bits of m. From 16 keys on within 0.4 % of the exact sum, from 100 on within 0.01 %.
double BloomShape::fpr(double keys) const {
  constexpr double kFew = 16;
  const double m = static_cast<double>(bits);
  const double k = probes;
  const double ones = fill(keys);
  if (bits == 1 || ones <= 0) return keys > 0 ? 1 : 0;
  if (keys <= kFew) {
    const double whole = std::floor(keys);
    const double below = exact_classic(m, probes, static_cast<std::uint32_t>(whole));
    const double above = keys == whole ? below : exact_classic(m, probes, static_cast<std::uint32_t>(whole) + 1);
    return std::min(1.0, below + (keys - whole) * (above - below) + equal_digests(keys));
  }
  const double zero = 1 - ones;
  const double variance = std::max(0.0, (zero - zero * zero * (1 + k * keys / m)) / m);
  return std::min(1.0, std::pow(ones, k) * std::exp(k * (k - 1) / 2 * variance / (ones * ones)) + equal_digests(keys));
}

double BloomShape::keys_at(double fill) const {
  if (fill >= 1) return kInfinity;
  return bits == 1 ? 0 : std::log1p(-fill) / (probes * std::log1p(-1.0 / static_cast<double>(bits)));
}

double BloomShape::keys_for(double fpr) const {
  return keys_until(fpr, [this](double keys) { return this->fpr(keys); });
}

BloomShape BloomShape::for_keys(const Request& r) {
  constexpr std::uint64_t kMaxBits = std::uint64_t{1} << 60;
  const double keys = static_cast<double>(std::max<std::uint64_t>(r.keys, 1));
  BloomShape best;
  if (r.max_bytes != 0 || r.bits_per_key != 0) {
    best.bits = std::max<std::uint64_t>(8, units_in(r, 1, kMaxBits));
    double best_fpr = kInfinity;
    for (std::uint32_t probes = 1; probes <= kMaxProbes; ++probes) {
      const double rate = BloomShape{best.bits, probes}.fpr(keys);
      if (rate < best_fpr) best_fpr = rate, best.probes = probes;
    }
    return best;
  }
  const double fpr = sane_fpr(r.fpr);
  const std::uint64_t around = first_guess(keys, fpr, 1, kMaxBits);
  best.bits = UINT64_MAX;
  const int guess = static_cast<int>(std::lround(-std::log2(fpr)));
  for (int probes = std::max(1, guess - 1); probes <= std::min<int>(kMaxProbes, guess + 1); ++probes) {
    const auto k = static_cast<std::uint32_t>(probes);
    const std::uint64_t bits = first_good(around, kMaxBits, [&](std::uint64_t b) {
      return BloomShape{b, k}.fpr(keys) <= fpr;
    });
    if (bits < best.bits) best = {bits, k};
  }
  if (best.bits == UINT64_MAX) {  // fpr below 2^-31: all the probes there are
    best.probes = kMaxProbes;
    best.bits = first_good(around, kMaxBits, [&](std::uint64_t b) {
      return BloomShape{b, kMaxProbes}.fpr(keys) <= fpr;
    });
  }
  return best;
}

double LineShape::fpr(double keys) const {
  const double rate = sum(terms_of_line(probes), static_cast<double>(lines), keys);
  // At ordinary rates it is far below the rounding of what is printed, and costs as much as the sum.
  if (4 * equal_words(keys, static_cast<double>(lines)) < 1e-5 * rate) return rate;
  return std::min(1.0, rate + equal_patterns(keys));
}

// Eight probes take 48 bits and come from 32. Two keys of one line that agree in these agree in all eight, with a
// probability of 2^-32 and not 2^-48; six or seven probes likewise. Further probes are the second round, of other bits,
// which then has to be covered by what is set in the line. Of two whole rounds either may be that of the other key.
double LineShape::equal_patterns(double keys) const {
  if (probes < 6) return equal_digests(keys);
  const double places = static_cast<double>(lines);
  const std::uint32_t further = probes <= 8 ? 0 : probes - 8;
  const double pairs = probes == kMaxProbes ? 4 : 1;
  return pairs * equal_words(keys, places) * set_beside(keys / places, further, probes / 8.0) + equal_digests(keys);
}

double LineShape::fill(double keys) const {
  return -std::expm1(keys * std::log1p(-line_touch(probes) / static_cast<double>(lines)));
}

double LineShape::keys_at(double fill) const {
  return fill >= 1 ? kInfinity : std::log1p(-fill) / std::log1p(-line_touch(probes) / static_cast<double>(lines));
}

double LineShape::keys_for(double fpr) const {
  return keys_until(fpr, [this](double keys) { return this->fpr(keys); });
}

LineShape LineShape::for_keys(const Request& r) {
  constexpr std::uint64_t kMaxLines = std::uint64_t{1} << 50;
  constexpr double kWholeRoundBonus = 1.02;
  const double keys = static_cast<double>(std::max<std::uint64_t>(r.keys, 1));
  const auto whole_round = [](std::uint32_t k) { return k % 8 == 0; };
  LineShape best;
  double best_cost = kInfinity;
  if (r.max_bytes != 0 || r.bits_per_key != 0) {
    best.lines = units_in(r, 512, kMaxLines);
    best.probes = best_probes(best.lines, keys, kWholeRoundBonus);
    return best;
  }
  const double fpr = sane_fpr(r.fpr);
  const int most = std::clamp(static_cast<int>(std::lround(-std::log2(fpr))) + 1, 1, static_cast<int>(kMaxProbes));
  best = {kMaxLines, kMaxProbes};
  best_cost = static_cast<double>(kMaxLines);
  std::uint64_t around = first_guess(keys, fpr, 512, kMaxLines);
  for (int probes = std::max(most, 8); probes >= std::max(1, most - 5); --probes) {
    const auto k = static_cast<std::uint32_t>(probes);
    const auto good = [&](std::uint64_t n) { return LineShape{n, k}.fpr(keys) <= fpr; };
    // Worth a search only if it is no larger than the best so far: one rate tells. Of equals, the fewest probes.
    const double bonus = whole_round(k) ? kWholeRoundBonus : 1;
    const auto cap = std::min(kMaxLines, static_cast<std::uint64_t>(best_cost * bonus));
    if (cap == 0 || !good(cap)) continue;
    around = first_good(around, cap, good);
    best_cost = static_cast<double>(around) / bonus;
    best = {around, k};
  }
  return best;
}

double BlockShape::fpr(double keys) const {
  return std::min(1.0, sum(terms_of_block(), static_cast<double>(blocks), keys) + equal_patterns(keys));
}

// Eight probes take 40 bits and come from 32.
double BlockShape::equal_patterns(double keys) const {
  return equal_words(keys, static_cast<double>(blocks)) + equal_digests(keys);
}

double BlockShape::fill(double keys) const {
  return -std::expm1(keys * std::log1p(-1 / (32.0 * static_cast<double>(blocks))));
}

double BlockShape::keys_at(double fill) const {
  return fill >= 1 ? kInfinity : std::log1p(-fill) / std::log1p(-1 / (32.0 * static_cast<double>(blocks)));
}

double BlockShape::keys_for(double fpr) const {
  return keys_until(fpr, [this](double keys) { return this->fpr(keys); });
}

BlockShape BlockShape::for_keys(const Request& r) {
  if (r.max_bytes != 0 || r.bits_per_key != 0) return {units_in(r, 256, kMaxBlocks)};
  const double fpr = sane_fpr(r.fpr);
  const double keys = static_cast<double>(std::max<std::uint64_t>(r.keys, 1));
  return {first_good(first_guess(keys, fpr, 256, kMaxBlocks), kMaxBlocks,
                     [&](std::uint64_t n) { return BlockShape{n}.fpr(keys) <= fpr; })};
}

Result<BloomShape> BloomShape::from(std::span<const std::uint64_t> numbers) {
  if (numbers.size() != 2) return wrong_count("classic", 2, numbers.size());
  if (numbers[0] == 0) return out_of_range("classic", "bits", numbers[0]);
  if (numbers[1] == 0 || numbers[1] > kMaxProbes) return out_of_range("classic", "probes", numbers[1]);
  return BloomShape{.bits = numbers[0], .probes = static_cast<std::uint32_t>(numbers[1])};
}

Result<LineShape> LineShape::from(std::span<const std::uint64_t> numbers) {
  if (numbers.size() != 2) return wrong_count("line", 2, numbers.size());
  if (numbers[1] == 0 || numbers[1] > kMaxProbes) return out_of_range("line", "probes", numbers[1]);
  const LineShape shape{.lines = numbers[0], .probes = static_cast<std::uint32_t>(numbers[1])};
  if (!shape.valid()) return out_of_range("line", "lines", numbers[0]);
  return shape;
}

Result<BlockShape> BlockShape::from(std::span<const std::uint64_t> numbers) {
  if (numbers.size() != 1) return wrong_count("block", 1, numbers.size());
  const BlockShape shape{.blocks = numbers[0]};
  if (!shape.valid()) return out_of_range("block", "blocks", numbers[0]);
  return shape;
}

}  // namespace perhaps
