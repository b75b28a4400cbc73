#include "demand.h"

#include <algorithm>
#include <cmath>

#include "perhaps/format/rocksdb.h"

namespace perhaps::rocksdb {
namespace {

constexpr double kStep = 1.0 / 16;  // bits of a Bloom filter
constexpr double kMinBits = 1;      // RocksDB rounds up to it
constexpr double kMaxBits = 36;     // one absent key in some 10^7; nobody notices what is beyond

constexpr double kChord = 1;  // bits

constexpr double kBucketsPerOctave = 8;

}  // namespace

Curve::Curve(bool ribbon) : rates_{Rate{}} {
  std::vector<Rate> hull = rates_;
  const auto saved = [](const Rate& from, const Rate& to) { return (from.fpr - to.fpr) / (to.bits - from.bits); };
  for (double bloom_bits = kMinBits; bloom_bits <= kMaxBits; bloom_bits += kStep) {
    const Rate next{.bits = ribbon ? format::rocksdb::ribbon_bits_per_key(bloom_bits) : bloom_bits,
                    .fpr = format::rocksdb::bloom_fpr(bloom_bits),
                    .bloom_bits = bloom_bits};
    if (!(next.fpr < rates_.back().fpr && next.bits > rates_.back().bits)) continue;
    rates_.push_back(next);
    if (next.bits < hull.back().bits + kChord) continue;
    while (hull.size() > 1 && saved(hull[hull.size() - 2], hull.back()) <= saved(hull.back(), next)) hull.pop_back();
    hull.push_back(next);
  }
  for (std::size_t i = 1; i < hull.size(); ++i)
    chords_.push_back({(hull[i - 1].bits + hull[i].bits) / 2, std::log(saved(hull[i - 1], hull[i]))});
}

double Curve::at(double slope) const {
  const double log_slope = std::log(slope);
  const auto past = std::partition_point(chords_.begin(), chords_.end(),
                                         [&](const Chord& chord) { return chord.log_slope >= log_slope; });
  if (past == chords_.begin()) return 0;
  if (past == chords_.end()) return rates_.back().bits;
  const Chord& before = past[-1];
  const double part = (before.log_slope - log_slope) / (before.log_slope - past->log_slope);
  return before.middle + part * (past->middle - before.middle);
}

const Rate& Curve::within(double bits) const {
  const auto past =
      std::partition_point(rates_.begin() + 1, rates_.end(), [&](const Rate& r) { return r.bits <= bits; });
  return past[-1];
}

void Demands::add(double keys, double demand) {
  if (keys > 0 && demand > 0) keys_[static_cast<int>(std::lround(kBucketsPerOctave * std::log2(demand)))] += keys;
}

double Demands::bits(const Curve& curve, double price) const {
  double sum = 0;
  for (const auto& [bucket, keys] : keys_) sum += keys * curve.at(price / std::exp2(bucket / kBucketsPerOctave));
  return sum;
}

double Demands::price(const Curve& curve, double bits) const {
  double low = -200, high = 8;  // of its logarithm to base 2: all that a filter can be worth
  for (int i = 0; i < 50; ++i) {
    const double middle = (low + high) / 2;
    (this->bits(curve, std::exp2(middle)) > bits ? low : high) = middle;
  }
  return std::exp2(high);
}

}  // namespace perhaps::rocksdb
