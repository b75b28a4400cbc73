// A filter of any family in bytes that say what they are, with as few as possible around its table: for the blocks of
// an engine's tables, which have a checksum, a cache and a hasher of their own. The last byte is the tag.
//
//   tag 191+n   a dense filter of n keys, 1 to 64 (dense.h), of which this byte is the last
//   tag 190     groups of dense filters (dense.h), of which this byte is the last
//   tag 66+k    | table | numbers of the shape, LEB128 | bytes of those 1 | 66 + k |       k a Kind (family.h), 1 to 60
//   tag 127     no keys: every answer is *no*
//   others      every answer is *perhaps*, as for bytes that are damaged or cut short. So do the bytes of version 1,
//               whose tables were of digests: they end in 1..65 or 128 + k, and are not read as anything else.
//
// Digests go in, and digests are looked up; the bytes do not say which hasher made them. Tables are of words, digest *
// Hash::kSpread (hash.h). The table comes first, so that it is aligned as the block is.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "perhaps/family.h"
#include "perhaps/hash.h"
#include "perhaps/sizing.h"

namespace perhaps {

struct Description;

// Kind::dense, which is the smallest for few keys: dense up to some 2800 and a ribbon beyond. Or any family that packs
// (family.h).
PERHAPS_API bool can_pack(Kind kind) noexcept;
// Whether filters of a few dozen keys are worth their bytes: Kind::dense, and families that only set bits. Others are
// then mostly head: with 18 to 36 keys at 10 bits per key a fuse filter has a rate of 50 %, a quotient filter of 38 %.
PERHAPS_API bool can_pack_few(Kind kind) noexcept;
// Of digests in any order, repeated or not, in about bits_per_key * (distinct digests) bits; a family that only sets
// bits counts a digest again unless it follows itself. If the family cannot hold the keys in about that many (a cuckoo
// filter has a head of 64 bytes, which is more than 42 keys get at 10 bits), the bytes are those of Kind::dense
// instead, and if not even that can be built, they answer *perhaps*.
// REQUIRES: can_pack(kind), bits_per_key > 0.  Throws std::bad_alloc.
PERHAPS_API std::vector<std::byte> pack(Kind kind, std::vector<std::uint64_t> digests, double bits_per_key);

// One lookup over bytes that are valid only during the call. It reads no more of them than it needs, so it may answer
// *no* where PackedView, which checks all of them, sees damage and answers *perhaps*.
PERHAPS_API bool packed_may_contain(Bytes packed, std::uint64_t digest) noexcept;

// Borrows packed bytes. Trivially copyable. Any bytes can be queried; those that make no sense answer *perhaps*.
class PackedView {
 public:
  // The bytes must outlive the view and all copies of it.
  PERHAPS_API static PackedView over(Bytes packed) noexcept;

  bool may_contain(std::uint64_t digest) const noexcept { return form_->one(*this, digest); }
  // Bit i % 64 of answers[i / 64] belongs to digests[i].  REQUIRES: answers.size() * 64 >= digests.size()
  void may_contain(std::span<const std::uint64_t> digests, std::span<std::uint64_t> answers) const noexcept {
    form_->many(*this, digests, answers);
  }
  void prefetch(std::uint64_t digest) const noexcept { form_->prefetch(*this, digest); }
  // False: it answers *perhaps* to every key, because it was damaged or could not be built.
  PERHAPS_API bool usable() const noexcept;
  // What the bytes are (any_filter.h): the family, "none" for no keys, "every" if it is not usable. Dense filters know
  // how many distinct keys they hold; of the others, those that count or set bits have an estimate.
  PERHAPS_API Description describe() const;
  std::uint64_t byte_size() const noexcept { return bytes_.size(); }

 private:
  struct Form {
    bool (*one)(const PackedView& self, std::uint64_t digest) noexcept;
    void (*many)(const PackedView& self, std::span<const std::uint64_t> digests,
                 std::span<std::uint64_t> answers) noexcept;
    void (*prefetch)(const PackedView& self, std::uint64_t digest) noexcept;
    void (*describe)(const PackedView& self, Description& d);
  };
  struct Forms;
  PackedView(Bytes bytes, const Form& form) noexcept : bytes_(bytes), form_(&form) {}

  Bytes bytes_;
  const Form* form_;
  alignas(8) std::array<std::byte, 72> shape_{};  // of the family, if it is one
};

}  // namespace perhaps
