// The split-block Bloom filter (Putze, Sanders, Singler 2007; the layout of parquet-format/BloomFilter.md).
//
//   table = `blocks` blocks of 32 bytes; block = 8 words of 32 bits, little-endian
//   block = high32(h) * blocks >> 32                     any number of blocks up to 2^32
//   bit   = in word i: low32(h) * kSalt[i] mod 2^32 >> 27, for i = 0..7
//
// Every key sets one bit in each word, so a probe is one 256-bit load, multiply, shift and test. It takes
// 4 % more bits than the line filter at 1 % and 19 % more at 0.01 % (perhaps size). A Parquet file wraps exactly these
// bytes (of XXH64 digests) in a header. Halving `blocks` ORs neighbours (algebra.h).
#pragma once
#include "perhaps/detail/bits.h"
#include "perhaps/flat.h"

namespace perhaps {

// One bit in each of the eight words of a block: see the top of this file.
struct BlockLayout {
  using Shape = BlockShape;
  using word = std::uint64_t;
  static constexpr std::string_view family = "block";
  // The number in a file, and the batch kernels.
  static constexpr Kind kind = Kind::block;
  static constexpr auto query_kernel = &detail::Kernels::block_query;
  static constexpr auto insert_kernel = &detail::Kernels::block_insert;
  static constexpr std::size_t kBlockBytes = 32;  // eight words of 32 bits

  // Odd numbers chosen by the authors of the Parquet format.
  static constexpr std::array<std::uint32_t, 8> kSalt = detail::kBlockSalt;

  // Which block has all bits of a key.
  static std::uint64_t block_of(BlockShape shape, std::uint64_t h) noexcept { return (h >> 32) * shape.blocks >> 32; }

  // For bulk.h: keys of different blocks touch different memory.
  static std::uint64_t places(BlockShape shape) noexcept { return shape.blocks; }
  static std::uint64_t place_of(BlockShape shape, std::uint64_t h) noexcept { return block_of(shape, h); }

  static constexpr FoldUnits<BlockShape> fold_units() noexcept {
    return {&BlockShape::blocks, "blocks", 8 * kBlockBytes};
  }

  // The reference: the bit of a key in word i.
  static std::uint32_t mask_of(std::uint64_t h, std::size_t i) noexcept {
    return std::uint32_t{1} << (static_cast<std::uint32_t>(h) * kSalt[i] >> 27);
  }

  template <class Isa>
  static bool may_contain(BlockShape shape, const std::byte* table, std::uint64_t h) noexcept {
    const std::byte* block = table + block_for<Isa>(shape, h) * kBlockBytes;
    if constexpr (!std::same_as<Isa, detail::isa::Portable>) {
      return Isa::block_covers(block, static_cast<std::uint32_t>(h));
    } else {
      std::uint32_t missing = 0;
      for (std::size_t i = 0; i < 8; ++i) missing |= mask_of(h, i) & ~detail::load<std::uint32_t>(block + 4 * i);
      return missing == 0;
    }
  }

  template <class Isa = detail::isa::Here>
  static Inserted insert(BlockShape shape, std::byte* table, std::uint64_t h) noexcept {
    std::byte* block = table + block_for<Isa>(shape, h) * kBlockBytes;
    bool changed = false;
    if constexpr (!std::same_as<Isa, detail::isa::Portable>) {
      changed = Isa::block_insert(block, static_cast<std::uint32_t>(h));
    } else {
      for (std::size_t i = 0; i < 8; ++i) changed |= detail::set_bits(block + 4 * i, mask_of(h, i));
    }
    return changed ? Inserted::added : Inserted::present;
  }

  static bool may_contain_shared(BlockShape shape, const std::byte* table, std::uint64_t h) noexcept {
    const std::byte* block = table + block_of(shape, h) * kBlockBytes;
    std::uint32_t missing = 0;
    for (std::size_t i = 0; i < 8; ++i) missing |= mask_of(h, i) & ~detail::load_shared<std::uint32_t>(block + 4 * i);
    return missing == 0;
  }

  static Inserted insert_shared(BlockShape shape, std::byte* table, std::uint64_t h) noexcept {
    std::byte* block = table + block_of(shape, h) * kBlockBytes;
    bool changed = false;
    for (std::size_t i = 0; i < 8; ++i) changed |= detail::set_bits_shared(block + 4 * i, mask_of(h, i));
    return changed ? Inserted::added : Inserted::present;
  }

  static void prefetch(BlockShape shape, const std::byte* table, std::uint64_t h) noexcept {
    detail::prefetch_read(table + block_of(shape, h) * kBlockBytes);
  }

 private:
  // block_of() as the upper half of a product of 128 bits. Where gcc 12 may use AVX-512 it keeps a loop's counter in a
  // vector register beside the 64-bit product, which doubles the time of a lookup (2.1 and 0.95 ns at 1e5 keys on Zen
  // 5); without AVX2 the product of 64 bits is 4 % faster.
  template <class Isa>
  static std::uint64_t block_for(BlockShape shape, std::uint64_t h) noexcept {
#if defined(__AVX2__)
    if constexpr (std::same_as<Isa, detail::isa::Here>)
      return detail::scale(h & ~std::uint64_t{0xffffffff}, shape.blocks);
#endif
    return block_of(shape, h);
  }
};

template <Hasher H>
using BasicBlockBloom = Flat<BlockLayout, H>;
using BlockBloom = BasicBlockBloom<Hash>;
using BlockBloomView = BlockBloom::View;
using BlockBloomSpan = BlockBloom::Span;
using BlockBloomShared = BlockBloom::Shared;

}  // namespace perhaps
