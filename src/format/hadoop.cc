// hadoop: org.apache.hadoop.util.bloom.BloomFilter.write (Hudi; not the dynamic filter of a BloomMapFile).
//
//   i32 BE -1 | i32 BE probes | u8 hash (0 Jenkins, 1 Murmur) | i32 BE bits | ceil(bits / 8) bytes, least bit first
//   i32 BE probes                                             | i32 BE bits | the same: the old form, always Jenkins
//   v = 0; for each position v = hash(key, seed v), position = |v rem bits|, v signed, 32 bits
//   empty keys are refused
#include <algorithm>

#include "format/classic.h"
#include "format/registry.h"
#include "hash/lookup3.h"
#include "hash/murmur2.h"

namespace perhaps::format {
namespace hadoop {
namespace {

constexpr std::string_view kName = "hadoop";
constexpr std::uint32_t kVersion = 0xffffffff;

template <auto kHash>
struct HadoopScheme {
  using word = Bytes;  // every position needs its own hash of the key
  static constexpr std::string_view hash = kHash == lookup3 ? "lookup3, chained" : "murmur2 of Hadoop, chained";
  word operator()(Bytes key) const noexcept { return key; }
  static bool ignores(Bytes key) noexcept { return key.empty(); }

  class Plan {
   public:
    using word = Bytes;
    Plan(Bytes key, std::uint64_t bits) noexcept : key_(key), bits_(static_cast<std::int64_t>(bits)) {}
    std::uint64_t next() noexcept {
      seed_ = kHash(key_, seed_);
      return static_cast<std::uint64_t>(std::abs(static_cast<std::int32_t>(seed_) % bits_));
    }

   private:
    Bytes key_;
    std::int64_t bits_;
    std::uint32_t seed_ = 0;
  };
};
using Jenkins = HadoopScheme<lookup3>;
using Murmur = HadoopScheme<murmur2_hadoop>;

constexpr Param kParams[] = {
    {"numKeys", "keys it is sized for", Param::Type::count, "", 1, 1e12, {}, Param::Means::keys},
    {"errorRate", "false-positive rate", Param::Type::real, "0.005", 1e-300, 0.999, {}, Param::Means::fpr},
    {"vectorSize", "bits, instead of numKeys and errorRate", Param::Type::count, "", 1, kMaxInt},
    {"nbHash", "probes", Param::Type::count, "5", 1, kMaxProbes},
    {"hashType", "which hash", Param::Type::word, "murmur", 0, 0, "murmur|jenkins"},
};

struct Head : ClassicParts {
  std::uint8_t hash = 0;
};
Head head_of(Bytes bytes) {
  Reader in(bytes);
  Head head{{.format = kName}};
  const auto first = in.be<std::uint32_t>();
  head.probes = first == kVersion ? in.be<std::uint32_t>() : first;
  if (first == kVersion) head.hash = in.le<std::uint8_t>();
  head.bits = in.be<std::uint32_t>();
  head.end_header(in, first == kVersion ? 13 : 8);
  head.require(first == kVersion || first <= kMaxInt, Errc::bad_version, "version ", static_cast<std::int32_t>(first),
               " is not known");
  head.require(head.hash <= 1, Errc::bad_parameter, "hash ", head.hash, " is not known");
  head.require(head.bits <= kMaxInt, Errc::bad_parameter, head.bits, " bits, more than an int holds");
  return head;
}

Result<Opened> open(const Source& source, const Params&) {
  Head head = head_of(source.bytes);
  return head.hash == 0 ? open_classic<Jenkins>(source, std::move(head))
                        : open_classic<Murmur>(source, std::move(head));
}

Result<Buffer> build(std::span<const Bytes> keys, const Params& params) {
  if (std::any_of(keys.begin(), keys.end(), [](Bytes key) { return key.empty(); }))
    return bad(Errc::bad_parameter, kName, "an empty key cannot be added");
  const auto n = static_cast<double>(params.count_or("numKeys", std::max<std::uint64_t>(keys.size(), 1)));
  const auto probes = static_cast<double>(params.count("nbHash"));
  const double wanted = std::ceil(-probes * n / std::log(1 - std::pow(params.real("errorRate"), 1 / probes)));
  const auto bits = params.given("vectorSize") ? Result<std::uint64_t>(params.count("vectorSize"))
                                               : whole_bits(kName, wanted, kMaxInt);
  if (!bits) return bits.error();
  const bool jenkins = params.word("hashType") == "jenkins";
  Writer out;
  out.be(kVersion)
      .be(static_cast<std::uint32_t>(probes))
      .le(std::uint8_t{!jenkins})
      .be(static_cast<std::uint32_t>(*bits));
  const std::span<std::byte> table = out.zeros(table_bytes(*bits));
  if (jenkins) {
    fill_classic<Jenkins>(table, *bits, params.count("nbHash"), keys);
  } else {
    fill_classic<Murmur>(table, *bits, params.count("nbHash"), keys);
  }
  return std::move(out).done();
}

constexpr Codec kCodec{kName,  "BloomFilter.write of Hadoop's util.bloom", kParams, sniff_classic<head_of>, open, build,
                       nullptr};

}  // namespace
}  // namespace hadoop

constinit const Codec kHadoop = hadoop::kCodec;

}  // namespace perhaps::format
