// Sets of keys, combined bit by bit. Everything here is exact about *no*: no key of the result's set is ever lost.
//
//   merge      into |= other     the filter of the union, as if built from both key lists
//   intersect  into &= other     holds every key of the intersection; its rate is at most that of either input, but
//                                higher than that of a filter built from the intersection alone
//   fold       half the bytes    the filter that the same keys would have made at half the size, for even sizes
//
// Only filters of one shape and one hasher can be combined; anything else is refused with the reason.
#pragma once
#include <concepts>
#include <string>

#include "perhaps/block_bloom.h"
#include "perhaps/bloom.h"
#include "perhaps/flat.h"
#include "perhaps/line_bloom.h"

namespace perhaps {

namespace detail {
template <class Combine>
void combine(std::byte* into, const std::byte* other, std::uint64_t size, Combine op) noexcept {
  std::uint64_t at = 0;
  for (; at + 8 <= size; at += 8) {
    store<std::uint64_t>(into + at, op(load<std::uint64_t>(into + at), load<std::uint64_t>(other + at)));
  }
  for (; at < size; ++at) into[at] = op(into[at], other[at]);
}

inline void or_bytes(std::byte* into, const std::byte* other, std::uint64_t size) noexcept {
  combine(into, other, size, [](auto a, auto b) { return a | b; });
}

inline void and_bytes(std::byte* into, const std::byte* other, std::uint64_t size) noexcept {
  combine(into, other, size, [](auto a, auto b) { return a & b; });
}

// `half`: zeroed; unit j of `half` becomes the OR of units 2j and 2j + 1 of `whole`.
inline void fold_units(std::byte* half, const std::byte* whole, std::uint64_t half_units,
                       std::size_t unit_bytes) noexcept {
  for (std::uint64_t unit = 0; unit < half_units; ++unit) {
    for (std::size_t at = 0; at < unit_bytes; at += 8) {
      const std::byte* pair = whole + 2 * unit * unit_bytes + at;
      store(half + unit * unit_bytes + at, load<std::uint64_t>(pair) | load<std::uint64_t>(pair + unit_bytes));
    }
  }
}

inline void fold_bits(std::byte* half, const std::byte* whole, std::uint64_t half_bits) noexcept {
  for (std::uint64_t bit = 0; bit < half_bits; ++bit) {
    const unsigned pair = std::to_integer<unsigned>(whole[bit / 4]) >> (bit % 4 * 2) & 3u;
    if (pair != 0) half[bit / 8] |= std::byte{1} << static_cast<int>(bit % 8);
  }
}

inline std::string differ(const char* what, std::uint64_t a, std::uint64_t b) {
  return "the filters differ in " + std::string(what) + ": " + std::to_string(a) + " and " + std::to_string(b);
}

inline std::string differ(BloomShape a, BloomShape b) {
  return a.bits != b.bits ? differ("bits", a.bits, b.bits) : differ("probes", a.probes, b.probes);
}
inline std::string differ(LineShape a, LineShape b) {
  return a.lines != b.lines ? differ("lines", a.lines, b.lines) : differ("probes", a.probes, b.probes);
}
inline std::string differ(BlockShape a, BlockShape b) { return differ("blocks", a.blocks, b.blocks); }
template <class Shape>
std::string differ(const Shape&, const Shape&) {
  return "the filters differ in shape";
}

inline Result<BloomShape> halved(BloomShape s) {
  if (s.bits % 2 != 0) return Error{Errc::mismatch, "classic: " + std::to_string(s.bits) + " bits cannot be halved"};
  return BloomShape{s.bits / 2, s.probes};
}
inline Result<LineShape> halved(LineShape s) {
  if (s.lines % 2 != 0) return Error{Errc::mismatch, "line: " + std::to_string(s.lines) + " lines cannot be halved"};
  return LineShape{s.lines / 2, s.probes};
}
inline Result<BlockShape> halved(BlockShape s) {
  if (s.blocks % 2 != 0)
    return Error{Errc::mismatch, "block: " + std::to_string(s.blocks) + " blocks cannot be halved"};
  return BlockShape{s.blocks / 2};
}

template <class L, class H>
Result<void> same_kind(FlatView<L, H> a, FlatView<L, H> b) {
  const std::string family(L::family);
  if (!(a.shape() == b.shape())) return Error{Errc::mismatch, family + ": " + differ(a.shape(), b.shape())};
  if (!(a.hasher() == b.hasher()))
    return Error{Errc::mismatch, family + ": the filters hash with different seeds or keys"};
  return {};
}
}  // namespace detail

// into |= other: the filter of the keys of both. Refused unless shape and hasher are the same.
template <BitLayout L, Hasher H>
Result<void> merge(FlatSpan<L, H> into, std::type_identity_t<FlatView<L, H>> other) {
  if (auto same = detail::same_kind<L, H>(into, other); !same) return same;
  detail::or_bytes(into.writable_bytes().data(), other.bytes().data(), other.byte_size());
  return {};
}
template <BitLayout L, Hasher H>
Result<void> merge(Flat<L, H>& into, std::type_identity_t<FlatView<L, H>> other) {
  return merge(into.span(), other);
}

// into &= other: no key that is in both is lost; some that are in one only remain. Refused as merge is.
template <BitLayout L, Hasher H>
Result<void> intersect(FlatSpan<L, H> into, std::type_identity_t<FlatView<L, H>> other) {
  if (auto same = detail::same_kind<L, H>(into, other); !same) return same;
  detail::and_bytes(into.writable_bytes().data(), other.bytes().data(), other.byte_size());
  return {};
}
template <BitLayout L, Hasher H>
Result<void> intersect(Flat<L, H>& into, std::type_identity_t<FlatView<L, H>> other) {
  return intersect(into.span(), other);
}

// These layouts find a position as the high part of a product with the size, so position p of the whole filter is
// position p / 2 of the half: the fold is exact, bit for bit.
template <class L>
concept FoldingLayout = BitLayout<L> &&(std::same_as<typename L::Shape, LineShape> || std::same_as<L, BlockLayout> ||
                                        std::same_as<L, BloomLayout<Multiplicative>>);
// Half the size.
template <FoldingLayout L, Hasher H>
Result<Flat<L, H>> fold(FlatView<L, H> whole) {
  auto shape = detail::halved(whole.shape());
  if (!shape) return std::move(shape).error();
  Flat<L, H> half(*shape, whole.hasher());
  if constexpr (std::same_as<typename L::Shape, LineShape>) {
    detail::fold_units(half.writable_bytes().data(), whole.bytes().data(), shape->lines, kLineBytes);
  } else if constexpr (std::same_as<L, BlockLayout>) {
    detail::fold_units(half.writable_bytes().data(), whole.bytes().data(), shape->blocks, BlockLayout::kBlockBytes);
  } else {
    detail::fold_bits(half.writable_bytes().data(), whole.bytes().data(), shape->bits);
  }
  return half;
}
template <FoldingLayout L, Hasher H>
Result<Flat<L, H>> fold(const Flat<L, H>& whole) {
  return fold(whole.view());
}

// REQUIRES: table.size() >= shape.bytes()
PERHAPS_API Condition condition_of(BloomShape shape, Bytes table);
PERHAPS_API Condition condition_of(LineShape shape, Bytes table);
PERHAPS_API Condition condition_of(BlockShape shape, Bytes table);

// The same of a filter.
template <FlatFilter F>
Condition condition_of(const F& filter) {
  return condition_of(filter.shape(), filter.bytes());
}

}  // namespace perhaps
