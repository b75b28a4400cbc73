// A block of an input to batches of records and of their keys, without a string per key.
#pragma once
#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "arena.h"
#include "key_hash.h"
#include "key_options.h"
#include "perhaps/hash.h"
#include "source.h"

namespace perhaps::cli {

struct Batch {
  std::span<const Bytes> keys;
  std::span<const Bytes> records;           // as many; without separator or length
  std::span<const std::uint32_t> places{};  // as many: which record of the batch it was, from 0
  std::size_t read = 0;                     // records of the input that the batch stands for
};

class Parser {
 public:
  static constexpr std::size_t kColumn = 1024;

  explicit Parser(const KeyOptions& options);

  // Takes up to kColumn records off the front of `block`; false if it is empty. The batch has those of the shard that
  // have the field.
  bool next(const Source& source, Bytes& block, Batch& batch);
  // REQUIRES: options.literals.size() - from > 0
  Batch literals(std::size_t from);
  // Records without the field, since the last call.
  std::uint64_t take_skipped() noexcept { return std::exchange(skipped_, 0); }

 private:
  struct Bad {
    std::size_t record;
    std::string what;
  };
  std::size_t split(const Source& source, Bytes& block);
  void make_keys(const Source* source, std::size_t& count);  // throws Bad
  // Of all fields of a record, those that make the key.
  template <class Fields>
  Fields own(const Fields& all) const {
    if (options_.part == Part::all || all.empty()) return all;
    return options_.part == Part::key ? Fields(all.begin(), all.end() - 1) : Fields(all.end() - 1, all.end());
  }
  bool fields_of(Bytes record, const std::vector<std::uint32_t>& columns, Bytes& key);
  bool json_fields_of(std::size_t i, Bytes& key);
  std::string lack(std::size_t i, const std::vector<std::uint32_t>& columns) const;
  Bytes decoded(Bytes key, std::size_t record);
  Bytes lowered(Bytes key);
  Bytes hashed(Bytes key);
  Batch chosen(Bytes* keys, std::size_t count, std::size_t read) noexcept;

  const KeyOptions& options_;
  std::vector<std::uint32_t> columns_;           // of records without a header
  std::vector<std::vector<std::string>> paths_;  // of JSON
  std::optional<KeyHasher> hasher_;
  Bytes records_[kColumn];
  Bytes keys_[kColumn];
  std::uint32_t places_[kColumn];
  Arena arena_;  // joined, decoded, lower-cased and hashed keys of one batch
  std::uint64_t skipped_ = 0;
};

}  // namespace perhaps::cli
