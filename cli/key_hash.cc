#include "key_hash.h"

#include <openssl/evp.h>

#include <array>
#include <bit>
#include <cstring>
#include <new>
#include <vector>

#include "command.h"
#include "little_endian.h"

namespace perhaps::cli {
namespace {

// MD4 (RFC 1320), which libcrypto has only in its legacy module.
class Md4 {
 public:
  static void digest(Bytes text, std::byte* out) {
    std::array<std::uint32_t, 4> state = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
    std::size_t at = 0;
    for (; text.size() - at >= 64; at += 64) block(state, text.data() + at);
    std::array<std::byte, 128> last{};
    const std::size_t rest = text.size() - at;
    if (rest != 0) std::memcpy(last.data(), text.data() + at, rest);
    last[rest] = std::byte{0x80};
    const std::size_t size = rest < 56 ? 64 : 128;
    store_little_endian(last.data() + size - 8, std::uint64_t{text.size()} * 8);
    for (std::size_t i = 0; i < size; i += 64) block(state, last.data() + i);
    for (std::size_t i = 0; i < 4; ++i) store_little_endian(out + 4 * i, state[i]);
  }

 private:
  static void block(std::array<std::uint32_t, 4>& state, const std::byte* p) {
    std::array<std::uint32_t, 16> x;
    for (std::size_t i = 0; i < 16; ++i) x[i] = load_little_endian<std::uint32_t>(p + 4 * i);
    auto [a, b, c, d] = state;
    // Round r, step i: a = rotl(a + f(b, c, d) + x[order] + constant, shift), and the four change places.
    static constexpr std::array<std::array<int, 4>, 3> kShift = {{{3, 7, 11, 19}, {3, 5, 9, 13}, {3, 9, 11, 15}}};
    static constexpr std::array<std::size_t, 16> kThird = {0, 8, 4, 12, 2, 10, 6, 14, 1, 9, 5, 13, 3, 11, 7, 15};
    for (std::size_t step = 0; step < 48; ++step) {
      const std::size_t round = step / 16;
      const std::size_t i = step % 16;
      std::uint32_t f = 0;
      std::size_t from = 0;
      if (round == 0) {
        f = (b & c) | (~b & d);
        from = i;
      } else if (round == 1) {
        f = ((b & c) | (b & d) | (c & d)) + 0x5a827999;
        from = i % 4 * 4 + i / 4;
      } else {
        f = (b ^ c ^ d) + 0x6ed9eba1;
        from = kThird[i];
      }
      const std::uint32_t next = std::rotl(a + f + x[from], kShift[round][i % 4]);
      a = d;
      d = c;
      c = b;
      b = next;
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
  }
};

// UTF-8 to UTF-16, little-endian; false if it is not UTF-8.
bool utf16_of(Bytes text, std::vector<std::byte>& out) {
  out.clear();
  const auto put = [&](std::uint32_t unit) {
    out.push_back(static_cast<std::byte>(unit));
    out.push_back(static_cast<std::byte>(unit >> 8));
  };
  for (std::size_t i = 0; i < text.size();) {
    const auto first = std::to_integer<std::uint32_t>(text[i]);
    const std::size_t more = first < 0x80   ? 0
                             : first < 0xc2 ? 9
                             : first < 0xe0 ? 1
                             : first < 0xf0 ? 2
                             : first < 0xf5 ? 3
                                            : 9;
    if (more == 9 || text.size() - i <= more) return false;
    std::uint32_t code = more == 0 ? first : first & (0x3fu >> more);
    for (std::size_t j = 1; j <= more; ++j) {
      const auto byte = std::to_integer<std::uint32_t>(text[i + j]);
      if ((byte & 0xc0) != 0x80) return false;
      code = code << 6 | (byte & 0x3f);
    }
    static constexpr std::array<std::uint32_t, 4> kLeast = {0, 0x80, 0x800, 0x10000};
    if (code < kLeast[more] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return false;
    if (code < 0x10000) {
      put(code);
    } else {
      put(0xd7c0 + (code >> 10));
      put(0xdc00 | (code & 0x3ff));
    }
    i += more + 1;
  }
  return true;
}

}  // namespace

struct KeyHasher::State {
  std::unique_ptr<EVP_MD_CTX, decltype(&::EVP_MD_CTX_free)> context{nullptr, &::EVP_MD_CTX_free};
  const EVP_MD* method = nullptr;
  std::vector<std::byte> utf16;
};

void KeyHasher::Free::operator()(State* state) const noexcept { delete state; }

KeyHasher::KeyHasher(KeyHash hash) : hash_(hash), size_(16), state_(new State) {
  if (hash == KeyHash::ntlm) return;
  state_->method = hash == KeyHash::md5 ? ::EVP_md5() : hash == KeyHash::sha1 ? ::EVP_sha1() : ::EVP_sha256();
  size_ = static_cast<std::size_t>(::EVP_MD_get_size(state_->method));
  state_->context.reset(::EVP_MD_CTX_new());
  if (state_->context == nullptr) throw std::bad_alloc();
  // A method that a policy of the machine forbids fails here.
  if (::EVP_DigestInit_ex(state_->context.get(), state_->method, nullptr) != 1)
    fail("--hash {}: libcrypto refuses it on this machine", name_of(hash));
}

void KeyHasher::digest(Bytes key, std::byte* out) {
  if (hash_ == KeyHash::ntlm) {
    if (!utf16_of(key, state_->utf16)) fail("--hash ntlm: a key is not UTF-8");
    return Md4::digest(state_->utf16, out);
  }
  EVP_MD_CTX* const context = state_->context.get();
  if (::EVP_DigestInit_ex(context, nullptr, nullptr) != 1 || ::EVP_DigestUpdate(context, key.data(), key.size()) != 1 ||
      ::EVP_DigestFinal_ex(context, reinterpret_cast<unsigned char*>(out), nullptr) != 1) {
    fail("--hash {}: libcrypto failed", name_of(hash_));
  }
}

}  // namespace perhaps::cli
