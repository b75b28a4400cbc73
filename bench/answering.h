// The forms of a lookup, for a filter of ours.
#pragma once
#include "contender.h"
#include "perhaps/filter.h"

#ifndef PERHAPS_BENCH_NATIVE
#define PERHAPS_BENCH_NATIVE 0
#endif

namespace perhaps::bench {

inline std::uint64_t count_perhaps(std::span<const std::uint64_t> answers) {
  std::uint64_t perhaps = 0;
  for (const std::uint64_t word : answers) perhaps += static_cast<std::uint64_t>(std::popcount(word));
  return perhaps;
}

// `Self` has `const F& filter() const`.
template <class Self, class F, class Key>
class Answering : public Querying<Self, Key> {
 public:
  using typename Querying<Self, Key>::Keys;

  auto probe() const {
    if constexpr (requires { filter().view(); }) {
      return [view = filter().view()](const Key& key) __attribute__((always_inline)) { return view.may_contain(key); };
    } else {
      return [&chain = filter()](const Key& key) __attribute__((always_inline)) { return chain.may_contain(key); };
    }
  }
  std::uint64_t mask(Keys keys) const {
    std::array<Digest<Hash>, kBatch> digests;
    digests_of(filter().hasher(), keys, std::span(digests));
    return filter().may_contain(std::span<const Digest<Hash>>(digests.data(), keys.size()));
  }
  std::uint64_t batch(Keys keys) const {
    std::array<std::uint64_t, kColumn / kBatch> answers;
    filter().may_contain(keys, answers);
    return count_perhaps(std::span(answers).first((keys.size() + 63) / 64));
  }
  std::uint64_t digests(Keys keys) const requires std::same_as<Key, std::uint64_t> {
    std::array<std::uint64_t, kColumn / kBatch> answers;
#if PERHAPS_CHECK_DIGESTS
    std::array<Digest<Hash>, kColumn> digests;
    for (std::size_t i = 0; i < keys.size(); ++i) digests[i] = Digest<Hash>::made_by(filter().hasher(), keys[i]);
    filter().may_contain(std::span<const Digest<Hash>>(digests.data(), keys.size()), answers);
#else
    static_assert(sizeof(Digest<Hash>) == sizeof(std::uint64_t));
    const auto* digests = reinterpret_cast<const Digest<Hash>*>(keys.data());
    filter().may_contain(std::span<const Digest<Hash>>(digests, keys.size()), answers);
#endif
    return count_perhaps(std::span(answers).first((keys.size() + 63) / 64));
  }

 private:
  const F& filter() const { return static_cast<const Self&>(*this).filter(); }
};

#if PERHAPS_BENCH_NATIVE
inline constexpr Kind kOurs = Kind::native;
inline std::string named(const char* name) { return std::string(name) + ", native"; }
#else
inline constexpr Kind kOurs = Kind::ours;
inline std::string named(const char* name) { return name; }
#endif

}  // namespace perhaps::bench
