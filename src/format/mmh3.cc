// mmh3: the filter that Python tutorials write with the package mmh3.
//
//   u32 LE bits | u32 LE probes | ceil(bits / 8) bytes, least significant bit first; no checksum
//   position i = murmur3_x86_32(key, seed i) as a signed number, mod bits as in Python: never negative
#include "format/classic.h"
#include "format/registry.h"
#include "hash/murmur3.h"

namespace perhaps::format {
namespace mmh3 {
namespace {

constexpr std::string_view kName = "mmh3";

struct Mmh3Scheme {
  using word = Bytes;  // every position needs its own hash of the key
  static constexpr std::string_view hash = "murmur3-x86-32, one seed per probe";
  word operator()(Bytes key) const noexcept { return key; }

  class Plan {
   public:
    using word = Bytes;
    Plan(Bytes key, std::uint64_t bits) noexcept : key_(key), bits_(static_cast<std::int64_t>(bits)) {}
    std::uint64_t next() noexcept {
      const std::int64_t rest = static_cast<std::int32_t>(murmur3_x86_32(key_, seed_++)) % bits_;
      return static_cast<std::uint64_t>(rest < 0 ? rest + bits_ : rest);
    }

   private:
    Bytes key_;
    std::int64_t bits_;
    std::uint32_t seed_ = 0;
  };
};

constexpr Param kParams[] = {
    {"n", "keys it is sized for", Param::Type::count, "", 1, 1e12, {}, Param::Means::keys},
    {"p", "false-positive rate", Param::Type::real, "0.01", 1e-300, 0.999, {}, Param::Means::fpr},
    {"m", "bits, instead of n and p", Param::Type::count, "", 1, 0xffffffff},
    {"k", "probes, instead of m and n", Param::Type::count, "", 1, kMaxProbes},
};

ClassicParts parts_of(Bytes bytes) {
  Reader in(bytes);
  ClassicParts parts{.format = kName};
  parts.bits = in.le<std::uint32_t>();
  parts.probes = in.le<std::uint32_t>();
  parts.end_header(in, 8);
  return parts;
}

Result<Opened> open(const Source& source, const Params&) {
  return open_classic<Mmh3Scheme>(source, parts_of(source.bytes));
}

Result<Buffer> build(std::span<const Bytes> keys, const Params& params) {
  const auto n = static_cast<double>(params.count_or("n", std::max<std::uint64_t>(keys.size(), 1)));
  const auto bits = params.given("m") ? Result<std::uint64_t>(params.count("m"))
                                      : whole_bits(kName, std::floor(optimal_bits(n, params.real("p"))), 0xffffffff);
  if (!bits) return bits.error();
  const double best = std::clamp(static_cast<double>(*bits) / n * std::log(2.0), 1.0, double{kMaxProbes});
  const std::uint64_t probes = params.count_or("k", static_cast<std::uint64_t>(best));
  Writer out;
  out.le(static_cast<std::uint32_t>(*bits)).le(static_cast<std::uint32_t>(probes));
  fill_classic<Mmh3Scheme>(out.zeros(table_bytes(*bits)), *bits, probes, keys);
  return std::move(out).done();
}

constexpr Codec kCodec{kName,  "what Python tutorials write with mmh3", kParams, sniff_classic<parts_of>, open, build,
                       nullptr};

}  // namespace
}  // namespace mmh3

constinit const Codec kMmh3 = mmh3::kCodec;

}  // namespace perhaps::format
