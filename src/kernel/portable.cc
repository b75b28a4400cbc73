// The reference rows: plain loops over the layouts' own inline probes.
#include "kernel/table.h"
#include "perhaps/block_bloom.h"
#include "perhaps/line_bloom.h"

namespace perhaps::kernel {
namespace {

template <class L>
void query(typename L::Shape shape, const std::byte* table, const std::uint64_t* digests, std::size_t count,
           std::uint64_t* answers, bool ahead) noexcept {
  std::uint64_t word = 0;
  walk(
      count, ahead, [&](std::size_t i) { L::prefetch(shape, table, digests[i]); },
      [&](std::size_t i) {
        word |= std::uint64_t{L::template may_contain<detail::isa::Portable>(shape, table, digests[i])} << i % 64;
        if (i % 64 == 63) answers[i / 64] = word, word = 0;
      });
  if (count % 64 != 0) answers[count / 64] = word;
}

template <class L>
void insert(typename L::Shape shape, std::byte* table, const std::uint64_t* digests, std::size_t count,
            bool ahead) noexcept {
  walk(
      count, ahead, [&](std::size_t i) { L::prefetch(shape, table, digests[i]); },
      [&](std::size_t i) { L::insert(shape, table, digests[i]); });
}

}  // namespace

const Row kPortable = {"portable", query<LineLayout>, insert<LineLayout>, query<BlockLayout>, insert<BlockLayout>};

}  // namespace perhaps::kernel
