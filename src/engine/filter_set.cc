#include "perhaps/engine/filter_set.h"

#include <array>

namespace perhaps {

Result<void> FilterSet::add(const AnyFilter& filter) {
  const DigestProbe* const probe = filter.digests();
  if (probe == nullptr) {
    return Error{Errc::unsupported, "filter set: a filter of a foreign format takes keys, not digests"};
  }
  return take({.filter = probe}, probe->hasher());
}

Result<void> FilterSet::add(const FilterBlock& filter) {
  // Of a block that could not be opened not even the hasher is known, and it answers *perhaps* to any digest.
  if (filter.pieces() == 0 && !filter.damage().empty()) {
    probes_.push_back({.block = &filter});
    return {};
  }
  if (filter.mode() == FilterMode::per_block) {
    return Error{Errc::unsupported, "filter set: a block with a filter for each data block is queried by its number"};
  }
  if (!filter.whole_keys()) return Error{Errc::unsupported, "filter set: a block of prefixes only"};
  return take({.block = &filter}, filter.hasher());
}

Result<void> FilterSet::take(const Probe& probe, const AnyHasher& hasher) {
  if (hasher_ && *hasher_ != hasher) {
    const bool same_scheme = hasher_->index() == hasher.index();
    return Error{Errc::mismatch, "filter set: hashed with " + std::string(name_of(hasher)) +
                                     (same_scheme ? " under another seed or key than"
                                                  : ", not " + std::string(name_of(*hasher_)) + " like") +
                                     " the others"};
  }
  probes_.push_back(probe);
  hasher_ = hasher;
  return {};
}

void FilterSet::may_contain(Bytes key, std::span<std::uint64_t> answers) const noexcept {
  assert(answers.size() >= words());
  std::fill_n(answers.begin(), words(), 0);
  first(key, size(), all, [&](std::size_t i, bool perhaps) {
    answers[i / 64] |= std::uint64_t{perhaps} << i % 64;
    return false;
  });
}

void FilterSet::may_contain(std::span<const Bytes> keys, std::span<std::uint64_t> answers) const noexcept {
  assert(keys.size() <= kBatch && answers.size() >= size());
  std::array<std::uint64_t, kBatch> array{};
  if (hasher_) hash_many(*hasher_, keys, array);
  const std::span<const std::uint64_t> digests(array.data(), keys.size());
  // A batch prefetches for itself.
  for (std::size_t i = 0; i < probes_.size(); ++i) {
    const Probe& probe = probes_[i];
    answers[i] = probe.block != nullptr ? probe.block->may_contain(keys, digests) : probe.filter->may_contain(digests);
  }
}

}  // namespace perhaps
