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
#include <string_view>

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

inline std::string differ(std::string_view what, std::uint64_t a, std::uint64_t b) {
  return "the filters differ in " + std::string(what) + ": " + std::to_string(a) + " and " + std::to_string(b);
}

template <class L>
std::string difference(const typename L::Shape& a, const typename L::Shape& b) {
  if constexpr (FoldingLayout<L>) {
    constexpr auto units = L::fold_units();
    if (a.*units.count != b.*units.count) return differ(units.name, a.*units.count, b.*units.count);
  } else if constexpr (std::same_as<typename L::Shape, BloomShape>) {
    if (a.bits != b.bits) return differ("bits", a.bits, b.bits);
  }
  if constexpr (requires { a.probes; }) {
    if (a.probes != b.probes) return differ("probes", a.probes, b.probes);
  }
  return "the filters differ in shape";
}

template <class L, class H>
Result<void> same_kind(FlatView<L, H> a, FlatView<L, H> b) {
  const std::string family(L::family);
  if (!(a.shape() == b.shape())) return Error{Errc::mismatch, family + ": " + difference<L>(a.shape(), b.shape())};
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

// Half the size.
template <FoldingLayout L, Hasher H>
Result<Flat<L, H>> fold(FlatView<L, H> whole) {
  constexpr auto units = L::fold_units();
  static_assert(units.bits == 1 || units.bits % 64 == 0);
  typename L::Shape shape = whole.shape();
  std::uint64_t& count = shape.*units.count;
  if (count % 2 != 0) {
    return Error{Errc::mismatch, std::string(L::family) + ": " + std::to_string(count) + " " + std::string(units.name) +
                                     " cannot be halved"};
  }
  count /= 2;
  Flat<L, H> half(shape, whole.hasher());
  if constexpr (units.bits == 1) {
    detail::fold_bits(half.writable_bytes().data(), whole.bytes().data(), count);
  } else {
    detail::fold_units(half.writable_bytes().data(), whole.bytes().data(), count, units.bits / 8);
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
