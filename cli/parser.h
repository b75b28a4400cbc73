// A block of an input to batches of records and of their keys, without a string per key.
#pragma once
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "key_options.h"
#include "perhaps/hash.h"
#include "source.h"

namespace perhaps::cli {

struct Batch {
  std::span<const Bytes> keys;
  std::span<const Bytes> records;  // as many; without separator or length
};

class Parser {
 public:
  static constexpr std::size_t kColumn = 1024;

  explicit Parser(const KeyOptions& options) : options_(options) {}

  // Takes up to kColumn records off the front of `block`; false if it is empty. The batch has those of the shard.
  bool next(const Source& source, Bytes& block, Batch& batch);
  // REQUIRES: options.literals.size() - from > 0
  Batch literals(std::size_t from);

 private:
  struct Bad {
    std::size_t record;
    std::string what;
  };
  void make_keys(std::size_t count);  // throws Bad

  const KeyOptions& options_;
  Batch chosen(Bytes* keys, std::size_t count) noexcept;

  Bytes records_[kColumn];
  Bytes keys_[kColumn];
  std::vector<std::byte> scratch_;  // decoded and lower-cased keys of one batch
};

}  // namespace perhaps::cli
