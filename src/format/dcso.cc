// dcso: the file of DCSO's `bloom` tool and library, version 1. The tool can gzip it; these are the bytes inside.
//
//   u64 LE flags (low byte 1) | u64 LE capacity n | double LE p | u64 LE probes | u64 LE bits | u64 LE keys added
//   ceil(bits / 64) x u64 LE | the user's own data, up to the end; no checksum
//   h = fnv1-64(key) mod P; then for each position h = (h * G mod 2^64) mod P, position = h mod bits
//   P = 18446744073709551557, the largest prime below 2^64; G = 18446744073709550147

#include "format/classic.h"
#include "format/registry.h"
#include "hash/fnv.h"

namespace perhaps::format {
namespace dcso {
namespace {

constexpr std::string_view kName = "dcso";

struct DcsoScheme {
  static constexpr std::uint64_t kPrime = 18446744073709551557u;
  static constexpr std::uint64_t kFactor = 18446744073709550147u;
  using word = std::uint64_t;
  static constexpr std::string_view hash = "fnv1-64";
  word operator()(Bytes key) const noexcept { return fnv1_64(key) % kPrime; }

  class Plan {
   public:
    using word = std::uint64_t;
    Plan(word h, std::uint64_t bits) noexcept : h_(h), bits_(bits) {}
    std::uint64_t next() noexcept {
      h_ = h_ * kFactor % kPrime;
      return h_ % bits_;
    }

   private:
    std::uint64_t h_;
    std::uint64_t bits_;
  };
};

constexpr Param kParams[] = {
    {"n", "keys it is sized for", Param::Type::count, "", 1, 1e12, {}, Param::Means::keys},
    {"p", "false-positive rate", Param::Type::real, "0.01", 1e-300, 0.999, {}, Param::Means::fpr},
};

struct Head : ClassicParts {
  std::uint64_t flags;
  double p = 0;
};
Head head_of(Bytes bytes) {
  Reader in(bytes);
  Head head{{.format = kName, .unit = 64}, in.le<std::uint64_t>()};
  head.capacity = in.le<std::uint64_t>();
  head.p = detail::bit_cast<double>(in.le<std::uint64_t>());
  head.probes = in.le<std::uint64_t>();
  head.bits = in.le<std::uint64_t>();
  head.keys = in.le<std::uint64_t>();
  head.end_header(in, 48);
  head.require((head.flags & 0xff) == 1, Errc::bad_version, "version ", head.flags & 0xff, " is not known");
  return head;
}

// Anything may follow the table, so the length says little; but bits and probes always follow from n and p.
Sniffed sniff(const Source& source) {
  const Head head = head_of(source.bytes);
  if (head.wrong || head.flags != 1 || !(head.p > 0 && head.p < 1)) return Sniffed::no;
  const auto n = static_cast<double>(*head.capacity);
  const auto bits = static_cast<double>(head.bits);
  const bool agrees = head.bits != 0 && std::abs(bits - std::floor(optimal_bits(n, head.p))) <= 1 &&
                      static_cast<double>(head.probes) == std::ceil(std::log(2.0) * bits / n) &&
                      head.probes <= kMaxProbes && head.table.size() >= table_bytes(head.bits, 64);
  return agrees ? Sniffed::certain : Sniffed::no;
}

Result<Opened> open(const Source& source, const Params&) {
  return open_classic<DcsoScheme>(source, head_of(source.bytes));
}

Result<Buffer> build(std::span<const Bytes> keys, const Params& params) {
  const std::uint64_t n = params.count_or("n", std::max<std::uint64_t>(keys.size(), 1));
  const auto bits = whole_bits(kName, std::floor(optimal_bits(static_cast<double>(n), params.real("p"))));
  if (!bits) return bits.error();
  const double probes = std::ceil(std::log(2.0) * static_cast<double>(*bits) / static_cast<double>(n));
  const auto k = static_cast<std::uint64_t>(probes);
  Buffer table(memory_size(table_bytes(*bits, 64)));
  const std::uint64_t added = fill_classic<DcsoScheme>(table, *bits, k, keys);
  Writer out;
  out.le(std::uint64_t{1})
      .le(n)
      .le(detail::bit_cast<std::uint64_t>(params.real("p")))
      .le(k)
      .le(*bits)
      .le(added)
      .add(table);
  return std::move(out).done();
}

constexpr Codec kCodec{kName, "file of DCSO's bloom tool", kParams, sniff, open, build, nullptr};

}  // namespace
}  // namespace dcso

constinit const Codec kDcso = dcso::kCodec;

}  // namespace perhaps::format
