// lab: the plain `k, m, bits` file of a public database lab.
//
//   u32 LE probes | u64 LE bits | ceil(bits / 8) bytes, least significant bit first; no checksum
//   h = splitmix64(fnv1a64(key)); position i = (low32(h) + i * high32(h)) mod bits
#include "format/classic.h"
#include "format/registry.h"
#include "hash/fnv.h"

namespace perhaps::format {
namespace {

constexpr std::string_view kName = "lab";
constexpr std::uint64_t kHeader = 12;

struct LabScheme {
  using word = std::uint64_t;
  static constexpr std::string_view hash = "fnv1a-64, splitmix64";
  word operator()(Bytes key) const noexcept { return splitmix64(fnv1a_64(key)); }

  class Plan {
   public:
    using word = std::uint64_t;
    Plan(word h, std::uint64_t bits) noexcept : at_(h & 0xffffffff), step_(h >> 32), bits_(bits) {}
    std::uint64_t next() noexcept { return std::exchange(at_, at_ + step_) % bits_; }

   private:
    std::uint64_t at_;
    std::uint64_t step_;
    std::uint64_t bits_;
  };
};

constexpr Param kParams[] = {
    {"n", "keys it is sized for", Param::Type::count, "", 1, 1e12, {}, Param::Means::keys},
    {"fpr", "false-positive rate", Param::Type::real, "0.01", 1e-12, 0.999, {}, Param::Means::fpr},
};

Sniffed sniff(const Source& source) noexcept {
  Reader in(source.bytes);
  const auto probes = in.le<std::uint32_t>();
  const auto bits = in.le<std::uint64_t>();
  const bool agrees =
      !in.is_short() && probes >= 1 && probes <= 30 && bits >= 1 && in.rest().size() == bits / 8 + (bits % 8 != 0);
  return agrees ? Sniffed::certain : Sniffed::no;
}

Result<Opened> open(const Source& source, const Params&) {
  Reader in(source.bytes);
  const auto probes = in.le<std::uint32_t>();
  const auto bits = in.le<std::uint64_t>();
  const std::uint64_t bytes = bits / 8 + (bits % 8 != 0);
  if (in.is_short()) {
    return damaged(source, kName,
                   bad(Errc::truncated, kName, "a header of ", kHeader, " bytes, and there are ", source.bytes.size()));
  }
  if (probes == 0) return damaged(source, kName, bad(Errc::bad_parameter, kName, "0 probes"));
  if (in.rest().size() != bytes) {
    return damaged(
        source, kName,
        bad(Errc::bad_parameter, kName, bits, " bits are ", bytes, " bytes, and there are ", in.rest().size()));
  }
  return open_classic<LabScheme>(source, {.format = kName, .table = in.rest(), .bits = bits, .probes = probes});
}

Result<Buffer> build(std::span<const Bytes> keys, const Params& params) {
  const auto n = static_cast<double>(params.count_or("n", std::max<std::uint64_t>(keys.size(), 1)));
  const double bits = optimal_bits(n, params.real("fpr"));
  if (bits > static_cast<double>(kMostBits)) return bad(Errc::bad_parameter, kName, bits, " bits are too many");
  const auto probes = static_cast<std::uint32_t>(std::clamp(std::round(bits / n * std::log(2.0)), 1.0, 30.0));
  const auto m = static_cast<std::uint64_t>(bits);
  Writer out;
  out.le(probes).le(m);
  fill_classic<LabScheme>(out.zeros(m / 8 + (m % 8 != 0)), m, probes, keys);
  return std::move(out).done();
}

}  // namespace

constinit const Codec kLab{kName,  "k, m and bits, as a public database lab writes them", kParams, sniff, open, build,
                           nullptr};

}  // namespace perhaps::format
