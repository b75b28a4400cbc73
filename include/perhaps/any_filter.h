// A filter whose family is known only at run time: what a tool, a plug-in or a file reader holds.
//
// One virtual call per 64 keys. The typed filters do not depend on this header; make_any and File::any wrap them.
#pragma once
#include <cassert>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "perhaps/build_options.h"
#include "perhaps/family.h"
#include "perhaps/filter.h"
#include "perhaps/result.h"
#include "perhaps/sizing.h"

namespace perhaps {

// The hashing schemes of our own families, as run-time state. Two filters can share a digest if their hashers are
// equal.
using AnyHasher = std::variant<Hash, KeyedHash>;
PERHAPS_API std::string_view name_of(const AnyHasher& hasher) noexcept;
// REQUIRES: out.size() >= keys.size()
PERHAPS_API void hash_many(const AnyHasher& hasher, std::span<const Bytes> keys, std::span<std::uint64_t> out) noexcept;

// What `perhaps info` prints of a filter, its own or another system's.
struct Description {
  std::string format;                     // "perhaps" for our own file, else the name of the foreign format
  std::string family;                     // "line", "block", "classic" ..: a word, as foreign formats have others
  std::string hash;                       // "xxh3-64", "siphash-1-3" ..
  std::optional<std::uint64_t> keys;      // inserted, as recorded; duplicates count
  std::optional<std::uint64_t> capacity;  // the number of keys it was sized for
  double keys_estimated = 0;              // distinct keys, from the fill
  std::uint64_t bits = 0;
  std::uint64_t bytes = 0;
  std::uint32_t probes = 0;
  double fill = 0;                    // share of bits that are set
  double fpr = 0;                     // now, of these bits
  double fpr_at_capacity = 0;         // by the model, after `capacity` distinct keys; 0 if the capacity is unknown
  std::optional<double> wrong_erase;  // if it erases: probability that erasing an absent key removes another one
  bool needs_rebuild = false;         // erases have made it worse than a fresh one
  Facts more;                         // what only this kind has: lines, blocks, seed ..
};

// What a filter does not know about itself, but its file does.
struct Record {
  std::uint64_t keys = 0;      // insertions so far; duplicates count
  std::uint64_t capacity = 0;  // the number of keys it was sized for; 0 = unknown
  // Names and values that a writer left for readers, such as recipe, note, created and tool, in the order of the file.
  // A name has 1 to 64 of a-z, 0-9, '.', '_' and '-' and occurs once; a value is UTF-8. Together at most 64 KiB.
  Facts about{};

  // The value of that name, or null.
  const std::string* find(std::string_view name) const noexcept {
    for (const auto& [key, value] : about) {
      if (key == name) return &value;
    }
    return nullptr;
  }
  // For the union of two filters: keeps what both say.
  void keep_common(const Record& other) {
    std::erase_if(about, [&](const auto& entry) {
      const std::string* const theirs = other.find(entry.first);
      return theirs == nullptr || *theirs != entry.second;
    });
  }
};

// The part of a filter that takes digests, for readers that query many filters with one key: hash once, prefetch in
// all of them, then probe.  REQUIRES: the digests were made by hasher().
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

// A filter whose family and format are known only at run time: every query goes through a virtual call, so query many
// keys at once.
class PERHAPS_API AnyFilter {
 public:
  virtual ~AnyFilter() = default;

  // Bit i of the answer belongs to keys[i].  REQUIRES: keys.size() <= kBatch
  virtual std::uint64_t may_contain(std::span<const Bytes> keys) const noexcept = 0;
  // As Filter's column; batch by batch unless overridden.  REQUIRES: answers.size() * kBatch >= keys.size()
  virtual void may_contain(std::span<const Bytes> keys, std::span<std::uint64_t> answers) const noexcept {
    assert(answers.size() * kBatch >= keys.size());
    for (std::size_t from = 0; from < keys.size(); from += kBatch)
      answers[from / kBatch] =
          may_contain(keys.subspan(from, keys.size() - from < kBatch ? keys.size() - from : kBatch));
  }
  bool may_contain(Bytes key) const noexcept { return may_contain(std::span(&key, 1)) != 0; }

  virtual std::uint64_t byte_size() const noexcept = 0;
  // Zeros and no text if nothing is recorded.
  PERHAPS_API virtual const Record& record() const noexcept;
  // One pass over the bits.
  virtual Description describe() const = 0;
  // Null for a foreign format, which hashes keys in its own way.
  virtual const DigestProbe* digests() const noexcept { return nullptr; }
};

// Owns its memory: what was built, or loaded.
class PERHAPS_API AnyOwner : public AnyFilter {
 public:
  // Writes our own file (container.h), atomically.
  virtual Result<void> save(const std::string& path, const Record& record) const = 0;
};

// How many of the keys passed to erase_digests were removed, absent or kept.
struct ErasedCounts {
  std::uint64_t removed = 0;
  std::uint64_t absent = 0;
  std::uint64_t kept = 0;
};

// Takes keys. Its record counts insertions less removals; merging adds the counts, and an intersection holds at most
// the smaller of the two. Of what the records say about the filters, what both say stays. What a family cannot do is
// refused as `unsupported`.
class PERHAPS_API AnyMutable : public AnyOwner {
 public:
  // Returns how many keys were inserted: fewer than given if the filter is full. Scalable and growing filters grow and
  // keep their rate; a quotient filter grows by giving up a bit per key, so its rate rises, until no bit is left.
  // Throws std::bad_alloc.
  [[nodiscard]] virtual std::size_t insert(std::span<const Bytes> keys) = 0;
  [[nodiscard]] virtual std::size_t insert_digests(std::span<const std::uint64_t> digests) = 0;
  virtual Result<ErasedCounts> erase_digests(std::span<const std::uint64_t> digests) = 0;

  // *this becomes the filter of both key sets / the approximate intersection; refused unless family, shape and hasher
  // are the same.
  virtual Result<void> merge(const AnyFilter& other) = 0;
  virtual Result<void> intersect(const AnyFilter& other) = 0;
  // Half the size.
  virtual Result<std::unique_ptr<AnyMutable>> fold() const = 0;
};

// One thread's way into a filter that several threads fill. All keys are inserted once the lane is destroyed.
class PERHAPS_API AnyLane {
 public:
  virtual ~AnyLane() = default;
  // False: no more keys can be taken; finish() will say why.
  [[nodiscard]] virtual bool insert(std::span<const Bytes> keys) noexcept = 0;
  [[nodiscard]] virtual bool insert_digests(std::span<const std::uint64_t> digests) noexcept = 0;
};

// From keys to a filter of any family (Family says which way each goes):
//   sets_bits       sized for request.keys, then filled through all lanes at once
//   in_order        keys go in in the order of arrival, so there is only one lane
//   all the others  the digests are collected, made distinct and counted; request.keys is only a lower bound
class PERHAPS_API AnyBuilder {
 public:
  virtual ~AnyBuilder() = default;
  // At most `threads` of them. Call once.
  virtual std::vector<std::unique_ptr<AnyLane>> lanes(unsigned threads) = 0;
  // Call once, after the last lane is destroyed.
  virtual Result<std::unique_ptr<AnyOwner>> finish() = 0;
};

// A request to a family that is chosen at run time. What the family cannot honour (Family::takes_*) is refused, and the
// error names the family and the field.
struct AnyRequest {
  std::uint64_t keys = 0;
  double fpr = 0.01;
  double bits_per_key = 0;
  std::uint64_t max_bytes = 0;
  std::uint32_t guard_bits = 0;  // GuardedRequest
  std::uint32_t arity = 0;       // FuseRequest; 0 is its default
};

// A Kind that is no family is `unsupported`. Throws std::bad_alloc.
PERHAPS_API Result<std::unique_ptr<AnyBuilder>> make_builder(Kind kind, const AnyRequest& request,
                                                             const AnyHasher& hasher, const BuildOptions& options = {});
// An empty filter. A static family is `unsupported`: use make_builder.
PERHAPS_API Result<std::unique_ptr<AnyMutable>> make_any(Kind kind, const AnyRequest& request, const AnyHasher& hasher);

// What a filter of one family would need.
struct FamilySize {
  Kind kind;
  std::uint64_t bytes = 0;
  std::uint64_t bits = 0;
  std::uint32_t probes = 0;
  double fpr = 0;  // by the model, after request.keys keys
};
// By the model of the family; an error if it cannot honour the request.
PERHAPS_API Result<FamilySize> size_of(Kind kind, const AnyRequest& request);
// Of every family that can honour the request.
PERHAPS_API std::vector<FamilySize> size_table(const Request& request);

}  // namespace perhaps
