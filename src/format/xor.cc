// xor8, xor16: the xor filters of FastFilter's xor_singleheader (Graf and Lemire 2020).
//
//   u64 LE seed | u64 LE B | 3 B fingerprints of 1 or 2 bytes, plain or packed (fingerprints.h); no checksum
//   h = murmur3's finaliser of (xxh64(key, 0) + seed), fingerprint = the low bits of h XOR h >> 32
//   slots = low32(h) * B >> 32,  B + (low32(h rotated left by 21) * B >> 32),  2 B + (low32(rotated by 42) * B >> 32)
#include "format/fingerprints.h"
#include "format/registry.h"

namespace perhaps::format {
namespace xor_filter {
namespace {

struct XorGeometry {
  static constexpr std::string_view family = "xor";
  static constexpr std::size_t kQueues = 3;
  static constexpr std::uint32_t kMaxKeysInSlot = UINT32_MAX - 1;
  static constexpr std::uint64_t kFirstSeed = 1;
  static constexpr std::uint64_t kMaxBlock = std::uint64_t{1} << 32;  // 32 bits of the hash select a slot

  std::uint64_t seed;
  std::uint64_t block;  // a third of the slots

  static XorGeometry for_keys(std::uint64_t keys) noexcept {
    return {0, static_cast<std::uint64_t>(32 + 1.23 * static_cast<double>(keys)) / 3};
  }
  double keys() const noexcept { return std::max(0.0, (3 * static_cast<double>(block) - 32) / 1.23); }
  std::uint64_t slots() const noexcept { return 3 * block; }
  std::size_t queue_of(std::uint64_t slot) const noexcept { return slot / block; }
  SlotsOfKey slots_of(std::uint64_t hash) const noexcept {
    const auto in_block = [this](std::uint64_t h) { return (h & 0xffffffffu) * block >> 32; };
    return {in_block(hash), block + in_block(std::rotl(hash, 21)), 2 * block + in_block(std::rotl(hash, 42))};
  }
  std::vector<std::pair<std::string, std::string>> about() const { return {{"block length", std::to_string(block)}}; }
};
using Parts = FingerprintParts<XorGeometry>;

template <class F>
constexpr std::string_view kName = sizeof(F) == 1 ? "xor8" : "xor16";

template <class F>
Result<Parts> parts_of(Bytes bytes, const Params* params) {
  Reader in(bytes);
  const auto seed = in.le<std::uint64_t>();
  const auto block = in.le<std::uint64_t>();
  if (in.is_short()) {
    return bad(Errc::truncated, kName<F>, "the header has 16 bytes, the file ", bytes.size());
  }
  if (block == 0 || block > XorGeometry::kMaxBlock)
    return bad(Errc::bad_parameter, kName<F>, "a block length of ", block, " fingerprints");
  const XorGeometry geometry{seed, block};
  const bool told = params != nullptr && params->given("packed");
  const auto keys = static_cast<std::uint64_t>(std::max(2.0, geometry.keys()));
  const bool packed =
      told ? params->flag("packed")
           : !are_slots<F>(in.rest(), geometry.slots(), false) && seem_packed<F>(in.rest(), geometry.slots(), keys);
  return Parts{.format = kName<F>, .geometry = geometry, .rest = in.rest(), .packed = packed};
}

template <class F>
Sniffed sniff(const Source& source) {
  const auto parts = parts_of<F>(source.bytes, nullptr);
  return parts && are_slots<F>(parts->rest, parts->geometry.slots(), parts->packed) ? Sniffed::certain : Sniffed::no;
}

template <class F>
Result<Opened> open(const Source& source, const Params& params) {
  auto parts = parts_of<F>(source.bytes, &params);
  if (!parts) return damaged(source, kName<F>, std::move(parts).error());
  return open_fingerprints<F>(source, *parts);
}

template <class Slots>
Buffer written(const XorGeometry& geometry, const Slots& slots, bool packed) {
  Writer out;
  out.le(geometry.seed).le(geometry.block);
  write_slots(out, slots, geometry.slots(), packed);
  return std::move(out).done();
}

template <class F>
Result<Buffer> build(std::span<const Bytes> keys, const Params& params) {
  const std::vector<std::uint64_t> digests = distinct_xxh64(keys);
  if (digests.empty()) return bad(Errc::unsupported, kName<F>, "needs at least one key");
  XorGeometry geometry = XorGeometry::for_keys(digests.size());
  if (geometry.block > XorGeometry::kMaxBlock)
    return bad(Errc::unsupported, kName<F>, digests.size(), " keys are too many");
  const auto slots = peel_fingerprints<F>(kName<F>, geometry, digests);
  if (!slots) return slots.error();
  return written(geometry, *slots, params.flag("packed"));
}

template <class F>
Result<Converted> convert(const Source& source, const Opened& from, const Params& params) {
  if (from.format != kName<F>) return not_these_fingerprints(from, kName<F>);
  const auto parts = parts_of<F>(source.bytes, nullptr);
  if (!parts) return parts.error();
  const bool packed = params.flag("packed");
  return repacked<F>(*parts, packed, [&](const auto& slots) { return written(parts->geometry, slots, packed); });
}

template <class F>
constexpr Codec codec(std::string_view summary) {
  return {kName<F>, summary, kPackedParam, sniff<F>, open<F>, build<F>, convert<F>};
}

}  // namespace
}  // namespace xor_filter

constinit const Codec kXor8 = xor_filter::codec<std::uint8_t>("xor filter of xor_singleheader, 8 bits per slot");
constinit const Codec kXor16 = xor_filter::codec<std::uint16_t>("xor filter of xor_singleheader, 16 bits per slot");

}  // namespace perhaps::format
