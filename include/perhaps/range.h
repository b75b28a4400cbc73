// Range filter: is there any key in [a, b]? (Grafite's idea: Costa, Ferragina, Vinciguerra 2024.)
//
//   auto filter = RangeFilter::of(numbers, {.bits_per_key = 16});
//   if (filter.may_contain_any({1000, 1099})) ..      // false is a proof: no key from 1000 to 1099
//
// The idea. Numbers of 64 bits are mapped into a smaller universe of r *places* so that neighbours stay neighbours:
// a block of r successive numbers is laid over the universe as it is, turned by an amount that is drawn for the block.
//
//   place(x) = (q(x / r) + x) mod r          q: pairwise independent, drawn by the seed
//
// A query of up to r numbers is one run of places (two where it wraps around or crosses into the next block), and the
// answer is *perhaps* if the sorted places of the keys have one in it: one search.
//
// The theorem. Two numbers of one block never share a place; two of different blocks do with probability 1 / r at most
// (times 1 + r / 2^64, as q is scaled from 64 bits). So an empty range of L numbers is answered *perhaps* with
// probability at most keys * L / r, whatever the keys are and wherever the range lies, even right beside a key, as long
// as neither was chosen by looking at the seed. In bits: at most L / 2^(bits per key - 2), from 9 to 30 bits per key
// and up to 1e9 keys; from 6 bits on and up to 2^32 keys, at most 1.8 % above.
//
// The places are stored in Elias-Fano form. place = bucket * radix + low; the table has
//
//   head      64 bytes: keys, r, seed: 8 each; half_bits, coding, positions, 0: 4 each; size of the table: 8; zeros
//   code      12 bytes for each position of the code of text keys (RangeCode): how many intervals, ends, values kept (2
//             bytes), then first and last byte of four intervals
//   buckets   where bucket 1024 i begins in `upper`, i = 1 .. (buckets - 1) / 1024, in `width` bits each
//   keys      the bucket of key 2048 i, i = 1 .. (keys - 1) / 2048, in `width` bits each
//   upper     for each bucket: a one for each of its keys, and a zero: keys + buckets bits
//   lows      half_bits even: half_bits / 2 bits for each key. Odd: half_bits for each two, low_0 + radix * low_1
//   zeros     8 bytes, so that every field can be loaded in one word
//
// each part from a multiple of 8 bytes on, with radix = floor(2^(half_bits / 2)), buckets = ceil(r / radix) and width =
// the bits of keys + buckets. Half a bit matters: with radix 2^13 or 2^14 only, 16 bits per key would pay for the two
// directories with a rate above the theorem's; with 2^13.5 as well, they fit (for_keys).
//
// A lookup finds the beginning of a bucket: from the directory, by counting zeros in 16 words of `upper` on average;
// where keys lie so densely that 1024 buckets take more than 4096 bits, by a binary search in the second directory
// first. So it reads at most 65 words, whatever the bytes say, and steps by halves through the lows of a bucket.
//
// Built from numbers in any order; two filters of the same r and seed are merged without their keys. Keys cannot be
// added or erased.
#pragma once
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "perhaps/detail/bits.h"
#include "perhaps/filter.h"
#include "perhaps/hash.h"
#include "perhaps/memory.h"
#include "perhaps/result.h"
#include "perhaps/sizing.h"

namespace perhaps {

// The number that stands for an integer in a range filter, in the same order: signed ones begin at 2^63.
template <std::integral I>
constexpr std::uint64_t range_key(I value) noexcept {
  if constexpr (std::signed_integral<I>) {
    return static_cast<std::uint64_t>(std::int64_t{value}) ^ std::uint64_t{1} << 63;
  } else {
    return value;
  }
}

// What is wanted of a range filter: `fpr` for empty ranges of `range_size` numbers, or a size in memory. `keys` is how
// many there will be; builders count them.
// REQUIRES: 0 < fpr < 1 where it decides, range_size >= 1, bits_per_key >= 0, 1 <= code_bits <= 64
struct RangeRequest {
  std::uint64_t keys = 0;
  double fpr = 0.01;
  double bits_per_key = 0;
  std::uint64_t max_bytes = 0;
  std::uint64_t range_size = 100;
  // Text keys: the code has at most 2^code_bits values (RangeCode). Fewer serve long ranges, more serve short ones.
  std::uint32_t code_bits = 64;
};

// The numbers that fix a table, but for the code of text keys.
struct RangeShape {
  using request_type = RangeRequest;                                     // what for_keys() takes
  static constexpr std::uint64_t kMaxKeys = std::uint64_t{1} << 48;      // distinct places
  static constexpr std::uint64_t kMaxUniverse = std::uint64_t{1} << 62;  // r
  static constexpr std::uint32_t kMaxHalfBits = 112;                     // a low is in one load of 8 bytes
  static constexpr std::uint32_t kMaxOddHalfBits = 55;                   // and so are two lows
  static constexpr std::uint64_t kHeadBytes = 64;                        // before everything else
  static constexpr std::uint64_t kEachBucket = 1024;                     // of the first directory
  static constexpr std::uint64_t kEachKey = 2048;                        // of the second

  std::uint64_t keys = 0;       // distinct places, at most kMaxKeys
  std::uint64_t universe = 1;   // r, 1 to kMaxUniverse
  std::uint32_t half_bits = 0;  // twice the logarithm of the radix; odd up to kMaxOddHalfBits, even up to kMaxHalfBits

  // The largest universe that fits into the bits beside 104 bytes of head and padding, or the smallest for the rate.
  PERHAPS_API static RangeShape for_keys(const RangeRequest& request);
  // The smallest table of so many places in a universe.  REQUIRES: keys <= kMaxKeys, 1 <= universe <= kMaxUniverse
  PERHAPS_API static RangeShape smallest(std::uint64_t keys, std::uint64_t universe);

  // Whether all of the numbers are in their ranges.
  PERHAPS_API bool valid() const noexcept;
  // Of an empty range of that many numbers: the bound of the theorem.
  PERHAPS_API double fpr(double range_size) const noexcept;

  // The number of different lows.
  PERHAPS_API std::uint64_t radix() const noexcept;
  std::uint64_t buckets() const noexcept { return (universe - 1) / radix() + 1; }
  // Bits of an entry of the directories.
  PERHAPS_API std::uint32_t width() const noexcept;
  // The parts, in bytes; then the whole table, without the code.
  PERHAPS_API std::uint64_t bucket_directory_bytes() const noexcept;
  PERHAPS_API std::uint64_t key_directory_bytes() const noexcept;
  PERHAPS_API std::uint64_t upper_bytes() const noexcept;
  PERHAPS_API std::uint64_t lows_bytes() const noexcept;
  PERHAPS_API std::uint64_t bytes() const noexcept;
  friend bool operator==(const RangeShape&, const RangeShape&) = default;
};

// The order-preserving code of text: strings to numbers, so that a <= b implies code(a) <= code(b).
//
// Every position of the strings is a digit of a mixed radix, whose values are the bytes that the keys have there, as up
// to four intervals of bytes (and "ended", before all of them, once a key is that short). A position where all keys
// agree has one value and costs nothing, so common prefixes are skipped and "user0000017" and "user0000018" are
// neighbours; decimal, hexadecimal and big-endian binary keys keep their distances. Positions are taken from the front
// until the product of the radices would exceed 2^code_bits; neighbouring values of the last one are then joined until
// it fits.
//
// Limits: keys that agree in all of this have one code. They cannot be told apart, and a range inside one code is
// answered as that one point. The bound of the filter counts *codes* in a range, not strings: from "a" to "b" are as
// many codes as the later positions have. Fewer code_bits cut these off; then longer ranges have few codes, and shorter
// ones fall on one.
class RangeCode {
 public:
  static constexpr std::size_t kMaxPositions = 255;  // of a string that a code looks at
  // What the keys have at one position.
  struct Position {
    // From a first byte to a last one, ascending and apart; at most four.
    struct Bytes {
      std::uint8_t first = 0;
      std::uint8_t last = 0;
      friend bool operator==(const Bytes&, const Bytes&) = default;
    };
    std::array<Bytes, 4> bytes{};
    std::uint8_t count = 0;  // of them
    bool ends = false;       // some key ends before this position
    std::uint16_t kept = 0;  // values that are told apart: all, but for the last position
    friend bool operator==(const Position&, const Position&) = default;
  };

  // Learns the positions of these keys.  REQUIRES: 1 <= code_bits <= 64
  PERHAPS_API static RangeCode of(std::span<const perhaps::Bytes> keys, std::uint32_t code_bits = 64);
  // REQUIRES: valid(positions)
  explicit RangeCode(std::vector<Position> positions) noexcept : positions_(std::move(positions)) {}
  // At most 2^64 codes, bytes in order, and a key that ended stays so.
  PERHAPS_API static bool valid(std::span<const Position> positions) noexcept;

  std::span<const Position> positions() const noexcept { return positions_; }  // from the first byte on
  // Of a key that it was made of.
  PERHAPS_API std::uint64_t operator()(perhaps::Bytes key) const noexcept;

  friend bool operator==(const RangeCode&, const RangeCode&) = default;

 private:
  std::vector<Position> positions_;
};

// Borrows a table. Trivially copyable; const calls are safe from many threads.
class RangeView {
 public:
  // How keys became numbers.
  enum class Coding : std::uint32_t { integers = 0, text = 1 };

  // Checks every size and the code, and no more: lookups are bounded whatever the other bytes say, and answer *perhaps*
  // where they contradict each other. The bytes must outlive the view.
  PERHAPS_API static Result<RangeView> over(Bytes table);

  Coding coding() const noexcept { return coding_; }  // what its keys are
  const RangeShape& shape() const noexcept { return shape_; }
  std::uint64_t seed() const noexcept { return seed_; }  // of the turns of the blocks
  // The code of text keys; without positions, and of no use, for integers.
  PERHAPS_API RangeCode code() const;
  Bytes bytes() const noexcept { return table_; }
  std::uint64_t byte_size() const noexcept { return table_.size(); }
  // Of an empty range of so many numbers, at most.
  double fpr(double range_size) const noexcept { return shape_.fpr(range_size); }

  // False: no key is in the range, both ends included. An empty range, low > high, has none.
  PERHAPS_API bool may_contain_any(Interval range) const noexcept;
  // Bit i % 64 of answers[i / 64] belongs to ranges[i]; the unused bits of the last word become 0. What each lookup
  // touches is prefetched.  REQUIRES: answers.size() * kBatch >= ranges.size()
  PERHAPS_API void may_contain_any(std::span<const Interval> ranges, std::span<std::uint64_t> answers) const noexcept;
  bool may_contain(std::uint64_t key) const noexcept { return may_contain_any({key, key}); }

  // The codes of all strings that the keys could have from `low` to `high`, both included; nothing if there are none.
  // REQUIRES: coding() == Coding::text, as for the functions below
  PERHAPS_API std::optional<Interval> codes_of(Bytes low, Bytes high) const noexcept;
  // The same up to but without `end`, as scans of engines have it; and without an end.
  PERHAPS_API std::optional<Interval> codes_before(Bytes low, Bytes end) const noexcept;
  PERHAPS_API std::optional<Interval> codes_from(Bytes low) const noexcept;
  // Ranges of strings, both ends included.
  PERHAPS_API bool may_contain_any(Bytes low, Bytes high) const noexcept;
  bool may_contain(Bytes key) const noexcept { return may_contain_any(key, key); }

  // The places of all keys, ascending: what merging and rebuilding read. Fewer than shape().keys if the bytes are
  // damaged.
  PERHAPS_API std::vector<std::uint64_t> places() const;

 private:
  friend class RangeFilter;
  // x / by by a multiplication.
  struct Divisor {
    explicit Divisor(std::uint64_t value = 1) noexcept : by(value), inverse(UINT64_MAX / value) {}
    // A number by the divisor.
    struct Parts {
      std::uint64_t quotient;
      std::uint64_t rest;
    };
    Parts operator()(std::uint64_t x) const noexcept {
      Parts parts{detail::scale(x, inverse), 0};
      parts.rest = x - parts.quotient * by;
      if (parts.rest >= by) parts = {parts.quotient + 1, parts.rest - by};  // never more than one short
      return parts;
    }
    std::uint64_t by;
    std::uint64_t inverse;
  };
  // A run of places, the last one included.
  struct Run {
    std::uint64_t first;
    std::uint64_t last;
  };
  // What a lookup has to search: at most four runs (two blocks, each of which may wrap around).
  struct Runs {
    std::array<Run, 4> at;
    std::uint32_t count;
  };
  enum class Answer : std::uint8_t { no, perhaps, search };

  RangeView() = default;
  // One key in a universe of one number: every range has it.
  static RangeView everything() noexcept {
    RangeView view;
    view.shape_.keys = 1;
    return view;
  }
  std::uint64_t turn_of(std::uint64_t block) const noexcept;
  Answer runs_of(Interval range, Runs& runs) const noexcept;
  std::uint64_t bucket_sample(std::uint64_t index) const noexcept;
  std::uint64_t key_sample(std::uint64_t index) const noexcept;
  std::uint64_t begin_of(std::uint64_t bucket) const noexcept;
  void prefetch_bucket(std::uint64_t bucket) const noexcept;
  std::uint64_t ones_from(std::uint64_t position, std::uint64_t bucket) const noexcept;
  bool one_at(std::uint64_t position) const noexcept;
  std::uint64_t low_of(std::uint64_t key) const noexcept;
  bool any_in(Run run) const noexcept;
  RangeCode::Position position_at(std::size_t i) const noexcept;

  RangeShape shape_;
  Coding coding_ = Coding::integers;
  std::uint32_t positions_ = 0;
  std::uint32_t width_ = 0;
  std::uint64_t seed_ = 0;
  std::uint64_t buckets_ = 1;
  std::array<std::uint64_t, 4> turn_{};  // of q: two words to multiply by, two to add
  Divisor universe_;
  Divisor radix_;
  Bytes table_;
  const std::byte* code_ = nullptr;
  const std::byte* bucket_directory_ = nullptr;
  const std::byte* key_directory_ = nullptr;
  const std::byte* upper_ = nullptr;
  const std::byte* lows_ = nullptr;
};

// Owns its table. A moved-from filter answers *perhaps* to every range, has no bytes and may be assigned to.
class RangeFilter {
 public:
  // Of numbers in any order, repeated or not. request.keys is only a lower bound. Throws std::bad_alloc.
  PERHAPS_API static RangeFilter of(std::span<const std::uint64_t> keys, const RangeRequest& request = {},
                                    std::uint64_t seed = Hash().seed());
  // The same, in the memory of the list.
  PERHAPS_API static RangeFilter of(std::vector<std::uint64_t>&& keys, const RangeRequest& request = {},
                                    std::uint64_t seed = Hash().seed());
  // Of text: two passes over the keys, one to learn the code.
  PERHAPS_API static RangeFilter of(std::span<const Bytes> keys, const RangeRequest& request = {},
                                    std::uint64_t seed = Hash().seed());
  // Of numbers that `code` made of text.
  PERHAPS_API static RangeFilter of_codes(std::vector<std::uint64_t>&& codes, const RangeCode& code,
                                          const RangeRequest& request = {}, std::uint64_t seed = Hash().seed());
  // Of a table that someone else keeps.
  PERHAPS_API explicit RangeFilter(const RangeView& other);
  // The filter of both key sets, from the places alone; the rate is the sum of both. Refused unless universe, seed and
  // code are the same: build filters that will be merged for the same `keys`.
  PERHAPS_API static Result<RangeFilter> merged(const RangeView& a, const RangeView& b);

  RangeFilter(RangeFilter&& other) noexcept
      : memory_(std::move(other.memory_)), view_(std::exchange(other.view_, RangeView::everything())) {}
  RangeFilter& operator=(RangeFilter&& other) noexcept {
    memory_ = std::move(other.memory_);
    view_ = std::exchange(other.view_, RangeView::everything());
    return *this;
  }

  // Valid as long as this filter is.
  const RangeView& view() const& noexcept { return view_; }
  const RangeView& view() const&& = delete;
  const RangeShape& shape() const noexcept { return view_.shape(); }
  Bytes bytes() const& noexcept { return view_.bytes(); }
  Bytes bytes() const&& = delete;
  std::uint64_t byte_size() const noexcept { return view_.byte_size(); }
  double fpr(double range_size) const noexcept { return view_.fpr(range_size); }
  bool may_contain_any(Interval range) const noexcept { return view_.may_contain_any(range); }
  void may_contain_any(std::span<const Interval> ranges, std::span<std::uint64_t> answers) const noexcept {
    view_.may_contain_any(ranges, answers);
  }
  bool may_contain(std::uint64_t key) const noexcept { return view_.may_contain(key); }
  bool may_contain_any(Bytes low, Bytes high) const noexcept { return view_.may_contain_any(low, high); }
  bool may_contain(Bytes key) const noexcept { return view_.may_contain(key); }

 private:
  struct Parameters;
  RangeFilter() = default;
  static RangeFilter from_places(std::vector<std::uint64_t>&& places, const Parameters& parameters);
  static RangeFilter from_numbers(std::vector<std::uint64_t>&& numbers, const RangeCode* code,
                                  const RangeRequest& request, std::uint64_t seed);

  Memory memory_;
  RangeView view_;
};

}  // namespace perhaps
