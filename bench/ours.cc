// Our own filters, and the limit. Compiled twice: for the CPU the distribution builds for, and (into a module, together
// with a second copy of the library) for the CPU at hand.
#include <sys/mman.h>

#include <cmath>
#include <limits>

#include "contender.h"
#include "perhaps/block_bloom.h"
#include "perhaps/bloom.h"
#include "perhaps/bulk.h"
#include "perhaps/line_bloom.h"
#include "spread.h"
#include "stopwatch.h"

#ifndef PERHAPS_BENCH_NATIVE
#define PERHAPS_BENCH_NATIVE 0
#endif

namespace perhaps::bench {
namespace {

constexpr double kLineBitsPerKey = 10.24;
constexpr double kBlockBitsPerKey = 32.0 / 3;

std::uint64_t count(std::span<const std::uint64_t> answers) {
  std::uint64_t perhaps = 0;
  for (const std::uint64_t word : answers) perhaps += static_cast<std::uint64_t>(std::popcount(word));
  return perhaps;
}

template <class F, class Key>
class Ours : public Asking<Ours<F, Key>, Key> {
 public:
  using typename Asking<Ours<F, Key>, Key>::Keys;
  Ours(std::uint64_t keys, double bits_per_key, bool small_pages = false)
      : filter_({.keys = keys, .bits_per_key = bits_per_key}) {
    // Before the first byte is touched; smaller tables are not on huge pages anyway.
    if (small_pages && filter_.byte_size() >= Memory::kHugeFrom) {
      madvise(filter_.writable_bytes().data(), filter_.byte_size(), MADV_NOHUGEPAGE);
    }
  }

  std::uint64_t bytes() const override { return filter_.byte_size(); }
  double fpr(std::uint64_t keys) const override { return filter_.shape().fpr(static_cast<double>(keys)); }
  double fpr_spread(std::uint64_t keys) const override { return spread(filter_.shape(), static_cast<double>(keys)); }
  void clear() override { filter_.clear(); }
  void build(Keys keys, unsigned threads) override { insert_parallel(filter_, keys, threads); }

  auto probe() const {
    return [view = filter_.view()](const Key& key) { return view.may_contain(key); };
  }
  std::uint64_t mask(Keys keys) const {
    std::array<Digest<Hash>, kBatch> digests;
    digests_of(filter_.hasher(), keys, std::span(digests));
    return filter_.may_contain(std::span<const Digest<Hash>>(digests.data(), keys.size()));
  }
  std::uint64_t batch(Keys keys) const {
    std::array<std::uint64_t, kColumn / kBatch> answers;
    filter_.may_contain(keys, answers);
    return count(std::span(answers).first((keys.size() + 63) / 64));
  }
  std::uint64_t digests(Keys keys) const requires std::same_as<Key, std::uint64_t> {
    std::array<std::uint64_t, kColumn / kBatch> answers;
#if PERHAPS_CHECK_DIGESTS
    std::array<Digest<Hash>, kColumn> digests;
    for (std::size_t i = 0; i < keys.size(); ++i) digests[i] = Digest<Hash>::made_by(filter_.hasher(), keys[i]);
    filter_.may_contain(std::span<const Digest<Hash>>(digests.data(), keys.size()), answers);
#else
    static_assert(sizeof(Digest<Hash>) == sizeof(std::uint64_t));
    const auto* digests = reinterpret_cast<const Digest<Hash>*>(keys.data());
    filter_.may_contain(std::span<const Digest<Hash>>(digests, keys.size()), answers);
#endif
    return count(std::span(answers).first((keys.size() + 63) / 64));
  }

 private:
  F filter_;
};

// Numbers asked as the eight bytes they are: the same work as a storage engine's policy, which knows only bytes.
class LineOfBytes : public Asking<LineOfBytes, std::uint64_t> {
 public:
  LineOfBytes(std::uint64_t keys, double bits_per_key) : filter_({.keys = keys, .bits_per_key = bits_per_key}) {}
  std::uint64_t bytes() const override { return filter_.byte_size(); }
  double fpr(std::uint64_t keys) const override { return filter_.shape().fpr(static_cast<double>(keys)); }
  double fpr_spread(std::uint64_t keys) const override { return spread(filter_.shape(), static_cast<double>(keys)); }
  void clear() override { filter_.clear(); }
  void build(Keys keys, unsigned) override {
    for (std::size_t i = 0; i < keys.size(); i += kColumn) {
      const auto part = keys.subspan(i, std::min(kColumn, keys.size() - i));
      filter_.insert(std::span<const Bytes>(texts(part)).first(part.size()));
    }
  }
  auto probe() const {
    return [view = filter_.view()](const std::uint64_t& key) {
      return view.may_contain(Bytes(std::as_bytes(std::span(&key, 1))));
    };
  }
  std::uint64_t batch(Keys keys) const {
    std::array<std::uint64_t, kColumn / kBatch> answers;
    filter_.may_contain(std::span<const Bytes>(texts(keys)).first(keys.size()), answers);
    return count(std::span(answers).first((keys.size() + 63) / 64));
  }

 private:
  static std::array<Bytes, kColumn>& texts(Keys keys) {
    static std::array<Bytes, kColumn> result;
    for (std::size_t i = 0; i < keys.size(); ++i) result[i] = std::as_bytes(keys.subspan(i, 1));
    return result;
  }
  LineBloom filter_;
};

// The limit: our mixer, then one load from a random 64-byte line of a table of the same size, in the same kind of
// memory, with the prefetch distance that measures best on this table. Nothing that looks a key up in a random line can
// be faster; what a filter takes beyond it is its own arithmetic.
class Limit : public Asking<Limit, std::uint64_t> {
 public:
  Limit(std::uint64_t keys, double bits_per_key, bool writes)
      : lines_(std::max<std::uint64_t>(1, static_cast<std::uint64_t>(static_cast<double>(keys) * bits_per_key / 512))),
        memory_(lines_ * kLineBytes),
        writes_(writes) {
    clear();
  }

  std::uint64_t bytes() const override { return memory_.size(); }
  // Touched, so that every page is there; the low bit of each line is not set and all answers are *no*.
  void clear() override { std::memset(memory_.data(), 2, memory_.size()); }
  void build(Keys keys, unsigned) override {
    if (!tuned_) tune(keys.first(std::min<std::size_t>(keys.size(), std::size_t{1} << 20)));
    writes_ ? write(keys) : keep(sum(keys, distance_, mixed));
  }
  bool has(Form form) const override { return !writes_ && Asking::has(form); }

  std::uint64_t ask(Form form, Keys keys) const override {
    switch (form) {
      case Form::batch:
        return sum(keys, distance_, mixed);
      case Form::digests:
        return sum(keys, distance_, plain);
      default:
        return Asking::ask(form, keys);
    }
  }
  auto probe() const {
    return [table = memory_.data(), lines = lines_](std::uint64_t key) {
      return detail::load<std::uint64_t>(table + detail::scale(mixed(key), lines) * kLineBytes) & 1;
    };
  }
  std::uint64_t mask(Keys keys) const {
    std::array<const std::byte*, 64> at;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      at[i] = memory_.data() + detail::scale(mixed(keys[i]), lines_) * kLineBytes;
      if (distance_ != 0) detail::prefetch_read(at[i]);
    }
    std::uint64_t result = 0;
    for (std::size_t i = 0; i < keys.size(); ++i) result |= (detail::load<std::uint64_t>(at[i]) & 1) << i;
    return result;
  }
  // Here so that has() knows them; ask() runs over the whole span instead of column by column.
  std::uint64_t batch(Keys keys) const { return sum(keys, distance_, mixed); }
  std::uint64_t digests(Keys keys) const { return sum(keys, distance_, plain); }

 private:
  static constexpr std::size_t kRing = 128;
  static std::uint64_t mixed(std::uint64_t key) { return Hash()(key).value; }
  static std::uint64_t plain(std::uint64_t key) { return key; }

  template <class Mix>
  std::uint64_t sum(Keys keys, std::size_t distance, Mix mix) const {
    const auto line_of = [table = memory_.data(), lines = lines_, mix](std::uint64_t key) {
      return table + detail::scale(mix(key), lines) * kLineBytes;
    };
    const auto bit = [](const std::byte* line) { return detail::load<std::uint64_t>(line) & 1; };
    std::uint64_t result = 0;
    if (distance == 0) {
      for (const std::uint64_t key : keys) result += bit(line_of(key));
      return result;
    }
    std::array<const std::byte*, kRing> ring;
    const std::size_t primed = std::min(distance, keys.size());
    for (std::size_t i = 0; i < primed; ++i) detail::prefetch_read(ring[i] = line_of(keys[i]));
    std::size_t i = 0;
    for (; i + distance < keys.size(); ++i) {
      detail::prefetch_read(ring[(i + distance) % kRing] = line_of(keys[i + distance]));
      result += bit(ring[i % kRing]);
    }
    for (; i < keys.size(); ++i) result += bit(ring[i % kRing]);
    return result;
  }

  void write(Keys keys) {
    std::byte* const table = memory_.data();
    const auto at = [&](std::size_t i) { return table + detail::scale(mixed(keys[i]), lines_) * kLineBytes; };
    std::array<std::byte*, kRing> ring;
    const std::size_t primed = std::min(distance_, keys.size());
    for (std::size_t i = 0; i < primed; ++i) detail::prefetch_write(ring[i] = at(i));
    std::size_t i = 0;
    for (; i + distance_ < keys.size(); ++i) {
      detail::prefetch_write(ring[(i + distance_) % kRing] = at(i + distance_));
      detail::set_bits<std::uint64_t>(ring[i % kRing], 4);
    }
    for (; i < keys.size(); ++i) detail::set_bits<std::uint64_t>(ring[i % kRing], 4);
  }

  void tune(Keys keys) {
    double best = std::numeric_limits<double>::infinity();
    for (const std::size_t distance : {0u, 8u, 16u, 24u, 32u, 48u, 64u, 96u}) {
      if (writes_ && distance == 0) continue;
      double fastest = std::numeric_limits<double>::infinity();
      for (int i = 0; i < 5; ++i) {
        fastest = std::min(fastest, seconds([&] { keep(sum(keys, distance, mixed)); }));
      }
      if (fastest < best) best = fastest, distance_ = distance;
    }
    tuned_ = true;
  }

  std::uint64_t lines_;
  Memory memory_;
  bool writes_;
  bool tuned_ = false;
  std::size_t distance_ = 0;
};

#if PERHAPS_BENCH_NATIVE
constexpr Kind kKind = Kind::native;
std::string named(const char* name) { return std::string(name) + ", native"; }
#else
constexpr Kind kKind = Kind::ours;
std::string named(const char* name) { return name; }

const Register<Limit> limit_line({.name = "limit 10.24", .kind = Kind::limit}, kLineBitsPerKey, false);
const Register<Limit> limit_block({.name = "limit 10.67", .kind = Kind::limit}, kBlockBitsPerKey, false);
const Register<Limit> limit_writing({.name = "limit 10.24, writing", .kind = Kind::limit}, kLineBitsPerKey, true);
#endif

template <class F>
using Number = Ours<F, std::uint64_t>;
template <class F>
using Text = Ours<F, std::string_view>;

const Register<Number<LineBloom>> line({.name = named("line"), .kind = kKind, .limit = "limit 10.24", .headline = true},
                                       kLineBitsPerKey);
const Register<Number<BlockBloom>> block(
    {.name = named("block"), .kind = kKind, .limit = "limit 10.67", .headline = true}, kBlockBitsPerKey);
const Register<Text<LineBloom>> line_of_text({.name = named("line"), .kind = kKind, .headline = true}, kLineBitsPerKey);
const Register<Text<BlockBloom>> block_of_text({.name = named("block"), .kind = kKind, .headline = true},
                                               kBlockBitsPerKey);
#if !PERHAPS_BENCH_NATIVE
const Register<LineOfBytes> line_of_bytes({.name = "line of bytes", .kind = kKind, .limit = "limit 10.24"},
                                          kLineBitsPerKey);
const Register<Number<LineBloom>> line_4k({.name = "line, 4 KiB pages", .kind = kKind, .limit = "limit 10.24"},
                                          kLineBitsPerKey, true);
const Register<Number<BlockBloom>> block_4k({.name = "block, 4 KiB pages", .kind = kKind, .limit = "limit 10.67"},
                                            kBlockBitsPerKey, true);
const Register<Number<Bloom>> classic({.name = named("classic"), .kind = kKind, .limit = "limit 10.24"}, 10.0);
#endif

}  // namespace
}  // namespace perhaps::bench

#if PERHAPS_BENCH_NATIVE
extern "C" PERHAPS_API perhaps::bench::Contenders perhaps_bench_contenders() {
  return {&perhaps::bench::registry<std::uint64_t>(), &perhaps::bench::registry<std::string_view>()};
}
#endif
