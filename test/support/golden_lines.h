// The filters whose bytes and first false positives test/golden/digests.txt holds, as text.
#pragma once
#include <sstream>
#include <string>

#include "perhaps/block_bloom.h"
#include "perhaps/bloom.h"
#include "perhaps/line_bloom.h"

namespace perhaps::test {
namespace golden {

inline constexpr std::uint64_t kKeys = 1000;

inline std::string hex(std::uint64_t value) {
  std::ostringstream out;
  out << std::hex << value;
  return out.str();
}

inline std::string text_of(BloomShape s) {
  return std::to_string(s.bits) + " bits, " + std::to_string(s.probes) + " probes";
}
inline std::string text_of(LineShape s) {
  return std::to_string(s.lines) + " lines, " + std::to_string(s.probes) + " probes";
}
inline std::string text_of(BlockShape s) { return std::to_string(s.blocks) + " blocks"; }

// One line of the file: the filter of the numbers 0..999 and the texts "0".."999".
template <class L, class H>
std::string line_of(typename L::Shape shape, H hasher, const std::string& seed) {
  Flat<L, H> filter(shape, hasher);
  for (std::uint64_t key = 0; key < kKeys; ++key) {
    filter.insert(key);
    filter.insert(std::to_string(key));
  }
  std::ostringstream line;
  line << L::family << ", " << text_of(shape) << ", " << H::name << " " << seed << ": bytes "
       << hex(Hash(0)(filter.bytes()).value) << ", first false positives";
  int found = 0;
  for (std::uint64_t key = kKeys; found < 4 && key < 1'000'000; ++key) {
    if (filter.may_contain(key)) line << ' ' << key, ++found;
  }
  for (std::uint64_t key = kKeys; found < 8 && key < 1'000'000; ++key) {
    if (filter.may_contain(std::to_string(key))) line << " \"" << key << '"', ++found;
  }
  line << '\n';
  return line.str();
}

template <class L>
std::string lines_of(typename L::Shape shape) {
  KeyedHash::Secret secret;
  for (std::size_t i = 0; i < secret.size(); ++i) secret[i] = static_cast<std::byte>(i);
  return line_of<L>(shape, Hash(), "seed 0") + line_of<L>(shape, Hash(1), "seed 1") +
         line_of<L>(shape, KeyedHash(secret), "key 00..0f");
}

}  // namespace golden

inline std::string golden_lines() {
  using golden::lines_of;
  std::string lines;
  for (const BloomShape s : {BloomShape{19'200, 7}, BloomShape{20'011, 3}, BloomShape{40'000, 30}}) {
    lines += lines_of<BloomLayout<Multiplicative>>(s);
  }
  for (const LineShape s : {LineShape{40, 8}, LineShape{37, 3}, LineShape{50, 11}, LineShape{64, 16}}) {
    lines += lines_of<LineLayout>(s);
  }
  for (const BlockShape s : {BlockShape{84}, BlockShape{101}}) lines += lines_of<BlockLayout>(s);
  return lines;
}

}  // namespace perhaps::test
