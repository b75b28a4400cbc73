// The families that are one run of bytes, once, and what the run-time interface must know of each beyond its layout.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "perhaps/algebra.h"
#include "perhaps/any_filter.h"
#include "perhaps/counting_bloom.h"
#include "perhaps/cuckoo.h"
#include "perhaps/fuse.h"
#include "perhaps/quotient.h"
#include "perhaps/ribbon.h"
#include "perhaps/static.h"
#include "perhaps/window.h"

namespace perhaps {

// `use.template operator()<L>()` for each, in the order of `perhaps size`.
template <class Use>
void for_each_layout(Use use) {
  use.template operator()<LineLayout>();
  use.template operator()<BlockLayout>();
  use.template operator()<BloomLayout<EnhancedDouble>>();
  use.template operator()<CountingLayout>();
  use.template operator()<CuckooLayout>();
  use.template operator()<QuotientLayout>();
  use.template operator()<WindowLayout>();
  use.template operator()<FuseLayout>();
  use.template operator()<RibbonLayout>();
}

inline std::uint64_t bits_of(BloomShape s) { return s.bits; }
template <class Shape>
std::uint64_t bits_of(const Shape& s) {
  return s.bytes() * 8;
}

inline std::uint32_t probes_of(BlockShape) { return BlockShape::kProbes; }
template <class Shape>
std::uint32_t probes_of(const Shape& s) {
  if constexpr (requires { s.probes; }) return s.probes;
  return 0;
}

using More = std::vector<std::pair<std::string, std::string>>;
inline More more_of(BloomShape, Bytes) { return {}; }
inline More more_of(LineShape s, Bytes) { return {{"lines", std::to_string(s.lines)}}; }
inline More more_of(BlockShape s, Bytes) { return {{"blocks", std::to_string(s.blocks)}}; }

inline void add_guard(More& more, std::uint32_t guard_bits) {
  if (guard_bits != 0) more.emplace_back("guard", std::to_string(guard_bits) + " bits that only remove compares");
}
inline More more_of(CountingShape s, Bytes) {
  More more = {{"lines", std::to_string(s.lines)}, {"counters", std::to_string(s.counter_bits) + " bits"}};
  if (s.guards != 0) more.emplace_back("guards", std::to_string(s.guards) + " counters that only remove looks at");
  return more;
}
inline More more_of(QuotientShape s, Bytes) {
  More more = {{"buckets", std::to_string(s.buckets)}, {"bits", std::to_string(s.remainder_bits) + " a remainder"}};
  add_guard(more, s.guard_bits);
  return more;
}
inline More more_of(const FuseShape& s, Bytes) {
  return {{"arity", std::to_string(s.arity)},
          {"bits", std::to_string(s.bits) + " a slot"},
          {"shards", std::to_string(std::uint64_t{1} << s.shard_bits)}};
}
inline More more_of(CuckooShape s, Bytes) {
  More more = {{"buckets", std::to_string(s.buckets)}, {"bits", std::to_string(s.fingerprint_bits) + " a fingerprint"}};
  add_guard(more, s.guard_bits);
  return more;
}
inline More more_of(WindowShape s, Bytes) {
  return {{"window", std::to_string(s.window()) + (s.by_time != 0 ? " ticks" : " keys")},
          {"lines", std::to_string(s.rows) + " rows of " + std::to_string(s.lines)}};
}
inline More more_of(const RibbonShape& s, Bytes) {
  return {{"columns", std::to_string(s.columns + s.wide / 4294967296.0)}, {"fronts", std::to_string(s.fronts)}};
}

template <class L>
Condition condition_now(const typename L::Shape& shape, Bytes table, const Record& record) {
  if constexpr (requires { condition_of(shape, table); }) {
    return condition_of(shape, table);
  } else if constexpr (CountedLayout<L> && MutableLayout<L>) {
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

}  // namespace perhaps
