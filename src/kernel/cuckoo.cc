// The batch kernels of the cuckoo filter (perhaps/cuckoo.h). Places are computed in vectors, 64 keys at a time; the
// rest has one form for all instruction sets.
#include "perhaps/cuckoo.h"

#include "kernel/instruction_set.h"
#include "kernel/targets.h"

namespace perhaps::kernel {
// The scalar form.
void place_all(const CuckooShape& shape, const std::uint64_t* digests, CuckooPlaces* out) noexcept;
}  // namespace perhaps::kernel

#if PERHAPS_SIMD
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernel/cuckoo.cc"
#include <hwy/foreach_target.h>
// After foreach_target.h.
#include <hwy/highway.h>

#if PERHAPS_ON_TARGET
HWY_BEFORE_NAMESPACE();
namespace perhaps::kernel::HWY_NAMESPACE {
namespace {
namespace hn = hwy::HWY_NAMESPACE;

// A cuckoo place is eight multiplications of 32 bits, which vectors have: a quarter of the time of the scalar form.
// Tables of 2^32 buckets and more take that.
void place(const CuckooShape& shape, const std::uint64_t* digests, CuckooPlaces* out) noexcept {
  if (shape.buckets >> 32 != 0) return place_all(shape, digests, out);
  const hn::CappedTag<std::uint64_t, 8> d;
  using V = decltype(hn::Zero(d));
  const hn::Repartition<std::uint32_t, decltype(d)> d32;
  const hn::Repartition<std::int64_t, decltype(d)> signs;
  // Of the lower halves.
  const auto mul = [=](V a, V b) HWY_ATTR { return hn::MulEven(hn::BitCast(d32, a), hn::BitCast(d32, b)); };
  const std::uint64_t bits = shape.fingerprint_bits;
  const V buckets = hn::Set(d, shape.buckets);
  const V values = hn::Set(d, (std::uint64_t{1} << bits) - 1);
  const V width = hn::Set(d, bits);
  const V salt = hn::Set(d, std::uint64_t{CuckooLayout::kFingerprint});
  const V mix0 = hn::Set(d, std::uint64_t{CuckooLayout::kMix[0]});
  const V mix1 = hn::Set(d, std::uint64_t{CuckooLayout::kMix[1]});
  const V one = hn::Set(d, std::uint64_t{1});
  const auto store = [=](V bucket, std::uint64_t* to) HWY_ATTR {
    const V offset = mul(bucket, width);
    hn::Store(bits % 2 == 0 ? hn::ShiftRight<1>(offset) : offset, d, to);
  };
  for (std::size_t i = 0; i < 64; i += hn::Lanes(d)) {
    const V h = hn::LoadU(d, digests + i);
    const V high = hn::ShiftRight<32>(h);
    const V fingerprint = hn::Add(one, hn::ShiftRight<32>(mul(mul(hn::Xor(h, high), salt), values)));
    const V first = hn::ShiftRight<32>(hn::Add(mul(high, buckets), hn::ShiftRight<32>(mul(h, buckets))));
    const V z = mul(fingerprint, mix0);
    const V shifted = hn::BitCast(d, hn::ShiftRight<15>(hn::BitCast(d32, z)));
    const V sum = hn::ShiftRight<32>(mul(mul(hn::Xor(z, shifted), mix1), buckets));
    const V other = hn::Sub(sum, first);
    const V negative = hn::BitCast(d, hn::BroadcastSignBit(hn::BitCast(signs, other)));
    hn::Store(fingerprint, d, out->fingerprint + i);
    store(first, out->first + i);
    store(hn::Add(other, hn::And(negative, buckets)), out->second + i);
  }
}

void simd_kernels(InstructionSet& set) { set.cuckoo_place = place; }

}  // namespace
}  // namespace perhaps::kernel::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif
#endif

#if !PERHAPS_SIMD || HWY_ONCE
namespace perhaps::kernel {
namespace {

using Layout = CuckooLayout;

// Sixty-four keys at a time are placed by a kernel; for far tables the next 64 are prefetched while these are answered,
// with the first and the last byte of a bucket: one in eleven lies on two lines. To keep buckets of 12-bit fingerprints
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
  void ask(const CuckooPlaces& next, std::size_t i) const noexcept {
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
        for (std::size_t i = 0; ahead && i < size; ++i) probe.ask(next, i);
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
            probe.ask(next, i);
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
  const auto ask = [=](const Layout::Place& p) {
    for (const std::uint64_t bucket : {p.first, p.second}) {
      detail::prefetch_write(table + kLineBytes + bucket * shape.fingerprint_bits / 2);
      if (shape.guard_bits != 0) detail::prefetch_write(table + shape.guards_at() + bucket * shape.guard_bits / 2);
    }
  };
  return detail::insert_until_full<16, detail::Inlined>(
      batch, [=](std::uint64_t h) { return Layout::place_of(shape, h); }, ask,
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

void cuckoo_kernels(Target target, InstructionSet& set) { PERHAPS_FOR_TARGET(target, set) }

}  // namespace perhaps::kernel
#endif
