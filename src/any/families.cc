// families(): what each family can do, read off its layout.
#include <array>

#include "any/family.h"

namespace perhaps {
namespace {

template <class Type>
constexpr Family describe(Family about) {
  if constexpr (std::same_as<Type, ScalableBloom>) {
    about.in_order = about.inserts = about.merges = about.grows = true;
  } else {
    about.inserts = MutableLayout<Type>;
    about.erases = ErasableLayout<Type>;
    about.sets_bits = BitLayout<Type>;
    // A filter that erases counts copies, so its keys are made distinct first, as those of a static one are. The others
    // are sized for an announced number, and what is more than bits depends on the order in which keys come.
    about.sized_first = about.inserts && !about.erases;
    about.in_order = about.sized_first && !about.sets_bits;
    about.merges = MergesInPlace<Type> || MergesIntoThird<Type>;
    about.grows = ResizingLayout<Type> || ExtendingLayout<Type>;
    about.fills_up = FillingLayout<Type> && !about.grows;
    about.forgets = ForgettingLayout<Type>;
    about.packs = true;
    about.takes_any_size = true;
    about.takes_guard = requires(RequestOf<typename Type::Shape> r) { r.guard_bits; };
    about.takes_arity = requires(RequestOf<typename Type::Shape> r) { r.arity; };
  }
  return about;
}

constexpr std::array kFamilies = {
#define PERHAPS_FAMILY(name_, number, Type, summary_) \
  describe<Type>({.kind = Kind::name_, .name = name_of(Kind::name_), .summary = summary_}),
    PERHAPS_FAMILIES(PERHAPS_FAMILY)
#undef PERHAPS_FAMILY
};

}  // namespace

std::span<const Family> families() noexcept { return kFamilies; }

const Family* find_family(Kind kind) noexcept {
  for (const Family& family : kFamilies) {
    if (family.kind == kind) return &family;
  }
  return nullptr;
}

std::optional<Kind> kind_named(std::string_view name) noexcept {
  for (const Kind other : {Kind::sets, Kind::dense, Kind::map, Kind::coded, Kind::exact, Kind::range}) {
    if (name == name_of(other)) return other;
  }
  for (const Family& family : kFamilies) {
    if (name == family.name) return family.kind;
  }
  return std::nullopt;
}

}  // namespace perhaps
