// What the classic Bloom filters of all systems have in common: everything but hash, positions, bit order and header.
//
// A scheme is a small struct that says the first three:
//
//   struct Scheme {
//     using word = ..;                                    // what the hash makes of a key
//     static constexpr std::string_view hash = "xxh64";   // for people
//     word operator()(Bytes key) const noexcept;          // may hold a seed
//     struct Plan {                                       // digest -> positions, as BloomLayout's (bloom.h)
//       Plan(word digest, std::uint64_t bits) noexcept;
//       std::uint64_t next() noexcept;                    // always less than `bits`, rounded up to whole bytes
//     };
//   };
//
// Positions count from the least significant bit of byte 0; another bit order is a Plan that permutes them, and needs
// `bits` to be a multiple of what it permutes.
#pragma once
#include <array>
#include <cmath>

#include "format/codec.h"
#include "perhaps/bloom.h"

namespace perhaps::format {

// A key costs one probe each: more than these are no filter but an attack on whoever asks it.
inline constexpr std::uint64_t kMostProbes = 1024;

// What a codec found in the header.
struct ClassicParts {
  std::string_view format;
  Bytes table;
  std::uint64_t bits;    // the modulus
  std::uint64_t probes;  // 0: every key is *perhaps* in it
  std::optional<std::uint64_t> keys{};
  std::optional<std::uint64_t> capacity{};
  std::vector<std::pair<std::string, std::string>> more{};
};

template <class Scheme>
class ClassicFilter final : public AnyFilter {
  using Plan = typename Scheme::Plan;
  using word = typename Scheme::word;
  using Positions = BloomLayout<Plan>;

 public:
  // REQUIRES: 1 <= parts.bits <= 8 * parts.table.size(), parts.probes <= kMostProbes
  ClassicFilter(ClassicParts parts, Scheme scheme)
      : parts_(std::move(parts)),
        shape_{.bits = parts_.bits, .probes = static_cast<std::uint32_t>(parts_.probes)},
        scheme_(scheme) {
    assert(parts_.bits >= 1 && parts_.bits <= 8 * parts_.table.size() && parts_.probes <= kMostProbes);
  }

  std::uint64_t may_contain(std::span<const Bytes> keys) const noexcept override {
    assert(keys.size() <= kBatch);
    if (keys.empty()) return 0;
    if (shape_.probes == 0) return ~std::uint64_t{0} >> (kBatch - keys.size());
    std::array<word, kBatch> digests;
    for (std::size_t i = 0; i < keys.size(); ++i) digests[i] = scheme_(keys[i]);
    std::uint64_t answers = 0;
    Positions::query(shape_, parts_.table.data(), digests.data(), keys.size(), &answers,
                     detail::far_away(parts_.table.size()));
    return answers;
  }
  void may_contain(std::span<const Bytes> keys, std::span<std::uint64_t> answers) const noexcept override {
    for (std::size_t from = 0; from < keys.size(); from += kBatch)
      answers[from / kBatch] = may_contain(keys.subspan(from, std::min(kBatch, keys.size() - from)));
  }

  std::uint64_t byte_size() const noexcept override { return parts_.table.size(); }

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
    d.fill = fill_of(parts_.table, shape_.bits);
    if (shape_.probes != 0 && d.fill < 1)
      d.keys_estimated = -std::log1p(-d.fill) * static_cast<double>(shape_.bits) / probes;
    const double formula = std::pow(d.fill, probes);
    d.fpr = predicted_fpr(*this, formula);
    if (d.capacity) {
      const double fill = -std::expm1(-probes * static_cast<double>(*d.capacity) / static_cast<double>(shape_.bits));
      d.fpr_at_capacity = std::pow(fill, probes) * (formula > 0 ? std::max(1.0, d.fpr / formula) : 1.0);
    }
    d.more = parts_.more;
    if (d.fpr > 1.1 * formula)
      d.more.emplace_back("formula", percent_text(formula) + ", which these probes do not reach");
    return d;
  }

 private:
  ClassicParts parts_;
  BloomShape shape_;
  [[no_unique_address]] Scheme scheme_;
};

// The last step of open(): refuses what cannot be probed.
template <class Scheme>
Result<Opened> open_classic(const Source& source, ClassicParts parts, Scheme scheme = {}) {
  const std::string_view format = parts.format;
  if (parts.bits == 0) return damaged(source, format, bad(Errc::bad_parameter, format, "0 bits"));
  const std::uint64_t bytes = parts.bits / 8 + (parts.bits % 8 != 0);
  if (bytes > parts.table.size()) {
    return damaged(source, format,
                   bad(Errc::truncated, format, parts.bits, " bits promised, room for ", 8 * parts.table.size()));
  }
  if (parts.probes > kMostProbes) {
    return damaged(source, format, bad(Errc::bad_parameter, format, parts.probes, " probes, more than any filter has"));
  }
  if (parts.probes == 0 && source.on_damage == OnDamage::error)
    return bad(Errc::bad_parameter, format, "0 probes: every key would be perhaps in it");
  parts.table = parts.table.first(bytes);
  return one_filter(source, format, std::make_shared<ClassicFilter<Scheme>>(std::move(parts), scheme));
}

// Sets the bits of all keys.  REQUIRES: 1 <= bits <= 8 * table.size(), 1 <= probes
template <class Scheme>
void fill_classic(std::span<std::byte> table, std::uint64_t bits, std::uint64_t probes, std::span<const Bytes> keys,
                  Scheme scheme = {}) {
  using Positions = BloomLayout<typename Scheme::Plan>;
  assert(bits >= 1 && bits <= 8 * table.size() && probes >= 1);
  const BloomShape shape{.bits = bits, .probes = static_cast<std::uint32_t>(probes)};
  std::array<typename Scheme::word, kBatch> digests;
  for (std::size_t from = 0; from < keys.size(); from += kBatch) {
    const auto batch = keys.subspan(from, std::min(kBatch, keys.size() - from));
    for (std::size_t i = 0; i < batch.size(); ++i) digests[i] = scheme(batch[i]);
    Positions::insert_many(shape, table.data(), digests.data(), batch.size(), detail::far_away(table.size()));
  }
}

// Tables larger than this are a mistake in the parameters, not a wish.
inline constexpr std::uint64_t kMostBits = std::uint64_t{1} << 46;

// As most systems size it: m = ceil(-n ln p / ln(2)^2).
inline double optimal_bits(double keys, double fpr) {
  return std::ceil(-keys * std::log(fpr) / (std::log(2.0) * std::log(2.0)));
}

}  // namespace perhaps::format
