// What does not fit inline: making room in a crowded cuckoo table.
#include "perhaps/cuckoo.h"

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

}  // namespace

bool CuckooLayout::crowd_in(CuckooShape shape, std::byte* table, std::uint64_t h) noexcept {
  if (find_room(shape, table, h)) return true;
  const std::uint64_t waiting = Layout::stashed(table);
  // Each digest once only, or copies of one key would fill the stash.
  if (waiting == CuckooShape::kStash || Layout::in_stash(table, h)) return false;
  detail::store(table + Layout::kStashAt + 8 * waiting, h);
  detail::store(table + Layout::kStashedAt, waiting + 1);
  return true;
}

void CuckooLayout::bring_home(CuckooShape shape, std::byte* table) noexcept {
  const std::uint64_t waiting = Layout::stashed(table);
  for (std::uint64_t i = waiting; i-- > 0;) {
    if (!find_room(shape, table, Layout::stash(table, i))) continue;
    Layout::unstash(table, i);
    return;
  }
}

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
