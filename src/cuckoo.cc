// What does not fit inline: making room in a crowded cuckoo table, and the batches.
#include "perhaps/cuckoo.h"

#include "kernel/table.h"

namespace perhaps {
namespace {

using Layout = CuckooLayout;

// A bucket that was reached by moving the fingerprint in `slot` of the bucket of step `from` to its other place.
struct Step {
  std::uint64_t bucket;
  std::uint16_t from;
  std::uint8_t slot;
};
constexpr std::uint16_t kNowhere = UINT16_MAX;
// Not quite six levels (2 + 8 + 32 + .. = 2730), 32 KiB of stack. With five (682) the first digest is stashed at 96.5 %
// load, with these at 97.4 %.
constexpr std::size_t kSteps = 2048;

// Finds an empty slot for a fingerprint that belongs into `first` or `second`, moving others; nothing changes unless it
// does. The path that is found first never meets a bucket twice: what lies beyond the second visit also lies beyond the
// first, which comes earlier.
template <class Word>
bool find_room(CuckooShape shape, std::byte* table, const Layout::Place& p, std::uint64_t guard,
               const detail::Buckets<Word>& buckets) noexcept {
  std::byte* const from = table + kLineBytes;
  std::array<Step, kSteps> steps;
  std::size_t size = 0;
  steps[size++] = {p.first, kNowhere, 0};
  if (p.second != p.first) steps[size++] = {p.second, kNowhere, 0};
  for (std::size_t now = 0; now < size; ++now) {
    std::uint64_t bucket = steps[now].bucket;
    const Word word = buckets.get(from, bucket);
    if (const Word room = buckets.zeros(word); room != 0) {
      unsigned slot = buckets.first(room);
      for (std::size_t step = now; steps[step].from != kNowhere; step = steps[step].from) {
        const std::uint64_t source = steps[steps[step].from].bucket;
        const unsigned moved = steps[step].slot;
        const std::uint64_t fingerprint = buckets.lane(buckets.get(from, source), moved);
        std::uint64_t moved_guard = 0;
        if (shape.guard_bits != 0) {
          const detail::Buckets<std::uint64_t> guards(shape.guard_bits);
          moved_guard = guards.lane(guards.get(table + shape.guards_at(), source), moved);
        }
        Layout::put(shape, table, buckets, bucket, slot, fingerprint, moved_guard);
        bucket = source;
        slot = moved;
      }
      Layout::put(shape, table, buckets, bucket, slot, p.fingerprint, guard);
      return true;
    }
    const std::uint64_t came_from = steps[now].from == kNowhere ? bucket : steps[steps[now].from].bucket;
    for (unsigned slot = 0; slot < CuckooShape::kSlots && size < kSteps; ++slot) {
      const std::uint64_t next = Layout::other_bucket(shape, bucket, buckets.lane(word, slot));
      if (next == bucket || next == came_from) continue;
      detail::prefetch_read(from + buckets.at(next));
      steps[size++] = {next, static_cast<std::uint16_t>(now), static_cast<std::uint8_t>(slot)};
    }
  }
  return false;
}

bool find_room(CuckooShape shape, std::byte* table, std::uint64_t h) noexcept {
  const auto p = Layout::place_of(shape, h);
  const std::uint64_t guard = Layout::guard_of(shape, h);
  return Layout::with_words(shape, [&](auto buckets) { return find_room(shape, table, p, guard, buckets); });
}

// Sixty-four keys at a time are placed by a kernel; for far tables the next 64 are asked for while these are answered.
// Asked for are the first and the last byte of a bucket: one in eleven lies on two lines. To keep buckets of 12-bit
// fingerprints inside lines would take 6 % more space.
template <class Word, bool WholeBytes>
struct Prober {
  const std::byte* from;
  detail::Buckets<Word> buckets;

  Word load(std::uint64_t offset) const noexcept {
    if constexpr (WholeBytes) return detail::load<Word>(from + offset);
    return detail::load<Word>(from + offset / 2) >> offset % 2 * 4;
  }
  // What lies above the bucket in its word is not masked: a borrow only goes up.
  std::uint64_t answer(const kernel::CuckooPlaces& now, std::size_t i) const noexcept {
    const Word wanted = buckets.spread(now.fingerprint[i]);
    const Word first = load(now.first[i]) ^ wanted;
    const Word second = load(now.second[i]) ^ wanted;
    return (buckets.any_zero(first) | buckets.any_zero(second)) != 0;
  }
  void ask(const kernel::CuckooPlaces& next, std::size_t i) const noexcept {
    const std::byte* first = from + next.first[i] / (WholeBytes ? 1 : 2);
    const std::byte* second = from + next.second[i] / (WholeBytes ? 1 : 2);
    detail::prefetch_read(first);
    detail::prefetch_read(second);
    detail::prefetch_read(first + sizeof(Word) - 1);
    detail::prefetch_read(second + sizeof(Word) - 1);
  }
};

// The places of up to 64 keys from `first` on.
template <class Source>
void place(const CuckooShape& shape, Source source, std::size_t first, std::size_t count,
           kernel::CuckooPlaces* out) noexcept {
  const std::size_t size = std::min(kBatch, count - first);
  if constexpr (std::same_as<Source, kernel::Digests>) {
    if (size == kBatch) return kernel::active().cuckoo_place(shape, source.words + first, out);
  }
  std::uint64_t digests[kBatch];
  for (std::size_t i = 0; i < size; ++i) digests[i] = source[first + i];
  std::fill(digests + size, digests + kBatch, 0);
  kernel::active().cuckoo_place(shape, digests, out);
}

template <class Word, bool WholeBytes, class Source>
void query(const CuckooShape& shape, const std::byte* table, Source source, std::size_t count, std::uint64_t* answers,
           bool ahead) noexcept {
  const Prober<Word, WholeBytes> probe{table + kLineBytes, detail::Buckets<Word>(shape.fingerprint_bits)};
  kernel::CuckooPlaces places[2];
  if (count > 0) place(shape, source, 0, count, &places[0]);
  for (std::size_t i = 0; ahead && i < std::min(kBatch, count); ++i) probe.ask(places[0], i);
  for (std::size_t from = 0, turn = 0; from < count; from += kBatch, turn = 1 - turn) {
    const std::size_t size = std::min(kBatch, count - from);
    const std::size_t next = std::min(kBatch, count - from - size);
    if (next > 0) place(shape, source, from + kBatch, count, &places[1 - turn]);
    std::uint64_t word = 0;
    if (ahead && next == kBatch) {
#pragma GCC unroll 4
      for (std::size_t i = 0; i < kBatch; ++i) {
        probe.ask(places[1 - turn], i);
        word |= probe.answer(places[turn], i) << i;
      }
    } else {
      for (std::size_t i = 0; ahead && i < next; ++i) probe.ask(places[1 - turn], i);
      for (std::size_t i = 0; i < size; ++i) word |= probe.answer(places[turn], i) << i;
    }
    answers[from / kBatch] = word;
  }
  if (Layout::stashed(table) == 0) return;
  for (std::size_t i = 0; i < count; ++i) {
    answers[i / kBatch] |= std::uint64_t{Layout::in_stash(table, source[i])} << i % kBatch;
  }
}

template <class Source>
void query(const CuckooShape& shape, const std::byte* table, Source source, std::size_t count, std::uint64_t* answers,
           bool ahead) noexcept {
  const bool whole_bytes = shape.fingerprint_bits % 2 == 0;
  if (shape.fingerprint_bits > 16) {
    whole_bytes ? query<detail::Wide, true>(shape, table, source, count, answers, ahead)
                : query<detail::Wide, false>(shape, table, source, count, answers, ahead);
  } else {
    whole_bytes ? query<std::uint64_t, true>(shape, table, source, count, answers, ahead)
                : query<std::uint64_t, false>(shape, table, source, count, answers, ahead);
  }
}

}  // namespace

namespace detail {

bool cuckoo_crowd_in(CuckooShape shape, std::byte* table, std::uint64_t h) noexcept {
  if (find_room(shape, table, h)) return true;
  const std::uint64_t waiting = Layout::stashed(table);
  // Once only, or copies of one key would take the places of all others.
  if (waiting == CuckooShape::kStash || Layout::in_stash(table, h)) return false;
  store(table + Layout::kStashAt + 8 * waiting, h);
  store(table + Layout::kStashedAt, waiting + 1);
  return true;
}

void cuckoo_bring_home(CuckooShape shape, std::byte* table) noexcept {
  const std::uint64_t waiting = Layout::stashed(table);
  for (std::uint64_t i = waiting; i-- > 0;) {
    if (!find_room(shape, table, Layout::stash(table, i))) continue;
    Layout::unstash(table, i);
    return;
  }
}

void cuckoo_query(CuckooShape shape, const std::byte* table, const std::uint64_t* digests, std::size_t count,
                  std::uint64_t* answers, bool ahead) noexcept {
  query(shape, table, kernel::Digests{digests}, count, answers, ahead);
}
void cuckoo_query_integers(CuckooShape shape, const std::byte* table, const std::uint64_t* keys, Hash hash,
                           std::size_t count, std::uint64_t* answers, bool ahead) noexcept {
  query(shape, table, kernel::Integers{keys, hash}, count, answers, ahead);
}

std::size_t cuckoo_insert(CuckooShape shape, std::byte* table, const std::uint64_t* digests, std::size_t count,
                          bool ahead) noexcept {
  constexpr std::size_t kAhead = 16;
  if (!ahead) {
    for (std::size_t i = 0; i < count; ++i) {
      if (Layout::insert(shape, table, digests[i]) == Inserted::full) return i;
    }
    return count;
  }
  std::array<Layout::Place, kAhead> ring;
  const auto ask = [&](std::size_t i) {
    Layout::Place& p = ring[i % kAhead] = Layout::place_of(shape, digests[i]);
    for (const std::uint64_t bucket : {p.first, p.second}) {
      prefetch_write(table + kLineBytes + bucket * shape.fingerprint_bits / 2);
      if (shape.guard_bits != 0) prefetch_write(table + shape.guards_at() + bucket * shape.guard_bits / 2);
    }
  };
  for (std::size_t i = 0; i < std::min(kAhead, count); ++i) ask(i);
  for (std::size_t i = 0; i < count; ++i) {
    const Layout::Place p = ring[i % kAhead];
    if (i + kAhead < count) ask(i + kAhead);
    if (Layout::insert_at(shape, table, digests[i], p) == Inserted::full) return i;
  }
  return count;
}

}  // namespace detail

Result<void> CuckooLayout::check(CuckooShape shape, Bytes table) {
  const auto stashed = detail::load<std::uint64_t>(table.data() + kStashedAt);
  if (stashed > CuckooShape::kStash) {
    return Error{Errc::bad_parameter, "cuckoo: " + std::to_string(stashed) + " digests in a stash of " +
                                          std::to_string(CuckooShape::kStash)};
  }
  const std::uint64_t keys = CuckooLayout::keys(shape, table.data());
  if (keys < stashed || keys - stashed > shape.slots()) {
    return Error{Errc::bad_parameter, "cuckoo: " + std::to_string(keys) + " keys in " + std::to_string(shape.slots()) +
                                          " slots and a stash of " + std::to_string(stashed)};
  }
  return {};
}

}  // namespace perhaps
