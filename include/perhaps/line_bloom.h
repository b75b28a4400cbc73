// The line Bloom filter: all probes of a key in one 64-byte cache line (Putze, Sanders, Singler 2007). The default.
//
//   table   = `lines` lines of 64 bytes; line = 16 words of 32 bits, little-endian
//   lane j  = 64 bits: word j and word j + 8, for j = 0..7
//   line    = floor(h * lines / 2^64)                         any number of lines, past 2^32 as well
//   probe i = lane j = (start + i) mod 8, bit p = low32(h) * kSalt[j] mod 2^32 >> 26 of the lane: the lowest bit of p
//             says which of the two words, the other five which bit of it; start = low32(h) * 0x9e3779b1 mod 2^32 >> 29
//   from probe 8 on the second round takes high32(h * 0xe7037ed1a0b428db) for low32(h)
//
//             word    0     1     2     3     4     5     6     7
//             line | lane0 lane1 lane2 lane3 lane4 lane5 lane6 lane7 |   p even
//                  | lane0 lane1 lane2 lane3 lane4 lane5 lane6 lane7 |   p odd
//             word    8     9    10    11    12    13    14    15
//
// A key costs one cache miss, where a classic filter costs one for each probe. The price is space: lines fill unevenly.
//
// Why lanes and not free probes: a probe anywhere in the line needs a gather or a loop. With lanes, all eight bits come
// from one vector multiplication, and one blend of the two halves of the line picks the word of each lane: two
// instructions more than for a split block, which has half the size. Lanes cost 0.5 % more bits than free probes at 1 %
// and 0.8 % at 0.1 %. A line of eight 64-bit words, each probed by a 64-bit shift, takes six vector instructions more.
// Why not always eight probes: at 10 % three save 17 % of the bits, at 1e-6 sixteen save 25 % (sizing.h; doc/maths.md).
// With less than a whole round the lanes take turns (`start`), otherwise the last ones would stay empty.
#pragma once
#include "perhaps/detail/bits.h"
#include "perhaps/flat.h"

namespace perhaps {

// All bits of a key in one 64-byte line: see the top of this file.
struct LineLayout {
  using Shape = LineShape;
  using word = std::uint64_t;
  static constexpr std::string_view family = "line";
  // The number in a file, and the batch kernels.
  static constexpr Kind kind = Kind::line;
  static constexpr auto query_kernel = &detail::Kernels::line_query;
  static constexpr auto insert_kernel = &detail::Kernels::line_insert;

  // Eight odd numbers, chosen by the authors of the Parquet format for their split blocks.
  static constexpr std::array<std::uint32_t, 8> kSalt = detail::kBlockSalt;

  // Which line has all bits of a key.
  static std::uint64_t line_of(LineShape shape, std::uint64_t h) noexcept { return detail::scale(h, shape.lines); }
  // For bulk.h: keys of different lines touch different memory.
  static std::uint64_t places(LineShape shape) noexcept { return shape.lines; }
  static std::uint64_t place_of(LineShape shape, std::uint64_t h) noexcept { return line_of(shape, h); }

  static constexpr FoldUnits<LineShape> fold_units() noexcept { return {&LineShape::lines, "lines", 8 * kLineBytes}; }

  // Where a round that is not whole begins, and what the second round multiplies.
  static std::uint32_t start_of(std::uint64_t h) noexcept { return detail::isa::LinePart{h, 0}.start(); }
  static std::uint32_t second_round_of(std::uint64_t h) noexcept { return detail::isa::LinePart{h, 0}.second(); }

  // The reference: the bits of a key, word by word.
  static std::array<std::uint32_t, 16> mask_of(LineShape shape, std::uint64_t h) noexcept {
    std::array<std::uint32_t, 16> mask{};
    for_each_probe(shape, h, [&](std::uint32_t word, std::uint32_t bit) { mask[word] |= std::uint32_t{1} << bit; });
    return mask;
  }

  template <class Isa>
  static bool may_contain(LineShape shape, const std::byte* table, std::uint64_t h) noexcept {
    const std::byte* line = table + line_of(shape, h) * kLineBytes;
    if constexpr (std::same_as<Isa, detail::isa::Portable>) {
      return covers(shape, line, h, detail::load<std::uint32_t>);
    } else if (shape.probes == 8) {
      return Isa::line_covers(line, static_cast<std::uint32_t>(h));
    } else {
      return Isa::line_covers(line, detail::isa::LinePart{h, shape.probes});
    }
  }

  template <class Isa = detail::isa::Here>
  static Inserted insert(LineShape shape, std::byte* table, std::uint64_t h) noexcept {
    std::byte* line = table + line_of(shape, h) * kLineBytes;
    bool changed = false;
    if constexpr (std::same_as<Isa, detail::isa::Portable>) {
      changed = set(shape, line, h, detail::set_bits<std::uint32_t>);
    } else if (shape.probes == 8) {
      changed = Isa::line_insert(line, static_cast<std::uint32_t>(h));
    } else {
      changed = Isa::line_insert(line, detail::isa::LinePart{h, shape.probes});
    }
    return changed ? Inserted::added : Inserted::present;
  }

  static bool may_contain_shared(LineShape shape, const std::byte* table, std::uint64_t h) noexcept {
    return covers(shape, table + line_of(shape, h) * kLineBytes, h, detail::load_shared<std::uint32_t>);
  }
  static Inserted insert_shared(LineShape shape, std::byte* table, std::uint64_t h) noexcept {
    return set(shape, table + line_of(shape, h) * kLineBytes, h, detail::set_bits_shared<std::uint32_t>)
               ? Inserted::added
               : Inserted::present;
  }

  static void prefetch(LineShape shape, const std::byte* table, std::uint64_t h) noexcept {
    detail::prefetch_read(table + line_of(shape, h) * kLineBytes);
  }

 private:
  // One probe after the other: calls use(word, bit).
  template <class Use>
  PERHAPS_INLINE static void for_each_probe(LineShape shape, std::uint64_t h, Use use) noexcept {
    std::uint32_t x = static_cast<std::uint32_t>(h);
    const std::uint32_t start = start_of(h);
    for (std::uint32_t i = 0; i < shape.probes; ++i) {
      if (i == 8) x = second_round_of(h);
      const std::uint32_t lane = (start + i) % 8;
      const std::uint32_t p = x * kSalt[lane] >> 26;
      use(lane + 8 * (p & 1), p >> 1);
    }
  }
  template <class Load>
  PERHAPS_INLINE static bool covers(LineShape shape, const std::byte* line, std::uint64_t h, Load load) noexcept {
    std::uint32_t all = 1;
    for_each_probe(shape, h, [&](std::uint32_t word, std::uint32_t bit) { all &= load(line + 4 * word) >> bit; });
    return all != 0;
  }
  template <class Set>
  PERHAPS_INLINE static bool set(LineShape shape, std::byte* line, std::uint64_t h, Set set_bits) noexcept {
    bool changed = false;
    for_each_probe(shape, h, [&](std::uint32_t word, std::uint32_t bit) {
      changed |= set_bits(line + 4 * word, std::uint32_t{1} << bit);
    });
    return changed;
  }
};

template <Hasher H>
using BasicLineBloom = Flat<LineLayout, H>;
using LineBloom = BasicLineBloom<Hash>;
using LineBloomView = LineBloom::View;
using LineBloomSpan = LineBloom::Span;
using LineBloomShared = LineBloom::Shared;

}  // namespace perhaps
