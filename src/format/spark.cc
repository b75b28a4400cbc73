// spark: org.apache.spark.util.sketch.BloomFilter.writeTo, versions 1 and 2 (Spark 4.1).
//
//   i32 BE 1 | i32 BE probes                | i32 BE words | words x i64 BE, bit p = bit p % 64 of word p / 64
//   i32 BE 2 | i32 BE probes | i32 BE seed  | i32 BE words | the same; no checksum
//   h1 = murmur3_x86_32(item, seed), h2 = murmur3_x86_32(item, h1), with Spark's tail; version 1 has seed 0
//   version 1: position i = h1 + (i + 1) * h2 in 32 bits, complemented if negative, mod bits
//   version 2: position i = h1 * (2^31 - 1) + (i + 1) * h2 in signed 64 bits, complemented if negative, mod bits
#include "format/classic.h"
#include "format/registry.h"
#include "hash/murmur3.h"

namespace perhaps::format {
namespace spark {
namespace {

constexpr std::string_view kName = "spark";

// A long is hashed like its eight bytes. If keys stand for longs, the first eight bytes count, padded with zeros.
struct Items {
  bool are_longs;
  std::uint32_t seed = 0;

  struct Pair {
    std::uint32_t first;
    std::uint32_t second;
  };
  Pair operator()(Bytes key) const noexcept {
    std::array<std::byte, 8> number{};
    if (are_longs) {
      std::copy_n(key.begin(), std::min<std::size_t>(key.size(), 8), number.begin());
      key = number;
    }
    const std::uint32_t first = murmur3_x86_32_spark(key, seed);
    return {first, murmur3_x86_32_spark(key, first)};
  }
};

std::uint64_t widened(std::uint32_t x) noexcept {
  return static_cast<std::uint64_t>(std::int64_t{static_cast<std::int32_t>(x)});
}

struct Version1 {
  using word = StartAndStep;
  using Plan = DoubleHashing<fold::complement32, kBigEndianWords>;
  static constexpr std::string_view hash = "murmur3-x86-32 of Spark";
  Items items;
  word operator()(Bytes key) const noexcept {
    const auto [first, second] = items(key);
    return {std::uint64_t{first} + second, second};
  }
};

struct Version2 {
  using word = StartAndStep;
  using Plan = DoubleHashing<fold::complement, kBigEndianWords>;
  static constexpr std::string_view hash = Version1::hash;
  Items items;
  word operator()(Bytes key) const noexcept {
    const auto [first, second] = items(key);
    return {widened(first) * 0x7fffffff + widened(second), widened(second)};
  }
};

constexpr Param kParams[] = {
    {"version", "of the layout", Param::Type::count, "1", 1, 2},
    {"expected_items", "keys it is sized for", Param::Type::count, "", 1, 1e12, {}, Param::Means::keys},
    {"fpp", "false-positive rate", Param::Type::real, "0.03", 1e-300, 0.999, {}, Param::Means::fpr},
    {"num_bits", "size in bits, instead of fpp", Param::Type::count, "", 1, 1.37e11},
    {"seed", "of the hash, version 2 only", Param::Type::real, "0", -2147483648.0, 2147483647.0},
    {"items", "how to read a key", Param::Type::word, "binary", 0, 0, "binary|long"},
};

struct Head : ClassicParts {
  std::uint32_t version;
  std::uint32_t seed = 0;
};
Head head_of(Bytes bytes) {
  Reader in(bytes);
  Head head{{.format = kName, .unit = 64}, in.be<std::uint32_t>()};
  head.probes = in.be<std::uint32_t>();
  if (head.version == 2) head.seed = in.be<std::uint32_t>();
  const auto words = in.be<std::uint32_t>();
  head.bits = std::uint64_t{64} * words;
  head.end_header(in, head.version == 2 ? 16 : 12);
  head.require(head.version == 1 || head.version == 2, Errc::bad_version, "version ", head.version, " is not known");
  head.require(words <= kMaxInt, Errc::bad_parameter, words, " words, more than an int holds");
  return head;
}

Result<Opened> open(const Source& source, const Params& params) {
  Head head = head_of(source.bytes);
  head.more = {{"version", std::to_string(head.version)}};
  const Items items{.are_longs = params.word("items") == "long", .seed = head.seed};
  return head.version == 1 ? open_classic(source, std::move(head), Version1{items})
                           : open_classic(source, std::move(head), Version2{items});
}

Result<Buffer> build(std::span<const Bytes> keys, const Params& params) {
  const auto n = static_cast<double>(params.count_or("expected_items", std::max<std::uint64_t>(keys.size(), 1)));
  const double wanted = std::floor(optimal_bits(n, params.real("fpp")));
  const auto bits = params.given("num_bits") ? Result<std::uint64_t>(params.count("num_bits"))
                                             : whole_bits(kName, wanted, 64 * kMaxInt);
  if (!bits) return bits.error();
  const double seed = params.real("seed");
  if (seed != std::floor(seed)) return bad(Errc::bad_parameter, kName, "the seed must be a whole number");
  const bool first = params.count("version") == 1;
  if (first && seed != 0) return bad(Errc::bad_parameter, kName, "only version 2 has a seed");
  const double probes = std::max(1.0, std::floor(static_cast<double>(*bits) / n * std::log(2.0) + 0.5));
  if (probes > static_cast<double>(kMaxProbes)) return bad(Errc::bad_parameter, kName, probes, " probes are too many");
  const auto k = static_cast<std::uint32_t>(probes);
  const Items items{.are_longs = params.word("items") == "long",
                    .seed = static_cast<std::uint32_t>(static_cast<std::int32_t>(seed))};
  const std::uint64_t bytes = table_bytes(*bits, 64);
  Writer out;
  out.be(std::uint32_t{first ? 1u : 2u}).be(k);
  if (!first) out.be(items.seed);
  out.be(static_cast<std::uint32_t>(bytes / 8));
  const std::span<std::byte> table = out.zeros(bytes);
  if (first) {
    fill_classic(table, 8 * bytes, k, keys, Version1{items});
  } else {
    fill_classic(table, 8 * bytes, k, keys, Version2{items});
  }
  return std::move(out).done();
}

constexpr Codec kCodec{kName, "BloomFilter of Spark's sketches", kParams, sniff_classic<head_of>, open, build, nullptr};

}  // namespace
}  // namespace spark

constinit const Codec kSpark = spark::kCodec;

}  // namespace perhaps::format
