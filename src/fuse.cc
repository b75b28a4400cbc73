// Batches of lookups in a fuse filter: the slots of a key are asked for some keys before they are looked at.
#include "perhaps/fuse.h"

#include <algorithm>

namespace perhaps {
namespace detail {
namespace {

// A key between the request to the memory and its answer.
template <unsigned kArity>
struct Pending {
  const std::byte* slots;
  FuseProbe<kArity> probe;
  bool open;

  void ask(const FuseShape& shape, const std::byte* table, std::uint64_t h) noexcept {
    const std::byte* const shard = shard_at(shape.shard_bits, table, h);
    const auto g = FuseGeometry::at(shard);
    slots = shard + 8;
    probe = FuseProbe<kArity>(g, shape.bits, shape.shard_bits, h);
    open = g.segments == 0;
  }
  void ask_ahead(const FuseShape& shape, const std::byte* table, std::uint64_t h) noexcept {
    ask(shape, table, h);
    for (const std::uint64_t slot : probe.slot) prefetch_read(slots + slot * shape.bits / 8);
  }
  bool answer(std::uint32_t bits) const noexcept {
    std::uint64_t difference = probe.fingerprint;
    for (const std::uint64_t slot : probe.slot) difference ^= fuse_slot(slots, slot, bits);
    return (difference << (64 - bits) == 0) | open;
  }
};

template <unsigned kArity>
void query_far(const FuseShape& shape, const std::byte* table, const std::uint64_t* digests, std::size_t count,
               std::uint64_t* answers) noexcept {
  constexpr std::size_t kAhead = 16;
  Pending<kArity> ring[kAhead];
  for (std::size_t i = 0; i < std::min(kAhead, count); ++i) ring[i].ask_ahead(shape, table, digests[i]);
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < count; ++i) {
    Pending<kArity>& pending = ring[i % kAhead];
    word |= std::uint64_t{pending.answer(shape.bits)} << i % kBatch;
    if (i + kAhead < count) pending.ask_ahead(shape, table, digests[i + kAhead]);
    if (i % kBatch == kBatch - 1 || i + 1 == count) answers[i / kBatch] = std::exchange(word, 0);
  }
}

template <unsigned kArity>
void query_near(const FuseShape& shape, const std::byte* table, const std::uint64_t* digests, std::size_t count,
                std::uint64_t* answers) noexcept {
  for (std::size_t from = 0; from < count; from += kBatch) {
    const std::size_t size = std::min(kBatch, count - from);
    std::uint64_t word = 0;
    for (std::size_t i = 0; i < size; ++i) {
      Pending<kArity> pending;
      pending.ask(shape, table, digests[from + i]);
      word |= std::uint64_t{pending.answer(shape.bits)} << i;
    }
    answers[from / kBatch] = word;
  }
}

}  // namespace

void fuse_query(const FuseShape& shape, const std::byte* table, const std::uint64_t* digests, std::size_t count,
                std::uint64_t* answers, bool ahead) noexcept {
  const FuseShape own = shape;  // in registers: stores to `answers` might alias the caller's
  if (own.arity == 3) {
    ahead ? query_far<3>(own, table, digests, count, answers) : query_near<3>(own, table, digests, count, answers);
  } else {
    ahead ? query_far<4>(own, table, digests, count, answers) : query_near<4>(own, table, digests, count, answers);
  }
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
