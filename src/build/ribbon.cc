// Building and checking the tables of perhaps/ribbon.h.
#include "perhaps/ribbon.h"

#include <algorithm>
#include <array>
#include <bit>
#include <optional>

#include "build/ribbon_plan.h"
#include "build/ribbon_solver.h"

namespace perhaps {
namespace {

using Layer = RibbonLayout::Layer;

constexpr std::uint64_t kDense = RibbonShape::dense_slots(RibbonShape::kDenseKeys);  // slots

// Where everything in a shard of so many keys lies. Integers only: the same on every machine.
struct Plan {
  std::uint32_t layers = 0;
  std::array<Layer, RibbonLayout::kMaxLayers> layer{};
  std::uint64_t dense = 0;  // slots
  std::uint64_t extra = 0;
  std::uint64_t dense_at = 0;  // words
  std::uint64_t bytes = 0;
};

constexpr std::uint64_t words_of_bits(std::uint64_t bits) { return (bits + 63) / 64; }

Plan plan_of(RibbonShape shape, std::uint64_t keys) noexcept {
  Plan plan;
  std::uint64_t left = keys;
  while (left > RibbonShape::kDenseKeys && plan.layers < RibbonLayout::kMaxLayers) {
    const std::uint64_t slots = std::min(left - left / 33, left - 32) / 64 * 64;
    plan.layer[plan.layers++].starts =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(slots - 63, UINT32_MAX / 64 * 64 - 63));
    left -= std::min(left, slots - std::min(slots, detail::empty_slots(slots)));
  }
  left = std::min(left, RibbonShape::kDenseKeys);
  plan.dense = RibbonShape::dense_slots(left);
  plan.extra = shape.extra_slots(left);
  std::uint64_t at = (RibbonLayout::kHeadBytes + RibbonLayout::kLayerBytes * plan.layers) / 8;
  for (std::uint32_t i = 0; i < plan.layers; ++i) {
    Layer& layer = plan.layer[i];
    layer.narrow = static_cast<std::uint32_t>(RibbonFront::narrow_blocks(layer.starts, shape.wide, layer.blocks()));
    layer.blocks_at = static_cast<std::uint32_t>(at);
    at += layer.words(layer.blocks(), shape.columns);
    layer.codes_at = static_cast<std::uint32_t>(at);
    at += layer.code_words();
  }
  plan.dense_at = at;
  plan.bytes = 8 * (at + words_of_bits(plan.dense * shape.columns + plan.extra));
  return plan;
}

// Bits [at, at + count) of `bytes`, count <= 64, all of which are inside.  REQUIRES: bytes.size() >= 8
std::uint64_t bits_at(Bytes bytes, std::uint64_t at, std::uint64_t count) noexcept {
  const std::uint64_t byte = std::min<std::uint64_t>(at / 8, bytes.size() - 8);
  const std::uint64_t shift = at - 8 * byte;
  std::uint64_t word = detail::load<std::uint64_t>(bytes.data() + byte) >> shift;
  if (shift + count > 64) word |= std::uint64_t{static_cast<unsigned char>(bytes[byte + 8])} << (64 - shift);
  return count == 64 ? word : word & ((std::uint64_t{1} << count) - 1);
}

void set_bit(std::span<std::byte> bytes, std::uint64_t at) noexcept { bytes[at / 8] |= std::byte{1} << (at % 8); }

// The dense part: where its bits begin and how many slots it has.
struct Dense {
  std::uint64_t first_bit;
  std::uint32_t slots;
  std::uint32_t extra;
  std::uint32_t seed;
  std::uint32_t extra_seed;

  std::uint64_t chunk_slots(std::uint64_t q) const noexcept { return std::min<std::uint64_t>(64, slots - 64 * q); }
  std::uint64_t column_bit(std::uint32_t columns, std::uint64_t q, std::uint32_t j) const noexcept {
    return first_bit + 64 * q * columns + j * chunk_slots(q);
  }
  std::uint64_t extra_bit(std::uint32_t columns, std::uint64_t slot) const noexcept {
    return first_bit + std::uint64_t{slots} * columns + slot;
  }
};

bool dense_equals(RibbonShape shape, Bytes bytes, const Dense& d, std::uint64_t a) noexcept {
  if (d.slots == 0) return false;
  std::array<std::uint64_t, RibbonShape::kMaxColumns> sum{};
  for (std::uint32_t q = 0; 64 * q < d.slots; ++q) {
    const std::uint64_t c = RibbonLayout::dense_coefficients(a, d.seed, q);
    for (std::uint32_t j = 0; j < shape.columns; ++j) {
      sum[j] ^= c & bits_at(bytes, d.column_bit(shape.columns, q, j), d.chunk_slots(q));
    }
  }
  const std::uint32_t fingerprint = RibbonLayout::fingerprint_of(a);
  std::uint32_t wrong = 0;
  for (std::uint32_t j = 0; j < shape.columns; ++j) wrong |= ribbon::parity(sum[j]) ^ (fingerprint >> j & 1);
  if (wrong != 0 || d.extra == 0 || !RibbonLayout::is_extra(a, d.extra_seed, shape.wide)) return wrong == 0;
  std::uint64_t extra = 0;
  for (std::uint32_t q = 0; 64 * q < d.extra; ++q) {
    extra ^= RibbonLayout::dense_coefficients(a, RibbonLayout::extra_seed(d.extra_seed), q) &
             bits_at(bytes, d.extra_bit(shape.columns, 64 * q), std::min<std::uint64_t>(64, d.extra - 64 * q));
  }
  return ribbon::parity(extra) == (fingerprint >> shape.columns & 1);
}

// A system of up to 256 equations over all of up to 256 slots.
class DenseSystem {
 public:
  explicit DenseSystem(std::uint32_t slots) : slots_(slots) {}

  bool add(std::uint64_t a, std::uint32_t seed, std::uint32_t result) noexcept {
    Row row{};
    for (std::uint32_t q = 0; 64 * q < slots_; ++q) {
      row.c[q] = RibbonLayout::dense_coefficients(a, seed, q);
      if (slots_ - 64 * q < 64) row.c[q] &= (std::uint64_t{1} << (slots_ - 64 * q)) - 1;
    }
    row.result = result;
    for (std::uint32_t q = 0; 64 * q < slots_; ++q) {
      while (row.c[q] != 0) {
        Row& at = rows_[64 * q + ribbon::first_one(row.c[q])];
        if (!at.there) {
          at = row;
          at.there = true;
          return true;
        }
        for (std::uint32_t i = q; i < 4; ++i) row.c[i] ^= at.c[i];
        row.result ^= at.result;
      }
    }
    return row.result == 0;
  }
  // The value of every slot, bit j for column j.
  std::array<std::uint32_t, kDense> solve() const noexcept {
    std::array<std::uint32_t, kDense> value{};
    for (std::uint32_t slot = slots_; slot-- > 0;) {
      const Row& row = rows_[slot];
      if (!row.there) continue;
      std::uint32_t sum = row.result;
      for (std::uint32_t q = slot / 64; q < 4; ++q) {
        for (std::uint64_t c = row.c[q]; c != 0; c &= c - 1) sum ^= value[64 * q + ribbon::first_one(c)];
      }
      value[slot] = sum;
    }
    return value;
  }

 private:
  struct Row {
    std::array<std::uint64_t, 4> c;
    std::uint32_t result;
    bool there;
  };
  std::uint32_t slots_;
  std::array<Row, kDense> rows_{};
};

constexpr std::uint32_t low_bits(std::uint32_t count) { return count == 32 ? UINT32_MAX : (1u << count) - 1; }

// Seeds are tried until the keys fit; none is left in 1e-38 of all cases.
bool solve_dense(RibbonShape shape, std::span<const std::uint64_t> mixed, Dense* d, std::span<std::byte> out) noexcept {
  if (mixed.size() > d->slots) return false;
  if (mixed.empty()) return true;
  const std::uint32_t mask = low_bits(shape.columns);
  bool solved = false;
  for (d->seed = 0; d->seed < RibbonLayout::kMaxSeeds; ++d->seed) {
    DenseSystem system(d->slots);
    solved = std::ranges::all_of(
        mixed, [&](std::uint64_t a) { return system.add(a, d->seed, RibbonLayout::fingerprint_of(a) & mask); });
    if (!solved) continue;
    const auto value = system.solve();
    for (std::uint32_t slot = 0; slot < d->slots; ++slot) {
      for (std::uint32_t j = 0; j < shape.columns; ++j) {
        if ((value[slot] >> j & 1) != 0) set_bit(out, d->column_bit(shape.columns, slot / 64, j) + slot % 64);
      }
    }
    break;
  }
  if (!solved || d->extra == 0) return solved;
  for (d->extra_seed = 0; d->extra_seed < RibbonLayout::kMaxSeeds; ++d->extra_seed) {
    DenseSystem system(d->extra);
    solved = std::ranges::all_of(mixed, [&](std::uint64_t a) {
      return !RibbonLayout::is_extra(a, d->extra_seed, shape.wide) ||
             system.add(a, RibbonLayout::extra_seed(d->extra_seed),
                        RibbonLayout::fingerprint_of(a) >> shape.columns & 1);
    });
    if (!solved) continue;
    const auto value = system.solve();
    for (std::uint32_t slot = 0; slot < d->extra; ++slot) {
      if (value[slot] != 0) set_bit(out, d->extra_bit(shape.columns, slot));
    }
    return true;
  }
  return false;
}

// The keys of a layer in the order of their starts: digests as they come, or positions x that were sorted. A layer's
// multiplier is odd, so x gives the mixed digest back. `left`: how a key goes on that is bumped.
struct FromFront {
  unsigned run_bits;
  std::uint64_t x(std::uint64_t h) const noexcept { return h << run_bits; }
  auto equation(std::uint64_t h) const noexcept { return RibbonLayout::front_equation(h); }
  std::uint64_t left(std::uint64_t h) const noexcept { return h; }
};
struct FromDigests {
  std::uint64_t x(std::uint64_t h) const noexcept { return h; }
  auto equation(std::uint64_t h) const noexcept { return RibbonLayout::layer_equation(left(h)); }
  std::uint64_t left(std::uint64_t h) const noexcept { return RibbonLayout::mixed(h, 0); }
};
struct FromPositions {
  std::uint64_t inverse;
  std::uint64_t x(std::uint64_t position) const noexcept { return position; }
  auto equation(std::uint64_t position) const noexcept { return RibbonLayout::layer_equation(left(position)); }
  std::uint64_t left(std::uint64_t position) const noexcept { return position * inverse; }
};

constexpr std::uint64_t inverse_of(std::uint64_t odd) noexcept {
  std::uint64_t inverse = odd;  // right in 3 bits; each step doubles them
  for (int i = 0; i < 5; ++i) inverse *= 2 - odd * inverse;
  return inverse;
}

using Row = ribbon::Row<std::uint64_t>;

// An equation on its way: what is left of it begins at `row`.
struct Equation {
  Row* row;
  std::uint64_t with;
  std::uint32_t result;
  std::uint32_t offset;  // of its start in the bucket
};

// Hands out the equations of a layer one after the other, and keeps the books: which rows they went into, which keys
// are bumped, the codes. Rows are cleared as their bucket is reached.
template <class From>
class LayerBand {
 public:
  LayerBand(RibbonShape shape, const Layer& layer, From from, std::span<const std::uint64_t> keys, std::byte* codes,
            Row* rows, std::uint64_t* bumped) noexcept
      : layer_(layer),
        from_(from),
        keys_(keys),
        codes_(codes),
        rows_(rows),
        bumped_(bumped),
        mask_(low_bits(shape.columns + (shape.wide != 0))),
        bucket_bits_(layer.bucket_bits()) {
    std::fill_n(rows_, 64, Row{});
  }
  // The first equation, or false: there are no keys.
  bool begin(Equation& e) noexcept { return open() && next(e); }

  // The equation has come to its end: in an empty row, or in none because nothing is left of it. It becomes the next
  // one, or false: that was the last.
  PERHAPS_INLINE bool settle(Equation& e) noexcept {
    if (e.with == 0) [[unlikely]] {
      if (e.result != e.row->result) contradicted();
    } else {
      *e.row = {e.with, e.result};
      inserted_[inserted_count_++] = {e.row, prepared_[prepared_count_].offset};
    }
    return next(e);
  }

  // Bumped keys are in `bumped`, which may be `keys` itself.
  std::size_t bumped_count() const noexcept { return bumped_count_; }

 private:
  static constexpr std::size_t kPrepared = 192;

  std::uint64_t start_of(std::size_t i) const noexcept { return detail::scale(from_.x(keys_[i]), layer_.starts); }
  std::uint64_t offset_of(std::uint64_t start) const noexcept {
    return start & ((std::uint64_t{1} << bucket_bits_) - 1);
  }
  Equation equation(std::size_t i, std::uint64_t start) const noexcept {
    const auto [coefficients, result] = from_.equation(keys_[i]);
    return {rows_ + start, coefficients, result & mask_, static_cast<std::uint32_t>(offset_of(start))};
  }

  PERHAPS_INLINE bool next(Equation& e) noexcept {
    if (prepared_count_ == 0 && !prepare()) return false;
    e = prepared_[--prepared_count_];
    return true;
  }
  [[gnu::noinline]] bool prepare() noexcept {
    // More keys than fit, of a bucket of a set that is not spread.
    if (unprepared_ > begin_) {
      const std::size_t first = unprepared_ - std::min(unprepared_ - begin_, kPrepared);
      for (std::size_t i = first; i < unprepared_; ++i) prepared_[i - first] = equation(i, start_of(i));
      prepared_count_ = unprepared_ - first;
      unprepared_ = first;
      return true;
    }
    close();
    return open();
  }
  // The next bucket that has keys.
  bool open() noexcept {
    for (; end_ < keys_.size(); ++bucket_) {
      const std::uint64_t beyond = (bucket_ + 1) << bucket_bits_;
      std::fill(rows_ + (bucket_ << bucket_bits_) + 64, rows_ + std::min(beyond + 64, 64 * layer_.blocks()), Row{});
      begin_ = end_;
      for (; end_ < keys_.size(); ++end_) {
        const std::uint64_t start = start_of(end_);
        if (start >= beyond) break;
        if (end_ - begin_ < kPrepared) prepared_[end_ - begin_] = equation(end_, start);
      }
      if (end_ == begin_) continue;
      first_kept_ = begin_;
      code_ = 0;
      inserted_count_ = 0;
      prepared_count_ = end_ - begin_;
      unprepared_ = begin_;
      if (prepared_count_ > kPrepared) {
        prepared_count_ = 0;
        unprepared_ = end_;
        return prepare();
      }
      return true;
    }
    const std::uint64_t rows = 64 * layer_.blocks();
    std::fill(rows_ + std::min((bucket_ << bucket_bits_) + 64, rows), rows_ + rows, Row{});
    return false;
  }
  void close() noexcept {
    codes_[bucket_ / 4] |= static_cast<std::byte>(code_ << (bucket_ % 4 * 2));
    for (std::size_t i = begin_; i < first_kept_; ++i) bumped_[bumped_count_++] = from_.left(keys_[i]);
    ++bucket_;
  }
  // From here to the left all keys of the bucket are bumped, and those that the code takes with them.
  [[gnu::noinline]] void contradicted() noexcept {
    const auto threshold = [&] { return layer_.thresholds() >> (8 * code_) & 0xff; };
    while (threshold() <= prepared_[prepared_count_].offset) ++code_;
    for (; inserted_count_ > 0 && inserted_[inserted_count_ - 1].offset < threshold(); --inserted_count_) {
      *inserted_[inserted_count_ - 1].row = {};
    }
    first_kept_ = unprepared_ + prepared_count_;
    while (first_kept_ < end_ && offset_of(start_of(first_kept_)) < threshold()) ++first_kept_;
    prepared_count_ = 0;
    unprepared_ = begin_;
  }

  struct Inserted {
    Row* row;
    std::uint32_t offset;
  };
  const Layer layer_;
  const From from_;
  const std::span<const std::uint64_t> keys_;
  std::byte* const codes_;
  Row* const rows_;
  std::uint64_t* const bumped_;
  const std::uint32_t mask_;
  const unsigned bucket_bits_;
  std::size_t bumped_count_ = 0;
  // The keys of the bucket are [begin_, end_). They go in from the right to the left, which is what the codes need.
  std::uint64_t bucket_ = 0;
  std::size_t begin_ = 0;
  std::size_t end_ = 0;
  std::size_t unprepared_ = 0;
  std::size_t prepared_count_ = 0;
  std::size_t first_kept_ = 0;
  unsigned code_ = 0;
  std::size_t inserted_count_ = 0;
  std::array<Inserted, 256> inserted_;  // a bucket's rows lie in its 128 + 63 slots
  std::array<Equation, kPrepared> prepared_;
};

// Reduces the equation by the row that it begins at; false after the last one.
template <class Bits, class Band>
PERHAPS_INLINE bool step(Band& band, Equation& e) noexcept {
  // Rows begin with a one, as equations do: the first one of the sum is at 0 only if the row is empty.
  std::uint64_t left = e.with ^ e.row->coefficients;
  asm("" : "+r"(left));  // the compiler would compare the two later and keep them apart until then
  std::uint64_t ahead;
  if (Bits::odd_or_zero(left, ahead)) [[unlikely]] {
    e.with = left;
    return band.settle(e);
  }
  e.result ^= e.row->result;
  e.with = left >> ahead;
  e.row += ahead;
  return true;
}

template <class Bits, class Band>
PERHAPS_INLINE void band_alone(Band& band, Equation e) noexcept {
  while (step<Bits>(band, e)) {
  }
}

using FrontBand = LayerBand<FromFront>;
using FrontBands = std::array<FrontBand*, RibbonLayout::kRunsTogether>;

// The steps of an equation wait for one another, some ten cycles each and 17 of them a key; those of different runs
// do not. Four in turns take half the time (two: 0.65, six: as four).
template <class Bits>
PERHAPS_INLINE void band_together(const FrontBands& bands) noexcept {
  static_assert(RibbonLayout::kRunsTogether == 4);
  FrontBand& b0 = *bands[0];
  FrontBand& b1 = *bands[1];
  FrontBand& b2 = *bands[2];
  FrontBand& b3 = *bands[3];
  // Not in arrays: gcc 12 keeps those in memory.
  Equation e0{}, e1{}, e2{}, e3{};
  bool more0 = b0.begin(e0);
  bool more1 = b1.begin(e1);
  bool more2 = b2.begin(e2);
  bool more3 = b3.begin(e3);
  if (more0 && more1 && more2 && more3) {
    while ((more0 = step<Bits>(b0, e0)) && (more1 = step<Bits>(b1, e1)) && (more2 = step<Bits>(b2, e2)) &&
           (more3 = step<Bits>(b3, e3))) {
    }
  }
  if (more0) band_alone<Bits>(b0, e0);
  if (more1) band_alone<Bits>(b1, e1);
  if (more2) band_alone<Bits>(b2, e2);
  if (more3) band_alone<Bits>(b3, e3);
}

// `first` becomes the place of the first one in the word.
struct PortableBits {
  static bool odd_or_zero(std::uint64_t word, std::uint64_t& first) noexcept {
    first = static_cast<std::uint64_t>(std::countr_zero(word));
    return first - 1 >= 63;
  }
};
#if PERHAPS_RIBBON_BMI2
struct Bmi2Bits {
  PERHAPS_RIBBON_WITH_BMI2 static inline bool odd_or_zero(std::uint64_t word, std::uint64_t& first) noexcept {
    first = _tzcnt_u64(word);
    return first - 1 >= 63;
  }
};
template <class Band>
PERHAPS_RIBBON_WITH_BMI2 void band_alone_bmi2(Band& band, const Equation& e) noexcept {
  band_alone<Bmi2Bits>(band, e);
}
PERHAPS_RIBBON_WITH_BMI2 void band_together_bmi2(const FrontBands& bands) noexcept { band_together<Bmi2Bits>(bands); }
#endif

template <class Band>
void band_all(Band& band) noexcept {
  Equation e{};
  if (!band.begin(e)) return;
#if PERHAPS_RIBBON_BMI2
  if (kernel::active().bmi2) return band_alone_bmi2(band, e);
#endif
  band_alone<PortableBits>(band, e);
}
void band_all_together(const FrontBands& bands) noexcept {
#if PERHAPS_RIBBON_BMI2
  if (kernel::active().bmi2) return band_together_bmi2(bands);
#endif
  band_together<PortableBits>(bands);
}

// A shard, the plan for it, and memory to work in.
struct Work {
  Plan plan;
  std::span<const std::uint64_t> digests;
  std::span<std::byte> out;
  Row* rows;
  std::uint64_t* left;  // the keys that no layer has so far, mixed
  std::size_t left_count;

  template <class From>
  void band(RibbonShape shape, std::uint32_t i, From from, std::span<const std::uint64_t> keys) noexcept {
    const Layer& layer = plan.layer[i];
    LayerBand<From> band(shape, layer, from, keys, out.data() + std::uint64_t{layer.codes_at} * 8, rows, left);
    band_all(band);
    left_count = band.bumped_count();
    const ribbon::Banding<std::uint64_t> banding{{rows, static_cast<std::size_t>(64 * layer.blocks())}};
    banding.solve(shape.columns, layer.narrow, out.data() + std::uint64_t{layer.blocks_at} * 8);
  }
};

bool try_seed(RibbonShape shape, Work& work, std::uint32_t seed) noexcept {
  const Plan& plan = work.plan;
  const std::span<std::byte> out = work.out;
  std::uint32_t next = 0;
  if (plan.layers != 0 && seed == 0) {
    work.band(shape, next++, FromDigests{}, work.digests);
  } else {
    work.left_count = work.digests.size();
    for (std::size_t i = 0; i < work.left_count; ++i) work.left[i] = RibbonLayout::mixed(work.digests[i], seed);
  }
  for (; next < plan.layers; ++next) {
    const std::uint64_t factor = RibbonLayout::kLayer[next];
    const std::span<std::uint64_t> positions(work.left, work.left_count);
    for (std::uint64_t& p : positions) p *= factor;
    std::ranges::sort(positions);
    work.band(shape, next, FromPositions{inverse_of(factor)}, positions);
  }
  Dense dense{plan.dense_at * 64, static_cast<std::uint32_t>(plan.dense), static_cast<std::uint32_t>(plan.extra), 0, 0};
  if (!solve_dense(shape, {work.left, work.left_count}, &dense, out)) return false;
  for (std::uint32_t i = 0; i < plan.layers; ++i) {
    detail::store(out.data() + RibbonLayout::kHeadBytes + i * RibbonLayout::kLayerBytes, plan.layer[i]);
  }
  out[1] = static_cast<std::byte>(plan.layers);
  out[2] = static_cast<std::byte>(dense.seed);
  out[3] = static_cast<std::byte>(dense.extra_seed);
  // Without keys it has to deny, which it does without slots.
  detail::store(out.data() + 4, static_cast<std::uint16_t>(work.left_count == 0 ? 0 : dense.slots));
  detail::store(out.data() + 6, static_cast<std::uint16_t>(work.left_count == 0 ? 0 : dense.extra));
  detail::store(out.data() + 8, static_cast<std::uint32_t>(plan.dense_at));
  detail::store(out.data() + 12, seed);
  return true;
}

// Without a seed there was no solution.
void start_over(RibbonShape shape, Work& work) noexcept {
  std::uint64_t all = work.digests.size();
  for (const std::uint64_t h : work.digests) all = RibbonLayout::mixed(all ^ h, 0) * RibbonLayout::kLayer[0];
  for (std::uint32_t i = 0; i < 64; ++i) {
    const auto seed = static_cast<std::uint32_t>(RibbonLayout::dense_coefficients(all, i, 0) >> 32) | 1;
    std::ranges::fill(work.out, std::byte{0});
    if (try_seed(shape, work, seed)) return;
  }
  std::ranges::fill(work.out, std::byte{0});
  work.out[0] = std::byte{1};
}

Dense tiny_dense(RibbonShape shape) noexcept {
  return {16, static_cast<std::uint32_t>(RibbonShape::dense_slots(shape.rest)),
          static_cast<std::uint32_t>(shape.extra_slots(shape.rest)), 0, 0};
}

}  // namespace

std::uint64_t RibbonLayout::shard_bytes(const RibbonShape& shape, std::uint64_t keys) noexcept {
  return shape.tiny() ? shape.tiny_bytes() : plan_of(shape, keys).bytes;
}

void RibbonLayout::build_front(const RibbonShape& shape, std::byte* table, unsigned run_bits,
                               std::span<const StaticRun> runs, StaticScratch& scratch) {
  const RibbonFront front = shape.front(0, 0);
  const std::uint64_t starts = front.starts >> run_bits;
  const std::uint64_t last_run = (std::uint64_t{1} << run_bits) - 1;
  const Layer layer{static_cast<std::uint32_t>(starts), 0, 0, 0};
  struct Work {
    std::size_t taken;
    Row* rows;
    std::span<std::uint64_t> left;
    std::optional<FrontBand> band;
  };
  std::array<Work, kRunsTogether> works;
  FrontBands bands{};
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const auto [number, digests, left] = runs[i];
    Work& work = works[i];
    std::byte* const codes = table + front.codes_at + number * (starts / (4 * RibbonFront::kBucket));
    // Ribbons do not reach from run to run: the last bucket is bumped, except the last of all.
    work.taken = digests.size();
    if (number != last_run) {
      const std::uint64_t last = starts - RibbonFront::kBucket;
      const auto end = std::ranges::partition_point(
          digests, [&](std::uint64_t h) { return detail::scale(h << run_bits, starts) < last; });
      work.taken = static_cast<std::size_t>(end - digests.begin());
      codes[last / (4 * RibbonFront::kBucket)] |= std::byte{3 << 6};
    }
    const auto room = scratch.room<std::uint64_t>(i, (starts + 64) * (sizeof(Row) / 8) + digests.size());
    work.rows = reinterpret_cast<Row*>(room.data());
    work.left = room.last(digests.size());
    bands[i] = &work.band.emplace(shape, layer, FromFront{run_bits}, digests.first(work.taken), codes, work.rows,
                                  work.left.data());
  }
  if (runs.size() == kRunsTogether) {
    band_all_together(bands);
  } else {
    for (std::size_t i = 0; i < runs.size(); ++i) band_all(*bands[i]);
  }
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const auto [number, digests, left] = runs[i];
    const Work& work = works[i];
    const std::uint64_t first = number * (starts / 64);
    const std::uint64_t blocks = starts / 64 + (number == last_run ? 1 : 0);
    const ribbon::Banding<std::uint64_t> banding{{work.rows, static_cast<std::size_t>(64 * blocks)}};
    banding.solve(shape.columns, front.narrow - std::min(front.narrow, first),
                  table + front.blocks_at + 8 * front.words(first, shape.columns));
    const auto bumped = work.left.first(work.band->bumped_count());
    left->reserve(bumped.size() + digests.size() - work.taken);
    left->assign(bumped.begin(), bumped.end());
    const auto others = digests.subspan(work.taken);
    left->insert(left->end(), others.begin(), others.end());
  }
}

void RibbonLayout::build_shard(const RibbonShape& shape, std::span<const std::uint64_t> digests,
                               std::span<std::byte> out, StaticScratch& scratch) {
  if (shape.tiny()) {
    const auto all = scratch.room<std::uint64_t>(0, digests.size());
    std::ranges::transform(digests, all.begin(), [](std::uint64_t h) { return mixed(h, 0); });
    Dense dense = tiny_dense(shape);
    const bool solved = solve_dense(shape, all, &dense, out);
    out[0] = static_cast<std::byte>(solved ? dense.seed : kMaxSeeds);
    out[1] = static_cast<std::byte>(dense.extra_seed);
    return;
  }
  const Plan plan = plan_of(shape, digests.size());
  const std::uint64_t slots = plan.layers == 0 ? 0 : 64 * plan.layer[0].blocks();
  const auto room = scratch.room<std::uint64_t>(0, slots * (sizeof(Row) / 8) + digests.size());
  Work work{plan, digests, out, reinterpret_cast<Row*>(room.data()), room.data() + room.size() - digests.size(), 0};
  if (!try_seed(shape, work, 0)) start_over(shape, work);
}

bool RibbonLayout::dense(const RibbonShape& shape, const std::byte* table, std::uint32_t i, std::uint64_t h) noexcept {
  for (; i < shape.fronts; ++i) h = remixed(h);
  const std::byte* shard = table + shape.front_bytes() + detail::directory_bytes(0);
  if (shape.tiny()) {
    if (shape.rest == 0) return false;
    Dense d = tiny_dense(shape);
    d.seed = static_cast<std::uint32_t>(shard[0]);
    d.extra_seed = static_cast<std::uint32_t>(shard[1]);
    return d.seed == kMaxSeeds || dense_equals(shape, {shard, shape.tiny_bytes()}, d, mixed(h, 0));
  }
  if (shard[0] != std::byte{0}) return true;
  const Dense d{0, detail::load<std::uint16_t>(shard + 4), detail::load<std::uint16_t>(shard + 6),
                static_cast<std::uint32_t>(shard[2]), static_cast<std::uint32_t>(shard[3])};
  const std::uint64_t bytes = words_of_bits(std::uint64_t{d.slots} * shape.columns + d.extra) * 8;
  return dense_equals(shape, {shard + std::uint64_t{detail::load<std::uint32_t>(shard + 8)} * 8, bytes}, d,
                      mixed(h, seed_of(shard)));
}

namespace {

bool check_shard(RibbonShape shape, Bytes shard) noexcept {
  if (shard.size() < RibbonLayout::kHeadBytes) return false;
  const std::uint64_t words = shard.size() / 8;
  const auto layers = static_cast<std::uint32_t>(shard[1]);
  if (layers > RibbonLayout::kMaxLayers) return false;
  if (RibbonLayout::kHeadBytes + layers * RibbonLayout::kLayerBytes > shard.size()) return false;
  for (std::uint32_t i = 0; i < layers; ++i) {
    const Layer layer = RibbonLayout::layer_at(shard.data(), i);
    if (layer.starts == 0 || layer.narrow > layer.blocks()) return false;
    if (shape.wide == 0 && layer.narrow != layer.blocks()) return false;
    if (layer.blocks_at + layer.words(layer.blocks(), shape.columns) > words) return false;
    if (layer.codes_at + layer.code_words() > words) return false;
  }
  const std::uint64_t slots = detail::load<std::uint16_t>(shard.data() + 4);
  const std::uint64_t extra = detail::load<std::uint16_t>(shard.data() + 6);
  if (slots > kDense || extra > slots || (extra != 0 && shape.wide == 0)) return false;
  return detail::load<std::uint32_t>(shard.data() + 8) + words_of_bits(slots * shape.columns + extra) <= words;
}

}  // namespace

Result<void> RibbonLayout::check(const RibbonShape& shape, Bytes table) {
  // Whatever a front says, it is inside: the shape has its size.
  return detail::check_shards(family, 0, table.subspan(shape.front_bytes()), [&](Bytes shard) {
    return shape.tiny() ? shard.size() == shape.tiny_bytes() : check_shard(shape, shard);
  });
}

}  // namespace perhaps
