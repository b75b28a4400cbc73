// mini_lsm: the Bloom filter of the mini-lsm tutorial (Bloom::encode), alone or in its sstable.
//
//   bits | u8 probes | u32 BE CRC-32 of everything before it (no CRC before 2024-01-28)
//   h = h0 = FarmHash Fingerprint32; positions as in LevelDB: h mod bits, then h += rotl(h0, 15)
//   sstable: blocks | u32 BE offset .. | this filter | u32 BE its offset
#include "format/leveldb.h"
#include "format/registry.h"
#include "hash/crc32.h"
#include "hash/farmhash.h"

namespace perhaps::format {
namespace mini_lsm {
namespace {

constexpr std::string_view kName = "mini_lsm";
constexpr std::string_view kTable = "mini_lsm-sst";
// From 2^32 bits on, mini-lsm's writer and reader compute the remainder differently.
constexpr std::uint64_t kMaxMiniBits = 0xffffffff;

struct MiniLsmScheme {
  using word = std::uint32_t;
  using Plan = LevelDbPlan;
  static constexpr std::string_view hash = "farmhash fingerprint32";
  word operator()(Bytes key) const noexcept { return farmhash_fingerprint32(key); }
};

constexpr Param kParams[] = {
    {"bits_per_key",
     "bits per key, instead of a rate",
     Param::Type::count,
     "",
     0,
     1000,
     {},
     Param::Means::bits_per_key},
    {"false_positive_rate", "false-positive rate", Param::Type::real, "0.01", 1e-300, 0.999, {}, Param::Means::fpr},
    {"checksum", "false: as before 2024-01-28", Param::Type::flag, "true"},
};

bool has_good_checksum(Bytes blob) noexcept {
  if (blob.size() < 6 || blob.size() > kMaxMiniBits / 8 + 5) return false;
  const auto probes = std::to_integer<unsigned>(blob[blob.size() - 5]);
  return probes >= 1 && probes <= LevelDb::kMaxProbes &&
         Reader(blob.last(4)).be<std::uint32_t>() == crc32(blob.first(blob.size() - 4));
}

Sniffed sniff(const Source& source) { return has_good_checksum(source.bytes) ? Sniffed::certain : Sniffed::no; }

Result<Opened> open(const Source& source, const Params& params) {
  const bool checksum = params.flag("checksum");
  const std::uint64_t trailer = checksum ? 5 : 1;
  const std::uint64_t size = source.bytes.size();
  if (size <= trailer) {
    return damaged(source, kName, bad(Errc::truncated, kName, size, " bytes, needs at least ", trailer + 1));
  }
  const auto probes = std::to_integer<std::uint64_t>(source.bytes[size - trailer]);
  if (checksum && Reader(source.bytes.last(4)).be<std::uint32_t>() != crc32(source.bytes.first(size - 4)))
    return damaged(source, kName, bad(Errc::bad_checksum, kName, "the checksum is wrong"));
  if (probes > LevelDb::kMaxProbes)
    return damaged(source, kName, bad(Errc::bad_parameter, kName, "reserved encoding (", probes, " probes)"));
  const Bytes table = source.bytes.first(size - trailer);
  if (table.size() > kMaxMiniBits / 8)
    return damaged(source, kName,
                   bad(Errc::unsupported, kName, "2^32 bits or more, where its writer and its reader disagree"));
  return open_classic<MiniLsmScheme>(
      source, {.format = kName, .table = table, .bits = std::uint64_t{8} * table.size(), .probes = probes});
}

Result<Buffer> build(std::span<const Bytes> keys, const Params& params) {
  const auto n = static_cast<double>(keys.size());
  const double for_rate = n == 0 ? 0 : std::ceil(optimal_bits(n, params.real("false_positive_rate")) / n);
  const std::uint64_t bits_per_key = params.count_or("bits_per_key", static_cast<std::uint64_t>(for_rate));
  const std::uint64_t bytes = LevelDb::bytes(keys.size(), bits_per_key) - 1;
  if (bytes > kMaxMiniBits / 8) return bad(Errc::bad_parameter, kName, 8 * bytes, " bits are too many");
  const std::uint64_t probes = LevelDb::probes(bits_per_key);
  Buffer blob(memory_size(bytes + 1));
  fill_classic<MiniLsmScheme>(std::span(blob).first(bytes), 8 * bytes, probes, keys);
  blob.back() = static_cast<std::byte>(probes);
  Writer out;
  out.add(blob);
  if (params.flag("checksum")) out.be(crc32(blob));
  return std::move(out).done();
}

// The offset of the filter in an sstable, if the last four bytes are a possible one.
std::optional<std::uint64_t> offset_in(Bytes table) noexcept {
  if (table.size() < 4 + 6 + 4) return std::nullopt;
  const std::uint64_t offset = Reader(table.last(4)).be<std::uint32_t>();
  if (offset < 4 || offset > table.size() - 4) return std::nullopt;
  return offset;
}

Sniffed sniff_table(const Source& source) {
  const auto offset = offset_in(source.bytes);
  if (!offset) return Sniffed::no;
  const Bytes blob = source.bytes.subspan(*offset, source.bytes.size() - 4 - *offset);
  return has_good_checksum(blob) ? Sniffed::certain : Sniffed::no;
}

Result<Opened> open_table(const Source& source, const Params&) {
  const auto offset = offset_in(source.bytes);
  if (!offset)
    return damaged(source, kTable, bad(Errc::truncated, kTable, "the filter offset at the end is not in the file"));
  return open_part(source, kTable, kMiniLsm, *offset, source.bytes.size() - 4 - *offset);
}

constexpr Codec kCodec{kName, "Bloom filter of mini-lsm", kParams, sniff, open, build, nullptr};
constexpr Codec kTableCodec{kTable, "sstable of mini-lsm", {}, sniff_table, open_table, nullptr, nullptr};

}  // namespace
}  // namespace mini_lsm

constinit const Codec kMiniLsm = mini_lsm::kCodec;
constinit const Codec kMiniLsmTable = mini_lsm::kTableCodec;

}  // namespace perhaps::format
