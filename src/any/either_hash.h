// Our two hashers as one that is told apart at run time. Behind AnyFilter a family is compiled once, for this one,
// and not once for each hasher: the run-time interface takes half the time to compile and half the bytes.
#pragma once
#include <algorithm>
#include <array>
#include <variant>

#include "perhaps/any_filter.h"
#include "perhaps/file/container.h"

namespace perhaps {

class EitherHash {
 public:
  using word = std::uint64_t;
  static constexpr std::string_view name = "xxh3-64 or siphash-1-3";
  static constexpr word kSpread = Hash::kSpread;
  static_assert(KeyedHash::kSpread == kSpread);

  EitherHash() = default;
  EitherHash(const AnyHasher& hasher) noexcept : hasher_(hasher) {}

  const AnyHasher& hasher() const noexcept { return hasher_; }
  operator const AnyHasher&() const noexcept { return hasher_; }
  // Null: KeyedHash.
  const Hash* unkeyed() const noexcept { return std::get_if<Hash>(&hasher_); }
  std::uint64_t tag() const noexcept {
    return std::visit([](const auto& h) { return h.tag(); }, hasher_);
  }

  Digest<EitherHash> operator()(Bytes key) const noexcept { return hashed(key); }
  Digest<EitherHash> operator()(std::uint64_t key) const noexcept { return hashed(key); }
  void many(std::span<const Bytes> keys, std::span<Digest<EitherHash>> out) const noexcept {
    std::visit([&](const auto& h) { hash_all(h, keys, out); }, hasher_);
  }

  friend bool operator==(const EitherHash&, const EitherHash&) = default;

 private:
  template <class K>
  Digest<EitherHash> hashed(const K& key) const noexcept {
    return Digest<EitherHash>::made_by(*this, std::visit([&](const auto& h) { return h(key).value; }, hasher_));
  }
  template <class H>
  void hash_all(const H& h, std::span<const Bytes> keys, std::span<Digest<EitherHash>> out) const noexcept {
    std::array<Digest<H>, kBatch> some;
    for (std::size_t from = 0; from < keys.size(); from += kBatch) {
      const auto batch = keys.subspan(from, std::min(kBatch, keys.size() - from));
      digests_of(h, batch, std::span(some));
      for (std::size_t i = 0; i < batch.size(); ++i) out[from + i] = Digest<EitherHash>::made_by(*this, some[i].value);
    }
  }

  AnyHasher hasher_;
};
static_assert(Hasher<EitherHash>);

}  // namespace perhaps
