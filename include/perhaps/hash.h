// Keys become digests here and nowhere else.
//
//   key (text, bytes, integer) --hasher--> Digest<hasher>
//
// A Digest carries the type of the hasher that made it. Two filters that hash differently therefore take different
// argument types, and the oldest bug of this field -- probing with a hash the builder did not use, which shows up as
// silent false negatives -- does not compile. Seeds and keys are run-time state: equality of hashers includes them,
// whatever combines filters compares hashers, and checked builds (PERHAPS_CHECK_DIGESTS) assert on every use.
//
// From a digest to a table there is one more step, which keeps filters apart from their neighbours:
//
//   digest --spread--> word = digest * H::kSpread mod 2^64 --layout--> positions
//
// Layouts take places from the top of a word and patterns from the rest. If words were digests, a service that routes
// keys to 16 filters by the top bits of the same digest would leave each filter a sixteenth of its lines (a filter made
// for 1 % then answered *perhaps* to 99.9 % of absent keys). The top bits of a product depend on all bits of a digest,
// so a table fills evenly whichever bits of the digest were used to route its keys. To route by the digest itself, use
// partition_of(); default filters can stand behind it. Only the *word* must not be used. For the same reason Hash{} has
// a seed of our own: XXH3-64 with seed 0 is what everybody else routes with. Hashers of other systems have no kSpread;
// their digests reach the layout as they are, since their formats say so.
//
// Two schemes:
//   Hash       XXH3-64 for bytes, a folded multiplication for integers. Fast. The default.
//   KeyedHash  SipHash-1-3 under a secret 128-bit key. For keys chosen by an adversary: XXH3 is not cryptographic, and
//              whoever knows the seed can make every lookup a false positive.
//
// The number 42, the text "42" and the eight bytes of 42 are three different keys. Signed integers are sign-extended
// to 64 bits and unsigned ones zero-extended, so an int and a long of equal value are one key.
#pragma once
#include <array>
#include <cassert>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>

#include "perhaps/detail/bits.h"
#include "perhaps/detail/config.h"

namespace perhaps {

// Memory that somebody else owns, not to be written.
using Bytes = std::span<const std::byte>;

// Not std::span(text): that constructor is missing in libc++ 14.
inline Bytes bytes_of(std::string_view text) noexcept { return std::as_bytes(std::span(text.data(), text.size())); }

namespace detail {
// What digests of H are multiplied by to become words: H::kSpread, or 1 for hashers of other systems.
template <class H>
constexpr std::uint64_t spread_of() noexcept {
  if constexpr (requires { H::kSpread; }) {
    return H::kSpread;
  } else {
    return 1;
  }
}
// Its inverse, which turns words into digests again. Newton's method: each step doubles the number of correct low bits.
template <class H>
constexpr std::uint64_t unspread_of() noexcept {
  std::uint64_t inverse = spread_of<H>();
  for (int step = 0; step < 5; ++step) inverse *= 2 - spread_of<H>() * inverse;
  return inverse;
}
}  // namespace detail

// The hash of a key by hasher H. Digests of different hashers are different types; in checked builds a tag also tells
// seeds apart.
template <class H>
struct Digest {
  typename H::word value;  // what is stored, compared and shared. Layouts take word().
#if PERHAPS_CHECK_DIGESTS
  std::uint64_t tag;  // of the hasher, seed or key included
#endif

  Digest() = default;  // Not a digest yet: for arrays that are about to be filled.

  // The only way to make one: insert({42}) cannot take a key for a digest by accident.
  static constexpr Digest made_by([[maybe_unused]] const H& hasher, typename H::word value) noexcept {
#if PERHAPS_CHECK_DIGESTS
    return Digest(value, hasher.tag());
#else
    return Digest(value);
#endif
  }

  // What layouts take.
  constexpr typename H::word word() const noexcept {
    if constexpr (detail::spread_of<H>() == 1) {
      return value;
    } else {
      return value * detail::spread_of<H>();
    }
  }

  // Asserts, in checked builds, that `hasher` made this digest.
  constexpr void check([[maybe_unused]] const H& hasher) const noexcept {
#if PERHAPS_CHECK_DIGESTS
    assert(tag == hasher.tag() && "this digest was made with another seed or key");
#endif
  }

  friend constexpr bool operator==(const Digest& a, const Digest& b) noexcept { return a.value == b.value; }

 private:
#if PERHAPS_CHECK_DIGESTS
  constexpr Digest(typename H::word v, std::uint64_t t) noexcept : value(v), tag(t) {}
#else
  explicit constexpr Digest(typename H::word v) noexcept : value(v) {}
#endif
};

// A hasher is a small value; its state, if it has any, is a seed or a key.
template <class H>
concept Hasher = std::copyable<H> && std::equality_comparable<H> && requires(const H h, Bytes key) {
  typename H::word;
  { H::name } -> std::convertible_to<std::string_view>;
  { h(key) }
  noexcept->std::same_as<Digest<H>>;
  { h.tag() }
  noexcept->std::same_as<std::uint64_t>;  // Equal hashers have equal tags.
};

namespace detail {
// Characters and truth values are not numbers: is 'a' the text "a" or 97? Say which.
template <class K>
concept AmbiguousInteger = std::same_as<K, bool> || std::same_as<K, char> || std::same_as<K, wchar_t> ||
    std::same_as<K, char8_t> || std::same_as<K, char16_t> || std::same_as<K, char32_t>;
// The 64-bit type itself, signed or not. Where that is long, long long is another type and may not alias it.
template <class K>
concept IntegerWord = std::same_as<K, std::uint64_t> || std::same_as<K, std::int64_t>;
}  // namespace detail

// Integers of up to 64 bits, text, other bytes. Not bool and not characters: is one a number or a text?
template <class K>
concept IntegerKey = std::integral<K> && !detail::AmbiguousInteger<K> && sizeof(K) <= 8;
template <class K>
concept TextKey = std::convertible_to<const K&, std::string_view>;
template <class K>
concept BytesKey = std::convertible_to<const K&, Bytes> && !TextKey<K>;
// What can be inserted into a filter and looked up in it.
template <class K>
concept Key = IntegerKey<K> || TextKey<K> || BytesKey<K>;

// What a column of keys is made of. Not single bytes: is a span of them one key of bytes or a column of small numbers?
template <class K>
concept ColumnKey = Key<std::remove_const_t<K>> && !(IntegerKey<std::remove_const_t<K>> && sizeof(K) == 1);

// The one way from a key to a digest.
template <Hasher H, Key K>
Digest<H> digest_of(const H& hasher, const K& key) noexcept {
  if constexpr (IntegerKey<K>) {
    return hasher(static_cast<std::uint64_t>(key));
  } else if constexpr (TextKey<K>) {
    return hasher(bytes_of(key));
  } else {
    return hasher(Bytes(key));
  }
}

// Hashes many keys in one loop.  REQUIRES: out.size() >= keys.size()
template <Hasher H, ColumnKey K>
void digests_of(const H& hasher, std::span<const K> keys, std::type_identity_t<std::span<Digest<H>>> out) noexcept {
  assert(out.size() >= keys.size());
  if constexpr (requires { hasher.many(keys, out); }) {
    hasher.many(keys, out);
  } else {
    for (std::size_t i = 0; i < keys.size(); ++i) out[i] = digest_of(hasher, keys[i]);
  }
}

// Which of `parts` partitions a digest belongs to: floor(digest * parts / 2^64), its top bits if `parts` is a power of
// two. The way to hash once for a router and the filters behind it. (Files of shards are cut by another hash of the
// key, file/shards.h, which clients can compute without this library.)  REQUIRES: parts > 0
template <Hasher H>
constexpr std::uint64_t partition_of(
    const Digest<H>& digest, std::uint64_t parts) noexcept requires std::same_as<typename H::word, std::uint64_t> {
  return detail::scale(digest.value, parts);
}

namespace detail {
// Odd. For integers it is the second multiplication of their hash: fold, then spread.
inline constexpr std::uint64_t kSpread = 0xd6e8feb86659fd93u;
// What integers are folded with, after an exclusive or with Hash::blend().
inline constexpr std::uint64_t kFold = 0xa0761d6478bd642fu;
}  // namespace detail

class Hash {
 public:
  using word = std::uint64_t;
  static constexpr std::string_view name = "xxh3-64";
  static constexpr word kSpread = detail::kSpread;  // a word is a digest times this
  // Of Hash{}: "perhaps!" in ASCII. Files carry their seed.
  static constexpr std::uint64_t kDefaultSeed = 0x7065726861707321u;

  constexpr Hash() = default;  // kDefaultSeed
  // Filters of different seeds have independent false positives, and cannot be merged.
  constexpr explicit Hash(std::uint64_t seed) noexcept : seed_(seed) {}

  // As given; files store it.
  constexpr std::uint64_t seed() const noexcept { return seed_; }
  constexpr std::uint64_t tag() const noexcept { return seed_; }

  // Bytes: XXH3_64bits_withSeed(key, seed).
  PERHAPS_API Digest<Hash> operator()(Bytes key) const noexcept;
  PERHAPS_API void many(std::span<const Bytes> keys, std::span<Digest<Hash>> out) const noexcept;
  PERHAPS_API void many(std::span<const std::string_view> keys, std::span<Digest<Hash>> out) const noexcept;

  // Integers: a 64 x 64 -> 128 bit product, folded. The seed is multiplied first: seeds 0, 1, 2.. xored into keys
  // 0, 1, 2.. would only permute the same set. The fold alone is not enough for a table: keys that form a grid would
  // come out well above the model, and sequences below it. The spread is the second product, and with it the words of
  // sequences, strides, pointers, doubles, grids and reversed bytes all behave as random ones (hash_test). The two
  // multiplications and three shifts of murmur's finaliser and its kin avalanche better in the low bits, which no Bloom
  // filter needs, and cost 0.7 ns more: families that cut fingerprints out of a word mix it again.
  constexpr Digest<Hash> operator()(std::uint64_t key) const noexcept {
    return Digest<Hash>::made_by(*this, detail::folded_product(key ^ blend(), detail::kFold));
  }
  // What the seed brings into an integer.
  constexpr std::uint64_t blend() const noexcept { return seed_ * 0x9e3779b97f4a7c15u + 0x2545f4914f6cdd1du; }

  friend bool operator==(const Hash&, const Hash&) = default;

 private:
  std::uint64_t seed_ = kDefaultSeed;
};

// A filter whose keys or queries come from others keeps its false-positive rate only under a secret they cannot guess.
class KeyedHash {
 public:
  using word = std::uint64_t;
  using Secret = std::array<std::byte, 16>;  // 128 bits, from a good random number generator
  static constexpr std::string_view name = "siphash-1-3";
  static constexpr word kSpread = detail::kSpread;  // a word is a digest times this

  // There is no default: a filter under a secret that everybody knows would only look safe.
  PERHAPS_API explicit KeyedHash(const Secret& secret) noexcept;
  // A fresh secret from the operating system. Keep it: without it the filter cannot be queried.
  PERHAPS_API static Secret new_secret();

  // Bytes: SipHash-1-3 under the secret. Integers: SipHash-1-3 of their eight little-endian bytes under a second
  // secret, derived from the first, so that a number is not its bytes.
  PERHAPS_API Digest<KeyedHash> operator()(Bytes key) const noexcept;
  PERHAPS_API Digest<KeyedHash> operator()(std::uint64_t key) const noexcept;

  // Proves knowledge of the secret without giving it away: SipHash-1-3 of a fixed text. Files store this, not the
  // secret.
  PERHAPS_API std::uint64_t check_value() const noexcept;
  std::uint64_t tag() const noexcept { return text_.low ^ text_.high * 0x9e3779b97f4a7c15u; }

  friend bool operator==(const KeyedHash&, const KeyedHash&) = default;

 private:
  struct Words {
    std::uint64_t low;
    std::uint64_t high;
    friend bool operator==(const Words&, const Words&) = default;
  };
  static std::uint64_t sip13(Words key, Bytes text) noexcept;

  Words text_;
  Words number_;
};

static_assert(Hasher<Hash> && Hasher<KeyedHash>);

}  // namespace perhaps
