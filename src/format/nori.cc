// nori: the Bloom filter of nori-sstable (BloomFilter::encode), alone or in its table.
//
//   u32 LE probes | u64 LE bits | ceil(bits / 8) bytes, least significant bit first; no checksum, extra bytes ignored
//   position i = (xxh64(key, 0) + i * xxh64(key, 1)) mod bits; current code writes only powers of two for bits
//   table: blocks | index | this filter | 64 bytes: u64 LE index offset, index size, filter offset, filter size .. |
//     at 45 u8 version (2: a quotient filter for each block instead of this filter) .. | at 52 "NORISSTL" |
//     at 60 u32 LE CRC-32C of the 60 bytes before it
#include <cstring>

#include "format/classic.h"
#include "format/registry.h"
#include "hash/crc32.h"
#include "hash/xxh64.h"

namespace perhaps::format {
namespace nori {
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
    {"bits_per_key", "bits per key", Param::Type::count, "10", 0, 1000, {}, Param::Means::bits_per_key},
};

ClassicParts parts_of(Bytes bytes) {
  Reader in(bytes);
  ClassicParts parts{.format = kName};
  parts.probes = in.le<std::uint32_t>();
  parts.bits = in.le<std::uint64_t>();
  parts.end_header(in, 12);
  return parts;
}

Sniffed sniff(const Source& source) {
  const ClassicParts parts = parts_of(source.bytes);
  if (std::has_single_bit(parts.bits)) return sniff_classic<parts_of>(source);
  const bool is_empty = !parts.wrong && parts.bits == 0 && parts.table.empty();
  return is_empty && parts.probes >= 1 && parts.probes <= kMaxProbes ? Sniffed::certain : Sniffed::no;
}

Result<Opened> open(const Source& source, const Params&) {
  ClassicParts parts = parts_of(source.bytes);
  if (parts.bits == 0 && !parts.wrong) return one_filter(source, kName, always(false, kName, "empty"));
  return open_classic<NoriScheme>(source, std::move(parts));
}

Result<Buffer> build(std::span<const Bytes> keys, const Params& params) {
  const std::uint64_t n = params.count_or("estimated_keys", keys.size());
  const std::uint64_t wanted = n * params.count("bits_per_key");
  if (wanted > kMaxBits) return bad(Errc::bad_parameter, kName, wanted, " bits are too many");
  const std::uint64_t bits = wanted == 0 ? 0 : std::bit_ceil(wanted);
  const double probes = std::max(1.0, std::ceil(static_cast<double>(params.count("bits_per_key")) * 0.693));
  Writer out;
  out.le(static_cast<std::uint32_t>(probes)).le(bits);
  const std::span<std::byte> table = out.zeros(table_bytes(bits));
  if (bits != 0) fill_classic<NoriScheme>(table, bits, static_cast<std::uint64_t>(probes), keys);
  return std::move(out).done();
}

constexpr std::string_view kTable = "nori-sst";
constexpr std::uint64_t kFooter = 64;

struct Footer {
  std::uint64_t offset;
  std::uint64_t size;
  std::uint8_t version;
  bool is_nori;
  bool is_whole;
};
Footer footer_of(Bytes table) noexcept {
  if (table.size() < kFooter) return {};
  const Bytes raw = table.last(kFooter);
  Reader in(raw.subspan(16));
  Footer footer{};
  footer.offset = in.le<std::uint64_t>();
  footer.size = in.le<std::uint64_t>();
  footer.version = std::to_integer<std::uint8_t>(raw[45]);
  footer.is_nori = std::memcmp(raw.data() + 52, "NORISSTL", 8) == 0;
  footer.is_whole = Reader(raw.last(4)).le<std::uint32_t>() == crc32c(raw.first(60));
  return footer;
}

Sniffed sniff_table(const Source& source) { return footer_of(source.bytes).is_nori ? Sniffed::certain : Sniffed::no; }

Result<Opened> open_table(const Source& source, const Params&) {
  const Footer footer = footer_of(source.bytes);
  if (!footer.is_nori) return damaged(source, kTable, bad(Errc::bad_magic, kTable, "no footer"));
  if (!footer.is_whole) return damaged(source, kTable, bad(Errc::bad_checksum, kTable, "the footer is damaged"));
  if (footer.version > 1)
    return damaged(source, kTable, bad(Errc::unsupported, kTable, "version ", footer.version, " has no Bloom filter"));
  const std::uint64_t room = source.bytes.size() - kFooter;
  if (footer.offset > room || footer.size > room - footer.offset) {
    return damaged(source, kTable,
                   bad(Errc::truncated, kTable, "the filter, ", footer.size, " bytes at ", footer.offset,
                       ", ends after byte ", room));
  }
  return open_part(source, kTable, kNori, footer.offset, footer.size);
}

constexpr Codec kCodec{kName, "Bloom filter of nori-sstable", kParams, sniff, open, build, nullptr};
constexpr Codec kTableCodec{kTable, "table of nori-sstable", {}, sniff_table, open_table, nullptr, nullptr};

}  // namespace
}  // namespace nori

constinit const Codec kNori = nori::kCodec;
constinit const Codec kNoriTable = nori::kTableCodec;

}  // namespace perhaps::format
