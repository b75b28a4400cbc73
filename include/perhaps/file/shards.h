// One set of keys in N shards: which shard has a key, and a file of shards.
//
//   shard of a key = floor(XXH3_64bits_withSeed(key, 0x7368617264) * N / 2^64)             0 .. N - 1
//
// The seed is "shard" in ASCII. The hash is not the one that filters place keys with, so each shard is a random sample
// of the set, and a filter of it has the rate that it was made for. `perhaps build --shard` and `--shards` choose keys
// by this rule, and `perhaps query` finds them by it; doc/shards.md has an example to check a client with.
//
// A file of shards holds whole filters, each as its own system writes it, and says for each which shard it is and how
// many there are: the shards of two different partitions cannot be mixed up. doc/shards.md describes every byte.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "perhaps/detail/bits.h"
#include "perhaps/hash.h"
#include "perhaps/result.h"

namespace perhaps {

inline constexpr std::uint64_t kShardSeed = 0x7368617264;  // "shard" in ASCII
inline constexpr std::uint64_t kMaxShards = 1 << 20;       // in one partition

// REQUIRES: shards > 0
inline std::uint64_t shard_of(Bytes key, std::uint64_t shards) noexcept {
  return detail::scale(Hash(kShardSeed)(key).value, shards);
}

// One filter of a file of shards.
struct Shard {
  std::uint64_t index;
  Bytes bytes;
};

// Not every shard need be in the file: each of N machines may make one.
class Shards {
 public:
  // Over bytes that someone else keeps. Checks every byte. `name` is for messages.
  PERHAPS_API static Result<Shards> over(Bytes file, const std::string& name = "shards");

  std::uint64_t count() const noexcept { return count_; }         // N
  std::span<const Shard> here() const noexcept { return here_; }  // by index
  bool whole() const noexcept { return here_.size() == count_; }  // all N are in the file

 private:
  std::uint64_t count_ = 0;
  std::vector<Shard> here_;
};

// Sniffs the magic number.
PERHAPS_API bool is_shards(Bytes start) noexcept;
// Atomically, as write_file.  REQUIRES: 0 < count <= kMaxShards; at least one shard; indices ascending, below count
PERHAPS_API Result<void> write_shards(const std::string& path, std::uint64_t count, std::span<const Shard> shards);

// The same for shards that are written one after the other, piece by piece. Nothing appears at `path` before commit().
class ShardsWriter {
 public:
  // `here` of the `count` shards will be written.  REQUIRES: 0 < here <= count <= kMaxShards
  PERHAPS_API static Result<ShardsWriter> create(const std::string& path, std::uint64_t count, std::uint64_t here);
  PERHAPS_API ShardsWriter(ShardsWriter&&) noexcept;
  PERHAPS_API ~ShardsWriter();

  PERHAPS_API Result<void> begin(std::uint64_t index);  // REQUIRES: above the last index, below `count`
  PERHAPS_API Result<void> append(Bytes bytes);         // to the shard that was begun last
  PERHAPS_API Result<void> commit();                    // once, after all `here` shards
  PERHAPS_API std::uint64_t size() const noexcept;      // of the file so far

 private:
  struct State;
  explicit ShardsWriter(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

}  // namespace perhaps
