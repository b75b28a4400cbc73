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

BucketLane::BucketLane(std::uint64_t memory, std::size_t max_loose) : memory_(memory), max_loose_(max_loose) {
  std::uint64_t chunk = kLargeChunk;
  if (memory != 0) {
    // Half of the memory may be the unused ends of chunks.
    chunk = std::clamp(memory / 2 / kBuckets / 8 * 8, kSmallChunk, kLargeChunk);
    memory_ = std::max<std::uint64_t>(memory, 2 * kBuckets * kSmallChunk);
    max_loose_ = static_cast<std::size_t>(std::min<std::uint64_t>(max_loose, memory_ / 16));
  }
  chunk_size_ = static_cast<std::size_t>(chunk / 8) - 1;
}

template <class Use>
void BucketLane::each_chunk(std::size_t bucket, Use use) const {
  std::size_t used = used_[bucket];
  for (const Chunk* chunk = chunks_[bucket]; chunk != nullptr; chunk = chunk->older) {
    use(chunk->digests(), used);
    used = chunk_size_;
  }
}

Result<void> BucketLane::add(std::span<const std::uint64_t> digests, SpillFile& file) {
  if (!is_loose()) return deal(digests, file);
  if (loose_.size() + digests.size() <= max_loose_) {
    loose_.insert(loose_.end(), digests.begin(), digests.end());
    return {};
  }
  if (auto done = deal_loose(file); !done) return done;
  return deal(digests, file);
}

Result<void> BucketLane::deal_loose(SpillFile& file) {
  if (is_loose()) begin_dealing();
  std::vector<std::uint64_t> loose;
  loose.swap(loose_);
  return deal(loose, file);
}

void BucketLane::begin_dealing() {
  chunks_.assign(kBuckets, nullptr);
  used_.assign(kBuckets, static_cast<std::uint32_t>(chunk_size_));  // no chunk is as good as a full one
}

std::uint64_t BucketLane::block_bytes() const noexcept { return memory_ != 0 ? std::min(kBlock, memory_ / 4) : kBlock; }

BucketLane::Chunk* BucketLane::new_chunk() {
  const std::uint64_t bytes = (chunk_size_ + 1) * 8;
  if (block_ < blocks_.size() && block_used_ + bytes > block_bytes()) ++block_, block_used_ = 0;
  if (block_ == blocks_.size()) blocks_.push_back(std::unique_ptr<std::byte[]>(new std::byte[block_bytes()]));
  auto* chunk = reinterpret_cast<Chunk*>(blocks_[block_].get() + block_used_);
  block_used_ += bytes;
  return chunk;
}

Result<void> BucketLane::deal(std::span<const std::uint64_t> digests, SpillFile& file) {
  const auto full = static_cast<std::uint32_t>(chunk_size_);
  Chunk** const chunks = chunks_.data();
  std::uint32_t* const used = used_.data();
  for (const std::uint64_t h : digests) {
    const auto bucket = static_cast<std::size_t>(h >> (64 - kBucketBits));
    if (used[bucket] == full) {
      if (memory_ != 0 && block_ * block_bytes() + block_used_ + (full + 1) * 8 > memory_) {
        if (auto done = spill(file); !done) return done;
      }
      Chunk* const chunk = new_chunk();
      chunk->older = chunks[bucket];
      chunks[bucket] = chunk;
      used[bucket] = 0;
    }
    chunks[bucket]->digests()[used[bucket]++] = h;
  }
  dealt_ += digests.size();
  return {};
}

Result<void> BucketLane::spill(SpillFile& file) {
  std::vector<std::uint64_t> sizes(kBuckets, 0);
  for (std::size_t bucket = 0; bucket < kBuckets; ++bucket) {
    each_chunk(bucket, [&](const std::uint64_t*, std::size_t count) { sizes[bucket] += count; });
  }
  SpilledRun run(sizes);
  run.put_at(file.extend(run.digests()));
  // Through a small buffer: a chunk is too little for a write, and a copy of all would take the memory again.
  std::vector<std::uint64_t> buffer;
  buffer.reserve(kWrite);
  std::uint64_t at = run.at(0);
  Result<void> result;
  const auto flush = [&] {
    if (result) result = file.write(at, buffer);
    at += buffer.size() * 8;
    buffer.clear();
  };
  for (std::size_t bucket = 0; bucket < kBuckets; ++bucket) {
    each_chunk(bucket, [&](const std::uint64_t* digests, std::size_t count) {
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

std::uint64_t BucketLane::bucket_size(std::size_t bucket) const noexcept {
  if (is_loose()) return 0;
  std::uint64_t size = 0;
  each_chunk(bucket, [&](const std::uint64_t*, std::size_t count) { size += count; });
  for (const SpilledRun& run : runs_) size += run.size(bucket);
  return size;
}

Result<std::uint64_t*> BucketLane::read(std::size_t bucket, const SpillFile& file, std::uint64_t* out) const {
  if (is_loose()) return out;
  each_chunk(bucket, [&](const std::uint64_t* digests, std::size_t count) {
    std::memcpy(out, digests, count * 8);
    out += count;
  });
  for (const SpilledRun& run : runs_) {
    const auto size = static_cast<std::size_t>(run.size(bucket));
    if (auto done = file.read(run.at(bucket), {out, size}); !done) {
      return std::move(done).error();
    }
    out += size;
  }
  return out;
}

std::span<const std::uint64_t> BucketLane::write_sorted(std::size_t bucket, std::span<const std::uint64_t> sorted) {
  if (is_loose()) return sorted;
  for (Chunk* chunk = chunks_[bucket]; chunk != nullptr && !sorted.empty(); chunk = chunk->older) {
    const std::size_t some = std::min(chunk_size_, sorted.size());
    std::memcpy(chunk->digests(), sorted.data(), some * 8);
    sorted = sorted.subspan(some);
  }
  return sorted;
}

std::uint64_t* BucketLane::read_sorted(std::size_t bucket, std::uint64_t& count, std::uint64_t* out) const {
  if (is_loose()) return out;
  for (const Chunk* chunk = chunks_[bucket]; chunk != nullptr && count != 0; chunk = chunk->older) {
    const std::size_t some = static_cast<std::size_t>(std::min<std::uint64_t>(chunk_size_, count));
    std::memcpy(out, chunk->digests(), some * 8);
    out += some;
    count -= some;
  }
  return out;
}

void BucketLane::drop() {
  loose_ = {};
  blocks_.clear();
  chunks_.clear();
  runs_.clear();
}

}  // namespace perhaps::build
