// Key sets that have broken filters before: random, regular, long, repeated.
#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "perhaps/filter.h"

namespace perhaps::test {

// SplitMix64: a fixed, portable stream for each seed. Value i is at(i), so a test can look up keys without storing
// them.
struct Stream {
  std::uint64_t seed;

  std::uint64_t at(std::uint64_t i) const noexcept {
    std::uint64_t z = seed * 0xd1b54a32d192ed03u + (i + 1) * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
  }
};

struct IntegerPattern {
  const char* name;
  std::uint64_t (*key)(std::uint64_t i);
};
inline constexpr IntegerPattern kIntegerPatterns[] = {
    {"random", [](std::uint64_t i) { return Stream{7}.at(i); }}, {"sequential", [](std::uint64_t i) { return i; }},
    {"i*2^20", [](std::uint64_t i) { return i << 20; }},         {"i*2^40", [](std::uint64_t i) { return i << 40; }},
    {"duplicates", [](std::uint64_t i) { return i % 97; }},
};

struct TextPattern {
  const char* name;
  std::string (*key)(std::uint64_t i);
};
inline const TextPattern kTextPatterns[] = {
    {"equal prefix",
     [](std::uint64_t i) { return "https://example.org/a/prefix/that/all/the/keys/share/" + std::to_string(i); }},
    {"the empty key, one of 64 KiB, then short ones",
     [](std::uint64_t i) {
       if (i == 0) return std::string();
       return i == 1 ? std::string(std::size_t{64} << 10, 'x') : std::to_string(i);
     }},
};

inline std::vector<std::uint64_t> keys_of(const IntegerPattern& pattern, std::uint64_t count) {
  std::vector<std::uint64_t> keys(count);
  for (std::uint64_t i = 0; i < count; ++i) keys[i] = pattern.key(i);
  return keys;
}

// Owns the texts; the keys are views of them.
struct Texts {
  std::vector<std::string> storage;
  std::vector<std::string_view> views;

  Texts(const TextPattern& pattern, std::uint64_t count) {
    storage.reserve(count);
    for (std::uint64_t i = 0; i < count; ++i) storage.push_back(pattern.key(i));
    views.assign(storage.begin(), storage.end());
  }
};

template <class H, class K>
std::vector<Digest<H>> digests_of(const H& hasher, const std::vector<K>& keys) {
  std::vector<Digest<H>> digests(keys.size());
  perhaps::digests_of(hasher, std::span<const K>(keys), std::span(digests));
  return digests;
}

// The digest whose word is `word`.
template <class H>
Digest<H> digest_with(const H& hasher, std::uint64_t word) {
  return Digest<H>::made_by(hasher, word * detail::unspread_of<H>());
}

template <class H>
std::vector<Digest<H>> random_digests(const H& hasher, std::uint64_t seed, std::uint64_t count) {
  std::vector<Digest<H>> digests(count);
  for (std::uint64_t i = 0; i < count; ++i) digests[i] = Digest<H>::made_by(hasher, Stream{seed}.at(i));
  return digests;
}

}  // namespace perhaps::test
