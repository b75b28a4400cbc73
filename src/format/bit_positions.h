// Which bits of a classic Bloom filter of another system a lookup reads, for explain(). Not a function of AnyFilter,
// whose virtual functions are its ABI.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "perhaps/hash.h"

namespace perhaps::format {

class BitPositions {
 public:
  // In the table, counted from the lowest bit of byte 0. Nothing for a key that the system never adds.
  virtual std::optional<std::vector<std::uint64_t>> positions(Bytes key) const = 0;
  virtual Bytes table() const noexcept = 0;

 protected:
  ~BitPositions() = default;
};

}  // namespace perhaps::format
