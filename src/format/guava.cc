// guava: com.google.common.hash.BloomFilter.writeTo, with either of its strategies.
//
//   u8 strategy | u8 probes | u32 BE words | words x u64 BE, bit p = bit p % 64 of word p / 64; no checksum
//   h = murmur3_x64_128(the funnel's output for the key)
//   strategy 1 (MURMUR128_MITZ_64): position i = (h.first + i * h.second) without its sign bit, mod bits
//   strategy 0 (MURMUR128_MITZ_32): position i = low32(h.first) + (i + 1) * high32(h.first) in 32 bits, complemented if
//                                   negative, mod bits
#include <charconv>

#include "format/classic.h"
#include "format/registry.h"
#include "hash/murmur3.h"

namespace perhaps::format {
namespace guava {
namespace {

constexpr std::string_view kName = "guava";

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
    {"guava", "version; since 33.4 the probes follow from fpp alone", Param::Type::word, "31.1"},
};

struct Head : ClassicParts {
  std::uint8_t strategy;
};
Head head_of(Bytes bytes) {
  Reader in(bytes);
  Head head{{.format = kName, .unit = 64}, in.le<std::uint8_t>()};
  head.probes = in.le<std::uint8_t>();
  const auto words = in.be<std::uint32_t>();
  head.bits = std::uint64_t{64} * words;
  head.end_header(in, 6);
  head.require(head.strategy <= 1, Errc::bad_parameter, "strategy ", head.strategy, " is not known");
  head.require(words <= kMaxInt, Errc::bad_parameter, words, " words, more than an int holds");
  return head;
}

Result<Opened> open(const Source& source, const Params&) {
  Head head = head_of(source.bytes);
  head.more = {{"strategy", head.strategy == 1 ? "1, 64 bits" : "0, 32 bits"}};
  return head.strategy == 1 ? open_classic<Guava64>(source, std::move(head))
                            : open_classic<Guava32>(source, std::move(head));
}

// "31.1", "33.4.0-jre"
bool is_from_33_4(std::string_view version) noexcept {
  unsigned major = 0;
  unsigned minor = 0;
  const char* const end = version.data() + version.size();
  const char* const dot = std::from_chars(version.data(), end, major).ptr;
  if (dot != end) std::from_chars(dot + 1, end, minor);
  return major > 33 || (major == 33 && minor >= 4);
}

Result<Buffer> build(std::span<const Bytes> keys, const Params& params) {
  const auto n = static_cast<double>(std::max<std::uint64_t>(params.count_or("expected_insertions", keys.size()), 1));
  const double fpp = params.real("fpp");
  const auto bits = whole_bits(kName, std::floor(optimal_bits(n, fpp)), 64 * kMaxInt);
  if (!bits) return bits.error();
  const double wanted = is_from_33_4(params.word("guava")) ? -std::log(fpp) / std::log(2.0)
                                                           : static_cast<double>(*bits) / n * std::log(2.0);
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

constexpr Codec kCodec{kName, "BloomFilter.writeTo of Guava", kParams, sniff_classic<head_of>, open, build, nullptr};

}  // namespace
}  // namespace guava

constinit const Codec kGuava = guava::kCodec;

}  // namespace perhaps::format
