// SipHash-1-3 (Aumasson, Bernstein 2012): one round per 8-byte word, three rounds to finish, a 64-bit result.
#include <stddef.h>  // NOLINT(modernize-deprecated-headers): emscripten's sys/random.h needs it
#include <sys/random.h>

#include <bit>
#include <cerrno>
#include <system_error>

#include "hash/murmur2.h"
#include "perhaps/detail/bits.h"
#include "perhaps/hash.h"

namespace perhaps {
namespace {

struct State {
  std::uint64_t v0, v1, v2, v3;

  void round() noexcept {
    v0 += v1;
    v2 += v3;
    v1 = std::rotl(v1, 13) ^ v0;
    v3 = std::rotl(v3, 16) ^ v2;
    v0 = std::rotl(v0, 32);
    v2 += v1;
    v0 += v3;
    v1 = std::rotl(v1, 17) ^ v2;
    v3 = std::rotl(v3, 21) ^ v0;
    v2 = std::rotl(v2, 32);
  }
  void absorb(std::uint64_t word) noexcept {
    v3 ^= word;
    round();
    v0 ^= word;
  }
};

}  // namespace

std::uint64_t KeyedHash::sip13(Words key, Bytes text) noexcept {
  State s{key.low ^ 0x736f6d6570736575u, key.high ^ 0x646f72616e646f6du, key.low ^ 0x6c7967656e657261u,
          key.high ^ 0x7465646279746573u};
  std::size_t at = 0;
  for (; at + 8 <= text.size(); at += 8) s.absorb(detail::load<std::uint64_t>(text.data() + at));
  const std::size_t left = text.size() - at;
  const std::uint64_t last = left == 0 ? 0 : detail::last_bytes(text, left);
  s.absorb(last | static_cast<std::uint64_t>(text.size()) << 56);
  s.v2 ^= 0xff;
  s.round();
  s.round();
  s.round();
  return s.v0 ^ s.v1 ^ s.v2 ^ s.v3;
}

KeyedHash::KeyedHash(const Secret& secret) noexcept
    : text_{detail::load<std::uint64_t>(secret.data()), detail::load<std::uint64_t>(secret.data() + 8)},
      number_{sip13(text_, bytes_of("perhaps: integers, low")), sip13(text_, bytes_of("perhaps: integers, high"))} {}

KeyedHash::Secret KeyedHash::new_secret() {
  Secret secret;
  // Once the entropy pool is ready, requests of up to 256 bytes are never cut short; before that, a signal may
  // interrupt them.
  while (getrandom(secret.data(), secret.size(), 0) != static_cast<ssize_t>(secret.size())) {
    if (errno != EINTR) throw std::system_error(errno, std::generic_category(), "getrandom");
  }
  return secret;
}

Digest<KeyedHash> KeyedHash::operator()(Bytes key) const noexcept {
  return Digest<KeyedHash>::made_by(*this, sip13(text_, key));
}

Digest<KeyedHash> KeyedHash::operator()(std::uint64_t key) const noexcept {
  std::array<std::byte, 8> bytes;
  detail::store(bytes.data(), key);
  return Digest<KeyedHash>::made_by(*this, sip13(number_, bytes));
}

std::uint64_t KeyedHash::check_value() const noexcept { return sip13(number_, bytes_of("perhaps: check value")); }

}  // namespace perhaps
