// Promise: after any sequence of calls, the bits of a filter are those of the layout and its answers follow from them.
// A double of every filter mirrors each call on std::set, once for the keys and once for the bits, with positions taken
// from the text of the headers. Would notice: any sequence of calls, found and shrunk by rapidcheck, after which the
// two differ.
#include <rapidcheck.h>

#include <cstdlib>
#include <set>

#include "perhaps/algebra.h"
#include "support/no_false_negatives.h"

namespace perhaps::test {
namespace {

// A fixed seed unless RC_PARAMS sets another; rapidcheck prints the one it uses.
[[maybe_unused]] const int kSeeded = setenv("RC_PARAMS", "seed=20240607 max_success=300", 0);

template <class F>
class Checked {
 public:
  using H = typename F::hasher_type;

  Checked(typename F::Shape shape, H hasher) : filter_(shape, hasher) {}

  void insert(std::uint64_t key) {
    const bool looked_present = expects(key);
    const auto said = filter_.insert(key);
    RC_ASSERT(said == (looked_present ? Inserted::present : Inserted::added));
    remember(key);
    check();
  }

  void insert_shared(std::uint64_t key) {
    filter_.shared().insert(key);
    remember(key);
    check();
  }

  void insert(const std::vector<std::uint64_t>& keys, bool as_digests) {
    if (as_digests) {
      const auto digests = digests_of(filter_.hasher(), keys);
      filter_.insert(std::span<const Digest<H>>(digests));
    } else {
      filter_.insert(std::span<const std::uint64_t>(keys));
    }
    for (const std::uint64_t key : keys) remember(key);
    check();
  }

  // Single lookup, mask and column must answer as the set of bits does.
  void query(const std::vector<std::uint64_t>& keys) const {
    std::vector<std::uint64_t> answers(keys.size() / kBatch + 1);
    filter_.may_contain(std::span<const std::uint64_t>(keys), std::span(answers));
    for (std::size_t i = 0; i < keys.size(); ++i) {
      const bool wanted = expects(keys[i]);
      RC_ASSERT(filter_.may_contain(keys[i]) == wanted);
      RC_ASSERT((answers[i / kBatch] >> i % kBatch & 1) == std::uint64_t{wanted});
      RC_ASSERT(wanted || !keys_.contains(keys[i]));
    }
  }

  void merge(const Checked& other) {
    RC_ASSERT(static_cast<bool>(perhaps::merge(filter_, other.filter_)));
    keys_.insert(other.keys_.begin(), other.keys_.end());
    bits_.insert(other.bits_.begin(), other.bits_.end());
    check();
  }

  void intersect(const Checked& other) {
    RC_ASSERT(static_cast<bool>(perhaps::intersect(filter_, other.filter_)));
    std::erase_if(keys_, [&](std::uint64_t key) { return !other.keys_.contains(key); });
    std::erase_if(bits_, [&](std::uint64_t bit) { return !other.bits_.contains(bit); });
    check();
  }

  void fold() {
    auto half = perhaps::fold(filter_);
    if (!half) return;
    filter_ = *std::move(half);
    // After an intersection more bits are set than the keys explain, so the positions are halved, not the keys.
    std::set<std::uint64_t> halved;
    for (const std::uint64_t bit : bits_) halved.insert(half_of(bit));
    bits_ = std::move(halved);
    check();
  }

  void copy() {
    F other = filter_;
    filter_ = std::move(other);
    check();
  }

  void clear() {
    filter_.clear();
    keys_.clear();
    bits_.clear();
    check();
  }

  typename F::Shape shape() const { return filter_.shape(); }

 private:
  bool expects(std::uint64_t key) const {
    const auto where = positions(filter_.shape(), digest_of(filter_.hasher(), key).word());
    return std::ranges::all_of(where, [&](std::uint64_t bit) { return bits_.contains(bit); });
  }
  void remember(std::uint64_t key) {
    keys_.insert(key);
    const auto where = positions(filter_.shape(), digest_of(filter_.hasher(), key).word());
    bits_.insert(where.begin(), where.end());
  }
  static std::uint64_t half_of(std::uint64_t bit) {
    constexpr std::uint64_t unit = F::layout::fold_units().bits;
    return bit / unit / 2 * unit + bit % unit;
  }
  void check() const {
    std::uint64_t ones = 0;
    for (const std::byte b : filter_.bytes())
      ones += static_cast<unsigned>(std::popcount(std::to_integer<unsigned>(b)));
    RC_ASSERT(ones == bits_.size());
    for (const std::uint64_t bit : bits_) RC_ASSERT(bit_at(filter_.bytes(), bit));
    for (const std::uint64_t key : keys_) RC_ASSERT(filter_.may_contain(key));
  }

  F filter_;
  std::set<std::uint64_t> keys_;
  std::set<std::uint64_t> bits_;
};

template <class F>
typename F::Shape any_shape() {
  const auto size = *rc::gen::inRange<std::uint64_t>(1, 70);
  if constexpr (std::same_as<typename F::Shape, BloomShape>) {
    return {size * size, *rc::gen::inRange<std::uint32_t>(1, BloomShape::kMaxProbes + 1)};
  } else if constexpr (std::same_as<typename F::Shape, LineShape>) {
    return {size, *rc::gen::inRange<std::uint32_t>(1, LineShape::kMaxProbes + 1)};
  } else {
    return {size};
  }
}

template <class F>
struct CheckedDouble : ::testing::Test {};
TYPED_TEST_SUITE(CheckedDouble, FamiliesAndHashers, FamilyNames);

TYPED_TEST(CheckedDouble, AgreesAfterAnySequenceOfCalls) {
  const bool ok = rc::check("the filter and its double agree", [] {
    const auto hasher = hasher_of<typename TypeParam::hasher_type>(*rc::gen::arbitrary<std::uint64_t>());
    const auto shape = any_shape<TypeParam>();
    Checked<TypeParam> filter(shape, hasher);
    Checked<TypeParam> other(shape, hasher);
    // Few distinct keys, so that lookups find some of them.
    const auto some_key = [] { return *rc::gen::inRange<std::uint64_t>(0, 500); };
    const auto some_keys = [] {
      return *rc::gen::container<std::vector<std::uint64_t>>(rc::gen::inRange<std::uint64_t>(0, 500));
    };
    const int calls = *rc::gen::inRange(0, 25);
    for (int i = 0; i < calls; ++i) {
      switch (*rc::gen::inRange(0, 10)) {
        case 0:
          filter.insert(some_key());
          break;
        case 1:
          filter.insert_shared(some_key());
          break;
        case 2:
          filter.insert(some_keys(), true);
          break;
        case 3:
          filter.insert(some_keys(), false);
          break;
        case 4:
          filter.query(some_keys());
          break;
        case 5:
          if (other.shape() == shape) other.insert(some_keys(), false);
          break;
        case 6:
          if (filter.shape() == other.shape()) filter.merge(other);
          break;
        case 7:
          if (filter.shape() == other.shape()) filter.intersect(other);
          break;
        case 8:
          filter.copy();
          if (*rc::gen::inRange(0, 4) == 0) filter.fold();
          break;
        default:
          if (*rc::gen::inRange(0, 8) == 0) filter.clear();
          break;
      }
    }
    filter.query(some_keys());
  });
  EXPECT_TRUE(ok);
}

// Compares the kernels with the layout on inputs chosen by rapidcheck: digests that agree in most of their bits.
TYPED_TEST(CheckedDouble, EveryKernelAnswersLikeTheLayout) {
  using H = typename TypeParam::hasher_type;
  const bool ok = rc::check("every kernel answers like the layout", [] {
    const auto shape = any_shape<TypeParam>();
    const H hasher = hasher_of<H>(1);
    const auto raw = *rc::gen::arbitrary<std::vector<std::uint64_t>>();
    const auto mask = *rc::gen::arbitrary<std::uint64_t>();
    std::vector<Digest<H>> digests;
    for (const std::uint64_t value : raw) digests.push_back(Digest<H>::made_by(hasher, value & mask));
    TypeParam filter(shape, hasher);
    filter.insert(std::span<const Digest<H>>(digests).first(digests.size() / 2));
    std::vector<std::uint64_t> answers(digests.size() / kBatch + 1);
    with_every_kernel([&](const kernel::InstructionSet&) {
      filter.may_contain(std::span<const Digest<H>>(digests), std::span(answers));
      for (std::size_t i = 0; i < digests.size(); ++i) {
        const bool wanted = covers(shape, filter.bytes(), digests[i].word());
        RC_ASSERT((answers[i / kBatch] >> i % kBatch & 1) == std::uint64_t{wanted});
      }
    });
  });
  EXPECT_TRUE(ok);
}

}  // namespace
}  // namespace perhaps::test
