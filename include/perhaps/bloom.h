// The classic Bloom filter (Bloom 1970): `probes` bits per key anywhere in one array of `bits` bits.
//
// Every system that ships one agrees on that sentence and differs in four things: the hash, how a digest becomes
// positions (the Plan), the order of bits inside a byte, and the header around the array. Hash and Plan are template
// arguments; an unusual bit order is a Plan that permutes its positions; the header is a codec's business.
//
//   Plan             used by       position i
//   EnhancedDouble   perhaps       floor(x_i * bits / 2^64)   x_i = a + i*b + c*(i^3-i)/6 mod 2^64
//
// Bits are numbered from the least significant bit of byte 0. The unused bits of the last byte stay 0.
//
// The smallest of the Bloom filters (1.44 log2(1/FPR) bits per key) and the slowest: each probe is a cache miss of its
// own. Take it for compatibility, for very low rates, or where every bit counts: a LineBloom takes 5 % more bits at
// 1 %, 15 % at 1e-4 and 36 % at 1e-6 (perhaps size).
#pragma once
#include "perhaps/detail/bits.h"
#include "perhaps/flat.h"

namespace perhaps {

template <class P>
concept ProbePlan = requires(typename P::word digest, std::uint64_t bits, P plan) {
  P(digest, bits);
  { plan.next() }
  noexcept->std::same_as<std::uint64_t>;  // Always less than `bits`.
};

// Enhanced double hashing (Dillinger, Manolios 2004): plain double hashing x + i*y repeats itself -- two keys whose
// steps agree share all positions, and {x, y} meets its mirror {x + (k-1)y, -y} -- which doubles the rate of small
// filters (20 bits per key, 1000 keys: 1.41e-4 for 0.70e-4). The cubic term breaks both. All arithmetic is mod 2^64 and
// a position is the high part of a product, so there is no division and halving `bits` halves every position: a classic
// filter with an even number of bits can be folded. a = h * 0x9e3779b97f4a7c15, b = rot32(h) * 0xd6e8feb86659fd93.
class EnhancedDouble {
 public:
  using word = std::uint64_t;
  static constexpr Kind kind = Kind::classic;

  EnhancedDouble(std::uint64_t digest, std::uint64_t bits) noexcept
      : bits_(bits), x_(digest * 0x9e3779b97f4a7c15u), step_((digest >> 32 | digest << 32) * 0xd6e8feb86659fd93u) {}

  std::uint64_t next() noexcept {
    const std::uint64_t position = detail::scale(x_, bits_);
    x_ += step_;
    step_ += growth_;
    growth_ += kCubic;
    return position;
  }

 private:
  static constexpr std::uint64_t kCubic = 0xd1342543de82ef95u;
  std::uint64_t bits_;
  std::uint64_t x_;
  std::uint64_t step_;
  std::uint64_t growth_ = kCubic;
};

template <ProbePlan Plan>
struct BloomLayout {
  using Shape = BloomShape;
  using word = typename Plan::word;
  static constexpr std::string_view family = "classic";
  static constexpr Kind kind = Plan::kind;  // only our own plan has one: foreign files carry no kind

  template <class Isa>
  static bool may_contain(BloomShape shape, const std::byte* table, word h) noexcept {
    Plan plan(h, shape.bits);
    for (std::uint32_t i = 0; i < shape.probes; ++i) {
      const std::uint64_t bit = plan.next();
      if ((std::to_integer<unsigned>(table[bit / 8]) >> (bit % 8) & 1u) == 0) return false;
    }
    return true;
  }

  static Inserted insert(BloomShape shape, std::byte* table, word h) noexcept {
    Plan plan(h, shape.bits);
    bool changed = false;
    for (std::uint32_t i = 0; i < shape.probes; ++i) {
      const std::uint64_t bit = plan.next();
      changed |= detail::set_bits<std::uint8_t>(table + bit / 8, static_cast<std::uint8_t>(1u << bit % 8));
    }
    return changed ? Inserted::added : Inserted::present;
  }

  static bool may_contain_shared(BloomShape shape, const std::byte* table, word h) noexcept {
    Plan plan(h, shape.bits);
    for (std::uint32_t i = 0; i < shape.probes; ++i) {
      const std::uint64_t bit = plan.next();
      if ((detail::load_shared<std::uint8_t>(table + bit / 8) >> (bit % 8) & 1u) == 0) return false;
    }
    return true;
  }

  static Inserted insert_shared(BloomShape shape, std::byte* table, word h) noexcept {
    Plan plan(h, shape.bits);
    bool changed = false;
    for (std::uint32_t i = 0; i < shape.probes; ++i) {
      const std::uint64_t bit = plan.next();
      changed |= detail::set_bits_shared<std::uint8_t>(table + bit / 8, static_cast<std::uint8_t>(1u << bit % 8));
    }
    return changed ? Inserted::added : Inserted::present;
  }

  static void prefetch(BloomShape shape, const std::byte* table, word h) noexcept {
    Plan plan(h, shape.bits);
    for (std::uint32_t i = 0; i < shape.probes; ++i) detail::prefetch_read(table + plan.next() / 8);
  }
};

template <ProbePlan Plan, Hasher H>
using BasicBloom = Flat<BloomLayout<Plan>, H>;
using Bloom = BasicBloom<EnhancedDouble, Hash>;
using BloomView = Bloom::View;
using BloomSpan = Bloom::Span;
using BloomShared = Bloom::Shared;

}  // namespace perhaps
