#include "build/lane.h"

#include <algorithm>
#include <cstring>

namespace perhaps::build {
namespace {

// Bytes of a chunk with its link. Not a power of two: chunks that are filled in step would meet in the same few sets of
// the cache.
constexpr std::uint64_t kLargeChunk = 4096 + 64;
constexpr std::uint64_t kSmallChunk = 256;
constexpr std::size_t kWrite = std::size_t{1} << 16;
constexpr std::uint64_t kBlock = std::uint64_t{8} << 20;

}  // namespace

template <class Record>
BucketLane<Record>::BucketLane(std::uint64_t memory, std::size_t max_loose) : memory_(memory), max_loose_(max_loose) {
  std::uint64_t chunk = kLargeChunk;
  if (memory != 0) {
    // Half of the memory may be the unused ends of chunks.
    chunk = std::clamp(memory / 2 / kBuckets / 8 * 8, kSmallChunk, kLargeChunk);
    memory_ = std::max<std::uint64_t>(memory, 2 * kBuckets * kSmallChunk);
    max_loose_ = static_cast<std::size_t>(std::min<std::uint64_t>(max_loose, memory_ / (2 * sizeof(Record))));
  }
  chunk_size_ = static_cast<std::size_t>((chunk - sizeof(Chunk)) / sizeof(Record));
}

template <class Record>
template <class Use>
void BucketLane<Record>::each_chunk(std::size_t bucket, Use use) const {
  std::size_t used = used_[bucket];
  for (const Chunk* chunk = chunks_[bucket]; chunk != nullptr; chunk = chunk->older) {
    use(chunk->digests(), used);
    used = chunk_size_;
  }
}

template <class Record>
Result<void> BucketLane<Record>::add(std::span<const Record> digests, SpillFile& file) {
  if (!is_loose()) return deal(digests, file);
  if (loose_.size() + digests.size() <= max_loose_) {
    loose_.insert(loose_.end(), digests.begin(), digests.end());
    return {};
  }
  if (auto done = deal_loose(file); !done) return done;
  return deal(digests, file);
}

template <class Record>
Result<void> BucketLane<Record>::deal_loose(SpillFile& file) {
  if (is_loose()) begin_dealing();
  Records<Record> loose;
  loose.swap(loose_);
  return deal(loose, file);
}

template <class Record>
void BucketLane<Record>::begin_dealing() {
  chunks_.assign(kBuckets, nullptr);
  used_.assign(kBuckets, static_cast<std::uint32_t>(chunk_size_));  // having no chunk is treated as having a full one
}

template <class Record>
std::uint64_t BucketLane<Record>::block_bytes() const noexcept {
  return memory_ != 0 ? std::min(kBlock, memory_ / 4) : kBlock;
}

template <class Record>
typename BucketLane<Record>::Chunk* BucketLane<Record>::new_chunk() {
  const std::uint64_t bytes = chunk_bytes();
  if (block_ < blocks_.size() && block_used_ + bytes > block_bytes()) ++block_, block_used_ = 0;
  if (block_ == blocks_.size()) blocks_.push_back(std::unique_ptr<std::byte[]>(new std::byte[block_bytes()]));
  auto* chunk = reinterpret_cast<Chunk*>(blocks_[block_].get() + block_used_);
  block_used_ += bytes;
  return chunk;
}

template <class Record>
Result<void> BucketLane<Record>::deal(std::span<const Record> digests, SpillFile& file) {
  const auto full = static_cast<std::uint32_t>(chunk_size_);
  Chunk** const chunks = chunks_.data();
  std::uint32_t* const used = used_.data();
  for (const Record& r : digests) {
    const auto bucket = static_cast<std::size_t>(digest_of(r) >> (64 - kBucketBits));
    if (used[bucket] == full) {
      if (memory_ != 0 && block_ * block_bytes() + block_used_ + chunk_bytes() > memory_) {
        if (auto done = spill(file); !done) return done;
      }
      Chunk* const chunk = new_chunk();
      chunk->older = chunks[bucket];
      chunks[bucket] = chunk;
      used[bucket] = 0;
    }
    chunks[bucket]->digests()[used[bucket]++] = r;
  }
  dealt_ += digests.size();
  return {};
}

template <class Record>
Result<void> BucketLane<Record>::spill(SpillFile& file) {
  std::vector<std::uint64_t> sizes(kBuckets, 0);
  for (std::size_t bucket = 0; bucket < kBuckets; ++bucket) {
    each_chunk(bucket, [&](const Record*, std::size_t count) { sizes[bucket] += count; });
  }
  SpilledRun run(sizes, sizeof(Record));
  run.put_at(file.extend(run.digests() * sizeof(Record) / 8));
  // Through a small buffer: a chunk is too small for a write, and a copy of everything would double the memory.
  std::vector<Record> buffer;
  buffer.reserve(kWrite);
  std::uint64_t at = run.at(0);
  Result<void> result;
  const auto flush = [&] {
    if (result) result = file.write(at, std::span<const Record>(buffer));
    at += buffer.size() * sizeof(Record);
    buffer.clear();
  };
  for (std::size_t bucket = 0; bucket < kBuckets; ++bucket) {
    each_chunk(bucket, [&](const Record* digests, std::size_t count) {
      if (buffer.size() + count > kWrite) flush();
      buffer.insert(buffer.end(), digests, digests + count);
    });
  }
  flush();
  if (!result) return result;
  runs_.push_back(std::move(run));
  begin_dealing();
  block_ = 0, block_used_ = 0;
  return {};
}

template <class Record>
std::uint64_t BucketLane<Record>::bucket_size(std::size_t bucket) const noexcept {
  if (is_loose()) return 0;
  std::uint64_t size = 0;
  each_chunk(bucket, [&](const Record*, std::size_t count) { size += count; });
  for (const SpilledRun& run : runs_) size += run.size(bucket);
  return size;
}

template <class Record>
Result<Record*> BucketLane<Record>::read(std::size_t bucket, const SpillFile& file, Record* out) const {
  if (is_loose()) return out;
  each_chunk(bucket, [&](const Record* digests, std::size_t count) {
    std::memcpy(out, digests, count * sizeof(Record));
    out += count;
  });
  for (const SpilledRun& run : runs_) {
    const auto size = static_cast<std::size_t>(run.size(bucket));
    if (auto done = file.read(run.at(bucket), std::span(out, size)); !done) {
      return std::move(done).error();
    }
    out += size;
  }
  return out;
}

template <class Record>
std::span<const Record> BucketLane<Record>::write_sorted(std::size_t bucket, std::span<const Record> sorted) {
  if (is_loose()) return sorted;
  for (Chunk* chunk = chunks_[bucket]; chunk != nullptr && !sorted.empty(); chunk = chunk->older) {
    const std::size_t some = std::min(chunk_size_, sorted.size());
    std::memcpy(chunk->digests(), sorted.data(), some * sizeof(Record));
    sorted = sorted.subspan(some);
  }
  return sorted;
}

template <class Record>
Record* BucketLane<Record>::read_sorted(std::size_t bucket, std::uint64_t& count, Record* out) const {
  if (is_loose()) return out;
  for (const Chunk* chunk = chunks_[bucket]; chunk != nullptr && count != 0; chunk = chunk->older) {
    const std::size_t some = static_cast<std::size_t>(std::min<std::uint64_t>(chunk_size_, count));
    std::memcpy(out, chunk->digests(), some * sizeof(Record));
    out += some;
    count -= some;
  }
  return out;
}

template <class Record>
void BucketLane<Record>::drop() {
  loose_ = {};
  blocks_.clear();
  chunks_.clear();
  runs_.clear();
}

template class BucketLane<std::uint64_t>;
template class BucketLane<Entry>;

}  // namespace perhaps::build
