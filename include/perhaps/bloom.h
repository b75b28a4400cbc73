// The classic Bloom filter (Bloom 1970): `probes` bits per key anywhere in one array of `bits` bits.
//
// Every system that ships one agrees on that sentence and differs in four things: the hash, how a digest becomes
// positions (the Plan), the order of bits inside a byte, and the header around the array. Hash and Plan are template
// arguments; an unusual bit order is a Plan that permutes its positions; the header is a codec's business.
//
//   Plan             used by       position i
//   Multiplicative   perhaps       floor(x_i * bits / 2^64)   x_i = word * 0xf1357aea2e62a9c5^i mod 2^64
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

// How a digest becomes the positions of a classic filter: made from a digest, it gives one position after the other.
template <class P>
concept ProbePlan = requires(typename P::word digest, std::uint64_t bits, P plan) {
  P(digest, bits);
  { plan.next() }
  noexcept->std::same_as<std::uint64_t>;  // Always less than `bits`.
};

// Its batches are looked up by a kernel of the library, those of other plans key by key.
template <class P>
concept KernelPlan = ProbePlan<P> && requires {
  P::query_kernel;
};

// Halving `bits` halves every position.
template <class P>
concept FoldingPlan = ProbePlan<P> && requires {
  requires P::folds;
};

// The states of a multiplicative generator that starts at the word: x_0 = word, x_{i+1} = x_i * A mod 2^64. All
// arithmetic is mod 2^64 and a position is the high part of a product, so there is no division and halving `bits`
// halves every position: a classic filter with an even number of bits can be folded.
//
// Why the rate has no floor above 2^-64. Probe i of a key x meets probe j of a key y in an array of m bits only if
// |A^i x - A^j y| < 2^64 / m. For all k probes to meet those of one key in the same order, d = x - y has to make every
// coordinate of the vector (d, A d, .., A^(k-1) d) mod 2^64 smaller than 2^64 / m. These vectors are a lattice of 2^64
// points in k dimensions: a box of that size holds 2^64 / m^k of them, as for independent probes, as long as that is
// more than one, and after that only d = 0, the same word. The constant is one that makes the lattice even in every
// dimension (Steele, Vigna 2021, "Computationally easy, spectrally good multipliers": its spectral figures are
// near the best possible in 2 to 8 dimensions). Probes that meet in another order, x_i and y_(i+1) .., need
// x near A y, the same lattice moved.
//
// Double hashing, x + i*y, has such a floor: two keys with nearly the same step and start share all positions, of which
// there are only m^2 pairs. Enhanced double hashing (Dillinger, Manolios 2004) adds a cubic term but no third number,
// so it keeps a floor of some 0.005 n / m^2: 10 keys at 1e-12 came out at 9e-8 (rates_soak).
class Multiplicative {
 public:
  using word = std::uint64_t;
  static constexpr Kind kind = Kind::classic;  // the number in a file
  static constexpr bool folds = true;          // halving `bits` halves every position
  // A, and the batch kernel.
  static constexpr std::uint64_t kMultiplier = 0xf1357aea2e62a9c5u;
  static constexpr auto query_kernel = &detail::Kernels::classic_query;

  // The positions of a word among `bits` bits.
  Multiplicative(std::uint64_t start, std::uint64_t bits) noexcept : bits_(bits), x_(start) {}

  // Below `bits`.
  std::uint64_t next() noexcept {
    const std::uint64_t position = detail::scale(x_, bits_);
    x_ *= kMultiplier;
    return position;
  }

 private:
  std::uint64_t bits_;
  std::uint64_t x_;
};

template <ProbePlan Plan>
struct BloomLayout {
  using Shape = BloomShape;
  using word = typename Plan::word;
  static constexpr std::string_view family = "classic";
  static constexpr Kind kind = Plan::kind;  // only our own plan has one: foreign files carry no kind

  static constexpr FoldUnits<BloomShape> fold_units() noexcept requires FoldingPlan<Plan> {
    return {&BloomShape::bits, "bits", 1};
  }

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

  // A batch, by the kernel that the plan names.
  static void query(const BloomShape& shape, const std::byte* table, const detail::Batch<word>& batch,
                    std::uint64_t* answers) noexcept requires KernelPlan<Plan> {
    (detail::kernels().*Plan::query_kernel)(shape, table, batch, answers);
  }

  static void prefetch(BloomShape shape, const std::byte* table, word h) noexcept {
    Plan plan(h, shape.bits);
    for (std::uint32_t i = 0; i < shape.probes; ++i) detail::prefetch_read(table + plan.next() / 8);
  }
};

template <ProbePlan Plan, Hasher H>
using BasicBloom = Flat<BloomLayout<Plan>, H>;
using Bloom = BasicBloom<Multiplicative, Hash>;
using BloomView = Bloom::View;
using BloomSpan = Bloom::Span;
using BloomShared = Bloom::Shared;

}  // namespace perhaps
