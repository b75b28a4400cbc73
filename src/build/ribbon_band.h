// Banding a ribbon (perhaps/ribbon.h): the equations of its keys, bucket by bucket, and the keys that are bumped.
#pragma once
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "build/entry.h"
#include "build/ribbon_solver.h"
#include "perhaps/ribbon.h"

namespace perhaps::ribbon {

template <class Result = std::uint32_t>
constexpr Result low_bits(std::uint32_t count) {
  return count == 8 * sizeof(Result) ? ~Result{0} : (Result{1} << count) - Result{1};
}

// What a ribbon is built from. The keys of a filter are digests, and an equation has the result that the digest says.
struct Fingerprints {
  using Record = std::uint64_t;
  using Result = std::uint32_t;
  std::uint32_t mask;
  Result result(std::uint64_t, std::uint32_t fingerprint) const noexcept { return fingerprint & mask; }
  static std::uint64_t renamed(std::uint64_t, std::uint64_t digest) noexcept { return digest; }
};
// Those of a map have a value beside the digest; fingerprints are in the first columns.
template <class R>
struct Values {
  using Record = build::Entry;
  using Result = R;
  std::uint32_t mask;
  std::uint32_t check_bits;
  Result result(const Record& entry, std::uint32_t fingerprint) const noexcept {
    return Result{fingerprint & mask} | Result{entry.value} << check_bits;
  }
  static Record renamed(const Record& entry, std::uint64_t digest) noexcept { return {digest, entry.value}; }
};

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

// Hands out the equations of a layer one after the other, and records which rows they went into, which keys are bumped,
// and the codes. Rows are cleared as their bucket is reached.
template <class Keys, class From>
class LayerBand {
 public:
  using Record = typename Keys::Record;
  using Slot = Row<std::uint64_t, typename Keys::Result>;
  // An equation on its way: what is left of it begins at `row`.
  struct Equation {
    Slot* row;
    std::uint64_t with;
    typename Keys::Result result;
    std::uint32_t offset;  // of its start in the bucket
  };

  LayerBand(Keys of, const RibbonLayout::Layer& layer, From from, std::span<const Record> keys, std::byte* codes,
            Slot* rows, Record* bumped) noexcept
      : of_(of),
        layer_(layer),
        from_(from),
        keys_(keys),
        codes_(codes),
        rows_(rows),
        bumped_(bumped),
        bucket_bits_(layer.bucket_bits()) {
    std::fill_n(rows_, 64, Slot{});
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

  std::uint64_t start_of(std::size_t i) const noexcept {
    return detail::scale(from_.x(build::digest_of(keys_[i])), layer_.starts);
  }
  std::uint64_t offset_of(std::uint64_t start) const noexcept {
    return start & ((std::uint64_t{1} << bucket_bits_) - 1);
  }
  Equation equation(std::size_t i, std::uint64_t start) const noexcept {
    const auto [coefficients, fingerprint] = from_.equation(build::digest_of(keys_[i]));
    return {rows_ + start, coefficients, of_.result(keys_[i], fingerprint),
            static_cast<std::uint32_t>(offset_of(start))};
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
      std::fill(rows_ + (bucket_ << bucket_bits_) + 64, rows_ + std::min(beyond + 64, 64 * layer_.blocks()), Slot{});
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
    std::fill(rows_ + std::min((bucket_ << bucket_bits_) + 64, rows), rows_ + rows, Slot{});
    return false;
  }
  void close() noexcept {
    codes_[bucket_ / 4] |= static_cast<std::byte>(code_ << (bucket_ % 4 * 2));
    for (std::size_t i = begin_; i < first_kept_; ++i) {
      bumped_[bumped_count_++] = Keys::renamed(keys_[i], from_.left(build::digest_of(keys_[i])));
    }
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
    Slot* row;
    std::uint32_t offset;
  };
  const Keys of_;
  const RibbonLayout::Layer layer_;
  const From from_;
  const std::span<const Record> keys_;
  std::byte* const codes_;
  Slot* const rows_;
  Record* const bumped_;
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

// The three kinds of layers, as types that kernels can name.
template <class Keys>
class FrontBand : public LayerBand<Keys, FromFront> {
 public:
  using LayerBand<Keys, FromFront>::LayerBand;
};
template <class Keys>
class DigestBand : public LayerBand<Keys, FromDigests> {
 public:
  using LayerBand<Keys, FromDigests>::LayerBand;
};
template <class Keys>
class PositionBand : public LayerBand<Keys, FromPositions> {
 public:
  using LayerBand<Keys, FromPositions>::LayerBand;
};
// Runs of a front that are banded in turns.
template <class Keys>
struct FrontBands {
  std::array<FrontBand<Keys>*, RibbonLayout::kRunsTogether> runs{};
};

}  // namespace perhaps::ribbon
