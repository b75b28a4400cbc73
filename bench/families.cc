// The families beyond the plain Bloom filters, and what bounds them. Compiled twice, as ours.cc is. A family of the
// list (family.h) that has no entry of its own is measured with its defaults.
#include <optional>
#include <stdexcept>

#include "answering.h"
#include "limit.h"
#include "perhaps/perhaps.h"
#include "spread.h"

namespace perhaps::bench {
namespace {

constexpr double kEightBits = 1 / 256.0;

// Fuse, ribbon. A build is what a user gets: from keys to a filter that was queried with every one of them.
template <class F>
class Static : public Answering<Static<F>, F, std::uint64_t> {
 public:
  using typename Answering<Static<F>, F, std::uint64_t>::Keys;
  Static(std::uint64_t, const RequestOf<typename F::Shape>& request) : request_(request) {}

  std::uint64_t bytes() const override { return filter_->byte_size(); }
  double fpr(std::uint64_t keys) const override { return filter_->shape().fpr(static_cast<double>(keys)); }
  double fpr_spread(std::uint64_t keys) const override { return kExact * fpr(keys); }
  void clear() override { filter_.reset(); }
  void build(Keys keys, unsigned threads) override {
    auto built = F::build(keys, request_, {.threads = threads});
    if (!built) throw std::runtime_error(built.error().detail);
    filter_.emplace(*std::move(built));
  }
  const F& filter() const { return *filter_; }

 private:
  RequestOf<typename F::Shape> request_;
  std::optional<F> filter_;
};

// Counting, cuckoo, quotient, window. Inserted through the column call, erased key by key.
template <class F>
class Mutable : public Answering<Mutable<F>, F, std::uint64_t> {
 public:
  using typename Answering<Mutable<F>, F, std::uint64_t>::Keys;
  Mutable(std::uint64_t keys, typename F::Shape (*shape)(std::uint64_t keys)) : filter_(shape(keys)) {}

  std::uint64_t bytes() const override { return filter_.byte_size(); }
  double fpr(std::uint64_t keys) const override { return rate(filter_, static_cast<double>(keys)); }
  double fpr_spread(std::uint64_t keys) const override {
    if constexpr (requires { spread(filter_.shape(), 1.0); }) return spread(filter_.shape(), static_cast<double>(keys));
    return 0;  // not known
  }
  void clear() override { filter_.clear(); }
  void build(Keys keys, unsigned) override {
    if constexpr (FillingLayout<typename F::layout>) {
      if (filter_.insert(keys) != keys.size()) throw std::runtime_error("full before all keys were in");
    } else {
      filter_.insert(keys);
    }
  }
  bool inserts() const override { return true; }
  void insert_each(Keys keys) override {
    for (const std::uint64_t key : keys) static_cast<void>(filter_.insert(key));
  }
  bool erases() const override { return ErasableLayout<typename F::layout>; }
  void erase([[maybe_unused]] Keys keys) override {
    if constexpr (ErasableLayout<typename F::layout>) {
      for (const std::uint64_t key : keys) {
        if (filter_.erase(key) == Erased::absent) throw std::runtime_error("a key that was in is absent");
      }
    }
  }
  const F& filter() const { return filter_; }

 private:
  template <class Filter>
  static double rate(const Filter& filter, double keys) {
    return filter.shape().fpr(keys);
  }
  // Generations fill as keys come, so the rate is that of the moment.
  static double rate(const Window& filter, double) { return state_of(filter).fpr; }

  F filter_;
};

// Begins at a thousand keys and grows.
class Chain : public Answering<Chain, ScalableBloom, std::uint64_t> {
 public:
  explicit Chain(std::uint64_t) {}
  std::uint64_t bytes() const override { return filter_.byte_size(); }
  double fpr(std::uint64_t) const override { return filter_.fpr(); }
  double fpr_spread(std::uint64_t) const override {
    double variance = 0;
    for (const auto& link : filter_.shape().links) {
      const double one = link.keys == 0 ? 0 : spread(link.shape, static_cast<double>(link.keys));
      variance += one * one;
    }
    return std::sqrt(variance);
  }
  void clear() override { filter_ = ScalableBloom(); }
  void build(Keys keys, unsigned) override { filter_.insert(keys); }
  const ScalableBloom& filter() const { return filter_; }

 private:
  ScalableBloom filter_;
};

#if !PERHAPS_BENCH_NATIVE
const Register<LimitOf<3>> three_lines({.name = "limit 9.0, 3 lines", .kind = Kind::limit, .group = "static"}, 9.0,
                                       false);
const Register<LimitOf<4>> four_lines({.name = "limit 8.6, 4 lines", .kind = Kind::limit, .group = "static"}, 8.6,
                                      false);
const Register<Limit> line_of_ribbon({.name = "limit 8.04", .kind = Kind::limit, .group = "static"}, 8.04, false);
const Register<Limit> line_of_cuckoo({.name = "limit 12.6", .kind = Kind::limit, .group = "mutable"}, 12.6, false);
const Register<LimitOf<2>> two_lines({.name = "limit 12.6, 2 lines", .kind = Kind::limit, .group = "mutable"}, 12.6,
                                     false);
const Register<Limit> line_of_counters({.name = "limit 43.7", .kind = Kind::limit, .group = "mutable"}, 43.7, false);
#endif

const Register<Static<Fuse>> fuse3(
    {.name = named("fuse 3"), .kind = kOurs, .group = "static", .limit = "limit 9.0, 3 lines", .headline = true},
    FuseRequest{.fpr = kEightBits, .arity = 3});
const Register<Static<Fuse>> fuse4(
    {.name = named("fuse 4"), .kind = kOurs, .group = "static", .limit = "limit 8.6, 4 lines", .headline = true},
    FuseRequest{.fpr = kEightBits, .arity = 4});
const Register<Static<Ribbon>> ribbon(
    {.name = named("ribbon"), .kind = kOurs, .group = "static", .limit = "limit 8.04", .headline = true},
    Request{.fpr = kEightBits});
#if !PERHAPS_BENCH_NATIVE
const Register<Static<Ribbon>> ribbon_1(
    {.name = "ribbon, 1 %", .kind = kOurs, .group = "static", .limit = "limit 8.04", .slow_build = true},
    Request{.fpr = 0.01});
#endif

const Register<Mutable<Cuckoo>> cuckoo(
    {.name = named("cuckoo 12"), .kind = kOurs, .group = "mutable", .limit = "limit 12.6"}, +[](std::uint64_t keys) {
      return CuckooShape{.buckets = keys * 100 / 95 / CuckooShape::kSlots + 3, .fingerprint_bits = 12};
    });
const Register<Mutable<Quotient>> quotient(
    {.name = named("quotient"), .kind = kOurs, .group = "mutable", .limit = "limit 12.6", .max_keys = 10'000'000},
    +[](std::uint64_t keys) { return QuotientShape::for_keys({.keys = keys, .fpr = 0.002}); });
#if !PERHAPS_BENCH_NATIVE
const Register<Mutable<CountingBloom>> counting(
    {.name = "counting", .kind = kOurs, .group = "mutable", .limit = "limit 43.7"},
    +[](std::uint64_t keys) { return CountingShape::for_keys({.keys = keys}); });
const Register<Mutable<Window>> window(
    {.name = "window", .kind = kOurs, .group = "mutable", .max_keys = 10'000'000},
    +[](std::uint64_t keys) { return WindowShape::for_keys({.keys = keys}); });
const Register<Chain> scalable({.name = "scalable", .kind = kOurs, .group = "mutable", .max_keys = 10'000'000});
#endif

template <class Type, class... Others>
constexpr bool kIsOneOf = (std::same_as<Type, Others> || ...);
// Here or in ours.cc.
template <class Type>
constexpr bool kHasEntry =
    kIsOneOf<Type, LineLayout, BlockLayout, BloomLayout<Multiplicative>, ScalableBloom, CountingLayout, CuckooLayout,
             QuotientLayout, WindowLayout, FuseLayout, RibbonLayout>;

template <class Type>
void add_default_entry([[maybe_unused]] const char* name) {
  if constexpr (!kHasEntry<Type>) {
    About about{.name = named(name), .kind = kOurs, .group = "mutable", .max_keys = 10'000'000};
    if constexpr (StaticLayout<Type>) {
      about.group = "static";
      const Register<Static<StaticFilter<Type, Hash>>> entry(about, RequestOf<typename Type::Shape>{.fpr = kEightBits});
    } else {
      const Register<Mutable<Flat<Type, Hash>>> entry(
          about, +[](std::uint64_t keys) { return Type::Shape::for_keys({.keys = keys}); });
    }
  }
}
[[maybe_unused]] const bool all_entered = [] {
#define PERHAPS_FAMILY(name, number, Type, summary) add_default_entry<Type>(#name);
  PERHAPS_FAMILIES(PERHAPS_FAMILY)
#undef PERHAPS_FAMILY
  return true;
}();

}  // namespace
}  // namespace perhaps::bench
