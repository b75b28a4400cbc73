// lab: the plain `k, m, bits` file of a public database lab.
//
//   u32 LE probes | u64 LE bits | ceil(bits / 8) bytes, least significant bit first; no checksum
//   h = splitmix64(fnv1a64(key)); position i = (low32(h) + i * high32(h)) mod bits
#include "format/classic.h"
#include "format/registry.h"
#include "hash/fnv.h"

namespace perhaps::format {
namespace lab {
namespace {

constexpr std::string_view kName = "lab";

struct LabScheme {
  using word = StartAndStep;
  using Plan = DoubleHashing<>;
  static constexpr std::string_view hash = "fnv1a-64, splitmix64";
  word operator()(Bytes key) const noexcept {
    const std::uint64_t h = splitmix64(fnv1a_64(key));
    return {h & 0xffffffff, h >> 32};
  }
};

constexpr Param kParams[] = {
    {"n", "keys it is sized for", Param::Type::count, "", 1, 1e12, {}, Param::Means::keys},
    {"fpr", "false-positive rate", Param::Type::real, "0.01", 1e-12, 0.999, {}, Param::Means::fpr},
};

ClassicParts parts_of(Bytes bytes) {
  Reader in(bytes);
  ClassicParts parts{.format = kName};
  parts.probes = in.le<std::uint32_t>();
  parts.bits = in.le<std::uint64_t>();
  parts.end_header(in, 12);
  const std::uint64_t expected = table_bytes(parts.bits);
  parts.require(parts.table.size() == expected, Errc::bad_parameter, parts.bits, " bits are ", expected,
                " bytes, and there are ", parts.table.size());
  parts.require(parts.probes != 0, Errc::bad_parameter, "0 probes");
  return parts;
}

Result<Opened> open(const Source& source, const Params&) {
  return open_classic<LabScheme>(source, parts_of(source.bytes));
}

Result<Buffer> build(std::span<const Bytes> keys, const Params& params) {
  const auto n = static_cast<double>(params.count_or("n", std::max<std::uint64_t>(keys.size(), 1)));
  const auto bits = whole_bits(kName, std::ceil(optimal_bits(n, params.real("fpr"))));
  if (!bits) return bits.error();
  const double probes = std::clamp(std::round(static_cast<double>(*bits) / n * std::log(2.0)), 1.0, 30.0);
  Writer out;
  out.le(static_cast<std::uint32_t>(probes)).le(*bits);
  fill_classic<LabScheme>(out.zeros(table_bytes(*bits)), *bits, static_cast<std::uint64_t>(probes), keys);
  return std::move(out).done();
}

constexpr Codec kCodec{
    kName,  "k, m and bits, as a public database lab writes them", kParams, sniff_classic<parts_of>, open, build,
    nullptr};

}  // namespace
}  // namespace lab

constinit const Codec kLab = lab::kCodec;

}  // namespace perhaps::format
