// nori: the Bloom filter of nori-sstable (BloomFilter::encode).
//
//   u32 LE probes | u64 LE bits | ceil(bits / 8) bytes, least significant bit first; no checksum, extra bytes ignored
//   position i = (xxh64(key, 0) + i * xxh64(key, 1)) mod bits; bits is a power of two in files of today's code
#include "format/classic.h"
#include "format/registry.h"
#include "hash/xxh64.h"

namespace perhaps::format {
namespace {

constexpr std::string_view kName = "nori";

struct NoriScheme {
  using word = StartAndStep;
  using Plan = DoubleHashing<>;
  static constexpr std::string_view hash = "xxh64, seeds 0 and 1";
  word operator()(Bytes key) const noexcept { return {xxh64(key, 0), xxh64(key, 1)}; }
};

constexpr Param kParams[] = {
    {"estimated_keys", "keys it is sized for", Param::Type::count, "", 0, 1e12, {}, Param::Means::keys},
    {"bits_per_key", "bits a key", Param::Type::count, "10", 1, 1000, {}, Param::Means::bits_per_key},
};

struct Head {
  std::uint32_t probes;
  std::uint64_t bits;
  Bytes rest;
  bool is_short;
};
Head head_of(Bytes bytes) noexcept {
  Reader in(bytes);
  Head head{};
  head.probes = in.le<std::uint32_t>();
  head.bits = in.le<std::uint64_t>();
  head.rest = in.rest();
  head.is_short = in.is_short();
  return head;
}

Sniffed sniff(const Source& source) noexcept {
  const Head head = head_of(source.bytes);
  const bool agrees = !head.is_short && head.probes >= 1 && head.probes <= kMostProbes &&
                      std::has_single_bit(head.bits) && head.rest.size() == table_bytes(head.bits);
  return agrees ? Sniffed::certain : Sniffed::no;
}

Result<Opened> open(const Source& source, const Params&) {
  const Head head = head_of(source.bytes);
  if (head.is_short) return short_header(source, kName, 12);
  if (head.bits == 0) return one_filter(source, kName, always(false, kName, "empty"));
  return open_classic<NoriScheme>(source,
                                  {.format = kName, .table = head.rest, .bits = head.bits, .probes = head.probes});
}

Result<Buffer> build(std::span<const Bytes> keys, const Params& params) {
  const std::uint64_t n = params.count_or("estimated_keys", keys.size());
  const std::uint64_t wanted = n * params.count("bits_per_key");
  if (wanted > kMostBits) return bad(Errc::bad_parameter, kName, wanted, " bits are too many");
  const std::uint64_t bits = wanted == 0 ? 0 : std::bit_ceil(wanted);
  const double probes = std::ceil(static_cast<double>(params.count("bits_per_key")) * 0.693);
  Writer out;
  out.le(static_cast<std::uint32_t>(probes)).le(bits);
  const std::span<std::byte> table = out.zeros(table_bytes(bits));
  if (bits != 0) fill_classic<NoriScheme>(table, bits, static_cast<std::uint64_t>(probes), keys);
  return std::move(out).done();
}

}  // namespace

constinit const Codec kNori{kName, "Bloom filter of nori-sstable", kParams, sniff, open, build, nullptr};

}  // namespace perhaps::format
