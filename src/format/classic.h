// What the classic Bloom filters of all systems share: everything but the hash, the positions, the bit order and the
// header. A scheme is a small struct that defines the first three:
//
//   struct Scheme {
//     using word = ..;                                    // a digest
//     static constexpr std::string_view hash = "xxh64";   // its name, for display
//     word operator()(Bytes key) const noexcept;          // the struct may hold a seed
//     struct Plan {                                       // digest -> positions, as in BloomLayout (bloom.h)
//       Plan(word digest, std::uint64_t bits) noexcept;
//       std::uint64_t next() noexcept;                    // always less than `bits`, rounded up to whole units
//     };
//     static bool ignores(Bytes key) noexcept;            // optional: keys that are never added and never match
//   };
//
// Most plans are DoubleHashing. Positions count from the least significant bit of byte 0. A table is a whole number of
// units; for another bit order, the Plan permutes the positions within a unit.
#pragma once
#include <array>
#include <cmath>

#include "format/bit_positions.h"
#include "format/codec.h"
#include "perhaps/bloom.h"

namespace perhaps::format {

// Every lookup pays for each probe: a file that claims more than this is an attack, not a filter.
inline constexpr std::uint64_t kMaxProbes = 1024;

// The largest Java int, which counts words and bits.
inline constexpr std::uint64_t kMaxInt = 0x7fffffff;

// Bit p of 64-bit words that are stored big-endian is bit p ^ 56 of the bytes.
inline constexpr std::uint64_t kBigEndianWords = 56;

struct StartAndStep {
  std::uint64_t start;
  std::uint64_t step;
};

// How different systems keep a sum from being negative.
namespace fold {
constexpr std::uint64_t none(std::uint64_t x) noexcept { return x; }
constexpr std::uint64_t drop_sign(std::uint64_t x) noexcept { return x & ~std::uint64_t{0} >> 1; }
constexpr std::uint64_t drop_lowest(std::uint64_t x) noexcept { return x >> 1; }
constexpr std::uint64_t magnitude(std::uint64_t x) noexcept { return x >> 63 ? 0 - x : x; }
constexpr std::uint64_t complement(std::uint64_t x) noexcept { return x >> 63 ? ~x : x; }
constexpr std::uint64_t complement32(std::uint64_t x) noexcept { return (x >> 31 & 1 ? ~x : x) & 0xffffffff; }
}  // namespace fold

// position i = fold(start + i * step mod 2^64) mod bits, within bytes or big-endian words.
template <auto kFold = fold::none, std::uint64_t kOrder = 0>
class DoubleHashing {
 public:
  using word = StartAndStep;
  DoubleHashing(word h, std::uint64_t bits) noexcept : at_(h.start), step_(h.step), bits_(bits) {}
  std::uint64_t next() noexcept { return kFold(std::exchange(at_, at_ + step_)) % bits_ ^ kOrder; }

 private:
  std::uint64_t at_;
  std::uint64_t step_;
  std::uint64_t bits_;
};

// Size of `bits` bits, rounded up to whole units.
constexpr std::uint64_t table_bytes(std::uint64_t bits, std::uint64_t unit = 8) noexcept {
  return (bits / unit + (bits % unit != 0)) * (unit / 8);
}

// What a codec found in the header.
struct ClassicParts {
  std::string_view format;
  Bytes table{};
  std::uint64_t bits = 0;    // the modulus
  std::uint64_t probes = 0;  // 0: every key answers *perhaps*
  std::uint64_t unit = 8;    // in bits; the unused bits of the last unit are 0
  std::optional<std::uint64_t> keys{};
  std::optional<std::uint64_t> capacity{};
  std::vector<std::pair<std::string, std::string>> more{};
  std::optional<Error> wrong{};  // the first error found

  // Call this once the header has been read: the rest is the table.
  void end_header(const Reader& in, std::uint64_t header) {
    table = in.rest();
    require(!in.is_short(), Errc::truncated, "ends inside its header of ", header, " bytes");
  }
  template <class... Text>
  void require(bool good, Errc code, const Text&... text) {
    if (!good && !wrong) wrong = bad(code, format, text...);
  }
};

// Certain if the lengths agree, which is unlikely for other bytes.
template <auto kPartsOf>
Sniffed sniff_classic(const Source& source) {
  const ClassicParts& parts = kPartsOf(source.bytes);
  const bool agrees = !parts.wrong && parts.bits != 0 && parts.probes != 0 && parts.probes <= kMaxProbes &&
                      parts.table.size() == table_bytes(parts.bits, parts.unit);
  return agrees ? Sniffed::certain : Sniffed::no;
}

template <class Scheme>
class ClassicFilter final : public AnyFilter, public BitPositions {
  using Plan = typename Scheme::Plan;
  using word = typename Scheme::word;
  using Positions = BloomLayout<Plan>;

 public:
  // REQUIRES: 1 <= parts.bits, parts.table is exactly as large as the bits need, parts.probes <= kMaxProbes
  ClassicFilter(ClassicParts parts, Scheme scheme)
      : parts_(std::move(parts)),
        shape_{.bits = parts_.bits, .probes = static_cast<std::uint32_t>(parts_.probes)},
        scheme_(scheme) {
    assert(parts_.bits >= 1 && parts_.probes <= kMaxProbes);
    assert(parts_.table.size() == table_bytes(parts_.bits, parts_.unit));
  }

  using AnyFilter::may_contain;
  std::uint64_t may_contain(std::span<const Bytes> keys) const noexcept override {
    assert(keys.size() <= kBatch);
    if (keys.empty()) return 0;
    if (shape_.probes == 0) return ~std::uint64_t{0} >> (kBatch - keys.size());
    std::array<word, kBatch> digests;
    for (std::size_t i = 0; i < keys.size(); ++i) digests[i] = scheme_(keys[i]);
    std::uint64_t answers = 0;
    detail::query_batch<Positions>(
        shape_, parts_.table.data(),
        {.words = digests.data(), .count = keys.size(), .ahead = detail::far_away(parts_.table.size())}, &answers);
    if constexpr (requires { Scheme::ignores(keys[0]); }) {
      for (std::size_t i = 0; i < keys.size(); ++i) answers &= ~(std::uint64_t{Scheme::ignores(keys[i])} << i);
    }
    return answers;
  }

  std::uint64_t byte_size() const noexcept override { return parts_.table.size(); }
  Bytes table() const noexcept override { return parts_.table; }
  std::optional<std::vector<std::uint64_t>> positions(Bytes key) const override {
    if constexpr (requires { Scheme::ignores(key); }) {
      if (Scheme::ignores(key)) return std::nullopt;
    }
    Plan plan(scheme_(key), shape_.bits);
    std::vector<std::uint64_t> all(shape_.probes);
    for (std::uint64_t& at : all) at = plan.next();
    return all;
  }
  const Scheme& scheme() const noexcept { return scheme_; }

  Description describe() const override {
    const auto probes = static_cast<double>(shape_.probes);
    Description d;
    d.format = parts_.format;
    d.family = "classic";
    d.hash = Scheme::hash;
    d.keys = parts_.keys;
    d.capacity = parts_.capacity;
    d.bits = shape_.bits;
    d.bytes = parts_.table.size();
    d.probes = shape_.probes;
    // The whole table is counted, because the unused bits of a word are not always its last ones. If a damaged file has
    // some of them set, they count too.
    const auto all = static_cast<double>(std::uint64_t{8} * parts_.table.size());
    d.fill = std::min(
        1.0, fill_of(parts_.table, std::uint64_t{8} * parts_.table.size()) * all / static_cast<double>(shape_.bits));
    if (shape_.probes != 0 && d.fill < 1)
      d.keys_estimated = -std::log1p(-d.fill) * static_cast<double>(shape_.bits) / probes;
    const double formula = std::pow(d.fill, probes);
    d.fpr = predicted_fpr(*this, formula);
    if (d.capacity) {
      const double fill = -std::expm1(-probes * static_cast<double>(*d.capacity) / static_cast<double>(shape_.bits));
      d.fpr_at_capacity = std::pow(fill, probes) * (formula > 0 ? std::max(1.0, d.fpr / formula) : 1.0);
    }
    d.more = parts_.more;
    if (d.fpr > 1.1 * formula) d.more.emplace_back("formula", percent_text(formula) + ", not reached by these probes");
    return d;
  }

 private:
  ClassicParts parts_;
  BloomShape shape_;
  [[no_unique_address]] Scheme scheme_;
};

// The last step of open(): refuses a filter that cannot be probed, and notes any bytes after the table.
template <class Scheme>
Result<Opened> open_classic(const Source& source, ClassicParts parts, Scheme scheme = {}) {
  const std::string_view format = parts.format;
  if (parts.wrong) return damaged(source, format, *std::move(parts.wrong));
  if (parts.bits == 0) return damaged(source, format, bad(Errc::bad_parameter, format, "0 bits"));
  const std::uint64_t bytes = table_bytes(parts.bits, parts.unit);
  if (bytes > parts.table.size()) {
    return damaged(source, format,
                   bad(Errc::truncated, format, "promises ", bytes, " bytes of bits, has ", parts.table.size()));
  }
  if (parts.probes > kMaxProbes) {
    return damaged(source, format, bad(Errc::bad_parameter, format, parts.probes, " probes, more than ", kMaxProbes));
  }
  if (parts.probes == 0 && source.on_damage == OnDamage::error)
    return bad(Errc::bad_parameter, format, "0 probes: it would answer perhaps for every key");
  const std::uint64_t after = parts.table.size() - bytes;
  parts.table = parts.table.first(bytes);
  Opened opened = one_filter(source, format, std::make_shared<ClassicFilter<Scheme>>(std::move(parts), scheme));
  if (after != 0) opened.notes.push_back(std::to_string(after) + " bytes after the bits");
  return opened;
}

// Sets the bits of all keys. Returns how many keys set a bit that was 0.
// REQUIRES: 1 <= bits, the table is as large as they need, 1 <= probes
template <class Scheme>
std::uint64_t fill_classic(std::span<std::byte> table, std::uint64_t bits, std::uint64_t probes,
                           std::span<const Bytes> keys, Scheme scheme = {}) {
  using Positions = BloomLayout<typename Scheme::Plan>;
  assert(bits >= 1 && bits <= std::uint64_t{8} * table.size() && probes >= 1);
  const BloomShape shape{.bits = bits, .probes = static_cast<std::uint32_t>(probes)};
  std::vector<typename Scheme::word> digests;
  std::uint64_t added = 0;
  for (std::size_t from = 0; from < keys.size(); from += kBatch) {
    digests.clear();
    for (const Bytes key : keys.subspan(from, std::min(kBatch, keys.size() - from))) {
      if constexpr (requires { Scheme::ignores(key); }) {
        if (Scheme::ignores(key)) continue;
      }
      digests.push_back(scheme(key));
    }
    if (detail::far_away(table.size())) {
      for (const auto& digest : digests) Positions::prefetch(shape, table.data(), digest);
    }
    for (const auto& digest : digests) added += Positions::insert(shape, table.data(), digest) == Inserted::added;
  }
  return added;
}

// A larger table can only come from a mistake in the parameters.
inline constexpr std::uint64_t kMaxBits = std::min(std::uint64_t{1} << 46, kMaxMemory / 2 * 8);

// `bits` as a whole number, or why there can be no such table.
inline Result<std::uint64_t> whole_bits(std::string_view format, double bits, std::uint64_t max = kMaxBits) {
  if (!(bits >= 1)) return bad(Errc::bad_parameter, format, "no bits: the false-positive rate is too high");
  if (bits > static_cast<double>(std::min(max, kMaxBits)))
    return bad(Errc::bad_parameter, format, bits, " bits are too many");
  return static_cast<std::uint64_t>(bits);
}

// -n ln p / ln(2)^2; some systems round it up, some down.
inline double optimal_bits(double keys, double fpr) { return -keys * std::log(fpr) / (std::log(2.0) * std::log(2.0)); }

}  // namespace perhaps::format
