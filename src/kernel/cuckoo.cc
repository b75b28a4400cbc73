// The batch kernels of the cuckoo filter (perhaps/cuckoo.h). Places are computed in vectors, 64 keys at a time; the
// rest has one form for all instruction sets.
#include "perhaps/cuckoo.h"

#include "kernel/instruction_set.h"

namespace perhaps::kernel {
// The scalar form.
void place_all(const CuckooShape& shape, const std::uint64_t* digests, CuckooPlaces* out) noexcept;
}  // namespace perhaps::kernel

#define PERHAPS_KERNELS "kernel/cuckoo.inc"
#define PERHAPS_KERNELS_ON PERHAPS_ON_TARGET
#include "kernel/each_target.inc"

namespace perhaps::kernel {
namespace {

using Layout = CuckooLayout;

// Sixty-four keys at a time are placed by a kernel; for far tables the next 64 are prefetched while these are answered,
// with the first and the last byte of a bucket: one in eleven lies on two lines. Keeping buckets of 12-bit fingerprints
// inside lines would take 6 % more space.
template <class Word, bool WholeBytes>
struct Prober {
  const std::byte* from;
  detail::Buckets<Word> buckets;

  Word load(std::uint64_t offset) const noexcept {
    if constexpr (WholeBytes) return detail::load<Word>(from + offset);
    return detail::load<Word>(from + offset / 2) >> offset % 2 * 4;
  }
  // What lies above the bucket in its word is not masked: a borrow only goes up.
  std::uint64_t answer(const CuckooPlaces& now, std::size_t i) const noexcept {
    const Word wanted = buckets.spread(now.fingerprint[i]);
    const Word first = load(now.first[i]) ^ wanted;
    const Word second = load(now.second[i]) ^ wanted;
    return (buckets.any_zero(first) | buckets.any_zero(second)) != 0;
  }
  void prefetch(const CuckooPlaces& next, std::size_t i) const noexcept {
    const std::byte* first = from + next.first[i] / (WholeBytes ? 1 : 2);
    const std::byte* second = from + next.second[i] / (WholeBytes ? 1 : 2);
    detail::prefetch_read(first);
    detail::prefetch_read(second);
    detail::prefetch_read(first + sizeof(Word) - 1);
    detail::prefetch_read(second + sizeof(Word) - 1);
  }
};

// The places of `size` keys, at most 64.
template <class Source>
void place(const CuckooShape& shape, Source source, std::size_t size, CuckooPlaces* out) noexcept {
  if constexpr (std::same_as<Source, detail::Digests<std::uint64_t>>) {
    if (size == kBatch && source.spread == 1) return active().cuckoo_place(shape, source.words, out);
  }
  std::uint64_t digests[kBatch];
  for (std::size_t i = 0; i < size; ++i) digests[i] = source[i];
  std::fill(digests + size, digests + kBatch, 0);
  active().cuckoo_place(shape, digests, out);
}

template <class Word, bool WholeBytes, class Source>
void query_buckets(const CuckooShape& shape, const std::byte* table, Source source, const detail::Batch<>& batch,
                   std::uint64_t* answers) noexcept {
  const Prober<Word, WholeBytes> probe{table + kLineBytes, detail::Buckets<Word>(shape.fingerprint_bits)};
  const bool ahead = batch.ahead;
  detail::in_turns<kBatch, CuckooPlaces>(
      batch.count,
      [&](std::size_t from, std::size_t size, CuckooPlaces& next) {
        place(shape, source.from(from), size, &next);
        for (std::size_t i = 0; ahead && i < size; ++i) probe.prefetch(next, i);
      },
      [&](std::size_t from, std::size_t size, const CuckooPlaces& now) {
        std::uint64_t word = 0;
        for (std::size_t i = 0; i < size; ++i) word |= probe.answer(now, i) << i;
        answers[from / kBatch] = word;
      },
      [&](std::size_t from, const CuckooPlaces& now, CuckooPlaces& next) {
        place(shape, source.from(from + kBatch), kBatch, &next);
        std::uint64_t word = 0;
        if (ahead) {
#pragma GCC unroll 4
          for (std::size_t i = 0; i < kBatch; ++i) {
            probe.prefetch(next, i);
            word |= probe.answer(now, i) << i;
          }
        } else {
          for (std::size_t i = 0; i < kBatch; ++i) word |= probe.answer(now, i) << i;
        }
        answers[from / kBatch] = word;
      });
  if (Layout::stashed(table) == 0) return;
  for (std::size_t i = 0; i < batch.count; ++i) {
    answers[i / kBatch] |= std::uint64_t{Layout::in_stash(table, source[i])} << i % kBatch;
  }
}

void query(const CuckooShape& shape, const std::byte* table, const detail::Batch<>& batch,
           std::uint64_t* answers) noexcept {
  const bool whole_bytes = shape.fingerprint_bits % 2 == 0;
  detail::with_source(batch, [&](auto source) {
    if (shape.fingerprint_bits > 16) {
      whole_bytes ? query_buckets<detail::Wide, true>(shape, table, source, batch, answers)
                  : query_buckets<detail::Wide, false>(shape, table, source, batch, answers);
    } else {
      whole_bytes ? query_buckets<std::uint64_t, true>(shape, table, source, batch, answers)
                  : query_buckets<std::uint64_t, false>(shape, table, source, batch, answers);
    }
  });
}

// Sixteen keys ahead: each has two buckets, and as many of guards.
std::size_t insert(const CuckooShape& of, std::byte* table, const detail::Batch<>& batch) noexcept {
  const CuckooShape shape = of;
  const auto prefetch = [=](const Layout::Place& p) {
    for (const std::uint64_t bucket : {p.first, p.second}) {
      detail::prefetch_write(table + kLineBytes + bucket * shape.fingerprint_bits / 2);
      if (shape.guard_bits != 0) detail::prefetch_write(table + shape.guards_at() + bucket * shape.guard_bits / 2);
    }
  };
  return detail::insert_until_full<16, detail::Inlined>(
      batch, [=](std::uint64_t h) { return Layout::place_of(shape, h); }, prefetch,
      [=](const Layout::Place& p, std::uint64_t h) { return Layout::insert_at(shape, table, h, p); });
}

void portable_kernels(InstructionSet& set) {
  set.cuckoo_place = place_all;
  set.cuckoo_query = query;
  set.cuckoo_insert = insert;
}

}  // namespace

void place_all(const CuckooShape& shape, const std::uint64_t* digests, CuckooPlaces* out) noexcept {
  const std::uint64_t bits = shape.fingerprint_bits;
  const unsigned whole_bytes = bits % 2 == 0;
  for (std::size_t i = 0; i < 64; ++i) {
    const auto at = CuckooLayout::place_of(shape, digests[i]);
    out->first[i] = at.first * bits >> whole_bytes;
    out->second[i] = at.second * bits >> whole_bytes;
    out->fingerprint[i] = at.fingerprint;
  }
}

PERHAPS_CHOOSE_KERNELS(cuckoo)

}  // namespace perhaps::kernel
