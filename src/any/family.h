// The list of families (perhaps/family.h) as types, and what the run-time interface must know of each.
#pragma once
#include <optional>
#include <type_traits>

#include "perhaps/perhaps.h"

namespace perhaps {

// What the run-time interface requires of a family that is one run of bytes. The assertion names what is missing.
template <class L, Kind kKind>
consteval bool complete_layout() {
  using Shape = typename L::Shape;
  static_assert(Layout<L>, "family: its layout lacks may_contain, prefetch or query (Layout, flat.h)");
  static_assert(
      requires { requires L::kind == kKind; }, "family: its layout's `kind` is not its row's (family.h)");
  static_assert(
      requires { requires L::family == name_of(kKind); },
      "family: its layout's `family` is not the name in its row (family.h)");
  static_assert(MutableLayout<L> != StaticLayout<L>,
                "family: its layout must have either insert and insert_many (MutableLayout, flat.h) or shard_bytes and "
                "build_shard (StaticLayout, static.h)");
  static_assert(
      requires(RequestOf<Shape> request) {
        { Shape::for_keys(request) } -> std::same_as<Shape>;
      },
      "family: its shape lacks for_keys (sizing.h)");
  static_assert(
      requires(const Shape s) {
        { s.fpr(1.0) } -> std::same_as<double>;
      },
      "family: its shape lacks fpr(keys) (sizing.h)");
  static_assert(
      requires(const Shape s) {
        { Shape::from(s.numbers()) } -> std::same_as<Result<Shape>>;
      },
      "family: its shape lacks numbers() or from(): what a file stores (sizing.h)");
  static_assert(
      requires(const Shape s) {
        { s.facts() } -> std::same_as<Facts>;
      },
      "family: its shape lacks facts(): what `perhaps info` prints (sizing.h)");
  static_assert(
      requires(const Shape s, Bytes table) {
        { condition_of(s, table) } -> std::same_as<Condition>;
      } || CountedLayout<L> ||
          StaticLayout<L>,
      "family: condition_of(shape, table) is missing, or keys(shape, table) in its layout (flat.h)");
  static_assert(
      !ErasableLayout<L> ||
          requires(const Shape s) {
            { s.wrong_erase(1.0) } -> std::same_as<double>;
          },
      "family: it erases, and its shape lacks wrong_erase(keys)");
  static_assert(std::is_trivially_copyable_v<Shape>, "family: its shape is not trivially copyable (packed.h)");
  return true;
}

template <class Type, Kind kKind>
consteval bool complete() {
  if constexpr (std::same_as<Type, ScalableBloom>)
    return Type::kind == kKind;
  else
    return complete_layout<Type, kKind>();
}
#define PERHAPS_FAMILY(name, number, Type, summary) static_assert(complete<Type, Kind::name>());
PERHAPS_FAMILIES(PERHAPS_FAMILY)
#undef PERHAPS_FAMILY

// Calls use.operator()<Type>() for every family, in the order of the list.
template <class Use>
void for_each_family(Use use) {
#define PERHAPS_FAMILY(name, number, Type, summary) use.template operator()<Type>();
  PERHAPS_FAMILIES(PERHAPS_FAMILY)
#undef PERHAPS_FAMILY
}

// Calls use.operator()<L>() for every family that is one run of bytes.
template <class Use>
void for_each_layout(Use use) {
  for_each_family([&]<class L>() {
    if constexpr (!std::same_as<L, ScalableBloom>) use.template operator()<L>();
  });
}

// Calls use.operator()<L>() for the layout of that kind; false: it is not one run of bytes.
template <class Use>
bool for_layout(Kind kind, Use use) {
  bool found = false;
  for_each_layout([&]<class L>() {
    if (L::kind != kind) return;
    found = true;
    use.template operator()<L>();
  });
  return found;
}

// Below this rate a chain's links are classic: a line filter pays too much for its one line.
inline constexpr double kClassicLinksBelow = 1e-4;

inline std::uint64_t bits_of(BloomShape s) { return s.bits; }
template <class Shape>
std::uint64_t bits_of(const Shape& s) {
  return s.bytes() * 8;
}

template <class Shape>
std::uint32_t probes_of(const Shape& s) {
  if constexpr (requires { Shape::kProbes; }) {
    return Shape::kProbes;
  } else if constexpr (requires { s.probes; }) {
    return s.probes;
  } else {
    return 0;
  }
}

template <class L>
Condition condition_now(const typename L::Shape& shape, Bytes table, const Record& record) {
  if constexpr (requires { condition_of(shape, table); }) {
    return condition_of(shape, table);
  } else if constexpr (MutableLayout<L>) {
    const auto keys = static_cast<double>(L::keys(shape, table.data()));
    double fill = 0;
    if constexpr (requires { shape.capacity(); }) {
      fill = keys / static_cast<double>(shape.capacity());
    } else {
      fill = shape.fill(keys);
    }
    return {.fill = fill, .fpr = shape.fpr(keys), .keys = keys};
  } else {
    // Static: built for exactly its distinct keys.
    const auto keys = static_cast<double>(record.capacity);
    return {.fill = 1, .fpr = shape.fpr(keys), .keys = keys};
  }
}

// merge(into, other) changes `into`; merge(one, other) makes a third filter, which may be larger.
template <class L, class H = Hash>
concept MergesInPlace = requires(Flat<L, H>& into, FlatView<L, H> other) {
  merge(into, other);
};
template <class L, class H = Hash>
concept MergesIntoThird = requires(FlatView<L, H> view) {
  { merge(view, view) } -> std::same_as<Result<Flat<L, H>>>;
};
// A larger table of the same keys.
template <class L, class H = Hash>
concept ResizingLayout = MutableLayout<L> && requires(typename L::Shape shape, FlatView<L, H> view) {
  { shape.grown_for(std::uint64_t{}) } -> std::same_as<Result<typename L::Shape>>;
  { resize(view, shape) } -> std::same_as<Result<Flat<L, H>>>;
};
// Old keys make room for new ones.
template <class L>
concept ForgettingLayout = MutableLayout<L> && requires(const typename L::Shape shape) {
  shape.window();
};

}  // namespace perhaps
