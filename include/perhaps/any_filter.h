// A filter whose family is known only at run time: what a tool, a plug-in or a file reader holds.
//
// One virtual call per 64 keys. The typed filters know nothing of this page; make_any and File::any wrap them.
#pragma once
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "perhaps/filter.h"
#include "perhaps/result.h"
#include "perhaps/sizing.h"

namespace perhaps {

// The hashing schemes of our own families, as run-time state. Two filters can share a digest if these are equal.
using AnyHasher = std::variant<Hash, KeyedHash>;
PERHAPS_API std::string_view name_of(const AnyHasher& hasher) noexcept;
// REQUIRES: out.size() >= keys.size()
PERHAPS_API void hash_many(const AnyHasher& hasher, std::span<const Bytes> keys, std::span<std::uint64_t> out) noexcept;

// What `perhaps info` prints of a filter, whatever its origin.
struct Description {
  std::string format;                     // "perhaps" for our own file, else the name of the foreign format
  std::string family;                     // "line", "block", "classic" ..
  std::string hash;                       // "xxh3-64", "siphash-1-3" ..
  std::optional<std::uint64_t> keys;      // inserted, as recorded; duplicates count
  std::optional<std::uint64_t> capacity;  // the number of keys it was sized for
  double keys_estimated = 0;              // distinct keys, from the fill
  std::uint64_t bits = 0;
  std::uint64_t bytes = 0;
  std::uint32_t probes = 0;
  double fill = 0;             // share of bits that are set
  double fpr = 0;              // now, of these bits
  double fpr_at_capacity = 0;  // by the model, when `capacity` distinct keys are in; 0 if the capacity is unknown
  std::vector<std::pair<std::string, std::string>> more;  // what only this kind has: lines, blocks, seed ..
};

// What a filter cannot know of itself and its file should.
struct Record {
  std::uint64_t keys = 0;      // insertions so far; duplicates count
  std::uint64_t capacity = 0;  // the number of keys it was sized for; 0 = unknown
};

// The part of a filter that takes digests, for readers that ask many filters about one key: hash once, prefetch in all,
// then probe.  REQUIRES: the digests were made by hasher().
class PERHAPS_API DigestProbe {
 public:
  virtual ~DigestProbe() = default;
  virtual AnyHasher hasher() const noexcept = 0;
  virtual std::uint64_t may_contain(std::span<const std::uint64_t> digests) const noexcept = 0;  // at most kBatch
  virtual void may_contain(std::span<const std::uint64_t> digests, std::span<std::uint64_t> answers) const noexcept = 0;
  virtual void prefetch(std::uint64_t digest) const noexcept = 0;
};

class PERHAPS_API AnyFilter {
 public:
  virtual ~AnyFilter() = default;

  // Bit i of the answer belongs to keys[i].  REQUIRES: keys.size() <= kBatch
  virtual std::uint64_t may_contain(std::span<const Bytes> keys) const noexcept = 0;
  // As Filter's column.  REQUIRES: answers.size() * kBatch >= keys.size()
  virtual void may_contain(std::span<const Bytes> keys, std::span<std::uint64_t> answers) const noexcept = 0;
  bool may_contain(Bytes key) const noexcept { return may_contain(std::span(&key, 1)) != 0; }

  virtual std::uint64_t byte_size() const noexcept = 0;
  // Zero where nothing is recorded.
  virtual Record record() const noexcept { return {}; }
  // One pass over the bits.
  virtual Description describe() const = 0;
  // Null for a foreign format, whose hash is its own affair.
  virtual const DigestProbe* digests() const noexcept { return nullptr; }
};

// One thread's way into a filter that several threads fill. Everything is inserted once the lane is gone.
class PERHAPS_API AnyLane {
 public:
  virtual ~AnyLane() = default;
  virtual void insert(std::span<const Bytes> keys) noexcept = 0;
  virtual void insert_digests(std::span<const std::uint64_t> digests) noexcept = 0;
};

// Owns its memory and takes keys. Its record counts insertions; a union adds the counts, and an intersection holds at
// most the smaller of the two.
class PERHAPS_API AnyMutable : public AnyFilter {
 public:
  virtual void insert(std::span<const Bytes> keys) = 0;
  // For `threads` threads that each hold a lane. Until the last lane is gone the filter must not be used otherwise
  // (bulk.h), nor be asked for lanes again, nor die.
  virtual std::vector<std::unique_ptr<AnyLane>> lanes(unsigned threads) = 0;

  // *this becomes the union / the approximate intersection; refused unless family, shape and hasher are the same.
  virtual Result<void> unite(const AnyFilter& other) = 0;
  virtual Result<void> intersect(const AnyFilter& other) = 0;
  // Half the size.
  virtual Result<std::unique_ptr<AnyMutable>> fold() const = 0;

  // Writes our own file (container.h), atomically.
  virtual Result<void> save(const std::string& path, Record record) const = 0;
};

// `family`: "line", "block", "classic". Unknown -> unsupported. Throws std::bad_alloc.
PERHAPS_API Result<std::unique_ptr<AnyMutable>> make_any(std::string_view family, const Request& request,
                                                         const AnyHasher& hasher);

// One row of `perhaps size`: what each family would need.
struct SizeRow {
  std::string_view family;
  std::string_view summary;
  std::uint64_t bytes;
  std::uint64_t bits;
  std::uint32_t probes;
  double fpr;  // by the model, after request.keys keys
};
PERHAPS_API std::vector<SizeRow> size_table(const Request& request);

}  // namespace perhaps
