// The digests or entries that one thread collects, dealt out to buckets by the top bits of the digests.
//
// A bucket is a list of chunks, the newest first. All buckets write at once, so their current lines have to stay in
// the cache together (4096 lines: half an L2). Chunks come from large blocks, not on huge pages: those would save 1 ns
// per digest, but where a hypervisor takes free ones back, the first touch of each costs 2 to 7 ms, 10 to 25 ns per
// digest. Tried: a line for each bucket in front of its chunk, written past the cache (as fast). The first few digests
// stay loose: most sets are small.
#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "build/entry.h"
#include "build/records.h"
#include "build/spill_file.h"

namespace perhaps::build {

constexpr unsigned kBucketBits = 12;
constexpr std::size_t kBuckets = std::size_t{1} << kBucketBits;

// One spill: all buckets of a lane one after the other. 64 bits, because a lane may have more than 32 GiB of digests.
class SpilledRun {
 public:
  // REQUIRES: sizes.size() == kBuckets; in digests, of `bytes` bytes with what belongs to them
  explicit SpilledRun(std::span<const std::uint64_t> sizes, std::uint64_t bytes = 8)
      : bytes_(bytes), starts_(kBuckets + 1, 0) {
    for (std::size_t b = 0; b < kBuckets; ++b) starts_[b + 1] = starts_[b] + sizes[b];
  }
  std::uint64_t digests() const noexcept { return starts_.back(); }
  std::uint64_t size(std::size_t bucket) const noexcept { return starts_[bucket + 1] - starts_[bucket]; }
  // Where the bucket is in the file, in bytes.
  std::uint64_t at(std::size_t bucket) const noexcept { return begin_ + starts_[bucket] * bytes_; }
  void put_at(std::uint64_t begin) noexcept { begin_ = begin; }

 private:
  std::uint64_t begin_ = 0;
  std::uint64_t bytes_;
  std::vector<std::uint64_t> starts_;  // digests before each bucket
};

// `Record` is a digest or an Entry.
template <class Record>
class BucketLane {
 public:
  // `memory`: bytes that this lane may keep before it spills; 0: no limit. `max_loose`: digests before they are dealt
  // out to buckets, which take 17 MB however few they are.
  BucketLane(std::uint64_t memory, std::size_t max_loose);

  // Spills to `file` when the memory is used up.
  Result<void> add(std::span<const Record> digests, SpillFile& file);

  std::uint64_t count() const noexcept { return loose_.size() + dealt_; }
  bool is_loose() const noexcept { return chunks_.empty(); }
  Records<Record> take_loose() noexcept { return std::exchange(loose_, {}); }
  // Deals the loose ones out, too: from here on there are only buckets.
  Result<void> deal_loose(SpillFile& file);

  std::uint64_t bucket_size(std::size_t bucket) const noexcept;
  // Appends the bucket's digests at `out`, those in `file` included, and returns its new end.
  Result<Record*> read(std::size_t bucket, const SpillFile& file, Record* out) const;
  // Puts as many of `sorted` as the bucket has room for in place of what it holds in memory, and returns the rest;
  // read_sorted takes up to `count` of them out again.  REQUIRES: nothing was spilled
  std::span<const Record> write_sorted(std::size_t bucket, std::span<const Record> sorted);
  Record* read_sorted(std::size_t bucket, std::uint64_t& count, Record* out) const;
  // Gives the memory back.
  void drop();

 private:
  struct alignas(8) Chunk {  // and behind it, chunk_size_ digests
    Chunk* older;
    Record* digests() noexcept { return reinterpret_cast<Record*>(this + 1); }
    const Record* digests() const noexcept { return reinterpret_cast<const Record*>(this + 1); }
  };
  // use(digests, count) for each chunk of a bucket.
  template <class Use>
  void each_chunk(std::size_t bucket, Use use) const;
  Result<void> deal(std::span<const Record> digests, SpillFile& file);
  Result<void> spill(SpillFile& file);
  void begin_dealing();
  Chunk* new_chunk();
  std::uint64_t block_bytes() const noexcept;
  std::uint64_t chunk_bytes() const noexcept { return sizeof(Chunk) + chunk_size_ * sizeof(Record); }

  std::uint64_t memory_;
  std::size_t max_loose_;
  std::size_t chunk_size_;  // digests in a chunk
  Records<Record> loose_;
  std::uint64_t dealt_ = 0;
  std::vector<Chunk*> chunks_;                        // of each bucket, the newest
  std::vector<std::uint32_t> used_;                   // of that chunk
  std::vector<std::unique_ptr<std::byte[]>> blocks_;  // of block_bytes() each
  std::size_t block_ = 0;                             // the one that chunks are cut from
  std::uint64_t block_used_ = 0;
  std::vector<SpilledRun> runs_;
};

extern template class BucketLane<std::uint64_t>;
extern template class BucketLane<Entry>;

}  // namespace perhaps::build
