// fuse8, fuse16: the binary fuse filters of FastFilter's xor_singleheader (Graf and Lemire 2022), not those of
// perhaps/fuse.h.
//
//   plain   u64 LE seed | u32 LE n, S, segments, C, slots | fingerprints of 1 or 2 bytes
//   packed  u64 LE seed | u32 LE n | bitmap | fingerprints that are not zero: the rest follows from n
//   h = murmur3's finaliser of (xxh64(key, 0) + seed), fingerprint = the low bits of h XOR h >> 32
//   slots = p = high64(h * C),  (p + S) XOR (h >> 18 mod S),  (p + 2 S) XOR (h mod S)
//
// Go's xorfilter writes u32 LE S, S - 1, segments, C, slots after its seed and looks keys up in the same way, so its
// files can be read too.
#include <cmath>

#include "format/fingerprints.h"
#include "format/registry.h"

namespace perhaps::format {
namespace fuse {
namespace {

struct FuseSegments {
  static constexpr std::string_view family = "fuse";
  static constexpr std::size_t kQueues = 1;
  static constexpr std::uint32_t kMaxKeysInSlot = 63;
  static constexpr std::uint64_t kFirstSeed = 0x726b2b9d438b9d4du;

  std::uint64_t seed;
  std::uint64_t length;    // of a segment; a power of two
  std::uint64_t segments;  // that can hold the first slot of a key

  // Repeats the writers' floating-point arithmetic operation by operation: packed files store only the number of keys.
  static FuseSegments for_keys(std::uint64_t keys) noexcept {
    if (keys == 0) return {0, 4, 1};
    const auto n = static_cast<double>(keys);
    const auto log2 = static_cast<unsigned>(std::floor(std::log(n) / std::log(3.33) + 2.25));
    const std::uint64_t length = std::min<std::uint64_t>(std::uint64_t{1} << log2, 262144);
    const double factor = std::fmax(1.125, 0.875 + 0.25 * std::log(1000000.0) / std::log(n));
    const std::uint64_t room = keys == 1 ? 0 : static_cast<std::uint64_t>(std::round(n * factor));
    const std::uint64_t segments = (room + length - 1) / length;
    return {0, length, segments <= 2 ? 1 : segments - 2};
  }
  bool valid() const noexcept { return std::has_single_bit(length) && segments >= 1; }
  double keys() const noexcept { return static_cast<double>(slots()) / 1.125; }
  std::uint64_t slots() const noexcept { return (segments + 2) * length; }
  static std::size_t queue_of(std::uint64_t) noexcept { return 0; }
  SlotsOfKey slots_of(std::uint64_t hash) const noexcept {
    const std::uint64_t first = detail::scale(hash, segments * length);
    const std::uint64_t mask = length - 1;
    return {first, (first + length) ^ (hash >> 18 & mask), (first + 2 * length) ^ (hash & mask)};
  }
  std::vector<std::pair<std::string, std::string>> about() const {
    return {{"segment length", std::to_string(length)}, {"segments", std::to_string(segments)}};
  }
};
using Parts = FingerprintParts<FuseSegments>;

template <class F>
constexpr std::string_view kName = sizeof(F) == 1 ? "fuse8" : "fuse16";
constexpr std::uint64_t kPlainHeader = 28;
constexpr std::uint64_t kPackedHeader = 12;

// The five numbers after the seed are consistent in only one of the two readings, which tells the two headers apart.
struct PlainHead {
  std::uint64_t seed;
  std::array<std::uint32_t, 5> numbers;
  bool is_short;

  explicit PlainHead(Bytes bytes) noexcept {
    Reader in(bytes);
    seed = in.le<std::uint64_t>();
    for (std::uint32_t& number : numbers) number = in.le<std::uint32_t>();
    is_short = in.is_short();
  }
  FuseSegments geometry() const noexcept { return {seed, from_go() ? numbers[0] : numbers[1], numbers[2]}; }
  bool from_go() const noexcept {
    return numbers[0] >= 4 && std::has_single_bit(numbers[0]) && numbers[1] == numbers[0] - 1;
  }
  bool agrees() const noexcept {
    const FuseSegments g = geometry();
    return !is_short && g.valid() && numbers[3] == g.segments * g.length && numbers[4] == g.slots();
  }
};

template <class F>
Result<Parts> plain_parts(Bytes bytes, const PlainHead& head) {
  if (head.is_short)
    return bad(Errc::truncated, kName<F>, "the header has ", kPlainHeader, " bytes, the file ", bytes.size());
  if (!head.agrees()) return bad(Errc::bad_parameter, kName<F>, "the lengths in the header contradict each other");
  Parts parts{.format = kName<F>, .geometry = head.geometry(), .rest = bytes.subspan(kPlainHeader), .packed = false};
  // binary_fuse16_serialization_bytes() returns four too many, and callers that trust it write four bytes more.
  const std::uint64_t size = parts.geometry.slots() * sizeof(F);
  if (sizeof(F) == 2 && parts.rest.size() == size + 4) parts.rest = parts.rest.first(size);
  if (head.from_go()) {
    parts.writer = "from Go's xorfilter";
  } else {
    parts.keys = head.numbers[0];
  }
  return parts;
}

template <class F>
Result<Parts> packed_parts(Bytes bytes, const PlainHead& head) {
  if (bytes.size() < kPackedHeader)
    return bad(Errc::truncated, kName<F>, "the header has ", kPackedHeader, " bytes, the file ", bytes.size());
  FuseSegments geometry = FuseSegments::for_keys(head.numbers[0]);
  geometry.seed = head.seed;
  return Parts{.format = kName<F>,
               .geometry = geometry,
               .rest = bytes.subspan(kPackedHeader),
               .packed = true,
               .keys = head.numbers[0]};
}

template <class F>
Result<Parts> parts_of(Bytes bytes, const Params* params) {
  const PlainHead head(bytes);
  if (params != nullptr && params->given("packed"))
    return params->flag("packed") ? packed_parts<F>(bytes, head) : plain_parts<F>(bytes, head);
  auto packed = packed_parts<F>(bytes, head);
  if (packed && !head.agrees() && seem_packed<F>(packed->rest, packed->geometry.slots(), *packed->keys)) return packed;
  if (!head.is_short && !head.agrees())
    return bad(Errc::bad_parameter, kName<F>, bytes.size(), " bytes fit neither the plain nor the packed form");
  return plain_parts<F>(bytes, head);
}

template <class F>
Sniffed sniff(const Source& source) {
  const auto parts = parts_of<F>(source.bytes, nullptr);
  if (!parts || !are_slots<F>(parts->rest, parts->geometry.slots(), parts->packed)) return Sniffed::no;
  if (!parts->packed) return Sniffed::certain;
  // The packed header is too short to be certain, so the seed must also be one that the writer would try.
  for (std::uint64_t i = 0; i < kMaxSeeds; ++i)
    if (parts->geometry.seed == seed_at(FuseSegments::kFirstSeed, i)) return Sniffed::certain;
  return Sniffed::no;
}

template <class F>
Result<Opened> open(const Source& source, const Params& params) {
  auto parts = parts_of<F>(source.bytes, &params);
  if (!parts) return damaged(source, kName<F>, std::move(parts).error());
  return open_fingerprints<F>(source, *parts);
}

template <class Slots>
Buffer written(const FuseSegments& geometry, std::uint64_t keys, const Slots& slots, bool packed) {
  const auto word = [](std::uint64_t value) { return static_cast<std::uint32_t>(value); };
  Writer out;
  out.le(geometry.seed).le(word(keys));
  if (!packed) {
    out.le(word(geometry.length)).le(word(geometry.segments));
    out.le(word(geometry.segments * geometry.length)).le(word(geometry.slots()));
  }
  write_slots(out, slots, geometry.slots(), packed);
  return std::move(out).done();
}

template <class F>
Result<Buffer> build(std::span<const Bytes> keys, const Params& params) {
  const std::vector<std::uint64_t> digests = distinct_xxh64(keys);
  FuseSegments geometry = FuseSegments::for_keys(digests.size());
  if (geometry.slots() > UINT32_MAX) return bad(Errc::unsupported, kName<F>, digests.size(), " keys are too many");
  const auto slots = peel_fingerprints<F>(kName<F>, geometry, digests);
  if (!slots) return slots.error();
  return written(geometry, digests.size(), *slots, params.flag("packed"));
}

template <class F>
Result<Converted> convert(const Source& source, const Opened& from, const Params& params) {
  if (from.format != kName<F>) return not_these_fingerprints(from, kName<F>);
  const auto parts = parts_of<F>(source.bytes, nullptr);
  if (!parts) return parts.error();
  if (!parts->keys) return bad(Errc::unsupported, kName<F>, "Go's header does not store the number of keys");
  const bool packed = params.flag("packed");
  const FuseSegments follows = FuseSegments::for_keys(*parts->keys);
  if (packed && (follows.length != parts->geometry.length || follows.segments != parts->geometry.segments))
    return bad(Errc::unsupported, kName<F>, "its segments differ from those that follow from ", *parts->keys, " keys");
  return repacked<F>(*parts, packed,
                     [&](const auto& slots) { return written(parts->geometry, *parts->keys, slots, packed); });
}

template <class F>
constexpr Codec codec(std::string_view summary) {
  return {kName<F>, summary, kPackedParam, sniff<F>, open<F>, build<F>, convert<F>};
}

}  // namespace
}  // namespace fuse

constinit const Codec kFuse8 = fuse::codec<std::uint8_t>("binary fuse filter of xor_singleheader, 8 bits per slot");
constinit const Codec kFuse16 = fuse::codec<std::uint16_t>("binary fuse filter of xor_singleheader, 16 bits per slot");

}  // namespace perhaps::format
