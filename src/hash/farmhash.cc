#include "hash/farmhash.h"

#include <bit>

#include "perhaps/detail/bits.h"

namespace perhaps {
namespace {

constexpr std::uint32_t kA = 0xcc9e2d51u;
constexpr std::uint32_t kB = 0x1b873593u;

// The round and the finaliser of MurmurHash3, with the rotations written as right rotations.
std::uint32_t scrambled(std::uint32_t a) noexcept { return std::rotr(a * kA, 17) * kB; }
std::uint32_t stirred(std::uint32_t h) noexcept { return std::rotr(h, 19) * 5 + 0xe6546b64u; }
std::uint32_t mur(std::uint32_t a, std::uint32_t h) noexcept { return stirred(h ^ scrambled(a)); }
std::uint32_t avalanche(std::uint32_t h) noexcept {
  h = (h ^ h >> 16) * 0x85ebca6bu;
  h = (h ^ h >> 13) * 0xc2b2ae35u;
  return h ^ h >> 16;
}

std::uint32_t of_0_to_4(Bytes key, std::uint32_t n) noexcept {
  std::uint32_t b = 0;
  std::uint32_t c = 9;
  for (const std::byte v : key) {
    b = b * kA + std::to_integer<std::uint32_t>(v);
    c ^= b;
  }
  return avalanche(mur(b, mur(n, c)));
}

template <class Word>
std::uint32_t of_5_to_12(Word at, std::uint32_t n) noexcept {
  const std::uint32_t a = n + at(0);
  const std::uint32_t b = 5 * n + at(n - 4);
  const std::uint32_t c = 9 + at(n / 2 & 4);
  return avalanche(mur(c, mur(b, mur(a, 5 * n))));
}

template <class Word>
std::uint32_t of_13_to_24(Word at, std::uint32_t n) noexcept {
  const std::uint32_t b = at(4), c = at(n - 8), d = at(n / 2), e = at(0), f = at(n - 4);
  std::uint32_t a = std::rotr(at(n / 2 - 4), 12) + f;
  std::uint32_t h = mur(c, d * kA + n) + a;
  a = std::rotr(a, 3) + c;
  h = mur(e, h) + a;
  a = std::rotr(a + f, 12) + d;
  return avalanche(mur(b, h) + a);
}

}  // namespace

std::uint32_t farmhash_fingerprint32(Bytes key) noexcept {
  const auto n = static_cast<std::uint32_t>(key.size());
  const auto at = [&](std::size_t o) { return detail::load<std::uint32_t>(key.data() + o); };
  if (key.size() <= 4) return of_0_to_4(key, n);
  if (key.size() <= 12) return of_5_to_12(at, n);
  if (key.size() <= 24) return of_13_to_24(at, n);

  const auto last = [&](std::size_t o) { return scrambled(at(key.size() - o)); };
  std::uint32_t h = stirred(stirred(n ^ last(4)) ^ last(16));
  std::uint32_t g = stirred(stirred(kA * n ^ last(8)) ^ last(12));
  std::uint32_t f = std::rotr(kA * n + last(20), 19) + 113;
  for (std::size_t o = 0, rounds = (key.size() - 1) / 20; rounds != 0; --rounds, o += 20) {
    const std::uint32_t a = at(o), b = at(o + 4), c = at(o + 8), d = at(o + 12), e = at(o + 16);
    h = mur(d, h + a) + e;
    g = mur(c, g + b) + a;
    f = mur(b + e * kA, f + c) + d;
    f += g;
    g += f;
  }
  const auto ended = [](std::uint32_t x) { return std::rotr(std::rotr(x, 11) * kA, 17) * kA; };
  for (const std::uint32_t x : {ended(g), ended(f)}) h = std::rotr(stirred(h + x), 17) * kA;
  return h;
}

}  // namespace perhaps
