// The tables of an exact set (perhaps/exact.h), and lookups in them.
//
//   numbers    layers, then for each: members | universe | field | delimiter | rest | parts | stages |
//              stages * (code | count | the numbers of a ribbon's shape) | count | the numbers of the map
//   sections   of each layer: directory, if there are parts | table of each stage | table of the map, if there is one
//   directory  the digests of the parts, ascending, 8 bytes each, and then their codes, a byte each
#pragma once
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "exact/one_bit.h"
#include "perhaps/exact.h"
#include "perhaps/memory.h"
#include "perhaps/ribbon.h"

namespace perhaps::detail {

// How the keys of a part are stored.
//   0 .. 32    a filter of so many columns, of members
//   64 .. 96   a filter of 64 columns less, of those that are no members: the answer is inverted
//   128, 129   nothing: all keys are out, all are in
using ExactCode = std::uint8_t;
inline constexpr ExactCode kInverted = 64;
inline constexpr ExactCode kAllOut = 128;
inline constexpr ExactCode kAllIn = 129;
constexpr bool is_constant(ExactCode code) noexcept { return code >= kAllOut; }
constexpr std::uint32_t columns_of(ExactCode code) noexcept { return code & (kInverted - 1u); }
constexpr bool is_code(std::uint64_t code) noexcept {
  return code <= 32 || (code >= kInverted && code <= kInverted + 32u) || code == kAllOut || code == kAllIn;
}

struct ExactStage {
  ExactCode code;
  RibbonShape shape;
  Bytes table;

  // Bit i % 64 of answers[i / 64]: words[i] passes.
  void query(std::span<const std::uint64_t> words, std::uint64_t* answers) const noexcept;
};

struct ExactLayer {
  std::uint64_t members = 0;
  std::uint64_t universe = 0;
  ExactParts parts{};
  ExactCode rest = kAllOut;  // of keys whose part is not in the directory
  Bytes directory{};
  std::vector<ExactStage> stages{};          // ascending codes
  std::vector<std::uint64_t> map_numbers{};  // none: every key that passes its filter is listed
  Bytes map_table{};
  OneBit map{};

  std::uint64_t part_count() const noexcept { return directory.size() / 9; }
  ExactCode code_of(std::uint64_t part) const noexcept;
  const ExactStage* stage_of(ExactCode code) const noexcept;
  // REQUIRES: keys.words.size() <= kExactColumn; xors the answers into `answers`
  void query(const ExactKeys& keys, std::uint64_t* answers) const noexcept;
  std::uint64_t bytes() const noexcept;

 private:
  void query_part(ExactCode code, std::span<const std::uint64_t> words, std::uint64_t* answers) const noexcept;
};

class ExactLayers final : public ExactTables {
 public:
  static constexpr std::uint64_t kMaxLayers = 64;

  std::vector<ExactLayer> layers;
  std::vector<Memory> owned;                              // of a set that was built
  std::vector<std::shared_ptr<const ExactTables>> below;  // whose bytes the layers borrow

  Result<void> check() const;

  void query(const ExactKeys& keys, std::uint64_t* answers) const noexcept override;
  void prefetch(std::uint64_t word) const noexcept override;
  std::uint64_t bytes() const noexcept override;
  ExactParts parts() const noexcept override;
  ExactFigures figures() const override;
  std::vector<std::uint64_t> numbers() const override;
  std::vector<Bytes> sections() const override;
};

}  // namespace perhaps::detail
