#include "redis/valkey_bloom.h"

#include <array>
#include <cfloat>
#include <cmath>
#include <new>
#include <vector>

namespace perhaps::redis {
namespace {

// As compilers expand an integer power, bit for bit.
double power(double base, std::uint64_t exponent) noexcept {
  double result = 1;
  for (;; base *= base) {
    if ((exponent & 1) != 0) result *= base;
    exponent /= 2;
    if (exponent == 0) return result;
  }
}

}  // namespace

const ValkeyFilter::Seed ValkeyFilter::kFixedSeed = [] {
  constexpr std::array<unsigned char, 32> kBytes = {89,  15,  245, 34,  234, 120, 17,  218, 167, 20, 216,
                                                    9,   59,  62,  123, 217, 29,  137, 138, 115, 62, 152,
                                                    136, 135, 48,  127, 151, 205, 40,  7,   51,  131};
  Seed seed;
  std::transform(kBytes.begin(), kBytes.end(), seed.begin(), [](unsigned char b) { return std::byte{b}; });
  return seed;
}();

bool ValkeyFilter::Link::size_for(Link& link, std::uint64_t items, double rate) noexcept {
  if (items == 0 || !(rate > 0 && rate < 1)) return false;
  constexpr double kLog2 = std::numbers::ln2;
  const double n = static_cast<double>(items);
  const double bytes = std::ceil(n * std::log(rate) / (-8 * (kLog2 * kLog2)));
  if (!(bytes >= 1 && bytes < static_cast<double>(redisbloom::kMaxBytes))) return false;
  link.capacity = items;
  link.items = 0;
  link.bytes = static_cast<std::uint64_t>(bytes);
  link.modulus = redisbloom::Modulus(8 * link.bytes);
  const double hashes = std::max(1.0, std::round(static_cast<double>(8 * link.bytes) / n * kLog2));
  if (hashes > kMaxHashes) return false;
  link.hashes = static_cast<std::uint32_t>(hashes);
  return true;
}

ValkeyFilter::~ValkeyFilter() {
  for (const Link& link : links()) memory_->give(link.block);
  memory_->give(reinterpret_cast<std::byte*>(links_));
}

void ValkeyFilter::set_seed(const Seed& seed) noexcept {
  seed_ = seed;
  KeyedHash::Secret half;
  std::copy_n(seed.begin(), 16, half.begin());
  hashers_[0] = KeyedHash(half);
  std::copy_n(seed.begin() + 16, 16, half.begin());
  hashers_[1] = KeyedHash(half);
}

std::uint64_t ValkeyFilter::items() const noexcept {
  std::uint64_t total = 0;
  for (const Link& link : links()) total += link.items;
  return total;
}
std::uint64_t ValkeyFilter::capacity() const noexcept {
  std::uint64_t total = 0;
  for (const Link& link : links()) total += link.capacity;
  return total;
}
std::uint64_t ValkeyFilter::table_bytes() const noexcept {
  std::uint64_t total = 0;
  for (const Link& link : links()) total += link.block_bytes();
  return total;
}

bool ValkeyFilter::numbers_of(std::uint64_t first_capacity, std::uint64_t j, Link& link) const noexcept {
  const double link_rate = rate * power(tightening, j);
  std::uint64_t items = first_capacity;
  for (std::uint64_t i = 0; i < j; ++i)
    if (__builtin_mul_overflow(items, std::uint64_t{expansion}, &items) || items > INT64_MAX) return false;
  return link_rate > DBL_MIN && Link::size_for(link, items, link_rate);
}

bool ValkeyFilter::append(Link link) noexcept {
  std::byte* const block = memory_->take(link.block_bytes());
  if (block == nullptr) return false;
  block[0] = std::byte{1};
  redisbloom::store<std::uint64_t>(block + 1, link.bytes);
  redisbloom::store<std::uint32_t>(block + 9, link.hashes);
  std::copy(seed_.begin(), seed_.end(), block + 13);
  return append(link, block);
}

bool ValkeyFilter::append(Link link, std::byte* block) noexcept {
  if (count_ == room_) {
    const std::uint64_t more = std::max<std::uint64_t>(1, 2 * room_);
    std::byte* const fresh = count_ == kMaxLinks ? nullptr : memory_->take(more * sizeof(Link));
    if (fresh == nullptr) {
      memory_->give(block);
      return false;
    }
    for (std::uint64_t i = 0; i < count_; ++i) new (fresh + i * sizeof(Link)) Link(links_[i]);
    memory_->give(reinterpret_cast<std::byte*>(links_));
    links_ = reinterpret_cast<Link*>(fresh);
    room_ = more;
  }
  link.block = block;
  new (links_ + count_++) Link(link);
  return true;
}

bool ValkeyFilter::copy_to(ValkeyFilter& empty) const noexcept {
  empty.expansion = expansion;
  empty.rate = rate;
  empty.tightening = tightening;
  empty.random_seed = random_seed;
  empty.set_seed(seed_);
  for (const Link& link : links()) {
    if (!empty.append(link)) return false;
    std::memcpy(empty.newest().bits(), link.bits(), link.bytes);
  }
  return true;
}

std::span<std::byte> ValkeyFilter::from(std::uint64_t at) const noexcept {
  for (const Link& link : links()) {
    if (at < link.block_bytes()) return {link.block + at, link.block_bytes() - at};
    at -= link.block_bytes();
  }
  return {};
}

ValkeyFilter::Hash ValkeyFilter::hash(Bytes item) const noexcept {
  std::array<std::byte, 264> small;
  std::vector<std::byte> large;
  std::byte* text = small.data();
  if (8 + item.size() > small.size()) {
    large.resize(8 + item.size());
    text = large.data();
  }
  redisbloom::store<std::uint64_t>(text, item.size());
  std::copy(item.begin(), item.end(), text + 8);
  const Bytes message(text, 8 + item.size());
  return {hashers_[0](message).value, hashers_[1](message).value};
}

redisbloom::Added ValkeyFilter::add(Hash h) noexcept {
  using redisbloom::Added;
  if (may_contain(h)) return Added::present;
  if (newest().items >= newest().capacity) {
    if (fixed()) return Added::full;
    Link next;
    if (!numbers_of(links_[0].capacity, count_, next) || !append(next)) return Added::no_memory;
  }
  Link& link = links_[count_ - 1];
  for (std::uint32_t i = 0; i < link.hashes; ++i) {
    const std::uint64_t bit = link.position(h, i);
    link.bits()[bit / 8] |= std::byte{static_cast<unsigned char>(1u << bit % 8)};
  }
  ++link.items;
  return Added::added;
}

redisbloom::Buffer ValkeyFilter::header() const {
  format::Writer out;
  out.le(expansion).le(std::bit_cast<std::uint64_t>(rate)).le(std::bit_cast<std::uint64_t>(tightening));
  out.le(static_cast<std::uint8_t>(random_seed)).le(count_);
  for (const Link& link : links()) out.le(link.items).le(link.capacity);
  return std::move(out).done();
}

redisbloom::Buffer ValkeyFilter::encode() const {
  format::Writer out;
  out.le(std::uint8_t{1}).le(expansion).le(std::bit_cast<std::uint64_t>(rate));
  out.le(std::bit_cast<std::uint64_t>(tightening)).le(static_cast<std::uint8_t>(random_seed)).le(count_);
  for (const Link& link : links())
    out.le(link.block_bytes()).add({link.block, link.block_bytes()}).le(link.items).le(link.capacity);
  return std::move(out).done();
}

const char* ValkeyFilter::check_numbers() const noexcept {
  if (!(rate > 0 && rate < 1)) return "ERR (0 < error rate range < 1)";
  if (!(tightening > 0 && tightening < 1)) return "ERR (0 < tightening ratio range < 1)";
  return nullptr;
}

bool ValkeyFilter::parse_block(Bytes block, Link& link) noexcept {
  if (block.size() <= kBlockHeader || block[0] != std::byte{1}) return false;
  link.bytes = redisbloom::load<std::uint64_t>(block.data() + 1);
  link.hashes = redisbloom::load<std::uint32_t>(block.data() + 9);
  if (link.bytes != block.size() - kBlockHeader || link.hashes == 0 || link.hashes > kMaxHashes) return false;
  if (link.capacity == 0 || link.capacity > INT64_MAX || link.items > link.capacity) return false;
  link.modulus = redisbloom::Modulus(8 * link.bytes);
  Seed seed;
  std::copy_n(block.begin() + 13, seed.size(), seed.begin());
  if (count_ == 0) set_seed(seed);
  return seed == seed_ && (random_seed || seed == kFixedSeed);
}

}  // namespace perhaps::redis
