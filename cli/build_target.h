// What `perhaps build` fills: a filter in memory, or one in its new file.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "any_file.h"
#include "filter_args.h"
#include "options.h"
#include "perhaps/any_filter.h"

namespace perhaps::cli {

// The options of `perhaps build`.
struct BuildArgs : FilterArgs {
  std::uint32_t guard_bits = 0;
  std::uint32_t arity = 0;  // not given
  std::uint64_t memory = 0;
  std::uint64_t range_size = 0;  // not given
  std::uint32_t code_bits = 0;   // not given
  FormatArgs format;
  std::uint64_t shards = 0;
  std::optional<std::uint64_t> only;
  std::uint32_t threads = 1;
  std::string seed;
  bool on_disk = false;
  bool allow_empty = false;
};

// The filter, before it is a file.
class BuildTarget {
 public:
  virtual ~BuildTarget() = default;
  // As AnyBuilder's.
  virtual std::vector<std::unique_ptr<AnyLane>> lanes(unsigned threads) = 0;
  // About how many distinct keys were inserted; 0 if the bits are too full to tell. After the last lane is destroyed.
  // REQUIRES: the family sets bits
  virtual double distinct() = 0;
  virtual Description save(Record record) = 0;
};

// Sized for `keys` keys; 0: unknown.
std::unique_ptr<BuildTarget> make_target(const BuildArgs& options, std::uint64_t keys, const AnyHasher& hasher);

}  // namespace perhaps::cli
