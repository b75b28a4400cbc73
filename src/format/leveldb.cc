// leveldb: one filter, as LevelDB's built-in Bloom policy makes it (leveldb.BuiltinBloomFilter2). leveldb.h shows the
// bytes.
#include "format/leveldb.h"

#include "format/registry.h"
#include "perhaps/format/leveldb.h"

namespace perhaps::format {
namespace {

constexpr std::string_view kName = LevelDb::kName;

constexpr Param kParams[] = {
    {"bits_per_key", "bits per key", Param::Type::count, "10", 1, 1000, {}, Param::Means::bits_per_key},
};

// A plausible probe count is weak evidence, so the content can only rule the format out.
Sniffed sniff(const Source& source) {
  if (!ends_with(source.file_name, ".leveldb") || source.bytes.size() < 9) return Sniffed::no;
  const auto probes = std::to_integer<std::uint64_t>(source.bytes.back());
  return probes >= 1 && probes <= LevelDb::kMaxProbes ? Sniffed::by_name : Sniffed::no;
}

Result<Opened> open(const Source& source, const Params&) {
  if (source.bytes.size() < 2) {
    return damaged(source, kName, bad(Errc::truncated, kName, source.bytes.size(), " bytes, needs at least 2"));
  }
  const Bytes table = source.bytes.first(source.bytes.size() - 1);
  const auto probes = std::to_integer<std::uint64_t>(source.bytes.back());
  if (probes > LevelDb::kMaxProbes) {
    return damaged(source, kName,
                   bad(Errc::bad_parameter, kName, "reserved encoding (", probes, " probes, more than ",
                       LevelDb::kMaxProbes, ")"));
  }
  return open_classic<LevelDbScheme>(
      source, {.format = kName, .table = table, .bits = std::uint64_t{8} * table.size(), .probes = probes});
}

Result<Buffer> build(std::span<const Bytes> keys, const Params& params) {
  return leveldb::build(keys, params.count("bits_per_key"));
}

}  // namespace

std::vector<std::byte> leveldb::build(std::span<const Bytes> keys, std::uint64_t bits_per_key) {
  Writer out;
  LevelDb::append(out, keys, bits_per_key);
  return std::move(out).done();
}

bool leveldb::may_contain(Bytes filter, Bytes key) noexcept { return LevelDb::may_contain(filter, leveldb_hash(key)); }

constinit const Codec kLevelDb{kName,  "Bloom filter of one window of a LevelDB table", kParams, sniff, open, build,
                               nullptr};

}  // namespace perhaps::format
