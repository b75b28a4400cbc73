// Batches of lookups in a fuse filter: the slots of a key are asked for some keys before they are looked at.
#include "perhaps/fuse.h"

#include <algorithm>

#include "kernel/table.h"

namespace perhaps {
namespace detail {
namespace {

// 64 keys ahead: with 16 a batch took twice as long at 1e7 keys.
template <unsigned kArity, class Slots, class Source>
void query_far(FuseShape shape, const std::byte* table, Source source, std::size_t count,
               std::uint64_t* answers) noexcept {
  constexpr std::size_t kAhead = 64;
  FuseLookup<kArity, Slots> ring[kAhead];
  const auto ask = [&](std::size_t i) {
    ring[i % kAhead] = FuseLookup<kArity, Slots>(shape, table, source[i]);
    ring[i % kAhead].ask_ahead();
  };
  for (std::size_t i = 0; i < std::min(kAhead, count); ++i) ask(i);
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < count; ++i) {
    word |= std::uint64_t{ring[i % kAhead].answer(shape.bits)} << i % kBatch;
    if (i + kAhead < count) ask(i + kAhead);
    if (i % kBatch == kBatch - 1 || i + 1 == count) answers[i / kBatch] = std::exchange(word, 0);
  }
}

template <unsigned kArity, class Slots, class Source>
void query_near(FuseShape shape, const std::byte* table, Source source, std::size_t count,
                std::uint64_t* answers) noexcept {
  for (std::size_t from = 0; from < count; from += kBatch) {
    const std::size_t size = std::min(kBatch, count - from);
    std::uint64_t word = 0;
    for (std::size_t i = 0; i < size; ++i) {
      word |= std::uint64_t{FuseLookup<kArity, Slots>(shape, table, source[from + i]).answer(shape.bits)} << i;
    }
    answers[from / kBatch] = word;
  }
}

template <class Source>
void query(const FuseShape& shape, const std::byte* table, Source source, std::size_t count, std::uint64_t* answers,
           bool ahead) noexcept {
  fuse_slots_of(shape.bits, [&]<class Slots>(Slots) {
    if (shape.arity == 3) {
      ahead ? query_far<3, Slots>(shape, table, source, count, answers)
            : query_near<3, Slots>(shape, table, source, count, answers);
    } else {
      ahead ? query_far<4, Slots>(shape, table, source, count, answers)
            : query_near<4, Slots>(shape, table, source, count, answers);
    }
  });
}

}  // namespace

void fuse_query(const FuseShape& shape, const std::byte* table, const std::uint64_t* digests, std::size_t count,
                std::uint64_t* answers, bool ahead) noexcept {
  query(shape, table, kernel::Digests{digests}, count, answers, ahead);
}
void fuse_query_integers(const FuseShape& shape, const std::byte* table, const std::uint64_t* keys, Hash hash,
                         std::size_t count, std::uint64_t* answers, bool ahead) noexcept {
  query(shape, table, kernel::Integers{keys, hash}, count, answers, ahead);
}

}  // namespace detail

Result<void> FuseLayout::check(const FuseShape& shape, Bytes table) {
  return detail::check_shards(family, shape.shard_bits, table, [&](Bytes shard) {
    if (shard.size() < 16) return false;
    const auto g = detail::FuseGeometry::at(shard.data());
    if (g.segments == 0 ? g.length != 0 : g.length == 0) return false;
    return g.bytes(shape.arity, shape.bits) <= shard.size();
  });
}

}  // namespace perhaps
