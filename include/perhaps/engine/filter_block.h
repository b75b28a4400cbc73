// The filter of a sorted table, for authors of storage engines: collected while the table is written, stored as one run
// of bytes, queried before the table is read.
//
//   FilterBlockBuilder builder({.bits_per_key = 10, .prefix = PrefixExtractor::delimiter('/')});
//   for (const std::string& user_key : table) builder.add(user_key);         // in order
//   write(builder.finish());
//
//   const FilterBlock filter = FilterBlock::over(bytes);                     // in memory, or piece by piece: lazy()
//   if (filter.may_contain("eu/ber")) read_the_table();
//   if (filter.may_contain_prefix("eu/")) seek();
//
// Modes:
//   full         one filter of the whole table
//   partitioned  pieces of about `piece_bytes` under an index of keys, so that a cache can hold those in use. Keys must
//                come in the order of their bytes (memcmp); if they do not, the block answers *perhaps* to everything
//   per_block    one filter for each data block, queried by the number of the block: next_block() after each
//
// A filter has whole keys, or prefixes (one of each key, or several), or both. Versions of a key count once, and so do
// equal prefixes. Any family that packs can be inside (packed.h): Kind::line for the fastest lookup, Kind::dense for
// the smallest filter.
//
// It fails open: a block that is damaged, cut short, hashed with another hasher or cannot be loaded answers *perhaps*,
// and damage() says why. Nothing on the query path allocates or throws, unless the engine's own loader does; a loader
// that throws counts as one that found nothing.
//
// The bytes, numbers little-endian, varint = LEB128:
//
//   block    | piece 0 | piece 1 | .. | index | trailer |
//   piece    | packed filter (packed.h) | low 4 bytes of the XXH3-64 of it |
//   index    for each piece: | its bytes, varint | and, if partitioned: | bytes of its first key, varint | first key |
//   first    the shortest text that is above every key of the piece before it and not above any of its own
//   trailer  | pieces 8 | bytes of the index 8 | seed or check value of the hasher (container.h) 8 | parameter of the
//            extractor 4 | mode 1 | 1 keys + 2 prefixes 1 | extractor 1 | scheme of the hasher 1 |
//            | XXH3-64 of index and trailer up to here 8 | "perhapsB" |
#pragma once
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "perhaps/any_filter.h"
#include "perhaps/engine/packed.h"

namespace perhaps {

// The part of a key that seeks go by.
class PrefixExtractor {
 public:
  // How it finds the prefix.
  enum class Kind : std::uint8_t { none, fixed, capped, delimiter, lengths, delimiters };
  static constexpr std::uint32_t kMaxLength = 32;  // of lengths()

  PrefixExtractor() = default;
  // The first `size` bytes; shorter keys have none.
  static PrefixExtractor fixed(std::uint32_t size) noexcept { return {Kind::fixed, size}; }
  // The first `size` bytes, or all of a shorter key.
  static PrefixExtractor capped(std::uint32_t size) noexcept { return {Kind::capped, size}; }
  // Up to and including the first `mark`; keys without it have none.
  static PrefixExtractor delimiter(char mark) noexcept { return {Kind::delimiter, static_cast<unsigned char>(mark)}; }

  // Several for each key: the first n bytes for each n of `sizes`; a key has those that it is long enough for.
  // REQUIRES: each is 1 to kMaxLength, and there is one
  static PrefixExtractor lengths(std::initializer_list<std::uint32_t> sizes) noexcept {
    std::uint32_t mask = 0;
    for (const std::uint32_t size : sizes) mask |= std::uint32_t{1} << (size - 1);
    return {Kind::lengths, mask};
  }
  // Several for each key: up to and including each of the first `most` marks, 1 to 255: all folders that a path is in.
  static PrefixExtractor delimiters(char mark, std::uint8_t most) noexcept {
    return {Kind::delimiters, static_cast<unsigned char>(mark) | std::uint32_t{most} << 8};
  }

  // Whether a key can have several.
  bool several() const noexcept { return kind_ == Kind::lengths || kind_ == Kind::delimiters; }
  // As the trailer of a block stores it.
  Kind kind() const noexcept { return kind_; }
  std::uint32_t parameter() const noexcept { return parameter_; }
  // The prefix of a key, if it has one; of several the longest.
  PERHAPS_API std::optional<Bytes> operator()(Bytes key) const noexcept;
  // The shortest prefix of a key that has more than `size` bytes, if it has one: from 0 on, all of them in order.
  PERHAPS_API std::optional<Bytes> longer_than(std::size_t size, Bytes key) const noexcept;
  // Of a seek target: the prefix that every key beginning with the target has. A target of fewer than `size` bytes has
  // none.
  PERHAPS_API std::optional<Bytes> of_target(Bytes target) const noexcept;
  friend bool operator==(const PrefixExtractor&, const PrefixExtractor&) = default;

 private:
  friend class FilterBlock;
  PrefixExtractor(Kind kind, std::uint32_t parameter) noexcept : kind_(kind), parameter_(parameter) {}
  Kind kind_ = Kind::none;
  std::uint32_t parameter_ = 0;
};

// How many filters a block has: see above.
enum class FilterMode : std::uint8_t { full, partitioned, per_block };

struct FilterBlockOptions {
  FilterMode mode = FilterMode::full;
  Kind family = Kind::line;  // can_pack(family)
  double bits_per_key = 10;  // a prefix counts as a key
  PrefixExtractor prefix = {};
  bool whole_keys = true;  // false: prefixes alone
  std::uint64_t piece_bytes = 4096;
  AnyHasher hasher = Hash();
};

// add* finish, or in per_block mode (add* next_block)* finish.
class FilterBlockBuilder {
 public:
  // REQUIRES: options.bits_per_key > 0, and whole keys or a prefix
  // Throws std::invalid_argument unless can_pack(options.family) and, in per_block mode, can_pack_few.
  PERHAPS_API explicit FilterBlockBuilder(FilterBlockOptions options);

  // In table order. Throws std::bad_alloc, as all of these; the block then answers *perhaps* to everything.
  PERHAPS_API void add(Bytes user_key);
  void add(std::string_view user_key) { add(bytes_of(user_key)); }
  // The keys since the last call are those of one data block.
  PERHAPS_API void next_block();
  // Call once.
  PERHAPS_API std::vector<std::byte> finish();

 private:
  template <class Step>
  void guarded(Step step);
  void take(Bytes user_key);
  void take_prefixes(Bytes user_key, std::size_t common);
  void end_piece();

  FilterBlockOptions options_;
  std::uint64_t piece_keys_;            // in a piece, at most
  std::vector<std::uint64_t> digests_;  // of the current piece
  std::vector<std::byte> last_;         // key
  std::vector<std::byte> last_prefix_;
  std::vector<std::byte> first_;  // of the current piece, for the index
  bool any_ = false;              // has there been a key?
  bool any_prefix_ = false;
  bool sound_ = true;  // otherwise pieces would deny their keys: those out of order, or lost for want of memory
  std::vector<std::byte> out_;
  std::vector<std::byte> index_;
  std::uint64_t pieces_ = 0;
};

class FilterBlock {
 public:
  // How a block is read.
  struct Options {
    AnyHasher hasher = Hash();  // as the builder's
    bool verify = true;         // checksums of the pieces, once if they are in memory and at each load otherwise
  };
  // What a loader found: bytes that are valid while `keep` exists. No bytes: they could not be read.
  struct Loaded {
    Bytes bytes = {};
    std::shared_ptr<const void> keep = {};
  };
  // The `size` bytes of the block at `offset`: one piece. Called from any thread that queries.
  using Load = std::function<Loaded(std::uint64_t offset, std::uint64_t size)>;

  static constexpr std::size_t kTrailerBytes = 48;  // at the end of each block

  // Answers *perhaps* to everything.
  FilterBlock() = default;
  // The whole block in memory, which must outlive this.
  PERHAPS_API static FilterBlock over(Bytes block, const Options& options);
  static FilterBlock over(Bytes block) { return over(block, Options()); }

  // Piece by piece: the engine reads the last kTrailerBytes of a block, then as many as tail_bytes() says, and keeps
  // those.
  // Nothing: not a trailer of ours.
  PERHAPS_API static std::optional<std::uint64_t> tail_bytes(Bytes trailer) noexcept;
  // `tail` must outlive this.
  PERHAPS_API static FilterBlock lazy(Bytes tail, Load load, const Options& options);
  static FilterBlock lazy(Bytes tail, Load load) { return lazy(tail, std::move(load), Options()); }

  // Empty: no damage was found when it was opened. Damage inside a piece that is loaded later does not show here.
  std::string_view damage() const noexcept { return damage_; }
  FilterMode mode() const noexcept { return mode_; }
  std::uint64_t pieces() const noexcept { return pieces_.size(); }
  const PrefixExtractor& prefix() const noexcept { return prefix_; }
  // Whether it knows keys, not only their prefixes.
  bool whole_keys() const noexcept { return whole_keys_; }
  const AnyHasher& hasher() const noexcept { return hasher_; }  // of its digests

  // Full and partitioned.
  bool may_contain(Bytes key) const noexcept { return may_contain(key, digest_of(key)); }
  bool may_contain(std::string_view key) const noexcept { return may_contain(bytes_of(key)); }
  // Bit i of the answer belongs to keys[i]. Consecutive keys of one piece load it once.
  // REQUIRES: keys.size() <= kBatch
  PERHAPS_API std::uint64_t may_contain(std::span<const Bytes> keys) const noexcept;
  // Could there be a key with the prefix of `target`?
  PERHAPS_API bool may_contain_prefix(Bytes target) const noexcept;
  bool may_contain_prefix(std::string_view target) const noexcept { return may_contain_prefix(bytes_of(target)); }
  // Per block: the filter of data block number `block`.
  bool may_contain(std::uint64_t block, Bytes key) const noexcept { return may_contain(block, key, digest_of(key)); }
  PERHAPS_API bool may_contain_prefix(std::uint64_t block, Bytes target) const noexcept;

  // For a read path over many tables: hash once, prefetch() in all of them, then query.
  // REQUIRES: the filters have the same hasher, prefixes and contents
  PERHAPS_API std::uint64_t digest_of(Bytes key) const noexcept;
  PERHAPS_API bool may_contain(Bytes key, std::uint64_t digest) const noexcept;
  PERHAPS_API std::uint64_t may_contain(std::span<const Bytes> keys,
                                        std::span<const std::uint64_t> digests) const noexcept;
  PERHAPS_API bool may_contain(std::uint64_t block, Bytes key, std::uint64_t digest) const noexcept;
  PERHAPS_API void prefetch(Bytes key, std::uint64_t digest) const noexcept;  // nothing, if lazy

 private:
  struct Piece {
    std::uint64_t offset;
    std::uint64_t size;
    Bytes first;  // key
  };

  bool read_tail(Bytes tail, std::uint64_t pieces_bytes, const Options& options);
  bool broken(std::string why);
  std::size_t piece_of(Bytes key) const noexcept;
  bool query(std::uint64_t piece, std::uint64_t digest) const noexcept;
  // A view of a piece that is not in memory, valid while `keep` holds it.
  PackedView fetch(std::size_t piece, Loaded& keep) const noexcept;
  // Does the filter cover this key?
  bool knows(Bytes key) const noexcept;

  std::string damage_ = "no filter";
  FilterMode mode_ = FilterMode::full;
  bool whole_keys_ = false;
  bool prefixes_ = false;
  bool verify_ = true;
  PrefixExtractor prefix_;
  AnyHasher hasher_ = Hash();
  std::vector<Piece> pieces_;
  std::vector<PackedView> views_;  // one per piece, if they are in memory
  Load load_;
};

}  // namespace perhaps
