// Queries arbitrary bytes as a packed filter and as a filter block. They never cause a crash, every kind of lookup
// gives the same answer, and an unusable filter answers *perhaps*. Then the bytes are used as keys for a packed filter
// of a chosen family, which must find every key; and as damage to that filter, with checksums repaired, so that the
// fuzzer gets past them.
//
// input: 4 bytes of choices, then keys of 3 bytes, and last the damage: up to 8 times an offset of 2 bytes and a byte
#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <vector>

#include "perhaps/any_filter.h"
#include "perhaps/detail/bits.h"
#include "perhaps/engine/filter_block.h"

namespace {

using perhaps::Bytes;
using perhaps::FilterBlock;
using perhaps::FilterMode;
using perhaps::PackedView;
using perhaps::PrefixExtractor;

void demand(bool truth) {
  if (!truth) std::abort();
}

std::vector<std::uint64_t> query(const PackedView& view, Bytes bytes, std::span<const std::uint64_t> digests) {
  std::vector<std::uint64_t> answers((digests.size() + 63) / 64);
  view.may_contain(digests, answers);
  const perhaps::Description d = view.describe();
  demand(d.fpr >= 0 && d.fpr <= 1 && (view.usable() || d.fpr == 1));
  for (std::size_t i = 0; i < digests.size(); ++i) {
    const bool answer = answers[i / 64] >> i % 64 & 1;
    view.prefetch(digests[i]);
    demand(view.may_contain(digests[i]) == answer);
    // A single lookup checks only its own group: it may not notice that other groups do not fit.
    demand(perhaps::packed_may_contain(bytes, digests[i]) == answer || !view.usable());
    demand(view.usable() || answer);
  }
  return answers;
}

void query(const FilterBlock& filter) {
  const std::string_view texts[] = {"", "a", "a/b", "key", "a longer key / with more"};
  std::vector<Bytes> keys;
  for (const std::string_view text : texts) keys.push_back(perhaps::bytes_of(text));
  const std::uint64_t answers = filter.may_contain(keys);
  for (std::size_t i = 0; i < keys.size(); ++i) {
    demand(filter.may_contain(keys[i]) == (answers >> i & 1));
    filter.prefetch(keys[i], filter.digest_of(keys[i]));
    filter.may_contain_prefix(keys[i]);
    for (std::uint64_t block = 0; block < filter.pieces() + 1 && block < 8; ++block) {
      filter.may_contain(block, keys[i]);
      filter.may_contain_prefix(block, keys[i]);
    }
  }
}

void query_any_bytes(Bytes bytes) {
  std::array<std::uint64_t, 64> digests;
  for (std::size_t i = 0; i < digests.size(); ++i) digests[i] = perhaps::Hash()(i).value;
  query(PackedView::over(bytes), bytes, digests);

  query(FilterBlock::over(bytes));
  const auto tail = FilterBlock::tail_bytes(bytes);
  if (!tail || *tail > bytes.size()) return;
  std::vector<std::byte> repaired(bytes.begin(), bytes.end());
  std::byte* const trailer = repaired.data() + bytes.size() - FilterBlock::kTrailerBytes;
  const Bytes summed(repaired.data() + bytes.size() - *tail, *tail - 16);
  perhaps::detail::store(trailer + 32, perhaps::Hash(0)(summed).value);
  query(FilterBlock::over(repaired, {.verify = false}));
  const auto load = [&](std::uint64_t offset, std::uint64_t count) {
    if (offset > repaired.size() || count > repaired.size() - offset) return FilterBlock::Loaded();
    return FilterBlock::Loaded{Bytes(repaired).subspan(offset, count), nullptr};
  };
  query(FilterBlock::lazy(repaired, load, {.verify = false}));
}

struct Input {
  perhaps::Kind family;
  double bits_per_key;
  FilterMode mode;
  PrefixExtractor prefix;
  std::vector<std::string> keys;  // distinct, in order
  Bytes damage;
};

Input input_of(Bytes bytes) {
  const auto byte = [&](std::size_t i) { return std::to_integer<unsigned>(bytes[i]); };
  std::vector<perhaps::Kind> families = {perhaps::Kind::dense};
  for (const perhaps::Family& family : perhaps::families()) {
    if (perhaps::can_pack(family.kind)) families.push_back(family.kind);
  }
  const std::array prefixes = {PrefixExtractor(), PrefixExtractor::fixed(2), PrefixExtractor::capped(2),
                               PrefixExtractor::delimiter('/')};
  Input input{.family = families[byte(0) % families.size()],
              .bits_per_key = (1 + byte(1)) / 8.0,
              .mode = FilterMode{static_cast<std::uint8_t>(byte(2) % 3)},
              .prefix = prefixes[byte(2) / 3 % 4],
              .keys = {},
              .damage = {}};
  if (input.mode == FilterMode::per_block && !perhaps::can_pack_few(input.family)) input.family = perhaps::Kind::dense;
  bytes = bytes.subspan(4);
  const std::size_t damaged = std::min<std::size_t>(bytes.size(), 24);
  input.damage = bytes.last(damaged);
  bytes = bytes.first(bytes.size() - damaged);
  for (; bytes.size() >= 3; bytes = bytes.subspan(3)) {
    input.keys.emplace_back(reinterpret_cast<const char*>(bytes.data()), 3);
  }
  std::sort(input.keys.begin(), input.keys.end());
  input.keys.erase(std::unique(input.keys.begin(), input.keys.end()), input.keys.end());
  return input;
}

// Every fourth key ends a data block.
std::vector<std::byte> block_of(const Input& input) {
  perhaps::FilterBlockBuilder builder({.mode = input.mode,
                                       .family = input.family,
                                       .bits_per_key = input.bits_per_key,
                                       .prefix = input.prefix,
                                       .piece_bytes = 64});
  for (std::size_t i = 0; i < input.keys.size(); ++i) {
    builder.add(input.keys[i]);
    if (input.mode == FilterMode::per_block && i % 4 == 3) builder.next_block();
  }
  return builder.finish();
}

void find_all(const FilterBlock& filter, const Input& input) {
  for (std::size_t i = 0; i < input.keys.size(); ++i) {
    const Bytes key = perhaps::bytes_of(input.keys[i]);
    if (input.mode == FilterMode::per_block) {
      demand(filter.may_contain(i / 4, key) && filter.may_contain_prefix(i / 4, key));
    } else {
      demand(filter.may_contain(key) && filter.may_contain_prefix(key));
    }
  }
}

std::vector<std::byte> damaged(std::vector<std::byte> bytes, Bytes damage) {
  for (; damage.size() >= 3; damage = damage.subspan(3)) {
    bytes[perhaps::detail::load<std::uint16_t>(damage.data()) % bytes.size()] ^= damage[2];
  }
  return bytes;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const Bytes bytes(reinterpret_cast<const std::byte*>(data), size);
  query_any_bytes(bytes);
  if (size < 4) return 0;

  const Input input = input_of(bytes);
  std::vector<std::uint64_t> digests;
  for (const std::string& key : input.keys) digests.push_back(perhaps::Hash()(perhaps::bytes_of(key)).value);
  const std::vector<std::byte> packed = perhaps::pack(input.family, digests, input.bits_per_key);
  const auto found = query(PackedView::over(packed), packed, digests);
  for (std::size_t i = 0; i < digests.size(); ++i) demand(found[i / 64] >> i % 64 & 1);
  query_any_bytes(damaged(packed, input.damage));

  const std::vector<std::byte> block = block_of(input);
  const FilterBlock filter = FilterBlock::over(block);
  find_all(filter, input);
  query(filter);
  query_any_bytes(damaged(block, input.damage));
  return 0;
}
