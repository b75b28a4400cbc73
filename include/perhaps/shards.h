// One set of keys in N shards: which shard has a key, and a file of shards.
//
//   shard of a key = floor(XXH3_64bits_withSeed(key, 0x7368617264) * N / 2^64)             0 .. N - 1
//
// The seed is "shard" in ASCII. The hash is not the one that filters place keys with, so each shard is a random sample
// of the set, and a filter of it has the rate that it was made for. This one rule is what `perhaps build --shard` and
// `--shards` keep keys by, and where `perhaps query` looks for them; doc/shards.md has an example to check a client by.
//
// A file of shards holds filters, each whole and as its own system writes it, and says of each which shard it is and of
// how many: the shards of two different partitions cannot be mixed up. doc/shards.md has every byte.
#pragma once
#include <memory>
#include <string>
#include <vector>

#include "perhaps/detail/bits.h"
#include "perhaps/hash.h"
#include "perhaps/result.h"

namespace perhaps {

inline constexpr std::uint64_t kShardSeed = 0x7368617264;
inline constexpr std::uint64_t kMostShards = 1 << 20;

// REQUIRES: shards > 0
inline std::uint64_t shard_of(Bytes key, std::uint64_t shards) noexcept {
  return detail::scale(Hash(kShardSeed)(key).value, shards);
}

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
  bool whole() const noexcept { return here_.size() == count_; }

 private:
  std::uint64_t count_ = 0;
  std::vector<Shard> here_;
};

// Sniffs the magic number.
PERHAPS_API bool is_shards(Bytes start) noexcept;
// Atomically, as write_file.  REQUIRES: 0 < count <= kMostShards; indices are ascending and below count; not none
PERHAPS_API Result<void> write_shards(const std::string& path, std::uint64_t count, std::span<const Shard> shards);

// The same for shards that come one after the other, piece by piece. Nothing appears at `path` before commit().
class ShardsWriter {
 public:
  // `here` of `count` will come.  REQUIRES: 0 < here <= count <= kMostShards
  PERHAPS_API static Result<ShardsWriter> create(const std::string& path, std::uint64_t count, std::uint64_t here);
  PERHAPS_API ShardsWriter(ShardsWriter&&) noexcept;
  PERHAPS_API ~ShardsWriter();

  PERHAPS_API Result<void> begin(std::uint64_t index);  // REQUIRES: more than the last one, less than `count`
  PERHAPS_API Result<void> append(Bytes bytes);         // to the shard that was begun
  PERHAPS_API Result<void> commit();                    // once, when all `here` are there
  PERHAPS_API std::uint64_t size() const noexcept;      // of the file so far

 private:
  struct State;
  explicit ShardsWriter(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

}  // namespace perhaps
