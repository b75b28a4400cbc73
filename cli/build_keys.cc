#include "build_keys.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <vector>

#include "command.h"
#include "distinct.h"
#include "interrupt.h"
#include "progress.h"

namespace perhaps::cli {
namespace {

// Digests in pieces that never move, so that growing costs no copy.
class Digests {
 public:
  static constexpr std::size_t kPiece = std::size_t{1} << 16;

  std::span<std::uint64_t> room(std::size_t most) {
    if (pieces_.empty() || used_ == kPiece) {
      pieces_.push_back(std::make_unique_for_overwrite<std::uint64_t[]>(kPiece));
      used_ = 0;
    }
    return {pieces_.back().get() + used_, std::min(most, kPiece - used_)};
  }
  void took(std::size_t count) noexcept { used_ += count; }
  std::size_t pieces() const noexcept { return pieces_.size(); }
  std::uint64_t size() const noexcept { return pieces_.empty() ? 0 : (pieces_.size() - 1) * kPiece + used_; }
  std::span<const std::uint64_t> piece(std::size_t i) const noexcept {
    return {pieces_[i].get(), i + 1 == pieces_.size() ? used_ : kPiece};
  }
  void drop(std::size_t i) noexcept { pieces_[i].reset(); }

 private:
  std::vector<std::unique_ptr<std::uint64_t[]>> pieces_;
  std::size_t used_ = 0;
};

Distinct distinct_keys(const BuildArgs& options, Keys& keys, const AnyHasher& hasher) {
  const unsigned threads = threads_for(options, keys.stored_bytes() >> 20);
  std::vector<Distinct> counts(threads);
  Progress progress("counting", keys.stored_bytes());
  keys.for_each_parallel(threads, progress, [&](unsigned thread, const Batch& batch) {
    std::array<std::uint64_t, Parser::kColumn> digests;
    digest_keys(hasher, options.keys.as, batch.keys, digests);
    for (std::size_t i = 0; i < batch.keys.size(); ++i) counts[thread].add(digests[i]);
  });
  for (unsigned i = 1; i < threads; ++i) counts[0].add(counts[i]);
  return counts[0];
}

// From files, with all threads. `capacity`: what it is sized for.
Built fill_mapped(const BuildArgs& options, Keys& keys, const AnyHasher& hasher, std::uint64_t capacity) {
  Built built;
  built.threads = threads_for(options, keys.stored_bytes() >> 20);
  built.record.capacity = capacity;
  built.filter = make_target(options, built.record.capacity, hasher);
  Progress progress(options.about->sized_first ? "building" : "reading", keys.stored_bytes());
  std::atomic<std::uint64_t> inserted{0};
  struct NoRoom {};
  try {
    const auto lanes = built.filter->lanes(built.threads);
    built.threads = keys.for_each_parallel(built.threads, progress, [&](unsigned thread, const Batch& batch) {
      bool taken = true;
      if (options.keys.as == KeysAs::u64) {
        std::array<std::uint64_t, Parser::kColumn> digests;
        digest_keys(hasher, options.keys.as, batch.keys, digests);
        taken = lanes[thread]->insert_digests(std::span(digests).first(batch.keys.size()));
      } else {
        taken = lanes[thread]->insert(batch.keys);
      }
      if (!taken) throw NoRoom();
      inserted.fetch_add(batch.keys.size(), std::memory_order_relaxed);
    });
  } catch (NoRoom) {  // save() says why
  }
  built.record.keys = inserted;
  return built;
}

// Counting distinct keys means hashing all of them once more. So the filter is sized for the records first, and only if
// its bits show that keys repeat are they counted, and the filter built again: a list without repeats costs nothing.
Built build_mapped(const BuildArgs& options, Keys& keys, const AnyHasher& hasher) {
  if (options.keys_expected != 0 || !options.about->sized_first)
    return fill_mapped(options, keys, hasher, options.keys_expected);
  const std::uint64_t records = keys.count(threads_for(options, keys.stored_bytes() >> 20));
  Built built = fill_mapped(options, keys, hasher, records);
  if (options.keys.shard.count != 0) return built;  // all shards have the size of the whole
  if (!may_repeat(records, built.filter->distinct())) return built;
  const std::uint64_t room = room_for(records, distinct_keys(options, keys, hasher));
  if (room == records) return built;
  built.filter.reset();  // its memory, or its place on the disk, is for the smaller one
  built = fill_mapped(options, keys, hasher, room);
  built.repeats = true;
  return built;
}

// From a pipe, if the size is known beforehand.
Built build_streamed(const BuildArgs& options, Keys& keys, const AnyHasher& hasher) {
  Built built;
  // Without a number of keys the best probe count is unknown: assume that the memory was meant for 10 bits per key.
  built.record.capacity = options.keys_expected != 0 || !options.about->sized_first ? options.keys_expected
                                                                                    : options.sizing.max_bytes * 8 / 10;
  built.filter = make_target(options, built.record.capacity, hasher);
  Progress progress("building", keys.stored_bytes());
  const auto lanes = built.filter->lanes(1);
  std::array<std::uint64_t, Parser::kColumn> digests;
  keys.for_each(progress, [&](const Batch& batch, const Source*) {
    digest_keys(hasher, options.keys.as, batch.keys, digests);
    built.record.keys += batch.keys.size();
    return lanes[0]->insert_digests(std::span(digests).first(batch.keys.size()));
  });
  return built;
}

// Key by key, in the order of the input.
Built build_in_order(const BuildArgs& options, Keys& keys, const AnyHasher& hasher) {
  if (keys.all_mapped() && options.about->sized_first && options.keys_expected == 0) {
    BuildArgs counted = options;
    counted.keys_expected = std::max<std::uint64_t>(keys.count(threads_for(options, keys.stored_bytes() >> 20)), 1);
    return build_streamed(counted, keys, hasher);
  }
  if (options.about->sized_first && options.keys_expected == 0)
    fail("--filter {}: from a pipe it needs --keys-expected", options.family);
  return build_streamed(options, keys, hasher);
}

// From a pipe, if nothing is known beforehand.
Built build_from_digests(const BuildArgs& options, Keys& keys, const AnyHasher& hasher) {
  Built built;
  Digests digests;
  Distinct seen;
  {
    Progress progress("reading", keys.stored_bytes());
    keys.for_each(progress, [&](const Batch& batch, const Source*) {
      for (std::size_t from = 0; from < batch.keys.size();) {
        const auto room = digests.room(batch.keys.size() - from);
        digest_keys(hasher, options.keys.as, batch.keys.subspan(from, room.size()), room);
        for (const std::uint64_t digest : room) seen.add(digest);
        digests.took(room.size());
        from += room.size();
      }
      return true;
    });
  }
  built.record = {.keys = digests.size(), .capacity = room_for(digests.size(), seen)};
  built.repeats = built.record.capacity != digests.size();
  built.filter = make_target(options, built.record.capacity, hasher);
  built.threads = threads_for(options, digests.pieces() / 2);
  Progress progress("building", digests.size());
  const auto lanes = built.filter->lanes(built.threads);
  std::atomic<std::size_t> next{0};
  std::atomic<bool> stop{false};
  const auto work = [&](unsigned thread) {
    while (!stop) {
      const std::size_t i = next++;
      if (i >= digests.pieces()) break;
      if (!lanes[thread]->insert_digests(digests.piece(i))) break;
      const std::size_t count = digests.piece(i).size();
      digests.drop(i);
      try {
        progress.advance(count, count);
      } catch (const Interrupted&) {
        stop = true;
      }
    }
  };
  built.threads = on_threads(built.threads, work);
  check_interrupt();
  return built;
}

}  // namespace

unsigned threads_for(const BuildArgs& options, std::uint64_t blocks) {
  return static_cast<unsigned>(std::clamp<std::uint64_t>(blocks, 1, options.threads));
}

Built build_from(const BuildArgs& options, Keys& keys, const AnyHasher& hasher, bool size_is_known) {
  if (options.about->in_order) return build_in_order(options, keys, hasher);
  if (keys.all_mapped()) return build_mapped(options, keys, hasher);
  if (size_is_known || !options.about->sized_first) return build_streamed(options, keys, hasher);
  return build_from_digests(options, keys, hasher);
}

}  // namespace perhaps::cli
