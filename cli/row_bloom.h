// Several line filters of which all must say *perhaps*: what `dedup` remembers lines with.
//
//   table = `rows` line filters of one shape (line_bloom.h), one after the other; each has a digest of its own
//   fpr   = (fpr of the line filter)^rows
//
// A line filter is expensive at low rates, because lines that happen to be overfull make its rate; rows are
// independent. At 1e-6, bits per key: 39.0 with one row, 31.5 with two, 30.3 with three, 29.3 with four, 28.8
// for a classic filter, which reads 20 lines for it. An absent key mostly reads one line.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "perhaps/line_bloom.h"
#include "perhaps/window.h"

namespace perhaps::cli {

struct RowShape {
  static constexpr std::uint32_t kMaxRows = 8;
  LineShape line;
  std::uint32_t rows = 1;

  // A row for each factor of 0.03.
  static RowShape for_keys(const Request& request) {
    const double wanted = std::clamp(request.fpr, kLeastFpr, 0.999);
    const double rows = std::clamp(std::round(std::log(wanted) / std::log(0.03)), 1.0, double{kMaxRows});
    return {LineShape::for_keys({.keys = request.keys, .fpr = std::pow(wanted, 1 / rows)}),
            static_cast<std::uint32_t>(rows)};
  }
  double fpr(double keys) const { return std::pow(line.fpr(keys), rows); }
  std::uint64_t bytes() const noexcept { return rows * line.bytes(); }
  bool valid() const noexcept {
    return line.valid() && rows >= 1 && rows <= kMaxRows && line.lines <= UINT64_MAX / (512 * kMaxRows);
  }
  friend bool operator==(const RowShape&, const RowShape&) = default;
};

struct RowLayout {
  using Shape = RowShape;
  using word = std::uint64_t;
  static constexpr std::string_view family = "rows";

  static std::uint64_t digest(std::uint32_t row, std::uint64_t h) noexcept { return WindowLayout::row_digest(row, h); }
  template <class Byte>
  static Byte* row_at(RowShape shape, Byte* table, std::uint32_t row) noexcept {
    return table + row * shape.line.bytes();
  }

  template <class Isa>
  static bool may_contain(RowShape shape, const std::byte* table, std::uint64_t h) noexcept {
    return all_rows(shape, table, h, LineLayout::may_contain<Isa>);
  }
  static bool may_contain_shared(RowShape shape, const std::byte* table, std::uint64_t h) noexcept {
    return all_rows(shape, table, h, LineLayout::may_contain_shared);
  }
  static Inserted insert(RowShape shape, std::byte* table, std::uint64_t h) noexcept {
    return into_rows(shape, table, h, LineLayout::insert<>);
  }
  static Inserted insert_shared(RowShape shape, std::byte* table, std::uint64_t h) noexcept {
    return into_rows(shape, table, h, LineLayout::insert_shared);
  }
  static void prefetch(RowShape shape, const std::byte* table, std::uint64_t h) noexcept {
    for (std::uint32_t r = 0; r < shape.rows; ++r)
      LineLayout::prefetch(shape.line, row_at(shape, table, r), digest(r, h));
  }

  // Row by row, each about the keys that all rows before it have: every row has the batch kernel of the line filter.
  static void query(RowShape shape, const std::byte* table, const perhaps::Batch<>& batch,
                    std::uint64_t* answers) noexcept {
    for (std::size_t from = 0; from < batch.count; from += kColumn)
      query_column(shape, table, batch, from, std::min(kColumn, batch.count - from), answers + from / 64);
  }
  static std::size_t insert(RowShape shape, std::byte* table, const perhaps::Batch<>& batch) noexcept {
    std::array<std::uint64_t, kColumn> mine;
    for (std::size_t from = 0; from < batch.count; from += kColumn) {
      const std::size_t size = std::min(kColumn, batch.count - from);
      for (std::uint32_t r = 0; r < shape.rows; ++r) {
        for (std::size_t i = 0; i < size; ++i) mine[i] = digest(r, batch[from + i]);
        insert_batch<LineLayout>(shape.line, row_at(shape, table, r),
                                 {.words = mine.data(), .count = size, .ahead = batch.ahead});
      }
    }
    return batch.count;
  }

 private:
  static constexpr std::size_t kColumn = 1024;

  template <class Query>
  static bool all_rows(RowShape shape, const std::byte* table, std::uint64_t h, Query query) noexcept {
    bool all = true;
    for (std::uint32_t r = 0; all && r < shape.rows; ++r)
      all = query(shape.line, row_at(shape, table, r), digest(r, h));
    return all;
  }
  template <class Put>
  static Inserted into_rows(RowShape shape, std::byte* table, std::uint64_t h, Put put) noexcept {
    Inserted result = Inserted::present;
    for (std::uint32_t r = 0; r < shape.rows; ++r) {
      if (put(shape.line, row_at(shape, table, r), digest(r, h)) == Inserted::added) result = Inserted::added;
    }
    return result;
  }

  static void query_column(RowShape shape, const std::byte* table, const perhaps::Batch<>& batch, std::size_t from,
                           std::size_t count, std::uint64_t* answers) noexcept {
    std::array<std::uint64_t, kColumn> mine;
    std::array<std::uint16_t, kColumn> place;
    std::array<std::uint64_t, kColumn / 64> found;
    for (std::size_t i = 0; i < count; ++i) place[i] = static_cast<std::uint16_t>(i);
    std::size_t left = count;
    for (std::uint32_t r = 0; r < shape.rows && left != 0; ++r) {
      for (std::size_t i = 0; i < left; ++i) mine[i] = digest(r, batch[from + place[i]]);
      query_batch<LineLayout>(shape.line, row_at(shape, table, r),
                              {.words = mine.data(), .count = left, .ahead = batch.ahead}, found.data());
      std::size_t kept = 0;
      for (std::size_t i = 0; i < left; ++i) {
        place[kept] = place[i];
        kept += found[i / 64] >> i % 64 & 1;
      }
      left = kept;
    }
    std::fill_n(answers, (count + 63) / 64, 0);
    for (std::size_t i = 0; i < left; ++i) answers[place[i] / 64] |= std::uint64_t{1} << place[i] % 64;
  }
};

// Nobody else reads it, so it hashes under a secret: a writer of lines cannot choose what they collide with.
using RowBloom = Flat<RowLayout, KeyedHash>;

}  // namespace perhaps::cli
