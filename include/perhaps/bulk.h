// Many threads fill one filter, at nearly the speed of many filters.
//
//   BulkInsert bulk(filter, threads);
//   in each thread:  auto lane = bulk.lane();  while (more) lane.insert(digests);
//
// A small filter (its copies fit in kBufferBytes): every lane but the first fills a table of its own, and these are
// ORed into the filter. A large one is cut into parts; a lane sorts its digests into a buffer for each part, and a full
// buffer is inserted under the lock of its part, at full single-writer speed. Either way no atomic operation touches a
// line (a locked OR for each lane would cost more than the cache miss), and as bits are ORed the bytes do not depend on
// the number of threads or on their order. A classic filter scatters a key over all parts: a large one is filled with
// the shared, atomic insert instead.
//
// While lanes are at work the filter must not be used otherwise. A lane's keys are all in the filter once it is flushed
// or destroyed.
#pragma once
#include <algorithm>
#include <atomic>
#include <mutex>
#include <new>
#include <optional>
#include <vector>

#include "perhaps/algebra.h"
#include "perhaps/detail/threads.h"
#include "perhaps/flat.h"

namespace perhaps {

template <BitLayout L, Hasher H>
class BulkInsert {
 public:
  using digest = Digest<H>;  // what lanes take
  // Layouts that keep a key in one place say which: place_of(shape, h) < places(shape).
  static constexpr bool kPartitioned = requires(typename L::Shape s, typename L::word h) { L::place_of(s, h); };

  // `threads` lanes will be at work. The filter must outlive this.
  explicit BulkInsert(Flat<L, H>& filter, unsigned threads)
      : filter_(filter), threads_(threads), copies_(threads > 1 && filter.byte_size() <= kBufferBytes / (threads - 1)) {
    if (copies_) {
      locks_ = std::vector<std::mutex>(1);
    } else if constexpr (kPartitioned) {
      const std::uint64_t last = L::places(filter.shape()) - 1;
      while (last >> shift_ >= kMaxParts) ++shift_;
      locks_ = std::vector<std::mutex>((last >> shift_) + 1);
      const std::uint64_t room = std::min(kBufferBytes / std::max(threads, 1u), filter.byte_size());
      block_ = std::clamp<std::size_t>(static_cast<std::size_t>(room / locks_.size() / sizeof(digest)), 256, 16384);
    }
  }

  // The way in for one thread. What it still holds goes into the filter when it is destroyed.
  class Lane {
   public:
    // Throws std::bad_alloc.
    explicit Lane(BulkInsert& bulk) : bulk_(bulk) {
      if (bulk.copies_) {
        if (bulk.lanes_.fetch_add(1) > 0) copy_.emplace(bulk.filter_.shape(), bulk.filter_.hasher());
      } else if (kPartitioned && bulk.threads_ > 1) {
        memory_ = Memory(bulk.locks_.size() * bulk.stride() * sizeof(digest));
        used_.assign(bulk.locks_.size(), 0);
      }
    }
    Lane(const Lane&) = delete;
    Lane& operator=(const Lane&) = delete;
    ~Lane() { flush(); }

    void insert(std::span<const digest> many) noexcept {
      if (bulk_.threads_ <= 1) return bulk_.filter_.insert(many);
      if (copy_) return copy_->insert(many);
      if (bulk_.copies_) {
        const std::lock_guard lock(bulk_.locks_[0]);
        return bulk_.filter_.insert(many);
      }
      if constexpr (!kPartitioned) {
        bulk_.filter_.shared().insert(many);
      } else {
        const auto shape = bulk_.filter_.shape();
        const std::size_t block = bulk_.block_;
        const std::size_t stride = bulk_.stride();
        digest* const blocks = this->blocks();
        for (const digest& d : many) {
          const auto part = static_cast<std::size_t>(L::place_of(shape, d.word()) >> bulk_.shift_);
          blocks[part * stride + used_[part]] = d;
          if (++used_[part] == block) flush(part);
        }
      }
    }

    // Keys instead of digests.
    template <ColumnKey K>
    void insert(std::span<const K> keys) noexcept {
      if (bulk_.threads_ <= 1) return bulk_.filter_.insert(keys);
      if (copy_) return copy_->insert(keys);
      if (bulk_.copies_) {
        const std::lock_guard lock(bulk_.locks_[0]);
        return bulk_.filter_.insert(keys);
      }
      std::array<digest, 256> digests;
      for (std::size_t i = 0; i < keys.size(); i += digests.size()) {
        const auto batch = keys.subspan(i, std::min(digests.size(), keys.size() - i));
        digests_of(bulk_.filter_.hasher(), batch, std::span(digests));
        insert(std::span<const digest>(digests.data(), batch.size()));
      }
    }

    // Puts what the lane still holds into the filter.
    void flush() noexcept {
      if (copy_) {
        const std::lock_guard lock(bulk_.locks_[0]);
        detail::or_bytes(bulk_.filter_.writable_bytes().data(), copy_->bytes().data(), copy_->byte_size());
      }
      for (std::size_t part = 0; part < used_.size(); ++part) flush(part);
    }

   private:
    digest* blocks() noexcept { return reinterpret_cast<digest*>(memory_.data()); }

    void flush(std::size_t part) noexcept {
      if (used_[part] == 0) return;
      const std::span<const digest> block(blocks() + part * bulk_.stride(), used_[part]);
      const std::lock_guard lock(bulk_.locks_[part]);
      bulk_.filter_.insert(block);
      used_[part] = 0;
    }

    BulkInsert& bulk_;
    std::optional<Flat<L, H>> copy_;
    Memory memory_;
    std::vector<std::size_t> used_;
  };

  // One for each thread.
  Lane lane() { return Lane(*this); }

 private:
  // Many parts and large blocks: a part then fits in L2 and a block meets its lines more than once (1e8 keys, 64 parts
  // of 2048: 1.3 times the processor time of 256 parts of 8192, which is that of inserting directly). All lanes
  // together take at most kBufferBytes, and a lane no more than the filter.
  static constexpr std::size_t kMaxParts = 256;
  static constexpr std::uint64_t kBufferBytes = std::uint64_t{48} << 20;
  // Some lines more than a block: at a power of two all blocks would fill up in the same few sets of the cache.
  std::size_t stride() const noexcept { return block_ + 40; }

  Flat<L, H>& filter_;
  unsigned threads_;
  bool copies_;
  std::atomic<unsigned> lanes_ = 0;
  unsigned shift_ = 0;
  std::size_t block_ = 0;
  std::vector<std::mutex> locks_;
};

// Fewer keys than this are inserted before a thread has started.
inline constexpr std::size_t kWorthAThread = 500'000;

namespace detail {
// Calls work(lane, from, size) from `threads` threads, each with a lane of its own, until all of 0..count is taken. In
// pieces, because two cores are seldom equally fast. A thread without memory for its lane takes no part.
// Returns how many were taken: all of them, or none because there was no memory for a single lane.
template <BitLayout L, Hasher H, class Work>
std::size_t share_out(Flat<L, H>& filter, std::size_t count, unsigned threads, Work work) noexcept {
  constexpr std::size_t kPiece = 65536;
  std::atomic<std::size_t> next = 0;
  try {
    BulkInsert<L, H> bulk(filter, threads);
    in_threads(threads, [&] {
      typename BulkInsert<L, H>::Lane lane(bulk);
      for (std::size_t from; (from = next.fetch_add(kPiece)) < count;) work(lane, from, std::min(kPiece, count - from));
    });
  } catch (const std::bad_alloc&) {
    // Thrown by a lane before it has taken anything.
  }
  return std::min<std::size_t>(next, count);
}
}  // namespace detail

// Inserts all of `many` with up to `threads` threads: fewer, even this one alone, if there is no memory for more.
template <BitLayout L, Hasher H>
void insert_parallel(Flat<L, H>& filter, std::span<const Digest<H>> many, unsigned threads) noexcept {
  std::size_t done = 0;
  if (threads > 1 && many.size() >= kWorthAThread && !filter.writable_bytes().empty()) {
    done = detail::share_out(
        filter, many.size(), threads,
        [&](auto& lane, std::size_t from, std::size_t size) noexcept { lane.insert(many.subspan(from, size)); });
  }
  filter.insert(many.subspan(done));
}

// The same from keys: hashing is shared out among the threads as well.
template <BitLayout L, Hasher H, ColumnKey K>
void insert_parallel(Flat<L, H>& filter, std::span<const K> keys, unsigned threads) noexcept {
  std::size_t done = 0;
  if (threads > 1 && keys.size() >= kWorthAThread && !filter.writable_bytes().empty()) {
    done = detail::share_out(
        filter, keys.size(), threads,
        [&](auto& lane, std::size_t from, std::size_t size) noexcept { lane.insert(keys.subspan(from, size)); });
  }
  filter.insert(keys.subspan(done));
}

}  // namespace perhaps
