// The families of filters, each declared once.
//
// PERHAPS_FAMILIES is the list. Names, file numbers, families(), the size table, packing, the words and completions of
// the command line, `perhaps advise` and the parameters of the tests derive from it; what a family can do follows from
// the concepts that its layout satisfies (flat.h, static.h). A row whose layout lacks a part does not compile, and the
// message names the part (src/any/family.h). doc/extending.md lists what else a new family needs.
#pragma once
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "perhaps/detail/config.h"

// FAMILY(name, number, Type, summary), in the order in which tools list them.
//   name      what users, options and files call it; its enumerator in Kind
//   number    what files carry (doc/container.md); never given to another family
//   Type      its layout; `ScalableBloom` stands for the one family that is a chain of layouts
//   summary   one line for tools
// clang-format off
#define PERHAPS_FAMILIES(FAMILY)                                                                                 \
  FAMILY(line, 2, LineLayout, "one cache line per key; the default")                                             \
  FAMILY(block, 3, BlockLayout, "half a line, fastest single lookup, Parquet's layout")                          \
  FAMILY(classic, 1, BloomLayout<Multiplicative>, "classic Bloom: smallest of the three, slowest")               \
  FAMILY(scalable, 5, ScalableBloom, "a chain of line filters for an unknown number of keys")                    \
  FAMILY(counting, 4, CountingLayout, "counters of 4 bits, one line per key; keys can be removed")               \
  FAMILY(cuckoo, 6, CuckooLayout, "fingerprints in buckets of four; keys can be removed")                        \
  FAMILY(quotient, 7, QuotientLayout, "sorted fingerprints; keys can be removed, filters merged and grown")      \
  FAMILY(growing, 13, GrowingLayout, "grows with its keys, keeps its rate; keys can be removed, filters merged") \
  FAMILY(window, 8, WindowLayout, "the last N keys of a stream, in constant memory")                             \
  FAMILY(fuse, 9, FuseLayout, "built once, three or four slots per key, 13 % or 7 % above the limit")            \
  FAMILY(ribbon, 10, RibbonLayout, "built once, within 2 % of the least any filter needs")
// clang-format on

namespace perhaps {

// What a file or a block of bytes holds: a filter of some family, or another structure.
enum class Kind : std::uint32_t {
  sets = 11,   // many classic filters in one file (engine/set_index.h)
  dense = 12,  // a few keys in a block of an engine (engine/packed.h); never in a file
  map = 14,    // not a filter: it answers with a value (ribbon_map.h)
  exact = 15,  // in or out, without an error in a known universe (exact.h)
  range = 16,  // answers intervals of keys (range.h)
  coded = 17,  // a map of skewed values (coded_map.h)
#define PERHAPS_FAMILY(name, number, Type, summary) name = number,
  PERHAPS_FAMILIES(PERHAPS_FAMILY)
#undef PERHAPS_FAMILY
};

// What users and files call it; "unknown" for a number that is no kind.
constexpr std::string_view name_of(Kind kind) noexcept {
  switch (kind) {
#define PERHAPS_FAMILY(name, number, Type, summary) \
  case Kind::name:                                  \
    return #name;
    PERHAPS_FAMILIES(PERHAPS_FAMILY)
#undef PERHAPS_FAMILY
    case Kind::sets:
      return "sets";
    case Kind::dense:
      return "dense";
    case Kind::exact:
      return "exact";
    case Kind::range:
      return "range";
    case Kind::map:
      return "map";
    case Kind::coded:
      return "coded";
  }
  return "unknown";
}

// What a family can do, for programs that choose one at run time.
struct Family {
  Kind kind;
  std::string_view name;
  std::string_view summary;
  bool sized_first = false;  // must know the number of keys before the first one
  bool in_order = false;     // keys are inserted in order of arrival
  bool inserts = false;      // takes more keys once it is built
  bool erases = false;
  bool merges = false;
  bool grows = false;           // makes room for more keys than it was made for
  bool fills_up = false;        // refuses keys when it has no room
  bool forgets = false;         // drops its oldest keys when new ones come
  bool packs = false;           // pack() can put it into a block of an engine
  bool sets_bits = false;       // insert only sets bits: it can be filled in its file, folded and intersected
  bool takes_any_size = false;  // AnyRequest: honours bits_per_key and max_bytes, not only a rate
  bool takes_guard = false;     // AnyRequest: honours guard_bits
  bool takes_arity = false;     // AnyRequest: honours arity
};
// All of them, in the order of the list.
PERHAPS_API std::span<const Family> families() noexcept;
// Null: not one of families().
PERHAPS_API const Family* find_family(Kind kind) noexcept;
// Text becomes a Kind here and nowhere else. Nothing: no kind has this name.
PERHAPS_API std::optional<Kind> kind_named(std::string_view name) noexcept;

}  // namespace perhaps
