// A filter of any family in bytes that say what they are, with as few as possible around its table: for the blocks of
// an engine's tables, which have a checksum, a cache and a hasher of their own. The last byte is the tag.
//
//   tag 1..64   a dense filter of so many keys (dense.h), this byte its last
//   tag 65      groups of dense filters (dense.h), this byte their last
//   tag 128+k   | table | numbers of the shape, LEB128 | bytes of those 1 | 128 + k |      k a Kind (filter.h)
//   tag 127     no keys: every answer is *no*
//   else        every answer is *perhaps*, as for whatever makes no sense or is cut short
//
// Digests go in and are asked for; whose they are, the bytes do not say. The table comes first, so that it is aligned
// as the block is.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "perhaps/hash.h"
#include "perhaps/sizing.h"

namespace perhaps {

// "dense": the smallest for few keys, dense up to some 2800 and a ribbon from there on. Else a family of any_filter.h,
// but scalable.
PERHAPS_API bool can_pack(std::string_view family) noexcept;
// Of digests in any order, repeated or not, in about bits_per_key * (distinct digests) bits. Never fails: what cannot
// be built says *perhaps*. REQUIRES: can_pack(family), bits_per_key > 0.  Throws std::bad_alloc.
PERHAPS_API std::vector<std::byte> pack(std::string_view family, std::vector<std::uint64_t> digests,
                                        double bits_per_key);

// One question, of bytes that are there only now. It looks at no more of them than it needs: damage that PackedView
// sees, and answers with *perhaps* whatever the key, is not seen here if it lies elsewhere.
PERHAPS_API bool packed_may_contain(Bytes packed, std::uint64_t digest) noexcept;

// Borrows packed bytes. Trivially copyable; any bytes can be asked, and those that make no sense answer *perhaps*.
class PackedView {
 public:
  PERHAPS_API static PackedView over(Bytes packed) noexcept;

  bool may_contain(std::uint64_t digest) const noexcept { return ask_->one(*this, digest); }
  // Bit i % 64 of answers[i / 64] belongs to digests[i].  REQUIRES: answers.size() * 64 >= digests.size()
  void may_contain(std::span<const std::uint64_t> digests, std::span<std::uint64_t> answers) const noexcept {
    ask_->many(*this, digests, answers);
  }
  void prefetch(std::uint64_t digest) const noexcept { ask_->prefetch(*this, digest); }
  // False: it answers *perhaps* whatever is asked, because it was damaged or could not be built.
  PERHAPS_API bool usable() const noexcept;
  std::uint64_t byte_size() const noexcept { return bytes_.size(); }

 private:
  struct Ask {
    bool (*one)(const PackedView& self, std::uint64_t digest) noexcept;
    void (*many)(const PackedView& self, std::span<const std::uint64_t> digests,
                 std::span<std::uint64_t> answers) noexcept;
    void (*prefetch)(const PackedView& self, std::uint64_t digest) noexcept;
  };
  struct Asks;
  PackedView(Bytes bytes, const Ask& ask) noexcept : bytes_(bytes), ask_(&ask) {}

  Bytes bytes_;
  const Ask* ask_;
  alignas(8) std::array<std::byte, 72> shape_{};  // of the family, where there is one
};

}  // namespace perhaps
