// leveldb: one filter as LevelDB's built-in Bloom policy makes it (leveldb.BuiltinBloomFilter2). The bytes are drawn in
// leveldb.h.
#include "format/leveldb.h"

#include "format/registry.h"

namespace perhaps::format {
namespace {

constexpr std::string_view kName = LevelDb::kName;

constexpr Param kParams[] = {
    {"bits_per_key", "bits a key", Param::Type::count, "10", 1, 1000, {}, Param::Means::bits_per_key},
};

// One byte of 256 tells nothing, so the content can only contradict.
Sniffed sniff(const Source& source) noexcept {
  if (!ends_with(source.file_name, ".leveldb") || source.bytes.size() < 9) return Sniffed::no;
  const auto probes = std::to_integer<std::uint64_t>(source.bytes.back());
  return probes >= 1 && probes <= LevelDb::kMostProbes ? Sniffed::by_name : Sniffed::no;
}

Result<Opened> open(const Source& source, const Params&) {
  if (source.bytes.size() < 2) {
    return damaged(source, kName, bad(Errc::truncated, kName, "at least 2 bytes, and there are ", source.bytes.size()));
  }
  const Bytes table = source.bytes.first(source.bytes.size() - 1);
  const auto probes = std::to_integer<std::uint64_t>(source.bytes.back());
  if (probes > LevelDb::kMostProbes) {
    return damaged(source, kName,
                   bad(Errc::bad_parameter, kName, "reserved encoding (", probes, " probes, more than ",
                       LevelDb::kMostProbes, ")"));
  }
  return open_classic<LevelDbScheme>(source,
                                     {.format = kName, .table = table, .bits = 8 * table.size(), .probes = probes});
}

Result<Buffer> build(std::span<const Bytes> keys, const Params& params) {
  Writer out;
  LevelDb::append(out, keys, params.count("bits_per_key"));
  return std::move(out).done();
}

}  // namespace

constinit const Codec kLevelDb{kName, "Bloom filter of LevelDB, of one window", kParams, sniff, open, build, nullptr};

}  // namespace perhaps::format
