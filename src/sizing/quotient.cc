// The maths of the quotient filter.
#include <algorithm>
#include <cassert>
#include <cmath>
#include <limits>
#include <string>

#include "perhaps/quotient.h"
#include "sizing/rate_text.h"
#include "sizing/shape_error.h"

namespace perhaps {
namespace {

constexpr std::uint64_t kLimit = std::uint64_t{1} << 63;

// At least one of `keys` keys falls on the same one of `places` places.
double taken(double keys, double places) { return -std::expm1(keys * std::log1p(-1 / places)); }

// The most buckets whose capacity() is not below `keys`: keys / 0.95, rounded up.
std::uint64_t buckets_for(std::uint64_t keys, std::uint64_t limit) noexcept {
  keys = std::max<std::uint64_t>(keys, 1);
  if (keys >= limit / 20 * 19) return limit;
  std::uint64_t buckets = keys / 19 * 20 + keys % 19 * 20 / 19;
  while (QuotientShape{.buckets = buckets}.capacity() < keys) ++buckets;
  return std::min(buckets, limit);
}

std::uint64_t most_buckets(std::uint32_t width) noexcept { return kLimit >> width; }

// The most buckets that fit into so many bytes; 0 if not one does.
std::uint64_t buckets_in(double bytes, QuotientShape shape) noexcept {
  std::uint64_t good = 0;
  std::uint64_t bad = most_buckets(shape.width()) + 1;
  while (bad - good > 1) {
    shape.buckets = good + (bad - good) / 2;
    (static_cast<double>(shape.bytes()) <= bytes ? good : bad) = shape.buckets;
  }
  return good;
}

// The largest remainder that still holds the keys in so many bytes, since one bit more halves the rate; what is left
// goes into buckets.
QuotientShape within(double bytes, const GuardedRequest& r, std::uint32_t guard) noexcept {
  QuotientShape best{.buckets = 1, .remainder_bits = 1, .guard_bits = guard};
  for (std::uint32_t bits = 1; bits <= QuotientShape::kMaxRemainderBits; ++bits) {
    QuotientShape shape{.buckets = 1, .remainder_bits = bits, .guard_bits = guard};
    if (shape.width() > QuotientShape::kMaxSlotBits) break;
    shape.buckets = buckets_in(bytes, shape);
    if (shape.buckets == 0 || (bits > 1 && shape.capacity() < r.keys)) break;
    best = shape;
  }
  return best;
}

}  // namespace

double QuotientShape::fpr(double keys) const {
  return taken(keys, static_cast<double>(buckets) * std::exp2(static_cast<double>(remainder_bits)));
}

double QuotientShape::wrong_erase(double keys) const { return taken(keys, static_cast<double>(fingerprints())); }

double QuotientShape::keys_for(double fpr) const {
  if (!(fpr < 1)) return std::numeric_limits<double>::infinity();
  const double places = static_cast<double>(buckets) * std::exp2(static_cast<double>(remainder_bits));
  return std::log1p(-fpr) / std::log1p(-1 / places);
}

QuotientShape QuotientShape::for_keys(const GuardedRequest& r) {
  const std::uint32_t guard = std::min(r.guard_bits, kMaxSlotBits - 1);
  if (r.max_bytes != 0) return within(static_cast<double>(r.max_bytes), r, guard);
  if (r.bits_per_key != 0) {
    QuotientShape shape = within(static_cast<double>(r.keys) * r.bits_per_key / 8, r, guard);
    // Too little even for remainders of one bit, or for the head and the spare blocks of a few keys: the keys go first.
    shape.buckets = std::max(shape.buckets, buckets_for(r.keys, most_buckets(shape.width())));
    return shape;
  }
  assert(r.fpr > 0 && r.fpr < 1);
  const double fpr = std::clamp(r.fpr, 1e-12, 0.999);
  const double keys = static_cast<double>(std::max<std::uint64_t>(r.keys, 1));
  QuotientShape best{};
  double least = std::numeric_limits<double>::infinity();
  for (std::uint32_t bits = 1; bits <= std::min(kMaxRemainderBits, kMaxSlotBits - guard); ++bits) {
    QuotientShape shape{.buckets = 1, .remainder_bits = bits, .guard_bits = guard};
    const std::uint64_t limit = most_buckets(shape.width());
    shape.buckets = buckets_for(r.keys, limit);
    // Fewer remainder bits can do with more buckets: that is less space where a whole bit would be too much.
    const double places = -1 / std::expm1(std::log1p(-fpr) / keys);
    const double needed = std::ceil(places * std::exp2(-static_cast<double>(bits)));
    if (needed > static_cast<double>(shape.buckets) && needed < static_cast<double>(limit)) {
      shape.buckets = static_cast<std::uint64_t>(needed);
      while (shape.buckets < limit && shape.fpr(keys) > fpr) ++shape.buckets;
    }
    // Where 63 bits of a digest are not enough for the rate, the lowest there is; in any case room for the keys.
    const double rate = shape.fpr(keys);
    const double bytes = shape.capacity() < r.keys ? 1e60
                         : rate > fpr              ? 1e30 * (1 + rate)
                                                   : static_cast<double>(shape.bytes());
    if (bytes < least) {
      least = bytes;
      best = shape;
    }
  }
  return best;
}

Result<QuotientShape> QuotientShape::grown_for(std::uint64_t keys) const {
  QuotientShape shape = *this;
  while (shape.capacity() < keys) {
    if (shape.remainder_bits == 1) {
      return Error{Errc::mismatch, "quotient: no remainder bits left to grow for " + std::to_string(keys) +
                                       " keys; their FPR would be " +
                                       detail::rate_text(fpr(static_cast<double>(keys)))};
    }
    shape.buckets *= 2;
    --shape.remainder_bits;
  }
  return shape;
}

Facts QuotientShape::facts() const {
  Facts facts = {{"buckets", std::to_string(buckets)}, {"bits", std::to_string(remainder_bits) + " per remainder"}};
  if (guard_bits != 0) facts.emplace_back("guard", std::to_string(guard_bits) + " bits that only remove compares");
  return facts;
}

Result<QuotientShape> QuotientShape::from(std::span<const std::uint64_t> numbers) {
  if (numbers.size() != 3) return wrong_count("quotient", 3, numbers.size());
  if (numbers[1] < 1 || numbers[1] > kMaxRemainderBits) {
    return out_of_range("quotient", "remainder bits, 1 to 48 expected", numbers[1]);
  }
  if (numbers[2] > kMaxSlotBits - numbers[1]) {
    return out_of_range("quotient", "guard bits, with the remainder 56 at most expected", numbers[2]);
  }
  const QuotientShape shape{.buckets = numbers[0],
                            .remainder_bits = static_cast<std::uint32_t>(numbers[1]),
                            .guard_bits = static_cast<std::uint32_t>(numbers[2])};
  if (!shape.valid())
    return out_of_range("quotient", "buckets: too many for the bits of a digest, or none", numbers[0]);
  return shape;
}

}  // namespace perhaps
