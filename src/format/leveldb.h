// LevelDB's Bloom filter, one for each 2 KiB window of a table. Shared by the codec of a single filter, the table codec
// and the plug-in (perhaps/format/leveldb.h).
//
//   ceil(max(64, n * bits_per_key) / 8) bytes of bits | u8 probes
//   h = h0 = leveldb_hash(key); for each position: h mod bits, then h += rotl(h0, 15), all in 32 bits
#pragma once
#include <algorithm>
#include <bit>

#include "format/classic.h"
#include "hash/leveldb_hash.h"

namespace perhaps::format {

// Double hashing in 32 bits. Past 2^32 bits only the first 2^32 are ever used.
class LevelDbPlan {
 public:
  using word = std::uint32_t;
  LevelDbPlan(word h, std::uint64_t bits) noexcept : at_(h), step_(std::rotl(h, 15)), bits_(bits) {}
  std::uint64_t next() noexcept {
    const std::uint32_t at = std::exchange(at_, at_ + step_);
    return bits_ >> 32 == 0 ? at % static_cast<std::uint32_t>(bits_) : at;
  }

 private:
  std::uint32_t at_;
  std::uint32_t step_;
  std::uint64_t bits_;
};

struct LevelDbScheme {
  using word = std::uint32_t;
  using Plan = LevelDbPlan;
  static constexpr std::string_view hash = "leveldb murmur-32";
  word operator()(Bytes key) const noexcept { return leveldb_hash(key); }
};

struct LevelDb {
  static constexpr std::string_view kName = "leveldb";
  static constexpr std::uint64_t kMaxProbes = 30;  // larger values are reserved for future encodings

  static std::uint64_t bytes(std::uint64_t keys, std::uint64_t bits_per_key) noexcept {
    return (std::max<std::uint64_t>(64, keys * bits_per_key) + 7) / 8 + 1;
  }
  // Rounded down twice, as in LevelDB: 0.69 for ln 2, and the product.
  static std::uint64_t probes(std::uint64_t bits_per_key) noexcept {
    return std::clamp<std::uint64_t>(static_cast<std::uint64_t>(static_cast<double>(bits_per_key) * 0.69), 1,
                                     kMaxProbes);
  }
  // Appends the filter of these keys, sized with duplicates counted.
  static void append(Writer& out, std::span<const Bytes> keys, std::uint64_t bits_per_key) {
    const std::span<std::byte> blob = out.zeros(bytes(keys.size(), bits_per_key));
    blob.back() = static_cast<std::byte>(probes(bits_per_key));
    const auto table = blob.first(blob.size() - 1);
    fill_classic<LevelDbScheme>(table, std::uint64_t{8} * table.size(), probes(bits_per_key), keys);
  }
  // Answers as LevelDB's own reader does, except for blobs of less than two bytes, where LevelDB answers *no*.
  static bool may_contain(Bytes blob, std::uint32_t h) noexcept {
    if (blob.size() < 2) return true;
    const auto probes = std::to_integer<std::uint32_t>(blob.back());
    if (probes > kMaxProbes) return true;
    return BloomLayout<LevelDbPlan>::may_contain<detail::isa::Portable>(
        {.bits = std::uint64_t{8} * (blob.size() - 1), .probes = probes}, blob.data(), h);
  }
};

}  // namespace perhaps::format
