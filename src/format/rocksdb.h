// The filters of RocksDB's block-based tables: layouts, sizes, bytes. perhaps/format/rocksdb.h is what plug-ins see.
//
//   bits or segments | a trailer of 5 bytes:
//     legacy      i8 probes, 1..127    | u32 LE lines                                written for format_version < 5
//     fast local  i8 -1 | u8 0 | u8 probes, 1..30 | u16 0                            since 6.6
//     ribbon      i8 -2 | u8 seed | u24 LE blocks                                    since 6.15
//   5 bytes or fewer: no keys, every answer is *no*. First byte of the trailer 0: every answer is *perhaps*.
//
// Each layout is a shape and a set of functions of a table and a hash, as in our own filters; a table has as many bytes
// as its shape says.
#pragma once
#include <array>
#include <optional>

#include "build/ribbon_solver.h"
#include "format/codec.h"
#include "hash/leveldb_hash.h"
#include "hash/xxph3.h"
#include "perhaps/detail/bits.h"
#include "perhaps/detail/kernels.h"
#include "perhaps/format/rocksdb.h"

namespace perhaps::format::rocksdb {

inline constexpr std::uint64_t kTrailer = 5;
inline constexpr std::uint64_t kLine = 64;

// All probes of a key are in one line: the line is the hash modulo the lines, the probes are double hashing in 32 bits.
struct Legacy {
  static constexpr std::string_view name = "rocksdb-legacy";
  static constexpr std::string_view hash_name = "rocksdb murmur-32";
  using word = std::uint32_t;
  struct Shape {
    std::uint32_t lines;
    std::uint32_t log2_line;  // of its bytes; 6 where a cache line has 64
    std::uint32_t probes;
    std::uint64_t bytes() const noexcept { return std::uint64_t{lines} << log2_line; }
    std::uint64_t bits() const noexcept { return 8 * bytes(); }
  };
  static word hash(Bytes key) noexcept { return rocksdb_hash(key); }
  static std::uint64_t place(const Shape& shape, word h) noexcept {
    return std::uint64_t{h % shape.lines} << shape.log2_line;
  }
  static bool may_contain(const Shape& shape, const std::byte* table, word h) noexcept {
    const std::byte* const line = table + place(shape, h);
    const std::uint64_t mask = (std::uint64_t{8} << shape.log2_line) - 1;
    const std::uint32_t step = std::rotl(h, 15);
    for (std::uint32_t i = 0; i < shape.probes; ++i, h += step) {
      const std::uint64_t bit = h & mask;
      if ((std::to_integer<unsigned>(line[bit / 8]) >> bit % 8 & 1u) == 0) return false;
    }
    return true;
  }
  static void insert(const Shape& shape, std::byte* table, word h) noexcept {
    std::byte* const line = table + place(shape, h);
    const std::uint64_t mask = (std::uint64_t{8} << shape.log2_line) - 1;
    const std::uint32_t step = std::rotl(h, 15);
    for (std::uint32_t i = 0; i < shape.probes; ++i, h += step) {
      const std::uint64_t bit = h & mask;
      line[bit / 8] |= std::byte{1} << bit % 8;
    }
  }
  static void prefetch(const Shape& shape, const std::byte* table, word h) noexcept {
    detail::prefetch_read(table + place(shape, h));
  }
};

// All probes of a key are in one block of 64 bytes: the low half of the hash selects the block, the high half the bits.
struct FastLocal {
  static constexpr std::string_view name = "rocksdb-fastlocal";
  static constexpr std::string_view hash_name = "xxph3";
  using word = std::uint64_t;
  struct Shape {
    std::uint32_t blocks;
    std::uint32_t probes;
    std::uint64_t bytes() const noexcept { return kLine * blocks; }
    std::uint64_t bits() const noexcept { return 8 * bytes(); }
  };
  static word hash(Bytes key) noexcept { return xxph3(key); }
  static std::uint64_t place(const Shape& shape, word h) noexcept {
    return ((h & 0xffffffff) * shape.blocks >> 32) * kLine;
  }
  static bool may_contain(const Shape& shape, const std::byte* table, word h) noexcept {
    const std::byte* const block = table + place(shape, h);
    auto x = static_cast<std::uint32_t>(h >> 32);
    for (std::uint32_t i = 0; i < shape.probes; ++i, x *= kStep) {
      if ((std::to_integer<unsigned>(block[x >> 26]) >> (x >> 23 & 7) & 1u) == 0) return false;
    }
    return true;
  }
  static void insert(const Shape& shape, std::byte* table, word h) noexcept {
    std::byte* const block = table + place(shape, h);
    auto x = static_cast<std::uint32_t>(h >> 32);
    for (std::uint32_t i = 0; i < shape.probes; ++i, x *= kStep) block[x >> 26] |= std::byte{1} << (x >> 23 & 7);
  }
  static void prefetch(const Shape& shape, const std::byte* table, word h) noexcept {
    // A file need not be aligned, so a block may span two cache lines.
    const std::byte* const block = table + place(shape, h);
    detail::prefetch_read(block);
    detail::prefetch_read(block + kLine - 1);
  }

 private:
  static constexpr std::uint32_t kStep = 0x9e3779b9;
};

// The standard ribbon of Dillinger and Walzer (2021), 128 bits wide. The solution is stored in blocks of 128 slots,
// with a segment of 16 bytes per column; the first `narrow` blocks have one column less than the others.
struct Ribbon128 {
  static constexpr std::string_view name = "rocksdb-ribbon";
  static constexpr std::string_view hash_name = "xxph3";
  using word = std::uint64_t;
  using Wide = ribbon::Wide;
  static constexpr std::uint32_t kSlots = 128;  // per block
  static constexpr std::uint32_t kSegment = 16;
  static constexpr std::uint32_t kMaxColumns = 32;

  struct Shape {
    std::uint32_t blocks;
    std::uint32_t columns;
    std::uint32_t narrow;
    std::uint32_t seed;

    static Shape of(std::uint64_t bytes, std::uint32_t blocks, std::uint8_t seed) noexcept;
    std::uint64_t starts() const noexcept { return std::uint64_t{kSlots} * blocks - (kSlots - 1); }
    std::uint64_t segments() const noexcept { return std::uint64_t{blocks} * columns - narrow; }
    std::uint64_t bytes() const noexcept { return kSegment * segments(); }
    std::uint64_t bits() const noexcept { return 8 * bytes(); }
    // From the columns alone: an absent key matches each of them with probability 1/2.
    double fpr() const noexcept;
  };

  // The linear equation that a key imposes on the 128 slots from `start`.
  struct Equation {
    std::uint64_t start;
    Wide coefficients;
    std::uint32_t result;
  };
  static Equation equation(const Shape& shape, word h) noexcept {
    const std::uint64_t x = (h ^ shape.seed) * 0x6193d459236a3a0d;
    const std::uint64_t a = x * 0xc28f82822b650bed;
    return {.start = detail::scale(x, shape.starts()),
            .coefficients = static_cast<Wide>(a) << 64 | ((a ^ 0xc367844a6e52731d) | 1),
            .result = static_cast<std::uint32_t>(detail::byte_swapped(a))};
  }

  static word hash(Bytes key) noexcept { return xxph3(key); }
  static std::uint64_t place(const Shape& shape, std::uint64_t start) noexcept {
    const std::uint64_t block = start / kSlots;
    return kSegment * (block * shape.columns - std::min<std::uint64_t>(block, shape.narrow));
  }
  static bool may_contain(const Shape& shape, const std::byte* table, word h) noexcept {
    const Equation e = equation(shape, h);
    const std::uint32_t columns = shape.columns - (e.start / kSlots < shape.narrow);
    const std::byte* const left = table + place(shape, e.start);
    const auto shift = static_cast<unsigned>(e.start % kSlots);
    const Wide in_left = e.coefficients << shift;
    // An equation that starts at the first slot of a block does not reach the next block; the last block has none.
    if (shift == 0) {
      for (std::uint32_t j = 0; j < columns; ++j) {
        if (ribbon::parity(detail::load<Wide>(left + kSegment * j) & in_left) != (e.result >> j & 1)) return false;
      }
      return true;
    }
    const Wide in_right = e.coefficients >> (kSlots - shift);
    const std::byte* const right = left + kSegment * columns;
    for (std::uint32_t j = 0; j < columns; ++j) {
      const Wide both =
          (detail::load<Wide>(left + kSegment * j) & in_left) ^ (detail::load<Wide>(right + kSegment * j) & in_right);
      if (ribbon::parity(both) != (e.result >> j & 1)) return false;
    }
    return true;
  }
  static void prefetch(const Shape& shape, const std::byte* table, word h) noexcept {
    const std::uint64_t start = detail::scale((h ^ shape.seed) * 0x6193d459236a3a0d, shape.starts());
    const std::byte* const left = table + place(shape, start);
    for (std::uint64_t at = 0; at < 2 * kSegment * shape.columns; at += kLine) detail::prefetch_read(left + at);
  }
};

// Bit i of the result is the answer for hashes[i].  REQUIRES: count <= kBatch
template <class Layout>
std::uint64_t may_contain(const typename Layout::Shape& shape, const std::byte* table,
                          const typename Layout::word* hashes, std::size_t count, bool ahead) noexcept {
  if (ahead) {
    for (std::size_t i = 0; i < count; ++i) Layout::prefetch(shape, table, hashes[i]);
  }
  std::uint64_t answers = 0;
  for (std::size_t i = 0; i < count; ++i) answers |= std::uint64_t{Layout::may_contain(shape, table, hashes[i])} << i;
  return answers;
}

// The format of these bytes according to their trailer; `otherwise` if the trailer does not say.
std::string_view name_of(Bytes blob, std::string_view otherwise) noexcept;

// The name of the codec for these bytes; empty unless the trailer is consistent with the length.
std::string_view kind_of(Bytes blob) noexcept;

// bits_per_key as RocksDB rounds it: 1 to 100, in thousandths. Below 0.5 RocksDB writes no filter.
struct Density {
  explicit Density(double bits_per_key) noexcept;
  double bits_per_key;
  std::uint64_t millibits;
};

}  // namespace perhaps::format::rocksdb
