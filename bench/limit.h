// The limit: our mixer, then one load from a random 64-byte line of a table of the same size, in the same kind of
// memory, prefetched as far ahead, and once or twice, as measures best on this table. Nothing that looks a key up in a
// random line can be faster; what a filter takes beyond it is its own arithmetic.
//
// For filters that read several lines per key, at least as many: the further ones follow the first at a distance of 16
// KiB, so that they are lines of other 4 KiB pages and mostly of the same huge page.
#pragma once
#include <cstring>
#include <limits>

#include "contender.h"
#include "perhaps/detail/bits.h"
#include "perhaps/hash.h"
#include "perhaps/memory.h"
#include "stopwatch.h"

namespace perhaps::bench {

template <unsigned kReads>
class LimitOf : public Querying<LimitOf<kReads>, std::uint64_t> {
  using Base = Querying<LimitOf, std::uint64_t>;

 public:
  using typename Base::Keys;

  LimitOf(std::uint64_t keys, double bits_per_key, bool writes)
      : lines_(std::max<std::uint64_t>(1, static_cast<std::uint64_t>(static_cast<double>(keys) * bits_per_key / 512))),
        memory_(lines_ * kLineBytes + (kReads - 1) * kApart),
        writes_(writes) {
    clear();
  }

  std::uint64_t bytes() const override { return memory_.size(); }
  // Touched, so that every page is resident; the low bit of each line is clear, so all answers are *no*.
  void clear() override { std::memset(memory_.data(), 2, memory_.size()); }
  void build(Keys keys, unsigned) override {
    if (!tuned_) tune(keys.first(std::min<std::size_t>(keys.size(), std::size_t{1} << 20)));
    writes_ ? write(keys) : keep(sum(keys, ahead_, mixed));
  }
  bool has(Form form) const override { return !writes_ && Base::has(form); }

  std::uint64_t query(Form form, Keys keys) const override {
    switch (form) {
      case Form::batch:
        return sum(keys, ahead_, mixed);
      case Form::digests:
        return sum(keys, ahead_, plain);
      default:
        return Base::query(form, keys);
    }
  }
  auto probe() const {
    return [ table = memory_.data(), lines = lines_ ](std::uint64_t key) __attribute__((always_inline)) {
      return bits(table + detail::scale(mixed(key), lines) * kLineBytes);
    };
  }
  std::uint64_t mask(Keys keys) const {
    std::array<const std::byte*, 64> at;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      at[i] = memory_.data() + detail::scale(mixed(keys[i]), lines_) * kLineBytes;
      if (ahead_.first != 0) prefetch(at[i]);
    }
    std::uint64_t result = 0;
    for (std::size_t i = 0; i < keys.size(); ++i) result |= bits(at[i]) << i;
    return result;
  }
  // Here so that has() knows them; query() runs over the whole span instead of column by column.
  std::uint64_t batch(Keys keys) const { return sum(keys, ahead_, mixed); }
  std::uint64_t digests(Keys keys) const { return sum(keys, ahead_, plain); }

 private:
  static constexpr std::size_t kRing = 128;
  static constexpr std::size_t kApart = 16384;
  static std::uint64_t mixed(std::uint64_t key) { return Hash()(key).word(); }
  static std::uint64_t plain(std::uint64_t key) { return key; }

  static std::uint64_t bits(const std::byte* line) {
    std::uint64_t all = detail::load<std::uint64_t>(line);
    for (unsigned i = 1; i < kReads; ++i) all ^= detail::load<std::uint64_t>(line + i * kApart);
    return all & 1;
  }
  static void prefetch(const std::byte* line) {
    detail::prefetch_read(line);
    for (unsigned i = 1; i < kReads; ++i) detail::prefetch_read(line + i * kApart);
  }

  // How many keys ahead a line is prefetched, for the first and for the second time; 0: not at all.
  struct Ahead {
    std::size_t first = 0;
    std::size_t second = 0;
  };

  template <class Mix>
  std::uint64_t sum(Keys keys, Ahead ahead, Mix mix) const {
    const auto line_of = [table = memory_.data(), lines = lines_, mix](std::uint64_t key) {
      return table + detail::scale(mix(key), lines) * kLineBytes;
    };
    const auto bit = [](const std::byte* line) { return bits(line); };
    std::uint64_t result = 0;
    if (ahead.first == 0) {
      for (const std::uint64_t key : keys) result += bit(line_of(key));
      return result;
    }
    std::array<const std::byte*, kRing> ring;
    const std::size_t primed = std::min(ahead.first, keys.size());
    for (std::size_t i = 0; i < primed; ++i) prefetch(ring[i] = line_of(keys[i]));
    std::size_t i = 0;
    for (; i + ahead.first < keys.size(); ++i) {
      prefetch(ring[(i + ahead.first) % kRing] = line_of(keys[i + ahead.first]));
      if (ahead.second != 0) prefetch(ring[(i + ahead.second) % kRing]);
      result += bit(ring[i % kRing]);
    }
    for (; i < keys.size(); ++i) result += bit(ring[i % kRing]);
    return result;
  }

  void write(Keys keys) {
    std::byte* const table = memory_.data();
    const auto at = [&](std::size_t i) { return table + detail::scale(mixed(keys[i]), lines_) * kLineBytes; };
    std::array<std::byte*, kRing> ring;
    const std::size_t primed = std::min(ahead_.first, keys.size());
    for (std::size_t i = 0; i < primed; ++i) detail::prefetch_write(ring[i] = at(i));
    std::size_t i = 0;
    for (; i + ahead_.first < keys.size(); ++i) {
      detail::prefetch_write(ring[(i + ahead_.first) % kRing] = at(i + ahead_.first));
      if (ahead_.second != 0) detail::prefetch_write(ring[(i + ahead_.second) % kRing]);
      detail::set_bits<std::uint64_t>(ring[i % kRing], 4);
    }
    for (; i < keys.size(); ++i) detail::set_bits<std::uint64_t>(ring[i % kRing], 4);
  }

  void tune(Keys keys) {
    double best = std::numeric_limits<double>::infinity();
    for (const std::size_t first : {0u, 8u, 16u, 24u, 32u, 48u, 64u, 96u}) {
      if (writes_ && first == 0) continue;
      for (const Ahead ahead : {Ahead{first, 0}, Ahead{first, first - std::min<std::size_t>(first, 16)}}) {
        double fastest = std::numeric_limits<double>::infinity();
        for (int i = 0; i < 5; ++i) {
          fastest = std::min(fastest, seconds([&] { keep(sum(keys, ahead, mixed)); }));
        }
        if (fastest < best) best = fastest, ahead_ = ahead;
      }
    }
    tuned_ = true;
  }

  std::uint64_t lines_;
  Memory memory_;
  bool writes_;
  bool tuned_ = false;
  Ahead ahead_;
};
using Limit = LimitOf<1>;

}  // namespace perhaps::bench
