// Our own Bloom filters, and their limit. Compiled twice: for the baseline CPU of the distribution, and (into a module,
// together with a second copy of the library) for the CPU of this machine.
#include <sys/mman.h>

#include <stdexcept>

#include "answering.h"
#include "limit.h"
#include "perhaps/any_filter.h"
#include "perhaps/block_bloom.h"
#include "perhaps/bloom.h"
#include "perhaps/bulk.h"
#include "perhaps/line_bloom.h"
#include "spread.h"

namespace perhaps::bench {
namespace {

constexpr double kLineBitsPerKey = 10.24;
constexpr double kBlockBitsPerKey = 32.0 / 3;

template <class F, class Key>
class Ours : public Answering<Ours<F, Key>, F, Key> {
 public:
  using typename Answering<Ours<F, Key>, F, Key>::Keys;
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
  bool inserts() const override { return true; }
  void insert_each(Keys keys) override {
    for (const Key& key : keys) filter_.insert(key);
  }

  const F& filter() const { return filter_; }

 private:
  F filter_;
};

// Numbers looked up as their eight bytes: the same work as in the filter policy of a storage engine, which knows only
// bytes.
class LineOfBytes : public Querying<LineOfBytes, std::uint64_t> {
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
    return [view = filter_.view()](const std::uint64_t& key) __attribute__((always_inline)) {
      return view.may_contain(Bytes(std::as_bytes(std::span(&key, 1))));
    };
  }
  std::uint64_t batch(Keys keys) const {
    std::array<std::uint64_t, kColumn / kBatch> answers;
    filter_.may_contain(std::span<const Bytes>(texts(keys)).first(keys.size()), answers);
    return count_perhaps(std::span(answers).first((keys.size() + 63) / 64));
  }

 private:
  static std::array<Bytes, kColumn>& texts(Keys keys) {
    static std::array<Bytes, kColumn> result;
    for (std::size_t i = 0; i < keys.size(); ++i) result[i] = std::as_bytes(keys.subspan(i, 1));
    return result;
  }
  LineBloom filter_;
};

#if !PERHAPS_BENCH_NATIVE
// A family that is known at run time only: one key at a time, and in columns.
class AnyLine : public Querying<AnyLine, std::string_view> {
 public:
  AnyLine(std::uint64_t keys, double bits_per_key) : request_{.keys = keys, .bits_per_key = bits_per_key} { clear(); }
  std::uint64_t bytes() const override { return filter_->byte_size(); }
  double fpr(std::uint64_t) const override { return filter_->describe().fpr; }
  void clear() override { filter_ = *make_any(perhaps::Kind::line, request_, Hash()); }
  void build(Keys keys, unsigned) override {
    for (std::size_t i = 0; i < keys.size(); i += kColumn) {
      const auto part = keys.subspan(i, std::min(kColumn, keys.size() - i));
      if (filter_->insert(bytes_of_all(part)) != part.size()) throw std::runtime_error("a key did not go in");
    }
  }
  auto probe() const {
    return [&filter = *filter_](std::string_view key) __attribute__((always_inline)) {
      return filter.may_contain(perhaps::bytes_of(key));
    };
  }
  std::uint64_t batch(Keys keys) const {
    std::array<std::uint64_t, kColumn / kBatch> answers;
    filter_->may_contain(bytes_of_all(keys), answers);
    return count_perhaps(std::span(answers).first((keys.size() + 63) / 64));
  }

 private:
  static std::span<const Bytes> bytes_of_all(Keys keys) {
    static std::array<Bytes, kColumn> all;
    std::ranges::transform(keys, all.begin(), perhaps::bytes_of);
    return std::span<const Bytes>(all).first(keys.size());
  }

  AnyRequest request_;
  std::unique_ptr<AnyMutable> filter_;
};

const Register<Limit> limit_line({.name = "limit 10.24", .kind = Kind::limit}, kLineBitsPerKey, false);
const Register<Limit> limit_block({.name = "limit 10.67", .kind = Kind::limit}, kBlockBitsPerKey, false);
const Register<Limit> limit_writing({.name = "limit 10.24, writing", .kind = Kind::limit}, kLineBitsPerKey, true);
#endif

template <class F>
using Number = Ours<F, std::uint64_t>;
template <class F>
using Text = Ours<F, std::string_view>;

const Register<Number<LineBloom>> line({.name = named("line"), .kind = kOurs, .limit = "limit 10.24", .headline = true},
                                       kLineBitsPerKey);
const Register<Number<BlockBloom>> block(
    {.name = named("block"), .kind = kOurs, .limit = "limit 10.67", .headline = true}, kBlockBitsPerKey);
const Register<Text<LineBloom>> line_of_text({.name = named("line"), .kind = kOurs, .headline = true}, kLineBitsPerKey);
const Register<Text<BlockBloom>> block_of_text({.name = named("block"), .kind = kOurs, .headline = true},
                                               kBlockBitsPerKey);
#if !PERHAPS_BENCH_NATIVE
const Register<AnyLine> any_line({.name = "line, AnyFilter", .kind = kOurs}, kLineBitsPerKey);
const Register<LineOfBytes> line_of_bytes({.name = "line of bytes", .kind = kOurs, .limit = "limit 10.24"},
                                          kLineBitsPerKey);
const Register<Number<LineBloom>> line_4k({.name = "line, 4 KiB pages", .kind = kOurs, .limit = "limit 10.24"},
                                          kLineBitsPerKey, true);
const Register<Number<BlockBloom>> block_4k({.name = "block, 4 KiB pages", .kind = kOurs, .limit = "limit 10.67"},
                                            kBlockBitsPerKey, true);
const Register<Number<Bloom>> classic({.name = named("classic"), .kind = kOurs, .limit = "limit 10.24"}, 10.0);
#endif

}  // namespace
}  // namespace perhaps::bench

#if PERHAPS_BENCH_NATIVE
extern "C" PERHAPS_API perhaps::bench::Contenders perhaps_bench_contenders() {
  return {&perhaps::bench::registry<std::uint64_t>(), &perhaps::bench::registry<std::string_view>()};
}
#endif
