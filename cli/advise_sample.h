// The keys and queries that `perhaps advise` measures with: a sample of them.
//
// A digest is kept if the first `shift` bits of its mix are zero; `shift` rises when there are too many. So
// all copies of a key are kept or none, the number of distinct keys is 2^shift times that of the sample, and for every
// query whose own mix begins with these zeros it is known exactly whether it is among the keys. (The mix and not the
// digest decides, because filters use the bits of the digest: keys that agree in some of them would not be typical.)
// Digests are made under a secret that is drawn for each run: nobody can prepare keys that are all in the sample, or
// false positives of the trials.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "keys.h"

namespace perhaps::cli::advise {

// Fewer queries than this say nothing about time or rate, nor does a sample of fewer keys.
inline constexpr std::size_t kFewest = 1000;

// The end of splitmix64: one to one; and its inverse.
constexpr std::uint64_t mixed(std::uint64_t x) noexcept {
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}
constexpr std::uint64_t unmixed(std::uint64_t x) noexcept {
  x = (x ^ (x >> 31) ^ (x >> 62)) * 0x319642b2d24d8ec3u;
  x = (x ^ (x >> 27) ^ (x >> 54)) * 0x96de1b173f119089u;
  return x ^ (x >> 30) ^ (x >> 60);
}
static_assert(unmixed(mixed(0x0123456789abcdefu)) == 0x0123456789abcdefu && unmixed(mixed(~0u)) == ~0u);

// At most `most` distinct digests, sampled as described above.
class Sample {
 public:
  // A digest is made by `hasher`, of keys and queries alike.
  Sample(std::uint64_t most, const KeyedHash& hasher) : most_(most), hasher_(hasher) {}

  const KeyedHash& hasher() const noexcept { return hasher_; }

  void add(std::span<const std::uint64_t> digests) {
    given_ += digests.size();
    for (const std::uint64_t d : digests) {
      if (decides(d)) kept_.push_back(d);
    }
    if (kept_.size() / 2 > most_) thin();
  }
  void finish() { thin(); }
  // Random digests in place of those of `keys` keys that nobody has yet.
  void imagine(std::uint64_t keys) {
    given_ = keys;
    while (keys >> shift_ > most_) ++shift_;
    for (std::uint64_t i = 0; i < keys >> shift_; ++i) kept_.push_back(unmixed(mixed(~i) >> shift_));
    thin();
  }

  // Whether all keys with this digest are kept.
  bool decides(std::uint64_t d) const noexcept { return shift_ == 0 || mixed(d) >> (64 - shift_) == 0; }
  // REQUIRES: finished, decides(d)
  bool has(std::uint64_t d) const noexcept { return std::binary_search(kept_.begin(), kept_.end(), d); }

  std::uint64_t given() const noexcept { return given_; }
  bool whole() const noexcept { return shift_ == 0; }
  double scale() const noexcept { return std::ldexp(1.0, static_cast<int>(shift_)); }  // all keys / sample
  double distinct() const noexcept { return static_cast<double>(kept_.size()) * scale(); }
  std::uint64_t size() const noexcept { return kept_.size(); }
  std::span<const std::uint64_t> ascending() const noexcept { return kept_; }

 private:
  void thin() {
    std::sort(kept_.begin(), kept_.end());
    kept_.erase(std::unique(kept_.begin(), kept_.end()), kept_.end());
    while (kept_.size() > most_ && shift_ < 63) {
      ++shift_;
      std::erase_if(kept_, [this](std::uint64_t d) { return !decides(d); });
    }
  }

  std::uint64_t most_;
  KeyedHash hasher_;
  std::uint64_t given_ = 0;
  unsigned shift_ = 0;
  std::vector<std::uint64_t> kept_;
};

// What the filters are queried with.
struct Questions {
  std::vector<std::uint64_t> asked;   // present and absent as in the file of queries; for times
  std::vector<std::uint64_t> absent;  // certainly not in the sample; for the rate
  bool real_asked = false;
  bool real_absent = false;
  std::uint64_t queries = 0;   // in the file
  std::uint64_t decided = 0;   // those for which it is known whether they are among the keys
  std::uint64_t negative = 0;  // those of them that are not among the keys
  std::optional<double> negative_share() const {
    return decided == 0 ? std::nullopt : std::optional(static_cast<double>(negative) / static_cast<double>(decided));
  }
};

Sample read_keys(Keys& keys, KeysAs as, std::uint64_t most);
Sample imagined_keys(std::uint64_t keys, std::uint64_t most);
Questions read_queries(Keys& queries, KeysAs as, const Sample& sample);

}  // namespace perhaps::cli::advise
