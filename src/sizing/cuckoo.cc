// The model of the cuckoo filter: derived in perhaps/cuckoo.h.
#include "perhaps/cuckoo.h"

#include <algorithm>
#include <cassert>
#include <cmath>

#include "sizing/shape_error.h"

namespace perhaps {
namespace {

double values_of(std::uint32_t fingerprint_bits) noexcept {
  return std::ldexp(1.0, static_cast<int>(fingerprint_bits)) - 1;
}

// One key or more of `keys` has the buckets of an absent key and its value, one of so many.
double likes(double values, std::uint64_t buckets, double keys) {
  const double m = static_cast<double>(buckets);
  const double pair = -std::expm1(keys * std::log1p(-std::min(1.0, 2 / (values * m))));
  const double single = -std::expm1(keys * std::log1p(-1 / (values * m)));
  return buckets == 1 ? single : (1 - 1 / m) * pair + single / m;
}

CuckooShape with_capacity(std::uint64_t keys, std::uint32_t fingerprint_bits, std::uint32_t guard_bits) {
  const double guess = (static_cast<double>(keys) + 8) / (4 * 0.96) - 4;
  const double most = static_cast<double>(CuckooShape::kMaxBuckets);
  CuckooShape shape{guess < 1 ? 1 : static_cast<std::uint64_t>(std::min(guess, most)), fingerprint_bits, guard_bits};
  while (shape.capacity() < keys && shape.buckets < CuckooShape::kMaxBuckets) ++shape.buckets;
  return shape;
}

// The widest fingerprints, so the lowest rate, with which `keys` keys fit into so many bytes.
CuckooShape within(std::uint64_t bytes, std::uint64_t keys, std::uint32_t guard_bits) {
  for (std::uint32_t f = CuckooShape::kMaxFingerprint;; --f) {
    const CuckooShape one{1, f, guard_bits};
    const double room = static_cast<double>(bytes) - static_cast<double>(one.bytes());
    CuckooShape shape = one;
    if (room > 0) {
      const double most = static_cast<double>(CuckooShape::kMaxBuckets);
      shape.buckets = static_cast<std::uint64_t>(std::min(most, 1 + 2 * room / (f + guard_bits)));
      // One more, if the rounding to whole words leaves room for it.
      while (shape.buckets < CuckooShape::kMaxBuckets &&
             CuckooShape{shape.buckets + 1, f, guard_bits}.bytes() <= bytes) {
        ++shape.buckets;
      }
      while (shape.buckets > 1 && shape.bytes() > bytes) --shape.buckets;
    }
    if (f == CuckooShape::kMinFingerprint || (shape.capacity() >= keys && shape.bytes() <= bytes)) return shape;
  }
}

}  // namespace

std::uint64_t CuckooShape::capacity() const {
  const std::uint64_t most = slots() - slots() / 25;
  return std::max(std::min<std::uint64_t>(10, slots() / 2), most < 9 ? 0 : most - 9);
}

double CuckooShape::fpr(double keys) const {
  return std::min(1.0, likes(values_of(fingerprint_bits), buckets, keys) + equal_digests(keys));
}

// A guard makes 2^guard_bits values of each.
double CuckooShape::wrong_erase(double keys) const {
  return likes(std::ldexp(values_of(fingerprint_bits), static_cast<int>(guard_bits)), buckets, keys);
}

double CuckooShape::keys_for(double rate) const {
  double low = 0;
  double high = static_cast<double>(capacity());
  if (fpr(high) <= rate) return high;
  for (int step = 0; step < 100 && high - low > 1e-9 * high; ++step) {
    const double middle = (low + high) / 2;
    (fpr(middle) < rate ? low : high) = middle;
  }
  return low;
}

CuckooShape CuckooShape::for_keys(const GuardedRequest& r) {
  const std::uint64_t keys = std::max<std::uint64_t>(r.keys, 1);
  const double n = static_cast<double>(keys);
  const std::uint32_t guard = std::min(r.guard_bits, kMaxGuard);
  if (r.max_bytes != 0) return within(r.max_bytes, keys, guard);
  if (r.bits_per_key != 0) return within(static_cast<std::uint64_t>(std::ceil(n * r.bits_per_key / 8)), keys, guard);
  assert(r.fpr > 0 && r.fpr < 1);
  const double rate = std::clamp(r.fpr, kLeastFpr, 0.999);
  CuckooShape best;
  bool found = false;
  for (std::uint32_t f = kMinFingerprint; f <= kMaxFingerprint; ++f) {
    CuckooShape shape = with_capacity(keys, f, guard);
    // Without equal digests, which no number of buckets makes rarer.
    const auto rate_now = [&] { return likes(values_of(f), shape.buckets, n); };
    const bool enough = rate_now() <= rate;
    if (!enough) {  // emptier buckets
      const double buckets_needed = 2 * n / (values_of(f) * -std::log1p(-rate));
      if (!(buckets_needed < static_cast<double>(kMaxBuckets) / 2)) continue;
      shape.buckets = std::max(shape.buckets, static_cast<std::uint64_t>(buckets_needed));
      while (rate_now() > rate) shape.buckets += 1 + shape.buckets / 1024;
    }
    if (!found || shape.bytes() < best.bytes()) best = shape;
    found = true;
    if (enough) break;
  }
  return found ? best : CuckooShape{kMaxBuckets, kMaxFingerprint, guard};
}

Facts CuckooShape::facts() const {
  Facts facts = {{"buckets", std::to_string(buckets)}, {"bits", std::to_string(fingerprint_bits) + " per fingerprint"}};
  if (guard_bits != 0) facts.emplace_back("guard", std::to_string(guard_bits) + " bits that only remove compares");
  return facts;
}

Result<CuckooShape> CuckooShape::from(std::span<const std::uint64_t> numbers) {
  if (numbers.size() != 3) return wrong_count("cuckoo", 3, numbers.size());
  if (numbers[0] < 1 || numbers[0] > kMaxBuckets) return out_of_range("cuckoo", "buckets", numbers[0]);
  if (numbers[1] < kMinFingerprint || numbers[1] > kMaxFingerprint) {
    return out_of_range("cuckoo", "bits in a fingerprint", numbers[1]);
  }
  if (numbers[2] > kMaxGuard) return out_of_range("cuckoo", "bits in a guard", numbers[2]);
  return CuckooShape{numbers[0], static_cast<std::uint32_t>(numbers[1]), static_cast<std::uint32_t>(numbers[2])};
}

}  // namespace perhaps
