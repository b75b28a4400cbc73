// datasketches: the Bloom filter of Apache DataSketches (C++, Java, Python and Go share it).
//
//   u8 longs before the bits (3 if empty, else 4) | u8 version 1 | u8 family 21 | u8 flags (4 = empty)
//   u16 LE probes | u16 0 | u64 LE seed | u32 LE words | u32 0
//   if not empty: u64 LE number of set bits, or all ones = not counted | 8 * words bytes
//   h0 = xxh64(data, seed), h1 = xxh64(data, h0); position i = (h0 + (i + 1) * h1 >> 1) mod bits
//   empty data is never added and never matches
#include <bit>

#include "format/classic.h"
#include "format/registry.h"
#include "hash/xxh64.h"

namespace perhaps::format {
namespace datasketches {
namespace {

constexpr std::string_view kName = "datasketches";
constexpr std::uint64_t kNotCounted = ~std::uint64_t{0};
constexpr std::uint8_t kVersion = 1;
constexpr std::uint8_t kFamily = 21;
constexpr std::uint8_t kEmptyFlag = 4;

std::uint64_t ones_in(Bytes words) noexcept {
  std::uint64_t ones = 0;
  for (Reader in(words); !in.rest().empty();) ones += static_cast<std::uint64_t>(std::popcount(in.le<std::uint64_t>()));
  return ones;
}

struct DataSketchesScheme {
  using word = StartAndStep;
  using Plan = DoubleHashing<fold::drop_lowest>;
  static constexpr std::string_view hash = "xxh64, seeded by itself";
  std::uint64_t seed;
  word operator()(Bytes key) const noexcept {
    const std::uint64_t first = xxh64(key, seed);
    const std::uint64_t second = xxh64(key, first);
    return {first + second, second};
  }
  static bool ignores(Bytes key) noexcept { return key.empty(); }
};

constexpr Param kParams[] = {
    {"n", "keys it is sized for; 0: use bits and hashes", Param::Type::count, "", 0, 1e12, {}, Param::Means::keys},
    {"p", "false-positive rate", Param::Type::real, "0.01", 0, 0.999, {}, Param::Means::fpr},
    {"num_bits_requested", "size in bits, instead of n and p", Param::Type::count, "", 0, 2.7e11},
    {"num_hashes", "probes, instead of n and p", Param::Type::count, "", 1, kMaxProbes},
    {"seed", "of the hash", Param::Type::count, "9001"},
    {"bit_count_known", "whether the set bits were counted before writing", Param::Type::flag, "false"},
};

struct Head : ClassicParts {
  std::uint64_t seed = 0;
  bool is_empty = false;
};
Head head_of(Bytes bytes) {
  Reader in(bytes);
  Head head{{.format = kName, .unit = 64}};
  const auto longs = in.le<std::uint8_t>();
  const auto version = in.le<std::uint8_t>();
  const auto family = in.le<std::uint8_t>();
  const auto flags = in.le<std::uint8_t>();
  head.probes = in.le<std::uint16_t>();
  in.take(2);
  head.seed = in.le<std::uint64_t>();
  head.bits = std::uint64_t{64} * in.le<std::uint32_t>();
  in.take(4);
  head.is_empty = (flags & kEmptyFlag) != 0;
  const std::uint64_t set = head.is_empty ? kNotCounted : in.le<std::uint64_t>();
  head.end_header(in, head.is_empty ? 24 : 32);
  head.require(version == kVersion && family == kFamily, Errc::bad_version, "version ", version, " of family ", family,
               " is not known");
  head.require(longs == (head.is_empty ? 3 : 4), Errc::bad_parameter, longs, " longs and flags ", flags,
               " do not agree");
  const std::uint64_t size = table_bytes(head.bits, 64);
  if (set != kNotCounted && size <= head.table.size()) {
    const std::uint64_t counted = ones_in(head.table.first(size));
    head.require(counted == set, Errc::bad_checksum, set, " set bits in the header, but ", counted, " in the table");
  }
  return head;
}

Sniffed sniff(const Source& source) {
  const Head head = head_of(source.bytes);
  if (!head.is_empty) return sniff_classic<head_of>(source);
  return !head.wrong && head.bits != 0 ? Sniffed::certain : Sniffed::no;
}

Result<Opened> open(const Source& source, const Params&) {
  Head head = head_of(source.bytes);
  if (head.is_empty && !head.wrong) return one_filter(source, kName, always(false, kName, "empty"));
  head.more = {{"seed", std::to_string(head.seed)}};
  const DataSketchesScheme scheme{head.seed};
  return open_classic(source, std::move(head), scheme);
}

Result<Buffer> build(std::span<const Bytes> keys, const Params& params) {
  double wanted = 0;
  double probes = 0;
  if (params.count_or("num_bits_requested", 0) != 0 && params.count_or("n", 0) == 0) {
    wanted = static_cast<double>(params.count("num_bits_requested"));
    probes = static_cast<double>(params.count_or("num_hashes", 7));
  } else {
    const auto n = static_cast<double>(std::max<std::uint64_t>(params.count_or("n", keys.size()), 1));
    if (params.real("p") <= 0) return bad(Errc::bad_parameter, kName, "p must be more than 0");
    wanted = std::ceil(optimal_bits(n, params.real("p")));
    probes = std::ceil(-std::log(params.real("p")) / std::log(2.0));
  }
  const auto bits = whole_bits(kName, wanted, std::uint64_t{64} * 0xffffffff);
  if (!bits) return bits.error();
  const std::uint64_t bytes = table_bytes(*bits, 64);
  Buffer table(memory_size(bytes));
  fill_classic(std::span(table), 8 * bytes, static_cast<std::uint64_t>(probes), keys,
               DataSketchesScheme{params.count("seed")});
  const std::uint64_t set = ones_in(table);
  const bool is_empty = set == 0;
  Writer out;
  out.le(std::uint8_t{is_empty ? std::uint8_t{3} : std::uint8_t{4}}).le(kVersion).le(kFamily);
  out.le(is_empty ? kEmptyFlag : std::uint8_t{0});
  out.le(static_cast<std::uint16_t>(probes)).le(std::uint16_t{0}).le(params.count("seed"));
  out.le(static_cast<std::uint32_t>(bytes / 8)).le(std::uint32_t{0});
  if (!is_empty) out.le(params.flag("bit_count_known") ? set : kNotCounted).add(table);
  return std::move(out).done();
}

constexpr Codec kCodec{kName, "Bloom filter of Apache DataSketches", kParams, sniff, open, build, nullptr};

}  // namespace
}  // namespace datasketches

constinit const Codec kDataSketches = datasketches::kCodec;

}  // namespace perhaps::format
