// Any bytes at all, asked as a packed filter and as a filter block: never a crash, one key and many get the same
// answer, and what is not usable answers *perhaps*. A block is also tried with its checksums repaired, which is how the
// fuzzer gets past them.
#include <array>
#include <cstdlib>
#include <vector>

#include "perhaps/detail/bits.h"
#include "perhaps/filter_block.h"

namespace {

using perhaps::Bytes;

void demand(bool truth) {
  if (!truth) std::abort();
}

void ask(const perhaps::FilterBlock& filter) {
  const std::string_view texts[] = {"", "a", "a/b", "key", "a longer key / with more"};
  std::vector<Bytes> keys;
  for (const std::string_view text : texts) keys.push_back(perhaps::bytes_of(text));
  const std::uint64_t answers = filter.may_contain(keys);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    demand(filter.may_contain(keys[i]) == (answers >> i & 1));
    filter.may_contain_prefix(keys[i]);
    for (std::uint64_t block = 0; block < filter.pieces() + 1 && block < 8; ++block) {
      filter.may_contain(block, keys[i]);
      filter.may_contain_prefix(block, keys[i]);
    }
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Bytes bytes(reinterpret_cast<const std::byte*>(data), size);
  const auto view = perhaps::PackedView::over(bytes);
  std::array<std::uint64_t, 64> digests;
  for (std::size_t i = 0; i < digests.size(); ++i) digests[i] = perhaps::Hash()(i).value;
  std::uint64_t answers = 0;
  view.may_contain(digests, std::span(&answers, 1));
  demand(view.usable() || answers == ~std::uint64_t{0});
  for (std::size_t i = 0; i < digests.size(); ++i) {
    view.prefetch(digests[i]);
    demand(view.may_contain(digests[i]) == (answers >> i & 1));
  }

  ask(perhaps::FilterBlock::over(bytes));
  const auto tail = perhaps::FilterBlock::tail_bytes(bytes);
  if (!tail || *tail > size) return 0;
  std::vector<std::byte> repaired(bytes.begin(), bytes.end());
  std::byte* const trailer = repaired.data() + size - perhaps::FilterBlock::kTrailerBytes;
  const Bytes summed(repaired.data() + size - *tail, *tail - 16);
  perhaps::detail::store(trailer + 32, perhaps::Hash()(summed).value);
  ask(perhaps::FilterBlock::over(repaired, {.verify = false}));
  ask(perhaps::FilterBlock::lazy(repaired, [&](std::uint64_t offset, std::uint64_t count) {
    if (offset > size || count > size - offset) return perhaps::FilterBlock::Loaded();
    return perhaps::FilterBlock::Loaded{Bytes(repaired).subspan(offset, count), nullptr};
  }));
  return 0;
}
