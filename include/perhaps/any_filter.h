// A filter whose family is known only at run time: what a tool, a plug-in or a file reader holds.
//
// One virtual call per 64 keys. The typed filters know nothing of this page; make_any and File::any wrap them.
#pragma once
#include <cassert>
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
#include "perhaps/static.h"

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
  std::optional<double> wrong_erase;  // if it erases: how many strangers' erases take another key's place
  bool needs_rebuild = false;         // erases have made it worse than a fresh one
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
  virtual void may_contain(std::span<const std::uint64_t> digests, std::span<std::uint64_t> answers) const noexcept = 0;
  // At most kBatch of them.
  std::uint64_t may_contain(std::span<const std::uint64_t> digests) const noexcept {
    assert(digests.size() <= kBatch);
    std::uint64_t answers = 0;
    may_contain(digests, std::span(&answers, 1));
    return answers;
  }
  virtual void prefetch(std::uint64_t digest) const noexcept = 0;
};

class PERHAPS_API AnyFilter {
 public:
  virtual ~AnyFilter() = default;

  // Bit i of the answer belongs to keys[i].  REQUIRES: keys.size() <= kBatch
  virtual std::uint64_t may_contain(std::span<const Bytes> keys) const noexcept = 0;
  // As Filter's column; batch by batch unless a filter knows better.  REQUIRES: answers.size() * kBatch >= keys.size()
  virtual void may_contain(std::span<const Bytes> keys, std::span<std::uint64_t> answers) const noexcept {
    assert(answers.size() * kBatch >= keys.size());
    for (std::size_t from = 0; from < keys.size(); from += kBatch)
      answers[from / kBatch] =
          may_contain(keys.subspan(from, keys.size() - from < kBatch ? keys.size() - from : kBatch));
  }
  bool may_contain(Bytes key) const noexcept { return may_contain(std::span(&key, 1)) != 0; }

  virtual std::uint64_t byte_size() const noexcept = 0;
  // Zero where nothing is recorded.
  virtual Record record() const noexcept { return {}; }
  // One pass over the bits.
  virtual Description describe() const = 0;
  // Null for a foreign format, whose hash is its own affair.
  virtual const DigestProbe* digests() const noexcept { return nullptr; }
};

// Owns its memory: what was built, or loaded.
class PERHAPS_API AnyOwner : public AnyFilter {
 public:
  // Writes our own file (container.h), atomically.
  virtual Result<void> save(const std::string& path, Record record) const = 0;
};

// What became of many keys that were to be erased.
struct ErasedCounts {
  std::uint64_t removed = 0;
  std::uint64_t absent = 0;
  std::uint64_t kept = 0;
};

// Takes keys. Its record counts insertions less removals; a union adds the counts, and an intersection holds at most
// the smaller of the two. What a family cannot do is refused as `unsupported`.
class PERHAPS_API AnyMutable : public AnyOwner {
 public:
  // How many went in: fewer than there are if it is full. A scalable filter grows and keeps its rate; a quotient filter
  // grows, and its rate with it, as long as it has bits to give. Throws std::bad_alloc.
  [[nodiscard]] virtual std::size_t insert(std::span<const Bytes> keys) = 0;
  [[nodiscard]] virtual std::size_t insert_digests(std::span<const std::uint64_t> digests) = 0;
  virtual Result<ErasedCounts> erase_digests(std::span<const std::uint64_t> digests) = 0;

  // *this becomes the union / the approximate intersection; refused unless family, shape and hasher are the same.
  virtual Result<void> unite(const AnyFilter& other) = 0;
  virtual Result<void> intersect(const AnyFilter& other) = 0;
  // Half the size.
  virtual Result<std::unique_ptr<AnyMutable>> fold() const = 0;
};

// One thread's way into a filter that several threads fill. Everything is in once the lane is gone.
class PERHAPS_API AnyLane {
 public:
  virtual ~AnyLane() = default;
  // False: no more can be taken; finish() will say why.
  [[nodiscard]] virtual bool insert(std::span<const Bytes> keys) noexcept = 0;
  [[nodiscard]] virtual bool insert_digests(std::span<const std::uint64_t> digests) noexcept = 0;
};

// From keys to a filter of any family:
//   bits          line, block, classic: sized for request.keys, then filled through all lanes at once
//   whole sets    fuse, ribbon, counting, cuckoo, quotient: the digests are collected, made distinct and counted;
//                 request.keys is not looked at unless it is larger
//   streams       scalable, window: keys go in in the order of arrival, so there is only one lane
class PERHAPS_API AnyBuilder {
 public:
  virtual ~AnyBuilder() = default;
  // Once; `threads` of them at most.
  virtual std::vector<std::unique_ptr<AnyLane>> lanes(unsigned threads) = 0;
  // Once, when the last lane is gone.
  virtual Result<std::unique_ptr<AnyOwner>> finish() = 0;
};

// What each family can do, for tools that choose one.
struct Family {
  std::string_view name;
  std::string_view summary;
  bool sized_first;  // must know the number of keys before the first one
  bool in_order;     // keys go in in order of arrival
  bool grows;        // takes more keys once it is built
  bool erases;
  bool merges;
};
PERHAPS_API std::span<const Family> families() noexcept;
PERHAPS_API const Family* find_family(std::string_view name) noexcept;

// Unknown -> unsupported. Throws std::bad_alloc.
PERHAPS_API Result<std::unique_ptr<AnyBuilder>> make_builder(std::string_view family, const Request& request,
                                                             const AnyHasher& hasher, const BuildOptions& options = {});
// An empty filter. A static family is `unsupported`: those are built.
PERHAPS_API Result<std::unique_ptr<AnyMutable>> make_any(std::string_view family, const Request& request,
                                                         const AnyHasher& hasher);

// One row of `perhaps size`: what each family would need.
struct SizeRow {
  std::string_view family;
  std::uint64_t bytes;
  std::uint64_t bits;
  std::uint32_t probes;
  double fpr;  // by the model, after request.keys keys
};
PERHAPS_API std::vector<SizeRow> size_table(const Request& request);

}  // namespace perhaps
