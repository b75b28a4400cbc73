// The reference rows: plain loops over the layouts' own inline probes.
#include "kernel/table.h"
#include "perhaps/block_bloom.h"
#include "perhaps/cuckoo.h"
#include "perhaps/line_bloom.h"
#include "perhaps/ribbon.h"

namespace perhaps::kernel {
namespace {

#include "kernel/loops.inc"

// The probes find their own place again: this row is the one to compare with, not the one to be fast.
constexpr auto kNoPlace = [](std::uint64_t digest) { return digest; };

template <class L, class Source>
void query(typename L::Shape shape, const std::byte* table, Source source, std::size_t count, std::uint64_t* answers,
           bool ahead) noexcept {
  query_loop(
      source, count, answers, ahead, shape.bytes(), kNoPlace, [=](std::uint64_t h) { L::prefetch(shape, table, h); },
      [=](std::uint64_t, std::uint64_t h) { return L::template may_contain<detail::isa::Portable>(shape, table, h); });
}

template <class L, class Source>
void insert(typename L::Shape shape, std::byte* table, Source source, std::size_t count, bool ahead) noexcept {
  insert_loop(
      source, count, ahead, shape.bytes(), kNoPlace, [=](std::uint64_t h) { L::prefetch(shape, table, h); },
      [=](std::uint64_t, std::uint64_t h) { L::insert(shape, table, h); });
}

template <class Source>
void ribbon_query(const RibbonShape& shape, const std::byte* table, Source source, std::size_t count,
                  std::uint64_t* answers, bool ahead) noexcept {
  query<RibbonLayout>(shape, table, source, count, answers, ahead);
}

void cuckoo_place(const CuckooShape& shape, const std::uint64_t* digests, CuckooPlaces* out) noexcept {
  const std::uint64_t bits = shape.fingerprint_bits;
  const unsigned whole_bytes = bits % 2 == 0;
  for (std::size_t i = 0; i < 64; ++i) {
    const auto place = CuckooLayout::place_of(shape, digests[i]);
    out->first[i] = place.first * bits >> whole_bytes;
    out->second[i] = place.second * bits >> whole_bytes;
    out->fingerprint[i] = place.fingerprint;
  }
}

}  // namespace

const Row kPortable = {"portable",
                       query<LineLayout, Digests>,
                       query<LineLayout, Integers>,
                       insert<LineLayout, Digests>,
                       insert<LineLayout, Integers>,
                       query<BlockLayout, Digests>,
                       query<BlockLayout, Integers>,
                       insert<BlockLayout, Digests>,
                       insert<BlockLayout, Integers>,
                       ribbon_query<Digests>,
                       ribbon_query<Integers>,
                       cuckoo_place,
                       false};

}  // namespace perhaps::kernel
