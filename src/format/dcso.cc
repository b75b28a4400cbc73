// dcso: the file of DCSO's `bloom` tool and library, version 1. The tool can gzip it; these are the bytes inside.
//
//   u64 LE flags (low byte 1) | u64 LE capacity n | double LE p | u64 LE probes | u64 LE bits | u64 LE keys added
//   ceil(bits / 64) x u64 LE | data of the user's own, to the end; no checksum
//   h = fnv1-64(key) mod P; then for each position h = (h * G mod 2^64) mod P, position = h mod bits
//   P = 18446744073709551557, the largest prime below 2^64; G = 18446744073709550147
#include <bit>

#include "format/classic.h"
#include "format/registry.h"
#include "hash/fnv.h"

namespace perhaps::format {
namespace {

constexpr std::string_view kName = "dcso";
constexpr std::uint64_t kHeader = 48;

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

struct Head {
  std::uint64_t flags;
  double p;
  ClassicParts parts;
  bool is_short;
};
Head head_of(Bytes bytes) {
  Reader in(bytes);
  Head head{};
  head.flags = in.le<std::uint64_t>();
  head.parts = {.format = kName, .table = {}, .bits = 0, .probes = 0, .unit = 64};
  head.parts.capacity = in.le<std::uint64_t>();
  head.p = std::bit_cast<double>(in.le<std::uint64_t>());
  head.parts.probes = in.le<std::uint64_t>();
  head.parts.bits = in.le<std::uint64_t>();
  head.parts.keys = in.le<std::uint64_t>();
  head.parts.table = in.rest();
  head.is_short = in.is_short();
  return head;
}

// What follows the table is free, so its length says little; flags, rate and numbers together say enough.
Sniffed sniff(const Source& source) noexcept {
  const Head head = head_of(source.bytes);
  const bool agrees = !head.is_short && head.flags == 1 && head.p > 0 && head.p < 1 && head.parts.probes >= 1 &&
                      head.parts.probes <= kMostProbes && head.parts.bits != 0 &&
                      head.parts.table.size() >= table_bytes(head.parts.bits, 64);
  return agrees ? Sniffed::certain : Sniffed::no;
}

Result<Opened> open(const Source& source, const Params&) {
  Head head = head_of(source.bytes);
  if (source.bytes.size() >= 8 && (head.flags & 0xff) != 1)
    return damaged(source, kName, bad(Errc::bad_version, kName, "version ", head.flags & 0xff, " is not known"));
  if (head.is_short) return short_header(source, kName, kHeader);
  return open_classic<DcsoScheme>(source, std::move(head.parts));
}

Result<Buffer> build(std::span<const Bytes> keys, const Params& params) {
  const std::uint64_t n = params.count_or("n", std::max<std::uint64_t>(keys.size(), 1));
  const auto bits = whole_bits(kName, std::floor(optimal_bits(static_cast<double>(n), params.real("p"))));
  if (!bits) return bits.error();
  const double probes = std::ceil(std::log(2.0) * static_cast<double>(*bits) / static_cast<double>(n));
  const auto k = static_cast<std::uint64_t>(probes);
  Buffer table(table_bytes(*bits, 64));
  const std::uint64_t added = fill_classic<DcsoScheme>(table, *bits, k, keys);
  Writer out;
  out.le(std::uint64_t{1})
      .le(n)
      .le(std::bit_cast<std::uint64_t>(params.real("p")))
      .le(k)
      .le(*bits)
      .le(added)
      .add(table);
  return std::move(out).done();
}

}  // namespace

constinit const Codec kDcso{kName, "file of DCSO's bloom tool", kParams, sniff, open, build, nullptr};

}  // namespace perhaps::format
