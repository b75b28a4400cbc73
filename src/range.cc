// Looking up ranges: the places of a query, the buckets of the places, the lows of a bucket.
#include "perhaps/range.h"

#include <algorithm>
#include <bit>
#include <cassert>

#include "kernel/instruction_set.h"
#include "range_head.h"

namespace perhaps {
namespace {

using detail::load;

constexpr std::uint64_t kDamaged = UINT64_MAX;  // a position that no table has
// 1024 buckets in more bits than these are searched by the second directory first.
constexpr std::uint64_t kNearBits = 4096;
// Of `upper`, that one search reads: then the bytes contradict each other.
constexpr std::uint64_t kMaxWords = kNearBits / 64 + 1;
static_assert(RangeShape::kEachBucket + RangeShape::kEachKey <= kNearBits);

// `width` bits from bit `at` on.  REQUIRES: width <= 56, 8 bytes from there on
std::uint64_t field(const std::byte* base, std::uint64_t at, std::uint32_t width) noexcept {
  return load<std::uint64_t>(base + at / 8) >> at % 8 & ((std::uint64_t{1} << width) - 1);
}

Error bad(const std::string& fact) { return Error{Errc::bad_parameter, "range: " + fact}; }

}  // namespace

// ----------------------------------------------------------------------------------------------------------- opening

Result<RangeView> RangeView::over(Bytes table) {
  if (table.size() < RangeShape::kHeadBytes + 8) {
    return Error{Errc::truncated, "range: " + std::to_string(table.size()) + " bytes are not a table"};
  }
  const RangeHead head = RangeHead::read(table.data());
  RangeView view;
  view.shape_ = head.shape;
  if (!head.shape.valid()) return bad("the head is damaged");
  if (head.coding > 1) return Error{Errc::unsupported, "range: unknown coding " + std::to_string(head.coding)};
  if (head.reserved) return Error{Errc::unsupported, "range: a reserved field of the head is in use"};
  const bool text = head.coding == 1;
  if (head.positions > (text ? RangeCode::kMaxPositions : 0)) {
    return bad("a code of " + std::to_string(head.positions) + " positions");
  }
  // Neither number is above the bits of the table, so no sum below can overflow.
  const std::uint64_t most = std::uint64_t{table.size()} * 8;
  if (head.shape.keys > most || head.shape.buckets() > most ||
      head.shape.bytes() + RangeHead::code_bytes(head.positions) != table.size() || head.bytes != table.size()) {
    return bad(std::to_string(head.shape.keys) + " keys in a universe of " + std::to_string(head.shape.universe) +
               " do not take " + std::to_string(table.size()) + " bytes");
  }
  view.table_ = table;
  view.coding_ = text ? Coding::text : Coding::integers;
  view.positions_ = head.positions;
  view.width_ = head.shape.width();
  view.buckets_ = head.shape.buckets();
  view.seed_ = head.seed;
  view.turn_ = turn_words(head.seed);
  view.universe_ = Divisor(head.shape.universe);
  view.radix_ = Divisor(head.shape.radix());
  view.code_ = table.data() + RangeShape::kHeadBytes;
  view.bucket_directory_ = view.code_ + RangeHead::code_bytes(head.positions);
  view.key_directory_ = view.bucket_directory_ + head.shape.bucket_directory_bytes();
  view.upper_ = view.key_directory_ + head.shape.key_directory_bytes();
  view.lows_ = view.upper_ + head.shape.upper_bytes();
  if (text && !RangeCode::valid(view.code().positions())) return bad("its code of text is damaged");
  return view;
}

// ------------------------------------------------------------------------------------------------------------- places

std::uint64_t RangeView::turn_of(std::uint64_t block) const noexcept {
  return range_turn(turn_, block, shape_.universe);
}

RangeView::Answer RangeView::runs_of(Interval range, Runs& runs) const noexcept {
  runs.count = 0;
  if (range.low > range.high || shape_.keys == 0) return Answer::no;
  std::uint64_t more = range.high - range.low;  // numbers after the first
  const std::uint64_t universe = shape_.universe;
  if (more >= universe - 1) return Answer::perhaps;  // every place
  auto [block, offset] = universe_(range.low);
  for (;;) {
    const std::uint64_t here = std::min(more, universe - 1 - offset);
    std::uint64_t first = turn_of(block) + offset;
    if (first >= universe) first -= universe;
    const std::uint64_t before_wrap = std::min(here, universe - 1 - first);
    runs.at[runs.count++] = {first, first + before_wrap};
    if (before_wrap < here) runs.at[runs.count++] = {0, here - before_wrap - 1};
    if (here == more) return Answer::search;
    more -= here + 1;
    ++block;
    offset = 0;
  }
}

// --------------------------------------------------------------------------------------------------------- Elias-Fano

std::uint64_t RangeView::bucket_sample(std::uint64_t index) const noexcept {
  return index == 0 ? 0 : field(bucket_directory_, (index - 1) * width_, width_);
}
std::uint64_t RangeView::key_sample(std::uint64_t index) const noexcept {
  return index == 0 ? 0 : field(key_directory_, (index - 1) * width_, width_);
}

// Where the bits of a bucket begin: behind `bucket` zeros.
std::uint64_t RangeView::begin_of(std::uint64_t bucket) const noexcept {
  const std::uint64_t end = shape_.keys + buckets_;
  const std::uint64_t sample = bucket / RangeShape::kEachBucket;
  std::uint64_t at = bucket_sample(sample);
  std::uint64_t zeros = sample * RangeShape::kEachBucket;  // before `at`
  const std::uint64_t next = sample < (buckets_ - 1) / RangeShape::kEachBucket ? bucket_sample(sample + 1) : end;
  if (at < zeros || next < at || next > end) return kDamaged;
  if (next - at > kNearBits && zeros != bucket) {
    // Dense: the last sampled key before the bucket. Its one has as many zeros before it as its bucket has a number.
    std::uint64_t low = (at - zeros) / RangeShape::kEachKey;
    std::uint64_t high = (shape_.keys - 1) / RangeShape::kEachKey;
    while (low < high) {
      const std::uint64_t middle = high - (high - low) / 2;
      if (key_sample(middle) < bucket) {
        low = middle;
      } else {
        high = middle - 1;
      }
    }
    const std::uint64_t before = key_sample(low);
    if (before < bucket && before + low * RangeShape::kEachKey > at) {
      at = before + low * RangeShape::kEachKey;
      zeros = before;
    }
  }
  if (zeros == bucket) return at;
  const std::uint64_t words = (end + 63) / 64;
  if (at / 64 >= words) return kDamaged;
  return kernel::active().range_skip_zeros(upper_, at, bucket - zeros, std::min(words - at / 64, kMaxWords));
}

// Loads what a search for the bucket will touch. Between two samples keys lie evenly as a rule, so that the bits of the
// bucket and its lows can be guessed: they arrive together instead of one after the other.
void RangeView::prefetch_bucket(std::uint64_t bucket) const noexcept {
  const std::uint64_t sample = bucket / RangeShape::kEachBucket;
  const std::uint64_t end = shape_.keys + buckets_ - 1;
  const std::uint64_t at = std::min(bucket_sample(sample), end);
  const std::uint64_t next =
      sample < (buckets_ - 1) / RangeShape::kEachBucket ? std::min(bucket_sample(sample + 1), end) : end;
  const std::uint64_t ahead = std::min(next - std::min(at, next), kNearBits) *
                              (bucket - sample * RangeShape::kEachBucket) / RangeShape::kEachBucket;
  const std::uint64_t guess = std::min(at + ahead, end);
  for (std::uint64_t line = at / 512; line <= guess / 512; ++line) detail::prefetch_read(upper_ + line * kLineBytes);
  const std::uint64_t key = std::min(guess - std::min(guess, bucket), shape_.keys - 1);
  detail::prefetch_read(lows_ + key * shape_.half_bits / 16);
}

bool RangeView::one_at(std::uint64_t position) const noexcept {
  return (load<std::uint64_t>(upper_ + position / 64 * 8) >> position % 64 & 1) != 0;
}

// How many keys the bucket has that begins there.
std::uint64_t RangeView::ones_from(std::uint64_t position, std::uint64_t bucket) const noexcept {
  const std::uint64_t first = ~load<std::uint64_t>(upper_ + position / 64 * 8) >> position % 64;
  if (first != 0) return static_cast<std::uint64_t>(std::countr_zero(first));
  if (bucket + 1 >= buckets_) return shape_.keys + buckets_ - 1 - position;  // a zero is the last bit
  const std::uint64_t next = begin_of(bucket + 1);
  return next == kDamaged || next <= position ? kDamaged : next - 1 - position;
}

std::uint64_t RangeView::low_of(std::uint64_t key) const noexcept {
  const std::uint32_t half_bits = shape_.half_bits;
  if (half_bits % 2 == 0) return field(lows_, key * (half_bits / 2), half_bits / 2);
  const auto [second, first] = radix_(field(lows_, key / 2 * half_bits, half_bits));
  return key % 2 == 0 ? first : second;
}

bool RangeView::any_in(Run run) const noexcept {
  const auto [first_bucket, from] = radix_(run.first);
  const auto [last_bucket, to] = radix_(run.last);
  const std::uint64_t end = shape_.keys + buckets_;
  const std::uint64_t begin = begin_of(first_bucket);
  if (begin < first_bucket || begin >= end) return true;  // damaged, as below
  std::uint64_t key = begin - first_bucket;
  const std::uint64_t count = ones_from(begin, first_bucket);
  if (count > shape_.keys || key + count > shape_.keys) return true;
  if (first_bucket == last_bucket) {
    // The first low that is not below `from`.
    const std::uint64_t behind = key + count;
    for (std::uint64_t left = count; left > 0;) {
      const std::uint64_t half = left / 2;
      if (low_of(key + half) < from) {
        key += half + 1;
        left -= half + 1;
      } else {
        left = half;
      }
    }
    return key < behind && low_of(key) <= to;
  }
  key += count;
  if (count != 0 && low_of(key - 1) >= from) return true;
  // The last bucket, unless one between has keys.
  std::uint64_t at = begin + count + 1;
  if (last_bucket != first_bucket + 1) at = begin_of(last_bucket);
  if (at < last_bucket || at >= end) return true;
  if (at - last_bucket != key) return true;
  return key < shape_.keys && one_at(at) && low_of(key) <= to;
}

// ------------------------------------------------------------------------------------------------------------ queries

bool RangeView::may_contain_any(Interval range) const noexcept {
  Runs runs;
  const Answer answer = runs_of(range, runs);
  if (answer != Answer::search) return answer == Answer::perhaps;
  prefetch_bucket(radix_(runs.at[0].first).quotient);
  for (std::uint32_t i = 0; i < runs.count; ++i) {
    if (any_in(runs.at[i])) return true;
  }
  return false;
}

void RangeView::may_contain_any(std::span<const Interval> ranges, std::span<std::uint64_t> answers) const noexcept {
  assert(answers.size() * kBatch >= ranges.size());
  // Three walks over a group: what each one loads was prefetched by the one before.
  constexpr std::size_t kGroup = 32;
  std::array<Runs, kGroup> runs;
  std::array<Answer, kGroup> answer;
  std::fill_n(answers.begin(), (ranges.size() + kBatch - 1) / kBatch, 0);
  for (std::size_t from = 0; from < ranges.size(); from += kGroup) {
    const std::size_t size = std::min(kGroup, ranges.size() - from);
    for (std::size_t i = 0; i < size; ++i) {
      answer[i] = runs_of(ranges[from + i], runs[i]);
      if (answer[i] != Answer::search) continue;
      const std::uint64_t sample = radix_(runs[i].at[0].first).quotient / RangeShape::kEachBucket;
      if (sample != 0) detail::prefetch_read(bucket_directory_ + (sample - 1) * width_ / 8);
    }
    for (std::size_t i = 0; i < size; ++i) {
      if (answer[i] != Answer::search) continue;
      prefetch_bucket(radix_(runs[i].at[0].first).quotient);
    }
    std::uint64_t found = 0;
    for (std::size_t i = 0; i < size; ++i) {
      bool perhaps = answer[i] == Answer::perhaps;
      if (answer[i] == Answer::search) {
        for (std::uint32_t run = 0; run < runs[i].count && !perhaps; ++run) perhaps = any_in(runs[i].at[run]);
      }
      found |= std::uint64_t{perhaps} << i;
    }
    answers[from / kBatch] |= found << from % kBatch;
  }
}

}  // namespace perhaps
