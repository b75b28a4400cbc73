// Building a range filter: numbers to places, places to a table; and the code of text keys.
#include <algorithm>
#include <bit>
#include <bitset>
#include <cassert>
#include <cstring>

#include "build/sort.h"
#include "perhaps/range.h"
#include "range_head.h"

namespace perhaps {
namespace {

using detail::load;
using detail::store;
using detail::Wide;

// Writes into zeroed bytes.  REQUIRES: value < 2^56, 8 bytes from there on
void put_field(std::byte* base, std::uint64_t at, std::uint64_t value) noexcept {
  store<std::uint64_t>(base + at / 8, load<std::uint64_t>(base + at / 8) | value << at % 8);
}

void sort_and_merge(std::vector<std::uint64_t>& numbers, std::uint64_t largest) {
  if (std::is_sorted(numbers.begin(), numbers.end()) || std::uint64_t{numbers.size()} >> 32 != 0) {
    std::sort(numbers.begin(), numbers.end());
    numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
    return;
  }
  std::vector<std::uint64_t> other(numbers.size());
  const auto common = static_cast<unsigned>(std::countl_zero(largest));
  const auto distinct = build::sort_distinct(numbers, other, common);
  if (distinct.data() != numbers.data()) numbers.swap(other);
  numbers.resize(distinct.size());
}

// The values of one position.
std::uint64_t radix_of(const RangeCode::Position& position) noexcept {
  std::uint64_t radix = position.ends;
  for (std::size_t i = 0; i < position.count; ++i) radix += 1u + position.bytes[i].last - position.bytes[i].first;
  return radix;
}

}  // namespace

// --------------------------------------------------------------------------------------------------------------- text

namespace {

// `last` is the greatest code of some positions: the greatest with one more, or nothing if that is above `most`.
std::optional<std::uint64_t> with_digit(std::uint64_t last, std::uint64_t radix, std::uint64_t most) noexcept {
  const Wide greater = static_cast<Wide>(last) * static_cast<Wide>(radix) + static_cast<Wide>(radix - 1);
  const auto low = static_cast<std::uint64_t>(greater);
  if (static_cast<std::uint64_t>(greater >> 64) != 0 || low > most) return std::nullopt;
  return low;
}

// Where a string lies among the codes: how many have only strings below it, how many have any, and how many have any
// not above it. A code that holds the string counts in the last. All are at most 2^64.
struct RangePlace {
  Wide below = 0;
  Wide any_below = 0;
  Wide not_above = 0;
};

// Of one position: the values below a byte, and whether it is one of them. No byte: the key has ended.
struct Digit {
  std::uint64_t value = 0;
  bool exact = false;
};
Digit digit_of(const RangeCode::Position& position, std::optional<std::uint8_t> byte) noexcept {
  if (!byte) return {.value = 0, .exact = position.ends};
  Digit digit{.value = position.ends, .exact = false};
  for (std::size_t i = 0; i < position.count; ++i) {
    const auto [first, last] = position.bytes[i];
    if (*byte < first) return digit;
    if (*byte <= last) return {.value = digit.value + *byte - first, .exact = true};
    digit.value += 1u + last - first;
  }
  return digit;
}

template <class At>
RangePlace place_of(Bytes key, std::size_t positions, At position_at) noexcept {
  RangePlace place;
  bool joined = false;  // the last position does not tell all of its values apart
  Digit digit{.value = 0, .exact = true};
  std::size_t i = 0;
  for (; i < positions && digit.exact; ++i) {
    const RangeCode::Position position = position_at(i);
    const std::uint64_t radix = radix_of(position);
    digit = digit_of(position, i < key.size() ? std::optional(std::to_integer<std::uint8_t>(key[i])) : std::nullopt);
    joined = position.kept != radix;
    const Wide before = place.below * static_cast<Wide>(std::uint64_t{position.kept});
    place.below = before + static_cast<Wide>(digit.value * position.kept / radix);
    place.any_below = before + static_cast<Wide>(digit.value == 0 ? 0 : (digit.value - 1) * position.kept / radix + 1);
  }
  if (digit.exact) {
    place.not_above = place.below + static_cast<Wide>(std::uint64_t{1});
    // Strings that continue the key are above it; those that differ behind the last position may be below.
    place.any_below = joined || key.size() > positions ? place.not_above : place.below;
    return place;
  }
  place.not_above = place.any_below;
  for (; i < positions; ++i) {
    const auto kept = static_cast<Wide>(std::uint64_t{position_at(i).kept});
    place.below = place.below * kept;
    place.any_below = place.not_above = place.not_above * kept;
  }
  return place;
}

std::optional<Interval> codes_between(Wide begin, Wide end) noexcept {
  const Wide last = end + (static_cast<Wide>(UINT64_MAX) << 64) + static_cast<Wide>(UINT64_MAX);  // end - 1
  if (static_cast<std::uint64_t>(end >> 64) == 0 && static_cast<std::uint64_t>(end) == 0) return std::nullopt;
  if (static_cast<std::uint64_t>(begin >> 64) != 0) return std::nullopt;
  const Interval codes{static_cast<std::uint64_t>(begin), static_cast<std::uint64_t>(last)};
  if (codes.low > codes.high) return std::nullopt;
  return codes;
}

// Intervals of the bytes that were seen, at most four: the narrowest gaps are closed.
RangeCode::Position position_of(const std::bitset<256>& seen) {
  std::vector<RangeCode::Position::Bytes> all;
  for (unsigned byte = 0; byte < 256; ++byte) {
    if (!seen[byte]) continue;
    if (all.empty() || all.back().last + 1u != byte) all.push_back({static_cast<std::uint8_t>(byte), 0});
    all.back().last = static_cast<std::uint8_t>(byte);
  }
  RangeCode::Position position;
  while (all.size() > position.bytes.size()) {
    std::size_t narrowest = 1;
    for (std::size_t i = 2; i < all.size(); ++i) {
      if (all[i].first - all[i - 1].last < all[narrowest].first - all[narrowest - 1].last) narrowest = i;
    }
    all[narrowest - 1].last = all[narrowest].last;
    all.erase(all.begin() + static_cast<std::ptrdiff_t>(narrowest));
  }
  position.count = static_cast<std::uint8_t>(all.size());
  std::copy(all.begin(), all.end(), position.bytes.begin());
  return position;
}

}  // namespace

RangeCode::Position RangeView::position_at(std::size_t i) const noexcept {
  const std::byte* const at = code_ + i * RangeHead::kPositionBytes;
  RangeCode::Position position;
  position.count = std::to_integer<std::uint8_t>(at[0]);
  position.ends = at[1] != std::byte{0};
  position.kept = load<std::uint16_t>(at + 2);
  for (std::size_t j = 0; j < position.bytes.size(); ++j) {
    position.bytes[j] = {std::to_integer<std::uint8_t>(at[4 + 2 * j]), std::to_integer<std::uint8_t>(at[5 + 2 * j])};
  }
  return position;
}

RangeCode RangeView::code() const {
  std::vector<RangeCode::Position> positions(positions_);
  for (std::size_t i = 0; i < positions.size(); ++i) positions[i] = position_at(i);
  return RangeCode(std::move(positions));
}

// Numbers have no code of text: any of them may be meant.
std::optional<Interval> RangeView::codes_of(Bytes low, Bytes high) const noexcept {
  if (coding_ != Coding::text) return Interval{0, UINT64_MAX};
  const auto at = [&](std::size_t i) { return position_at(i); };
  return codes_between(place_of(low, positions_, at).below, place_of(high, positions_, at).not_above);
}
std::optional<Interval> RangeView::codes_before(Bytes low, Bytes end) const noexcept {
  if (coding_ != Coding::text) return Interval{0, UINT64_MAX};
  const auto at = [&](std::size_t i) { return position_at(i); };
  return codes_between(place_of(low, positions_, at).below, place_of(end, positions_, at).any_below);
}
std::optional<Interval> RangeView::codes_from(Bytes low) const noexcept {
  if (coding_ != Coding::text) return Interval{0, UINT64_MAX};
  return codes_between(place_of(low, positions_, [&](std::size_t i) { return position_at(i); }).below,
                       static_cast<Wide>(std::uint64_t{1}) << 64);
}
bool RangeView::may_contain_any(Bytes low, Bytes high) const noexcept {
  const auto codes = codes_of(low, high);
  return codes && may_contain_any(*codes);
}

RangeCode RangeCode::of(std::span<const perhaps::Bytes> keys, std::uint32_t code_bits) {
  assert(code_bits >= 1 && code_bits <= 64);
  std::vector<std::bitset<256>> seen;
  std::size_t shortest = SIZE_MAX;
  for (const perhaps::Bytes key : keys) {
    const std::size_t size = std::min(key.size(), kMaxPositions);
    if (size > seen.size()) seen.resize(size);
    shortest = std::min(shortest, size);
    for (std::size_t i = 0; i < size; ++i) seen[i].set(std::to_integer<std::size_t>(key[i]));
  }
  const std::uint64_t most = UINT64_MAX >> (64 - code_bits);
  std::vector<Position> positions;
  std::uint64_t last = 0;
  for (std::size_t i = 0; i < seen.size(); ++i) {
    Position position = position_of(seen[i]);
    position.ends = shortest <= i;
    const std::uint64_t radix = radix_of(position);
    position.kept = static_cast<std::uint16_t>(radix);
    while (position.kept > 1 && !with_digit(last, position.kept, most)) --position.kept;
    if (position.kept == 1 && radix != 1) break;
    last = *with_digit(last, position.kept, most);
    positions.push_back(position);
    if (position.kept != radix) break;
  }
  return RangeCode(std::move(positions));
}

bool RangeCode::valid(std::span<const Position> positions) noexcept {
  std::uint64_t last = 0;
  bool ended = false;
  for (std::size_t i = 0; i < positions.size(); ++i) {
    const Position& position = positions[i];
    if (position.count == 0 || position.count > position.bytes.size() || (ended && !position.ends)) return false;
    for (std::size_t j = 0; j < position.count; ++j) {
      if (position.bytes[j].first > position.bytes[j].last) return false;
      if (j != 0 && position.bytes[j].first <= position.bytes[j - 1].last) return false;
    }
    ended = position.ends;
    const std::uint64_t radix = radix_of(position);
    if (position.kept == 0 || position.kept > radix || (position.kept != radix && i + 1 != positions.size()))
      return false;
    const auto more = with_digit(last, position.kept, UINT64_MAX);
    if (!more) return false;
    last = *more;
  }
  return positions.size() <= kMaxPositions;
}

std::uint64_t RangeCode::operator()(perhaps::Bytes key) const noexcept {
  return static_cast<std::uint64_t>(
      place_of(key, positions_.size(), [&](std::size_t i) { return positions_[i]; }).below);
}

// ------------------------------------------------------------------------------------------------------------ building

struct RangeFilter::Parameters {
  std::uint64_t universe;
  std::uint64_t seed;
  RangeView::Coding coding;
  std::span<const RangeCode::Position> positions;
};

RangeFilter RangeFilter::from_places(std::vector<std::uint64_t>&& places, const Parameters& parameters) {
  sort_and_merge(places, parameters.universe - 1);
  const RangeShape shape = RangeShape::smallest(places.size(), parameters.universe);
  const std::size_t positions = parameters.positions.size();
  RangeFilter filter;
  filter.memory_ = Memory(shape.bytes() + RangeHead::code_bytes(positions));
  std::byte* const table = filter.memory_.data();
  RangeHead{.shape = shape,
            .seed = parameters.seed,
            .coding = static_cast<std::uint32_t>(parameters.coding),
            .positions = static_cast<std::uint32_t>(positions),
            .bytes = filter.memory_.size()}
      .write(table);
  std::byte* const code = table + RangeShape::kHeadBytes;
  for (std::size_t i = 0; i < positions; ++i) {
    const RangeCode::Position& position = parameters.positions[i];
    std::byte* const at = code + i * RangeHead::kPositionBytes;
    at[0] = std::byte{position.count};
    at[1] = std::byte{position.ends};
    store<std::uint16_t>(at + 2, position.kept);
    for (std::size_t j = 0; j < position.bytes.size(); ++j) {
      at[4 + 2 * j] = std::byte{position.bytes[j].first};
      at[5 + 2 * j] = std::byte{position.bytes[j].last};
    }
  }
  std::byte* const bucket_directory = code + RangeHead::code_bytes(positions);
  std::byte* const key_directory = bucket_directory + shape.bucket_directory_bytes();
  std::byte* const upper = key_directory + shape.key_directory_bytes();
  std::byte* const lows = upper + shape.upper_bytes();

  const std::uint32_t width = shape.width();
  const std::uint64_t radix = shape.radix();
  const bool pairs = shape.half_bits % 2 != 0;
  std::uint64_t sampled = 1;  // the next bucket of the directory, in its unit
  const auto sample_up_to = [&](std::uint64_t bucket, std::uint64_t keys) {
    for (; sampled * RangeShape::kEachBucket <= bucket; ++sampled) {
      put_field(bucket_directory, (sampled - 1) * width, sampled * RangeShape::kEachBucket + keys);
    }
  };
  for (std::uint64_t i = 0; i < places.size(); ++i) {
    const std::uint64_t bucket = places[i] / radix;
    const std::uint64_t low = places[i] % radix;
    sample_up_to(bucket, i);
    if (i != 0 && i % RangeShape::kEachKey == 0) {
      put_field(key_directory, (i / RangeShape::kEachKey - 1) * width, bucket);
    }
    detail::set_bits<std::uint64_t>(upper + (bucket + i) / 64 * 8, std::uint64_t{1} << (bucket + i) % 64);
    if (!pairs) {
      put_field(lows, i * (shape.half_bits / 2), low);
    } else if (i % 2 == 0) {
      put_field(lows, i / 2 * shape.half_bits, low + (i + 1 < places.size() ? places[i + 1] % radix * radix : 0));
    }
  }
  sample_up_to(shape.buckets() - 1, places.size());
  auto view = RangeView::over(filter.memory_.bytes());
  assert(view);
  filter.view_ = *view;
  return filter;
}

RangeFilter RangeFilter::from_numbers(std::vector<std::uint64_t>&& numbers, const RangeCode* code,
                                      const RangeRequest& request, std::uint64_t seed) {
  // Repeated keys need no room. Sorted ones stay so.
  sort_and_merge(numbers, UINT64_MAX);
  RangeRequest counted = request;
  counted.keys = std::max<std::uint64_t>(request.keys, numbers.size());
  if (code != nullptr && counted.max_bytes != 0)  // the code is stored, too
    counted.max_bytes -= std::min(counted.max_bytes - 1, RangeHead::code_bytes(code->positions().size()));
  Parameters parameters{.universe = RangeShape::for_keys(counted).universe,
                        .seed = seed,
                        .coding = code == nullptr ? RangeView::Coding::integers : RangeView::Coding::text,
                        .positions = {}};
  if (code != nullptr) parameters.positions = code->positions();
  const auto words = turn_words(seed);
  const std::uint64_t universe = parameters.universe;
  for (std::uint64_t& number : numbers) {
    const std::uint64_t place = range_turn(words, number / universe, universe) + number % universe;
    number = place >= universe ? place - universe : place;
  }
  return from_places(std::move(numbers), parameters);
}

RangeFilter RangeFilter::of(std::span<const std::uint64_t> keys, const RangeRequest& request, std::uint64_t seed) {
  return from_numbers({keys.begin(), keys.end()}, nullptr, request, seed);
}
RangeFilter RangeFilter::of(std::vector<std::uint64_t>&& keys, const RangeRequest& request, std::uint64_t seed) {
  return from_numbers(std::move(keys), nullptr, request, seed);
}
RangeFilter RangeFilter::of_codes(std::vector<std::uint64_t>&& codes, const RangeCode& code,
                                  const RangeRequest& request, std::uint64_t seed) {
  return from_numbers(std::move(codes), &code, request, seed);
}
RangeFilter RangeFilter::of(std::span<const Bytes> keys, const RangeRequest& request, std::uint64_t seed) {
  const RangeCode code = RangeCode::of(keys, request.code_bits);
  std::vector<std::uint64_t> codes;
  codes.reserve(keys.size());
  for (const Bytes key : keys) codes.push_back(code(key));
  return from_numbers(std::move(codes), &code, request, seed);
}

RangeFilter::RangeFilter(const RangeView& other) : memory_(other.byte_size()), view_(other) {
  std::memcpy(memory_.data(), other.bytes().data(), other.byte_size());
  view_ = *RangeView::over(memory_.bytes());
}

std::vector<std::uint64_t> RangeView::places() const {
  std::vector<std::uint64_t> places;
  places.reserve(shape_.keys);
  std::uint64_t bucket = 0;
  for (std::uint64_t at = 0; at < shape_.keys + buckets_ && places.size() < shape_.keys; ++at) {
    if (one_at(at)) {
      places.push_back(std::min(bucket * radix_.by + low_of(places.size()), shape_.universe - 1));
    } else {
      ++bucket;
    }
  }
  return places;
}

Result<RangeFilter> RangeFilter::merged(const RangeView& a, const RangeView& b) {
  const auto differ = [](const std::string& what) {
    return Error{Errc::mismatch, "range: the filters have different " + what};
  };
  if (a.shape().universe != b.shape().universe) {
    return differ("universes: " + std::to_string(a.shape().universe) + " and " + std::to_string(b.shape().universe));
  }
  if (a.seed() != b.seed()) return differ("seeds");
  if (a.coding() != b.coding() || a.code() != b.code()) return differ("codes of their keys");
  std::vector<std::uint64_t> places = a.places();
  const std::vector<std::uint64_t> more = b.places();
  places.insert(places.end(), more.begin(), more.end());
  const RangeCode code = a.code();
  return from_places(
      std::move(places),
      {.universe = a.shape().universe, .seed = a.seed(), .coding = a.coding(), .positions = code.positions()});
}

}  // namespace perhaps
