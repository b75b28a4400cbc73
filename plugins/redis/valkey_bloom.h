// The filter of valkey-bloom: type bloomfltr, over the bits of the Rust crate `bloomfilter` 3.
//
// A chain of links under one seed of 32 bytes. h0, h1 = SipHash-1-3 under each half of the seed, of the length of the
// item as u64 and the item
//   bit 0 = h0 mod bits, bit 1 = h1 mod bits, bit i of k = ((h0 + i*h1) mod 2^64) mod (2^64 - 59) mod bits
//   a link for n items at rate p: bytes = ceil(n * ln p / (-8 * ln(2)^2)); k = round(bits / n * ln 2), at least 1
//   link j is for n * expansion^j items at p * tightening^j; expansion 0: it never grows
//
//   block  u8 version = 1 | u64 bytes | u32 k | seed[32] | the bits, bit b in byte b / 8 at b mod 8     little-endian
//   RDB    u links, u expansion, d rate, d tightening, u seed is random; per link: u capacity, in the last link u
//          items, string block. The links before the last are full.
//   LOAD   u8 version = 1 | u32 expansion | f64 rate | f64 tightening | u8 seed is random | u64 links | per link: u64
//          size and the block, i64 items, i64 capacity: what BF.LOAD takes, as valkey-bloom's AOF rewrite writes it
#pragma once
#include <cmath>
#include <numbers>

#include "perhaps/hash.h"
#include "redisbloom/redisbloom.h"

namespace perhaps::redis {

class ValkeyFilter {
 public:
  struct Hash {
    std::uint64_t first;
    std::uint64_t second;
  };
  using Seed = std::array<std::byte, 32>;

  struct Link {
    std::uint64_t capacity = 0;
    std::uint64_t items = 0;
    std::uint64_t bytes = 0;  // of the bits
    std::uint32_t hashes = 0;
    redisbloom::Modulus modulus;
    std::byte* block = nullptr;

    // False if there is no such link.
    static bool size_for(Link& link, std::uint64_t items, double rate) noexcept;
    std::uint64_t block_bytes() const noexcept { return kBlockHeader + bytes; }
    std::byte* bits() const noexcept { return block + kBlockHeader; }
    std::uint64_t position(Hash h, std::uint32_t i) const noexcept {
      constexpr std::uint64_t kPrime = 0xffffffffffffffc5u;  // the largest below 2^64
      if (i < 2) return modulus.of(i == 0 ? h.first : h.second);
      const std::uint64_t sum = h.first + i * h.second;
      return modulus.of(sum >= kPrime ? sum - kPrime : sum);
    }
    bool may_contain(Hash h) const noexcept {
      for (std::uint32_t i = 0; i < hashes; ++i) {
        const std::uint64_t bit = position(h, i);
        if ((std::to_integer<unsigned>(bits()[bit / 8]) >> bit % 8 & 1u) == 0) return false;
      }
      return true;
    }
    // By the number of items.
    double rate() const noexcept {
      const double filled =
          -std::expm1(-static_cast<double>(hashes) * static_cast<double>(items) / static_cast<double>(modulus.value));
      return std::pow(filled, hashes);
    }
  };

  static constexpr std::uint64_t kBlockHeader = 1 + 8 + 4 + 32;
  static constexpr std::uint64_t kMaxLinks = 1100;
  static constexpr std::uint32_t kMaxHashes = 1100;
  static constexpr int kEncoding = 1;
  // The seed of filters that were made with bloom-use-random-seed no.
  static const Seed kFixedSeed;

  std::uint32_t expansion = 2;
  double rate = 0.01;
  double tightening = 0.5;
  bool random_seed = true;

  explicit ValkeyFilter(const redisbloom::Memory& memory) noexcept : memory_(&memory) {}
  ~ValkeyFilter();
  ValkeyFilter(const ValkeyFilter&) = delete;
  ValkeyFilter& operator=(const ValkeyFilter&) = delete;

  const Seed& seed() const noexcept { return seed_; }
  void set_seed(const Seed& seed) noexcept;

  std::span<const Link> links() const noexcept { return {links_, count_}; }
  const Link& newest() const noexcept { return links_[count_ - 1]; }
  bool fixed() const noexcept { return expansion == 0; }
  std::uint64_t items() const noexcept;
  std::uint64_t capacity() const noexcept;
  std::uint64_t table_bytes() const noexcept;
  // As valkey-bloom counts it.
  std::uint64_t size() const noexcept { return size_with(count_) + table_bytes() - count_ * kBlockHeader; }
  static std::uint64_t size_with(std::uint64_t links) noexcept {
    return 48 + 8 * (links <= 1 ? links : std::bit_ceil(std::max<std::uint64_t>(4, links))) + 208 * links;
  }

  // What link j is, or false: its rate or its capacity is out of range.
  bool numbers_of(std::uint64_t first_capacity, std::uint64_t j, Link& link) const noexcept;
  // An empty link, or one over a block that the server allocated. False: no memory; the block is given back.
  bool append(Link link) noexcept;
  bool append(Link link, std::byte* block) noexcept;
  bool copy_to(ValkeyFilter& empty) const noexcept;
  std::span<std::byte> from(std::uint64_t at) const noexcept;

  Hash hash(Bytes item) const noexcept;
  bool may_contain(Hash h) const noexcept {
    for (std::uint64_t i = count_; i-- != 0;)
      if (links_[i].may_contain(h)) return true;
    return false;
  }
  std::uint64_t may_contain(std::span<const Hash> many, bool ahead) const noexcept {
    if (ahead)
      for (const Hash h : many)
        for (const Link& link : links()) redisbloom::prefetch_read(link.bits() + link.position(h, 0) / 8);
    std::uint64_t found = 0;
    for (std::size_t i = 0; i < many.size(); ++i) found |= std::uint64_t{may_contain(many[i])} << i;
    return found;
  }
  void prefetch(Hash h) const noexcept {
    for (std::uint32_t i = 0; i < newest().hashes; ++i)
      redisbloom::prefetch_write(newest().bits() + newest().position(h, i) / 8);
  }
  redisbloom::Added add(Hash h) noexcept;

  template <class Move>
  void move_table(std::uint64_t i, Move move) noexcept {
    if (std::byte* const now = move(links_[i].block)) links_[i].block = now;
  }
  template <class Move>
  void move_links(Move move) noexcept {
    if (std::byte* const now = move(reinterpret_cast<std::byte*>(links_))) links_ = reinterpret_cast<Link*>(now);
  }

  // What differs between two filters of the same bits: for digests.
  redisbloom::Buffer header() const;
  redisbloom::Buffer encode() const;

  // Why a payload is refused, or null.
  const char* check_numbers() const noexcept;
  // Reads a block's header into the link. False: damaged, or another seed than that of the links before it.
  bool parse_block(Bytes block, Link& link) noexcept;

 private:
  const redisbloom::Memory* memory_;
  Link* links_ = nullptr;
  std::uint64_t count_ = 0;
  std::uint64_t room_ = 0;
  Seed seed_{};
  std::array<KeyedHash, 2> hashers_{KeyedHash({}), KeyedHash({})};
};

}  // namespace perhaps::redis
