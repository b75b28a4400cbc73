// What the xor and binary fuse filters of other systems share: a key has a fingerprint and three slots, and the answer
// is *perhaps* if the XOR of the slots equals the fingerprint (Graf and Lemire 2020, 2022; perhaps/fuse.h explains why
// such slots can be found). A geometry says where the slots of a key are:
//
//   struct Geometry {
//     static constexpr std::string_view family;
//     static constexpr std::size_t kQueues;               // used in peeling; the bytes depend on them
//     static constexpr std::uint32_t kMaxKeysInSlot;      // with more, the next seed is tried
//     static constexpr std::uint64_t kFirstSeed;          // where the stream of seeds starts
//     std::uint64_t seed;
//     std::uint64_t slots() const noexcept;
//     SlotsOfKey slots_of(std::uint64_t hash) const noexcept;  // each less than slots()
//     std::size_t queue_of(std::uint64_t slot) const noexcept;
//   };
//
// A file stores the slots one after the other, little-endian; or packed: one bit per slot, set if the slot is not zero,
// followed by the slots that are not zero. Only the length can show that a file is complete, so it must match exactly.
#pragma once
#include <algorithm>
#include <array>
#include <cassert>
#include <limits>

#include "format/codec.h"
#include "hash/fnv.h"
#include "hash/xxh64.h"
#include "perhaps/detail/bits.h"
#include "perhaps/detail/kernels.h"

namespace perhaps::format {

using SlotsOfKey = std::array<std::uint64_t, 3>;

// The finaliser of MurmurHash3 over digest and seed.
constexpr std::uint64_t seeded(std::uint64_t digest, std::uint64_t seed) noexcept {
  std::uint64_t h = digest + seed;
  h = (h ^ h >> 33) * 0xff51afd7ed558ccdu;
  h = (h ^ h >> 33) * 0xc4ceb9fe1a85ec53u;
  return h ^ h >> 33;
}

template <std::unsigned_integral Fingerprint>
constexpr Fingerprint fingerprint_of(std::uint64_t hash) noexcept {
  return static_cast<Fingerprint>(hash ^ hash >> 32);
}

template <std::unsigned_integral F>
class PlainSlots {
 public:
  using Fingerprint = F;
  static constexpr bool kPacked = false;

  // Size in bytes of `slots` slots at the front of `bytes`; nothing if they do not fit.
  static std::optional<std::uint64_t> size_in(Bytes bytes, std::uint64_t slots) noexcept {
    if (slots > bytes.size() / sizeof(F)) return {};
    return slots * sizeof(F);
  }
  // REQUIRES: `bytes` are exactly as many as size_in() returned.
  PlainSlots(Bytes bytes, std::uint64_t) noexcept : bytes_(bytes) {}

  F operator[](std::uint64_t i) const noexcept { return detail::load<F>(bytes_.data() + i * sizeof(F)); }
  void prefetch(std::uint64_t i) const noexcept { detail::prefetch_read(bytes_.data() + i * sizeof(F)); }
  Bytes bytes() const noexcept { return bytes_; }

 private:
  Bytes bytes_;
};

// Packed slots, queried in place: apart from the file this needs one count per 64 slots. If they were unpacked, an
// untrusted file with only zero slots would take 16 times its size.
template <std::unsigned_integral F>
class PackedSlots {
 public:
  using Fingerprint = F;
  static constexpr bool kPacked = true;

  static std::optional<std::uint64_t> size_in(Bytes bytes, std::uint64_t slots) noexcept {
    const std::uint64_t bitmap = bitmap_bytes(slots);
    if (bitmap > bytes.size()) return {};
    std::uint64_t used = 0;
    for (std::uint64_t i = 0; i * 64 < slots; ++i) used += count_of(word_in(bytes, slots, i));
    if (used > (bytes.size() - bitmap) / sizeof(F)) return {};
    for (std::uint64_t i = 0; i < used; ++i)
      if (detail::load<F>(bytes.data() + bitmap + i * sizeof(F)) == 0) return {};  // never stored
    return bitmap + used * sizeof(F);
  }
  PackedSlots(Bytes bytes, std::uint64_t slots) : bytes_(bytes), slots_(slots), before_((slots + 63) / 64) {
    std::uint64_t used = 0;
    for (std::uint64_t i = 0; i < before_.size(); ++i) {
      before_[i] = used;
      used += count_of(word_in(bytes, slots, i));
    }
  }

  F operator[](std::uint64_t i) const noexcept {
    const std::uint64_t word = word_in(bytes_, slots_, i / 64);
    const std::uint64_t bit = std::uint64_t{1} << i % 64;
    if ((word & bit) == 0) return 0;
    const std::uint64_t rank = before_[i / 64] + count_of(word & (bit - 1));
    return detail::load<F>(bytes_.data() + bitmap_bytes(slots_) + rank * sizeof(F));
  }
  void prefetch(std::uint64_t i) const noexcept {
    detail::prefetch_read(reinterpret_cast<const std::byte*>(before_.data() + i / 64));
    detail::prefetch_read(bytes_.data() + i / 64 * 8);
  }
  Bytes bytes() const noexcept { return bytes_; }

 private:
  static std::uint64_t bitmap_bytes(std::uint64_t slots) noexcept { return slots / 8 + (slots % 8 != 0); }
  static std::uint64_t count_of(std::uint64_t word) noexcept { return static_cast<std::uint64_t>(std::popcount(word)); }
  // 64 bits of the bitmap. The last word may be shorter, so it is not loaded as eight bytes.
  static std::uint64_t word_in(Bytes bytes, std::uint64_t slots, std::uint64_t i) noexcept {
    if (i != slots / 64) return detail::load<std::uint64_t>(bytes.data() + i * 8);
    return detail::load_first<std::uint64_t>(bytes.data() + i * 8, bitmap_bytes(slots) - i * 8) &
           ~(~std::uint64_t{0} << slots % 64);
  }

  Bytes bytes_;
  std::uint64_t slots_;
  std::vector<std::uint64_t> before_;  // slots in use before each word
};

// Queries in batches, as in the layouts of our own families.
template <class Geometry, class Slots>
struct FingerprintLayout {
  using Fingerprint = typename Slots::Fingerprint;

  static bool may_contain(const Geometry& geometry, const Slots& slots, std::uint64_t digest) noexcept {
    const std::uint64_t hash = seeded(digest, geometry.seed);
    return holds(slots, hash, geometry.slots_of(hash));
  }
  // REQUIRES: count <= kBatch
  static std::uint64_t query(const Geometry& geometry, const Slots& slots, const std::uint64_t* digests,
                             std::size_t count, bool ahead) noexcept {
    assert(count <= kBatch);
    std::uint64_t answers = 0;
    if (!ahead) {
      for (std::size_t i = 0; i < count; ++i) answers |= std::uint64_t{may_contain(geometry, slots, digests[i])} << i;
      return answers;
    }
    std::array<std::uint64_t, kBatch> hashes;
    std::array<SlotsOfKey, kBatch> places;
    for (std::size_t i = 0; i < count; ++i) {
      hashes[i] = seeded(digests[i], geometry.seed);
      places[i] = geometry.slots_of(hashes[i]);
      for (const std::uint64_t slot : places[i]) slots.prefetch(slot);
    }
    for (std::size_t i = 0; i < count; ++i) answers |= std::uint64_t{holds(slots, hashes[i], places[i])} << i;
    return answers;
  }

 private:
  static bool holds(const Slots& slots, std::uint64_t hash, const SlotsOfKey& at) noexcept {
    const auto found = static_cast<Fingerprint>(slots[at[0]] ^ slots[at[1]] ^ slots[at[2]]);
    return found == fingerprint_of<Fingerprint>(hash);
  }
};

// What a codec found in the header.
template <class Geometry>
struct FingerprintParts {
  std::string_view format;
  Geometry geometry;
  Bytes rest;  // after the header
  bool packed;
  std::optional<std::uint64_t> keys{};
  std::string_view writer{};  // if another library wrote the header
};

template <class Geometry, class Slots>
class FingerprintFilter final : public AnyFilter {
  using Layout = FingerprintLayout<Geometry, Slots>;

 public:
  FingerprintFilter(FingerprintParts<Geometry> parts, Slots slots) : parts_(parts), slots_(std::move(slots)) {}

  using AnyFilter::may_contain;
  std::uint64_t may_contain(std::span<const Bytes> keys) const noexcept override {
    assert(keys.size() <= kBatch);
    std::array<std::uint64_t, kBatch> digests;
    for (std::size_t i = 0; i < keys.size(); ++i) digests[i] = xxh64(keys[i], 0);
    return Layout::query(parts_.geometry, slots_, digests.data(), keys.size(), detail::far_away(byte_size()));
  }
  std::uint64_t byte_size() const noexcept override { return slots_.bytes().size(); }

  Description describe() const override {
    constexpr double kRate = 1 / (1.0 + static_cast<double>(std::numeric_limits<typename Slots::Fingerprint>::max()));
    const std::uint64_t slots = parts_.geometry.slots();
    std::uint64_t set = 0;
    for (std::uint64_t i = 0; i < slots; ++i)
      set += static_cast<std::uint64_t>(std::popcount(static_cast<unsigned>(slots_[i])));
    Description d;
    d.format = parts_.format;
    d.family = Geometry::family;
    d.hash = "xxh64, murmur3 finaliser";
    d.keys = parts_.keys;
    d.capacity = parts_.keys;
    d.keys_estimated = parts_.geometry.keys();
    d.bits = slots * 8 * sizeof(typename Slots::Fingerprint);
    d.bytes = byte_size();
    d.probes = 3;
    d.fill = static_cast<double>(set) / static_cast<double>(d.bits);
    d.fpr = predicted_fpr(*this, kRate);
    if (d.capacity) d.fpr_at_capacity = kRate;
    d.more = parts_.geometry.about();
    d.more.emplace_back("seed", std::to_string(parts_.geometry.seed));
    d.more.emplace_back("packed", Slots::kPacked ? "yes" : "no");
    if (!parts_.writer.empty()) d.more.emplace_back("header", parts_.writer);
    return d;
  }

 private:
  FingerprintParts<Geometry> parts_;
  Slots slots_;
};

// Whether `bytes` are exactly this many slots, with nothing missing and nothing left over.
template <std::unsigned_integral F>
bool are_slots(Bytes bytes, std::uint64_t slots, bool packed) noexcept {
  return (packed ? PackedSlots<F>::size_in(bytes, slots) : PlainSlots<F>::size_in(bytes, slots)) == bytes.size();
}

// Guesses whether the slots are packed. Every key fills a slot, rarely with zero: if more than a third of the slots
// that the keys would fill are missing, it is more likely a truncated plain file.
template <std::unsigned_integral F>
bool seem_packed(Bytes bytes, std::uint64_t slots, std::uint64_t keys) noexcept {
  const std::uint64_t bitmap = slots / 8 + (slots % 8 != 0);
  return bytes.size() >= bitmap && (bytes.size() - bitmap) / sizeof(F) >= keys * 2 / 3 &&
         are_slots<F>(bytes, slots, true);
}

// Calls use(slots) with the slots that follow the header, or says why there are none.
template <class Answer, std::unsigned_integral F, class Geometry, class Use>
Result<Answer> with_slots(const FingerprintParts<Geometry>& parts, Use use) {
  const std::uint64_t slots = parts.geometry.slots();
  if (!are_slots<F>(parts.rest, slots, parts.packed)) {
    return bad(Errc::truncated, parts.format, parts.rest.size(), " bytes are not ", slots,
               parts.packed ? " packed" : "", " fingerprints");
  }
  if (parts.packed) return use(PackedSlots<F>(parts.rest, slots));
  return use(PlainSlots<F>(parts.rest, slots));
}

template <std::unsigned_integral F, class Geometry>
Result<Opened> open_fingerprints(const Source& source, const FingerprintParts<Geometry>& parts) {
  auto opened = with_slots<Opened, F>(parts, [&]<class Slots>(Slots slots) {
    return one_filter(source, parts.format,
                      std::make_shared<FingerprintFilter<Geometry, Slots>>(parts, std::move(slots)));
  });
  if (!opened) return damaged(source, parts.format, std::move(opened).error());
  return opened;
}

template <class Slots>
void write_slots(Writer& out, const Slots& slots, std::uint64_t count, bool packed) {
  using F = std::remove_cvref_t<decltype(slots[0])>;
  if (packed) {
    const std::span<std::byte> bitmap = out.zeros(count / 8 + (count % 8 != 0));
    for (std::uint64_t i = 0; i < count; ++i)
      if (slots[i] != 0) bitmap[i / 8] |= std::byte{1} << static_cast<int>(i % 8);
  }
  for (std::uint64_t i = 0; i < count; ++i)
    if (!packed || slots[i] != 0) out.le(static_cast<F>(slots[i]));
}

// Writes the same fingerprints packed or unpacked; write(slots) makes the file.
template <std::unsigned_integral F, class Geometry, class Write>
Result<Converted> repacked(const FingerprintParts<Geometry>& parts, bool packed, Write write) {
  return with_slots<Converted, F>(parts, [&](const auto& slots) {
    return Converted{write(slots), parts.packed == packed ? "none"
                                   : packed               ? "a bitmap replaces the zero fingerprints"
                                                          : "zero fingerprints replace the bitmap"};
  });
}

inline Error not_these_fingerprints(const Opened& from, std::string_view to) {
  return bad(Errc::unsupported, from.format, "to ", to,
             ": its fingerprints are different, and a filter does not store its keys: rebuild it from the keys");
}

// The number of seeds after which the writers give up.
inline constexpr std::uint64_t kMaxSeeds = 100;
constexpr std::uint64_t seed_at(std::uint64_t first, std::uint64_t i) noexcept {
  return splitmix64(first + i * 0x9e3779b97f4a7c15u);
}

// Peels the keys in the order that reproduces the writers' bytes. Slots with one key wait in stacks. Each stack is
// emptied before the next one, and a slot that drops to one key is pushed onto its own stack.
template <class Geometry>
class Peeling {
 public:
  explicit Peeling(const Geometry& geometry) : geometry_(geometry), cells_(geometry.slots()) {}

  // Returns false if these keys do not peel with this seed.
  bool peel(std::span<const std::uint64_t> digests) {
    for (const std::uint64_t digest : digests) {
      const std::uint64_t hash = seeded(digest, geometry_.seed);
      for (const std::uint64_t slot : geometry_.slots_of(hash)) {
        cells_[slot].sum ^= hash;
        if (++cells_[slot].keys > Geometry::kMaxKeysInSlot) return false;
      }
    }
    for (std::uint64_t slot = 0; slot < cells_.size(); ++slot)
      if (cells_[slot].keys == 1) push(slot);
    order_.reserve(digests.size());
    while (std::any_of(stacks_.begin(), stacks_.end(), [](const auto& stack) { return !stack.empty(); })) {
      for (auto& stack : stacks_) {
        while (!stack.empty()) {
          const std::uint64_t slot = stack.back();
          stack.pop_back();
          if (cells_[slot].keys == 1) take(slot);
        }
      }
    }
    return order_.size() == digests.size();
  }

  // In the reverse order of peeling, every key sets the slot it was peeled from. All other slots are zero.
  template <std::unsigned_integral F>
  std::vector<F> fingerprints() const {
    std::vector<F> slots(cells_.size());
    for (auto one = order_.rbegin(); one != order_.rend(); ++one) {
      F value = fingerprint_of<F>(one->hash);
      for (const std::uint64_t slot : geometry_.slots_of(one->hash))
        if (slot != one->slot) value = static_cast<F>(value ^ slots[slot]);
      slots[one->slot] = value;
    }
    return slots;
  }

 private:
  struct Cell {
    std::uint64_t sum = 0;  // XOR of the hashes of the keys that are left
    std::uint32_t keys = 0;
  };
  struct Peeled {
    std::uint64_t hash;
    std::uint64_t slot;
  };

  void push(std::uint64_t slot) { stacks_[geometry_.queue_of(slot)].push_back(slot); }
  void take(std::uint64_t slot) {
    const std::uint64_t hash = cells_[slot].sum;
    order_.push_back({hash, slot});
    const SlotsOfKey all = geometry_.slots_of(hash);
    const auto own = static_cast<std::size_t>(std::find(all.begin(), all.end(), slot) - all.begin());
    for (const std::size_t other : {(own + 1) % 3, (own + 2) % 3}) {
      Cell& cell = cells_[all[other]];
      cell.sum ^= hash;
      if (--cell.keys == 1) push(all[other]);
    }
  }

  Geometry geometry_;
  std::vector<Cell> cells_;
  std::array<std::vector<std::uint64_t>, Geometry::kQueues> stacks_;
  std::vector<Peeled> order_;
};

// The fingerprints under the first seed that works; geometry.seed is set to it.
template <std::unsigned_integral F, class Geometry>
Result<std::vector<F>> peel_fingerprints(std::string_view format, Geometry& geometry,
                                         std::span<const std::uint64_t> digests) {
  for (std::uint64_t i = 0; i < kMaxSeeds; ++i) {
    geometry.seed = seed_at(Geometry::kFirstSeed, i);
    Peeling<Geometry> peeling(geometry);
    if (peeling.peel(digests)) return peeling.template fingerprints<F>();
  }
  return bad(Errc::unsupported, format, "none of ", kMaxSeeds, " seeds works for these keys");
}

inline constexpr Param kPackedParam[] = {
    {"packed", "a bitmap, and only the fingerprints that are not zero", Param::Type::flag, "false"},
};

}  // namespace perhaps::format
