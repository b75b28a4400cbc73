// What a family is: a Layout, that is, a Shape (sizing.h) and a handful of static functions from (shape, table, word)
// to bits. The header of the family explains the structure and holds those functions; flat.h makes the filters of it.
#pragma once
#include <array>
#include <cassert>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

#include "perhaps/detail/isa.h"
#include "perhaps/filter.h"
#include "perhaps/result.h"
#include "perhaps/sizing.h"

namespace perhaps {

// What can be queried. A batch of keys goes through `L::query_kernel` and `L::insert_kernel`, members of
// detail::Kernels (detail/kernels.h), or through the layout's own `query(shape, table, batch, answers)` and
// `insert(shape, table, batch)`. A layout that has neither is probed key by key, prefetched ahead (detail/batch.h).
// REQUIRES of every function: shape.valid(), and `table` points to shape.bytes() bytes, with no alignment.
template <class L>
concept Layout = requires(typename L::Shape shape, const std::byte* table, typename L::word digest) {
  { L::family } -> std::convertible_to<std::string_view>;
  { L::template may_contain<detail::isa::Here>(shape, table, digest) }
  noexcept->std::same_as<bool>;
  { L::prefetch(shape, table, digest) }
  noexcept;
};
// Tables with numbers inside that could lead a probe astray have a `Result<void> check(shape, bytes)`, which every view
// is made through.
template <class L>
concept CheckedLayout = Layout<L> && requires(typename L::Shape shape, Bytes table) {
  { L::check(shape, table) } -> std::same_as<Result<void>>;
};
// What takes keys. The empty table is all zeros; if there is a `format(shape, table)`, it initialises the zeroed bytes.
template <class L>
concept MutableLayout = Layout<L> && requires(typename L::Shape shape, std::byte* table, typename L::word digest) {
  { L::insert(shape, table, digest) }
  noexcept->std::same_as<Inserted>;
};
template <class L>
concept FormattedLayout = MutableLayout<L> && requires(typename L::Shape shape, std::byte* table) {
  L::format(shape, table);
};
// Insert may answer `full`.
template <class L>
concept FillingLayout = MutableLayout<L> && requires {
  requires L::fills_up;
};
// Its table can be enlarged: larger(shape, table) is the shape to continue in, if there is one. The owner keeps
// the bytes, adds zeros up to the size of that shape, and calls extend(shape, larger, table).
template <class L>
concept ExtendingLayout = FillingLayout<L> &&
    requires(typename L::Shape shape, const std::byte* table, std::byte* longer) {
  { L::larger(shape, table) }
  noexcept->std::same_as<std::optional<typename L::Shape>>;
  { L::extend(shape, shape, longer) }
  noexcept;
};
// Insert only ever sets bits: tables can be ORed and ANDed, and many threads can fill one.
template <class L>
concept BitLayout = MutableLayout<L> && !FillingLayout<L> &&
                    requires(typename L::Shape shape, std::byte* table, typename L::word digest) {
  { L::insert_shared(shape, table, digest) }
  noexcept->std::same_as<Inserted>;
  { L::may_contain_shared(shape, table, digest) }
  noexcept->std::same_as<bool>;
};
// A table of units, in which halving their number halves every position: unit j of the half is the OR of the units 2j
// and 2j + 1 of the whole, exactly the filter that the same keys would have made (fold, algebra.h).
template <class Shape>
struct FoldUnits {
  std::uint64_t Shape::*count;
  std::string_view name;  // as in "7 lines cannot be halved"
  std::uint64_t bits;     // of a unit: 1, or a multiple of 64
};
template <class L>
concept FoldingLayout = BitLayout<L> && requires {
  { L::fold_units() } -> std::same_as<FoldUnits<typename L::Shape>>;
};
template <class L>
concept ErasableLayout = MutableLayout<L> &&
    requires(typename L::Shape shape, std::byte* table, typename L::word digest) {
  { L::erase(shape, table, digest) }
  noexcept->std::same_as<Erased>;
  { L::needs_rebuild(shape, table) }
  noexcept->std::same_as<bool>;
};
// Knows how many keys it holds.
template <class L>
concept CountedLayout = Layout<L> && requires(typename L::Shape shape, const std::byte* table) {
  { L::keys(shape, table) }
  noexcept->std::same_as<std::uint64_t>;
};

// What the bits themselves say, by one pass over them: condition_of(shape, table) of each family.
//   fill     share of bits that are set
//   fpr      the rate for keys that were never inserted, exactly, of *these* bits: the model's average is not needed
//   keys     estimate of the distinct keys, from the fill
struct Condition {
  double fill = 0;
  double fpr = 0;
  double keys = 0;
};

namespace detail {
// A table that answers *perhaps* to every digest: what a moved-from owner is left with, so that it can still be
// queried. For most layouts that is the default shape filled with ones; the others have an `everything()`.
template <class Shape>
struct Everything {
  Shape shape;
  const std::byte* table;
};
inline constexpr auto kAllOnes = [] {
  std::array<std::byte, 256> ones{};
  ones.fill(std::byte{0xff});
  return ones;
}();
template <class L>
Everything<typename L::Shape> everything() noexcept {
  if constexpr (requires { L::everything(); }) {
    return L::everything();
  } else {
    assert(typename L::Shape{}.bytes() <= kAllOnes.size());
    return {typename L::Shape{}, kAllOnes.data()};
  }
}
}  // namespace detail

}  // namespace perhaps
