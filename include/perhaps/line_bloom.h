// The line Bloom filter: all probes of a key in one 64-byte cache line (Putze, Sanders, Singler 2007). The default.
//
//   table   = `lines` lines of 64 bytes; line = 8 lanes of 64 bits, little-endian
//   line    = floor(h * lines / 2^64)                              any number of lines, past 2^32 as well
//   x       = h * 0x9e3779b97f4a7c15 mod 2^64                      seven fields: 8 x 6 bits, and 3 bits for `start`
//   probe i = lane (start + i) mod 8, bit (x >> (58 - 6 * lane)) mod 64, where start = (x >> 13) mod 8
//   from probe 8 on the second round reads its fields from x2 = x * 0xd6e8feb86659fd93 mod 2^64
//
//             63    58    52    46    40    34    28    22    16 13
//        x = | lane0 lane1 lane2 lane3 lane4 lane5 lane6 lane7 |st| unused |
//
// A key costs one cache miss, where a classic filter costs one for each probe. The price is space: lines fill unevenly.
// Why lanes and not free probes: a probe anywhere in the line needs a gather or a loop, eight lanes need two AVX2
// shifts. Lanes cost 0.3 % more bits at 1 %, 0.5 % at 0.1 % (sizing.h; doc/maths.md). Why not 8 lanes and 8 probes
// always: at 10 % three probes save 18 % of the bits, at 1e-6 sixteen save 25 %. With fewer than a whole round the
// lanes take turns (`start`), otherwise lane 7 would stay empty.
//
// The line comes from the high bits of h, and x from all of them: within one line the high bits are fixed, the low ones
// are not, and multiplication carries the low ones up through the fields. Holds while a line index leaves the digest
// some 30 free bits: up to 2^34 lines or 1 TiB.
#pragma once
#include "perhaps/detail/bits.h"
#include "perhaps/flat.h"

namespace perhaps {

struct LineLayout {
  using Shape = LineShape;
  using word = std::uint64_t;
  static constexpr std::string_view family = "line";

  static constexpr std::uint64_t kSpread = 0x9e3779b97f4a7c15u;
  static constexpr std::uint64_t kSecondRound = 0xd6e8feb86659fd93u;

  static std::uint64_t line_of(LineShape shape, std::uint64_t h) noexcept { return detail::scale(h, shape.lines); }
  // For bulk.h: keys of different lines touch different memory.
  static std::uint64_t places(LineShape shape) noexcept { return shape.lines; }
  static std::uint64_t place_of(LineShape shape, std::uint64_t h) noexcept { return line_of(shape, h); }

  // The reference: the bits of a key, lane by lane.
  static std::array<std::uint64_t, 8> mask_of(LineShape shape, std::uint64_t h) noexcept {
    std::array<std::uint64_t, 8> mask{};
    std::uint64_t x = h * kSpread;
    const std::uint32_t start = x >> 13 & 7;
    for (std::uint32_t i = 0; i < shape.probes; ++i) {
      if (i == 8) x *= kSecondRound;
      const std::uint32_t lane = (start + i) % 8;
      mask[lane] |= std::uint64_t{1} << (x >> (58 - 6 * lane) & 63);
    }
    return mask;
  }

  template <class Isa>
  static bool may_contain(LineShape shape, const std::byte* table, std::uint64_t h) noexcept {
    const std::byte* line = table + line_of(shape, h) * kLineBytes;
    if constexpr (requires { Isa::line_covers(line, h); }) {
      if (shape.probes == 8) return Isa::line_covers(line, h * kSpread);
    }
    const std::uint64_t x = h * kSpread;
    if (shape.probes == 8) {
      std::uint64_t all = 1;
      for (std::uint32_t lane = 0; lane < 8; ++lane) {
        all &= detail::load<std::uint64_t>(line + 8 * lane) >> (x >> (58 - 6 * lane) & 63);
      }
      return all != 0;
    }
    const auto mask = mask_of(shape, h);
    std::uint64_t missing = 0;
    for (std::uint32_t lane = 0; lane < 8; ++lane)
      missing |= mask[lane] & ~detail::load<std::uint64_t>(line + 8 * lane);
    return missing == 0;
  }

  static bool insert(LineShape shape, std::byte* table, std::uint64_t h) noexcept {
    std::byte* line = table + line_of(shape, h) * kLineBytes;
    const auto mask = mask_of(shape, h);
    bool changed = false;
    for (std::uint32_t lane = 0; lane < 8; ++lane) changed |= detail::set_bits(line + 8 * lane, mask[lane]);
    return changed;
  }

  static bool may_contain_shared(LineShape shape, const std::byte* table, std::uint64_t h) noexcept {
    const std::byte* line = table + line_of(shape, h) * kLineBytes;
    const auto mask = mask_of(shape, h);
    std::uint64_t missing = 0;
    for (std::uint32_t lane = 0; lane < 8; ++lane) {
      missing |= mask[lane] & ~detail::load_shared<std::uint64_t>(line + 8 * lane);
    }
    return missing == 0;
  }

  static bool insert_shared(LineShape shape, std::byte* table, std::uint64_t h) noexcept {
    std::byte* line = table + line_of(shape, h) * kLineBytes;
    const auto mask = mask_of(shape, h);
    bool changed = false;
    for (std::uint32_t lane = 0; lane < 8; ++lane) changed |= detail::set_bits_shared(line + 8 * lane, mask[lane]);
    return changed;
  }

  static void prefetch(LineShape shape, const std::byte* table, std::uint64_t h) noexcept {
    detail::prefetch_read(table + line_of(shape, h) * kLineBytes);
  }

  static void query(LineShape shape, const std::byte* table, const std::uint64_t* digests, std::size_t count,
                    std::uint64_t* answers, bool ahead) noexcept {
    detail::line_query(shape, table, digests, count, answers, ahead);
  }
  static void query_integers(LineShape shape, const std::byte* table, const std::uint64_t* keys, Hash hash,
                             std::size_t count, std::uint64_t* answers, bool ahead) noexcept {
    detail::line_query_integers(shape, table, keys, hash, count, answers, ahead);
  }
  static void insert_many(LineShape shape, std::byte* table, const std::uint64_t* digests, std::size_t count,
                          bool ahead) noexcept {
    detail::line_insert(shape, table, digests, count, ahead);
  }
  static void insert_integers(LineShape shape, std::byte* table, const std::uint64_t* keys, Hash hash,
                              std::size_t count, bool ahead) noexcept {
    detail::line_insert_integers(shape, table, keys, hash, count, ahead);
  }
};

template <Hasher H>
using BasicLineBloom = Flat<LineLayout, H>;
using LineBloom = BasicLineBloom<Hash>;
using LineBloomView = LineBloom::View;
using LineBloomSpan = LineBloom::Span;
using LineBloomShared = LineBloom::Shared;

}  // namespace perhaps
