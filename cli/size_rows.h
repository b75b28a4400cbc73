// What each family needs, for some of its numbers: what `perhaps size` and the page in the browser print.
//
// A filter has five numbers: keys, rate, bytes, bits per key, probes. Some are given, the others follow:
//
//   keys and one of rate, bytes, bits per key      the other two, and the best number of probes
//   bytes and one of rate, bits per key            how many keys fit
//   rate, or bits per key, alone                   the other one, for a million keys: their number hardly matters
//   probes, beside any of these                    the same with that number, where the family leaves a choice
#pragma once
#include <cstdint>
#include <optional>

#include "perhaps/any_filter.h"

namespace perhaps::cli {

inline constexpr std::uint64_t kTypicalKeys = 1'000'000;
inline constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 50;  // for which keys are found

// REQUIRES: as many numbers as above, each in its range; a rate if nothing else says how large
struct SizeQuestion {
  std::uint64_t keys = 0;  // 0: not given, as the others
  double fpr = 0;
  double bits_per_key = 0;
  std::uint64_t max_bytes = 0;
  std::uint32_t probes = 0;

  bool finds_keys() const noexcept { return keys == 0 && max_bytes != 0; }
};

struct SizeRow {
  const Family* family;
  std::uint64_t keys;
  FamilySize size;

  double bits_per_key() const noexcept { return static_cast<double>(size.bits) / static_cast<double>(keys); }
  double limit() const noexcept { return bits_per_key_limit(size.fpr); }  // bits per key that any filter needs
  double above() const noexcept { return limit() > 0 ? bits_per_key() / limit() - 1 : 0; }
};
// Nothing: the family cannot answer this.
std::optional<SizeRow> size_row(const SizeQuestion& question, const Family& family);

}  // namespace perhaps::cli
