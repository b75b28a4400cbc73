// go_bloom: BloomFilter.WriteTo of bits-and-blooms/bloom, version 3 (Go).
//
//   u64 BE bits | u64 BE probes | u64 BE bits again | ceil(bits / 64) x u64 BE, bit p = bit p % 64 of word p / 64
//   h[0..1] = murmur3_x64_128(key), h[2..3] = murmur3_x64_128(key followed by a byte 01)
//   position i = (h[i % 2] + i * h[2 + ((i + i % 2) % 4) / 2]) mod bits
// A program may choose little-endian for the second count and the words; that count shows which it is.
#include "format/classic.h"
#include "format/registry.h"
#include "hash/murmur3.h"

namespace perhaps::format {
namespace go_bloom {
namespace {

constexpr std::string_view kName = "go_bloom";

template <std::uint64_t kOrder>
struct GoScheme {
  using word = std::array<std::uint64_t, 4>;
  static constexpr std::string_view hash = "murmur3-x64-128, twice";
  word operator()(Bytes key) const noexcept { return murmur3_x64_128_twice(key); }

  class Plan {
   public:
    using word = GoScheme::word;
    Plan(const word& h, std::uint64_t bits) noexcept : h_(h), bits_(bits) {}
    std::uint64_t next() noexcept {
      const std::uint64_t i = i_++;
      return (h_[i % 2] + i * h_[2 + (i + i % 2) % 4 / 2]) % bits_ ^ kOrder;
    }

   private:
    word h_;
    std::uint64_t bits_;
    std::uint64_t i_ = 0;
  };
};

constexpr Param kParams[] = {
    {"n", "keys it is sized for; 0: use m and k", Param::Type::count, "", 0, 1e12, {}, Param::Means::keys},
    {"fp", "false-positive rate", Param::Type::real, "0.01", 0, 1, {}, Param::Means::fpr},
    {"m", "bits, instead of n and fp", Param::Type::count, "", 0, kMaxBits},
    {"k", "probes, instead of n and fp", Param::Type::count, "", 0, kMaxProbes},
};

struct Head : ClassicParts {
  bool is_little = false;
};
Head head_of(Bytes bytes) {
  Reader in(bytes);
  Head head{{.format = kName, .unit = 64}};
  head.bits = in.be<std::uint64_t>();
  head.probes = in.be<std::uint64_t>();
  const auto again = in.be<std::uint64_t>();
  head.is_little = again != head.bits && detail::byte_swapped(again) == head.bits;
  head.end_header(in, 24);
  head.require(again == head.bits || head.is_little, Errc::bad_parameter, "the two counts of bits differ: ", head.bits,
               " and ", again);
  return head;
}

Result<Opened> open(const Source& source, const Params&) {
  Head head = head_of(source.bytes);
  head.more = {{"words", head.is_little ? "little-endian" : "big-endian"}};
  return head.is_little ? open_classic<GoScheme<0>>(source, std::move(head))
                        : open_classic<GoScheme<kBigEndianWords>>(source, std::move(head));
}

Result<Buffer> build(std::span<const Bytes> keys, const Params& params) {
  double wanted = 0;
  double probes = 0;
  if (params.given("m") && params.count_or("n", 0) == 0) {
    wanted = static_cast<double>(params.count("m"));
    probes = static_cast<double>(params.count_or("k", 7));
  } else {
    const auto n = static_cast<double>(std::max<std::uint64_t>(params.count_or("n", keys.size()), 1));
    if (params.real("fp") <= 0) return bad(Errc::bad_parameter, kName, "fp must be more than 0");
    wanted = std::ceil(optimal_bits(n, params.real("fp")));
    probes = std::ceil(std::log(2.0) * wanted / n);
  }
  const auto bits = whole_bits(kName, std::max(1.0, wanted));
  if (!bits) return bits.error();
  const auto k = static_cast<std::uint64_t>(std::max(1.0, probes));
  Writer out;
  out.be(*bits).be(k).be(*bits);
  fill_classic<GoScheme<kBigEndianWords>>(out.zeros(table_bytes(*bits, 64)), *bits, k, keys);
  return std::move(out).done();
}

constexpr Codec kCodec{kName, "bits-and-blooms/bloom of Go", kParams, sniff_classic<head_of>, open, build, nullptr};

}  // namespace
}  // namespace go_bloom

constinit const Codec kGoBloom = go_bloom::kCodec;

}  // namespace perhaps::format
