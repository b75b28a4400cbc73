#include "build/sort.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <type_traits>
#include <utility>
#include <vector>

namespace perhaps::build {
namespace {

constexpr std::size_t kOnePass = std::size_t{1} << 16;
constexpr std::size_t kFew = 24;  // past this, std::sort overtakes insertion

// Deals `from` out to 2^bits cells of `to` by the bits below the `common` leading ones; ends[cell] becomes the end of
// the cell.
template <class Record>
void deal_out(std::span<const Record> from, std::type_identity_t<Record>* to, unsigned common, unsigned bits,
              std::vector<std::uint32_t>& ends) {
  const unsigned shift = 64 - common - bits;
  const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
  ends.assign(std::size_t{1} << bits, 0);
  for (const Record& r : from) ++ends[digest_of(r) >> shift & mask];
  std::uint32_t sum = 0;
  for (std::uint32_t& end : ends) sum += std::exchange(end, sum);
  for (const Record& r : from) to[ends[digest_of(r) >> shift & mask]++] = r;
}

template <class Record>
void insertion_sort(std::span<Record> all) noexcept {
  for (std::size_t i = 1; i < all.size(); ++i) {
    const Record r = all[i];
    std::size_t at = i;
    for (; at > 0 && all[at - 1] > r; --at) all[at] = all[at - 1];
    all[at] = r;
  }
}

// Sorts `from` into `to`.
template <class Record>
void sort_in_one_pass(std::span<Record> from, Record* to, unsigned common, std::vector<std::uint32_t>& ends) {
  const auto bits = std::min(static_cast<unsigned>(std::bit_width(from.size())), 64 - common);
  if (bits == 0) {
    std::copy(from.begin(), from.end(), to);
    return std::sort(to, to + from.size());
  }
  deal_out<Record>(from, to, common, bits, ends);
  std::uint32_t begin = 0;
  for (const std::uint32_t end : ends) {
    if (end - begin > kFew) std::sort(to + begin, to + end);
    begin = end;
  }
  insertion_sort(std::span(to, from.size()));  // nothing leaves its cell
}

template <class Record>
std::span<Record> sorted_distinct(std::span<Record> digests, std::span<Record> other, unsigned common) {
  assert(digests.size() == other.size() && digests.size() <= UINT32_MAX);
  std::vector<std::uint32_t> ends;
  std::span<Record> sorted = other;
  if (digests.size() <= kOnePass) {
    sort_in_one_pass(digests, other.data(), common, ends);
  } else {
    const auto bits =
        std::min({static_cast<unsigned>(std::bit_width(digests.size() / (kOnePass / 4))), 10u, 64 - common});
    std::vector<std::uint32_t> parts;
    deal_out<Record>(digests, other.data(), common, bits, parts);
    std::uint32_t begin = 0;
    for (const std::uint32_t end : parts) {
      sort_in_one_pass(other.subspan(begin, end - begin), digests.data() + begin, common + bits, ends);
      begin = end;
    }
    sorted = digests;
  }
  return sorted.first(static_cast<std::size_t>(std::unique(sorted.begin(), sorted.end()) - sorted.begin()));
}

}  // namespace

std::span<std::uint64_t> sort_distinct(std::span<std::uint64_t> digests, std::span<std::uint64_t> other,
                                       unsigned common) {
  return sorted_distinct(digests, other, common);
}
std::span<Entry> sort_distinct(std::span<Entry> entries, std::span<Entry> other, unsigned common) {
  return sorted_distinct(entries, other, common);
}

}  // namespace perhaps::build
