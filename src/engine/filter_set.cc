#include "perhaps/engine/filter_set.h"

#include <array>

namespace perhaps {

Result<void> FilterSet::add(const AnyFilter& filter) {
  const DigestProbe* const probe = filter.digests();
  if (probe == nullptr) {
    return Error{Errc::unsupported, "filter set: a filter of a foreign format takes keys, not digests"};
  }
  const AnyHasher hasher = probe->hasher();
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
  first(key, [&](std::size_t i, bool perhaps) {
    answers[i / 64] |= std::uint64_t{perhaps} << i % 64;
    return false;
  });
}

void FilterSet::may_contain(std::span<const Bytes> keys, std::span<std::uint64_t> answers) const noexcept {
  assert(keys.size() <= kBatch && answers.size() >= size());
  if (probes_.empty()) return;
  std::array<std::uint64_t, kBatch> digests;
  hash_many(*hasher_, keys, digests);
  // A batch prefetches for itself.
  for (std::size_t i = 0; i < probes_.size(); ++i) {
    answers[i] = probes_[i]->may_contain(std::span<const std::uint64_t>(digests.data(), keys.size()));
  }
}

}  // namespace perhaps
