// guava: com.google.common.hash.BloomFilter.writeTo, with either of its strategies.
//
//   u8 strategy | u8 probes | u32 BE words | words x u64 BE, bit p = bit p % 64 of word p / 64; no checksum
//   h = murmur3_x64_128(what the funnel makes of the key)
//   strategy 1 (MURMUR128_MITZ_64): position i = (h.first + i * h.second) without its sign bit, mod bits
//   strategy 0 (MURMUR128_MITZ_32): position i = low32(h.first) + (i + 1) * high32(h.first) in 32 bits, its complement
//                                   if that is negative, mod bits
#include "format/classic.h"
#include "format/registry.h"
#include "hash/murmur3.h"

namespace perhaps::format {
namespace {

constexpr std::string_view kName = "guava";
constexpr std::uint64_t kHeader = 6;

struct Guava64 {
  using word = StartAndStep;
  using Plan = DoubleHashing<fold::drop_sign, kBigEndianWords>;
  static constexpr std::string_view hash = "murmur3-x64-128";
  word operator()(Bytes key) const noexcept {
    const Murmur128 h = murmur3_x64_128(key);
    return {h.first, h.second};
  }
};

struct Guava32 {
  using word = StartAndStep;
  using Plan = DoubleHashing<fold::complement32, kBigEndianWords>;
  static constexpr std::string_view hash = "murmur3-x64-128, its first half";
  word operator()(Bytes key) const noexcept {
    const std::uint64_t h = murmur3_x64_128(key).first;
    return {h + (h >> 32), h >> 32};
  }
};

constexpr Param kParams[] = {
    {"expected_insertions", "keys it is sized for", Param::Type::count, "", 0, 1e12, {}, Param::Means::keys},
    {"fpp", "false-positive rate", Param::Type::real, "0.03", 1e-77, 0.999, {}, Param::Means::fpr},
    {"strategy", "1 = 64 bits, 0 = the older 32 bits", Param::Type::count, "1", 0, 1},
    {"guava", "version; from 33.4 the probes follow from fpp alone", Param::Type::real, "31.1", 11, 1000},
};

struct Head {
  std::uint8_t strategy;
  std::uint8_t probes;
  std::uint64_t bits;
  Bytes rest;
  bool is_short;
};
Head head_of(Bytes bytes) noexcept {
  Reader in(bytes);
  Head head{};
  head.strategy = in.le<std::uint8_t>();
  head.probes = in.le<std::uint8_t>();
  head.bits = std::uint64_t{64} * in.be<std::uint32_t>();
  head.rest = in.rest();
  head.is_short = in.is_short();
  return head;
}

Sniffed sniff(const Source& source) noexcept {
  const Head head = head_of(source.bytes);
  const bool agrees =
      !head.is_short && head.strategy <= 1 && head.probes != 0 && head.bits != 0 && head.rest.size() == head.bits / 8;
  return agrees ? Sniffed::certain : Sniffed::no;
}

Result<Opened> open(const Source& source, const Params&) {
  const Head head = head_of(source.bytes);
  if (head.is_short) return short_header(source, kName, kHeader);
  if (head.strategy > 1)
    return damaged(source, kName, bad(Errc::bad_parameter, kName, "strategy ", head.strategy, " is not known"));
  ClassicParts parts{.format = kName, .table = head.rest, .bits = head.bits, .probes = head.probes, .unit = 64};
  return head.strategy == 1 ? open_classic<Guava64>(source, std::move(parts))
                            : open_classic<Guava32>(source, std::move(parts));
}

Result<Buffer> build(std::span<const Bytes> keys, const Params& params) {
  const auto n = static_cast<double>(std::max<std::uint64_t>(params.count_or("expected_insertions", keys.size()), 1));
  const double fpp = params.real("fpp");
  const auto bits = whole_bits(kName, std::floor(optimal_bits(n, fpp)), std::uint64_t{64} * 0x7fffffff);
  if (!bits) return bits.error();
  const double wanted =
      params.real("guava") < 33.4 ? static_cast<double>(*bits) / n * std::log(2.0) : -std::log(fpp) / std::log(2.0);
  const auto probes = static_cast<std::uint64_t>(std::max(1.0, std::floor(wanted + 0.5)));
  if (probes > 255) return bad(Errc::bad_parameter, kName, probes, " probes are too many");
  const std::uint64_t bytes = table_bytes(*bits, 64);
  Writer out;
  out.le(static_cast<std::uint8_t>(params.count("strategy"))).le(static_cast<std::uint8_t>(probes));
  out.be(static_cast<std::uint32_t>(bytes / 8));
  const std::span<std::byte> table = out.zeros(bytes);
  if (params.count("strategy") == 1) {
    fill_classic<Guava64>(table, 8 * bytes, probes, keys);
  } else {
    fill_classic<Guava32>(table, 8 * bytes, probes, keys);
  }
  return std::move(out).done();
}

}  // namespace

constinit const Codec kGuava{kName, "BloomFilter.writeTo of Guava", kParams, sniff, open, build, nullptr};

}  // namespace perhaps::format
