// RedisBloom's Bloom filter: a chain of links.
#include "redisbloom/redisbloom.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <new>

#include "redisbloom/room.h"

namespace perhaps::redisbloom {
namespace {

using format::bad;
using format::Reader;
using format::Writer;

constexpr std::uint64_t kBloomHeader = 20;
constexpr std::uint64_t kLinkHeader = 53;

double hashes_for(double bpe) noexcept { return std::ceil(0.693147180559945 * bpe); }

}  // namespace

const Memory kHeap{
    .take =
        [](std::uint64_t bytes) noexcept {
          return bytes > kMaxMemory ? nullptr : static_cast<std::byte*>(std::calloc(bytes, 1));
        },
    .give = [](std::byte* at) noexcept { std::free(at); },
};

bool Link::size_for(LinkNumbers& n, std::uint64_t items, double rate, std::uint32_t options) noexcept {
  if (items == 0 || !(rate > 0 && rate < 1)) return false;
  n.entries = items;
  n.error = rate;
  n.bpe = std::fabs(std::log(rate) / 0.480453013918201);
  n.size = 0;
  const double wanted = static_cast<double>(items) * n.bpe;
  if (!(wanted < 8 * static_cast<double>(kMaxBytes))) return false;
  if ((options & BloomNumbers::kNoRound) != 0) {
    n.n2 = 0;
    n.bits = (std::max<std::uint64_t>(1, static_cast<std::uint64_t>(wanted)) + 63) / 64 * 64;
  } else {
    // Old data: the next power of two, and as many more items as then fit.
    n.n2 = static_cast<std::uint8_t>(std::max(0, std::ilogb(std::max(1.0, wanted))) + 1);
    n.bits = std::uint64_t{1} << n.n2;
    n.entries += static_cast<std::uint64_t>((static_cast<double>(n.bits) - wanted) / n.bpe);
    n.bits = std::max<std::uint64_t>(n.bits, 64);
  }
  n.hashes = static_cast<std::uint32_t>(hashes_for(n.bpe));
  return n.hashes >= 1 && n.hashes <= kMaxHashes;
}

Result<void> Link::check(const LinkNumbers& n, std::string_view format) {
  if (!(n.error > 0 && n.error < 1)) return bad(Errc::bad_parameter, format, "an error rate of ", n.error);
  if (n.n2 > 63) return bad(Errc::bad_parameter, format, "2^", unsigned{n.n2}, " bits");
  if (n.bits == 0 || n.bits % 8 != 0 || n.bytes() > kMaxBytes) return bad(Errc::bad_parameter, format, n.bits, " bits");
  if (n.n2 != 0 && n.bits < std::uint64_t{1} << n.n2)
    return bad(Errc::bad_parameter, format, "2^", unsigned{n.n2}, " positions in ", n.bits, " bits");
  if (!(n.bpe > 0) || n.hashes == 0 || n.hashes > kMaxHashes || static_cast<double>(n.hashes) != hashes_for(n.bpe))
    return bad(Errc::bad_parameter, format, n.hashes, " probes at ", n.bpe, " bits an item");
  return {};
}

BloomHash Link::hash(Bytes item, std::uint32_t options) noexcept {
  if ((options & BloomNumbers::kWide) != 0) {
    const std::uint64_t a = murmur64a(item, 0xc6a4a7935bd1e995u);
    return {a, murmur64a(item, a)};
  }
  const std::uint32_t a = murmur2_32(item, 0x9747b28cu);
  return {a, murmur2_32(item, a)};
}

// Three steps: the first probe, which rejects most absent items; three more, which reject nearly all others; then
// the rest, for items that are there. Touching all probes at once would read eight lines where one decides; after two
// steps a quarter of the absent items would have cost eight. A step touches all lines, then reads all of them,
// without a branch, so the processor walks as many page tables at a time as it can.
std::uint64_t Link::may_contain(std::span<const BloomHash> many, std::uint64_t left, bool ahead) const noexcept {
  const auto each = [](std::uint64_t set, auto use) {
    for (; set != 0; set &= set - 1) use(static_cast<std::size_t>(std::countr_zero(set)));
  };
  std::uint64_t found = 0;
  constexpr std::uint32_t kSecond = 1;
  constexpr std::uint32_t kThird = 4;
  if (!ahead || hashes < kThird) {
    each(left, [&](std::size_t i) { found |= std::uint64_t{may_contain(many[i])} << i; });
    return found;
  }
  constexpr std::uint32_t kKept = 16;  // probes of an item whose places are kept; rates below 1e-5 have more
  std::array<std::array<std::uint64_t, kKept>, kBatch> places;
  // Of `set` the items that pass the probes from `from` to `to`. Inlined, so that the loops of the first two unroll.
  const auto look = [&](std::uint64_t set, std::uint32_t from, std::uint32_t to) __attribute__((always_inline)) {
    each(set, [&](std::size_t i) {
      for (std::uint32_t p = from; p < to; ++p) {
        places[i][p] = position(many[i], p);
        detail::prefetch_read(table + places[i][p] / 8);
      }
    });
    std::uint64_t pass = 0;
    each(set, [&](std::size_t i) {
      bool all = true;
      for (std::uint32_t p = from; p < to; ++p) all &= has(places[i][p]);
      pass |= std::uint64_t{all} << i;
    });
    return pass;
  };
  found = look(look(look(left, 0, kSecond), kSecond, kThird), kThird, std::min(hashes, kKept));
  if (hashes > kKept) each(found, [&](std::size_t i) { found &= ~(std::uint64_t{!may_contain(many[i], kKept)} << i); });
  return found;
}

void Link::insert(BloomHash h) noexcept {
  for (std::uint32_t i = 0; i < hashes; ++i) {
    const std::uint64_t bit = position(h, i);
    detail::set_bits<std::uint8_t>(table + bit / 8, static_cast<std::uint8_t>(1u << bit % 8));
  }
}

double Link::items_estimated() const noexcept {
  const double fill = format::fill_of(Bytes(table, bytes()), modulus.value);
  return fill < 1 ? -std::log1p(-fill) * static_cast<double>(modulus.value) / hashes : 1e18;
}

double Link::fpr() const noexcept { return std::pow(format::fill_of(Bytes(table, bytes()), modulus.value), hashes); }

bool LineLink::size_for(LinkNumbers& n, std::uint64_t items, double rate, std::uint32_t) noexcept {
  if (items == 0 || items >= kMaxBytes || !(rate > 0 && rate < 1)) return false;
  const auto shape = LineShape::for_keys({.keys = items, .fpr = rate});
  n = {.entries = items,
       .bits = shape.bits(),
       .size = 0,
       .error = rate,
       .bpe = static_cast<double>(shape.bits()) / static_cast<double>(items),
       .hashes = shape.probes,
       .n2 = 0};
  return n.bytes() <= kMaxBytes;
}

Result<void> LineLink::check(const LinkNumbers& n, std::string_view format) {
  if (!(n.error > 0 && n.error < 1)) return bad(Errc::bad_parameter, format, "an error rate of ", n.error);
  if (n.bits == 0 || n.bits % 512 != 0 || n.bytes() > kMaxBytes)
    return bad(Errc::bad_parameter, format, n.bits, " bits, no lines");
  if (n.hashes == 0 || n.hashes > kMaxHashes || n.n2 != 0 || !(n.bpe > 0))
    return bad(Errc::bad_parameter, format, n.hashes, " probes");
  return {};
}

template <class L>
Chain<L>::~Chain() {
  for (const L& link : links()) memory_->give(link.table);
  memory_->give(reinterpret_cast<std::byte*>(links_));
}

template <class L>
std::uint64_t Chain<L>::table_bytes() const noexcept {
  std::uint64_t bytes = 0;
  for (const L& link : links()) bytes += link.bytes();
  return bytes;
}

template <class L>
std::uint64_t Chain<L>::capacity() const noexcept {
  std::uint64_t entries = 0;
  for (const L& link : links()) entries += link.entries;
  return entries;
}

template <class L>
bool Chain<L>::first_numbers(std::uint64_t entries, double rate, std::uint32_t options, LinkNumbers& numbers) noexcept {
  return L::size_for(numbers, entries, (options & kFixed) != 0 ? rate : rate * kTightening, options);
}

template <class L>
bool Chain<L>::next_numbers(LinkNumbers& numbers) const noexcept {
  std::uint64_t entries = 0;
  return !__builtin_mul_overflow(newest().entries, std::uint64_t{growth}, &entries) &&
         L::size_for(numbers, entries, newest().error * kTightening, options);
}

template <class L>
bool Chain<L>::append(const LinkNumbers& numbers) noexcept {
  std::byte* const table = memory_->take(numbers.bytes());
  return table != nullptr && append(numbers, table);
}

template <class L>
bool Chain<L>::append(const LinkNumbers& numbers, std::byte* table) noexcept {
  if (!make_room(*memory_, links_, count_, room_)) {
    memory_->give(table);
    return false;
  }
  L* const link = new (links_ + count_++) L;
  static_cast<LinkNumbers&>(*link) = numbers;
  link->prepare();
  link->table = table;
  return true;
}

template <class L>
bool Chain<L>::copy_to(Chain& empty) const noexcept {
  static_cast<BloomNumbers&>(empty) = *this;
  for (const L& link : links()) {
    if (!empty.append(link)) return false;
    std::memcpy(empty.links_[empty.count_ - 1].table, link.table, link.bytes());
  }
  return true;
}

template <class L>
std::span<std::byte> Chain<L>::from(std::uint64_t at) const noexcept {
  for (const L& link : links()) {
    if (at < link.bytes()) return std::span(link.table + at, link.bytes() - at);
    at -= link.bytes();
  }
  return {};
}

template <class L>
std::uint64_t Chain<L>::may_contain(std::span<const Hash> many, bool ahead) const noexcept {
  assert(many.size() <= kBatch);
  std::uint64_t found = 0;
  std::uint64_t left = many.empty() ? 0 : ~std::uint64_t{0} >> (kBatch - many.size());
  for (std::uint64_t i = count_; left != 0 && i-- != 0;) {
    found |= links_[i].may_contain(many, left, ahead);
    left &= ~found;
  }
  return found;
}

template <class L>
Added Chain<L>::add(Hash h) noexcept {
  if (may_contain(h)) return Added::present;
  if (must_grow()) {
    if (fixed()) return Added::full;
    LinkNumbers next;
    if (!next_numbers(next) || !append(next)) return Added::no_memory;
  }
  L& link = links_[count_ - 1];
  link.insert(h);
  ++link.size;
  ++size;
  return Added::added;
}

template <class L>
std::string_view Chain<L>::differs_from(const Chain& other) const noexcept {
  if (options != other.options) return "options";
  if (growth != other.growth) return "expansion";
  if (count_ != other.count_) return "filters";
  for (std::uint64_t i = 0; i < count_; ++i) {
    const L& a = links_[i];
    const L& b = other.links_[i];
    if (a.entries != b.entries) return "capacity";
    if (a.error != b.error || a.hashes != b.hashes) return "error rate";
    if (a.bits != b.bits || a.n2 != b.n2) return "size";
  }
  return "";
}

template <class L>
bool Chain<L>::merge(const Chain& other) noexcept {
  bool changed = false;
  for (std::uint64_t i = 0; i < count_; ++i) {
    L& link = links_[i];
    const L& more = other.links_[i];
    std::byte fresh{0};
    for (std::uint64_t at = 0; at < link.bytes(); ++at) {
      fresh |= more.table[at] & ~link.table[at];
      link.table[at] |= more.table[at];
    }
    std::uint64_t items = std::max(link.size, more.size);
    if (fresh != std::byte{0}) {
      const auto estimated = static_cast<std::uint64_t>(std::min(link.items_estimated() + 0.5, 1e18));
      items = std::clamp(estimated, items, link.size + more.size);
    }
    changed |= fresh != std::byte{0} || items != link.size;
    size += items - link.size;
    link.size = items;
  }
  return changed;
}

template <class L>
Buffer Chain<L>::header() const {
  Writer out;
  out.le(size).le(static_cast<std::uint32_t>(count_)).le(options).le(growth);
  for (const L& link : links()) {
    out.le(link.bytes()).le(link.bits).le(link.size);
    out.le(detail::bit_cast<std::uint64_t>(link.error)).le(detail::bit_cast<std::uint64_t>(link.bpe));
    out.le(link.hashes).le(link.entries).le(link.n2);
  }
  return std::move(out).done();
}

template <class L>
Result<std::vector<LinkNumbers>> Chain<L>::parse_header(Bytes header, std::string_view format, BloomNumbers& numbers) {
  Reader in(header);
  numbers.size = in.le<std::uint64_t>();
  const std::uint64_t count = in.le<std::uint32_t>();
  numbers.options = in.le<std::uint32_t>();
  numbers.growth = in.le<std::uint32_t>();
  if (in.is_short()) return bad(Errc::truncated, format, "a header of ", header.size(), " bytes");
  if (count == 0 || count > kMaxLinks) return bad(Errc::bad_parameter, format, count, " links");
  if (header.size() != kBloomHeader + count * kLinkHeader) {
    return bad(Errc::bad_parameter, format, count, " links take a header of ", kBloomHeader + count * kLinkHeader,
               " bytes, and there are ", header.size());
  }
  if (!L::options_fit(numbers.options)) return bad(Errc::bad_parameter, format, "unknown options ", numbers.options);
  std::vector<LinkNumbers> links(count);
  std::uint64_t size = 0;
  std::uint64_t total = 0;
  for (LinkNumbers& link : links) {
    const auto bytes = in.le<std::uint64_t>();
    link.bits = in.le<std::uint64_t>();
    link.size = in.le<std::uint64_t>();
    link.error = detail::bit_cast<double>(in.le<std::uint64_t>());
    link.bpe = detail::bit_cast<double>(in.le<std::uint64_t>());
    link.hashes = in.le<std::uint32_t>();
    link.entries = in.le<std::uint64_t>();
    link.n2 = in.le<std::uint8_t>();
    if (auto checked = L::check(link, format); !checked) return std::move(checked).error();
    if (link.bytes() != bytes) return bad(Errc::bad_parameter, format, link.bits, " bits in ", bytes, " bytes");
    if (__builtin_add_overflow(size, link.size, &size)) return bad(Errc::bad_parameter, format, "sizes past 2^64");
    total += bytes;  // at most kMaxLinks * kMaxBytes
  }
  if (size != numbers.size)
    return bad(Errc::bad_parameter, format, numbers.size, " items in all, and ", size, " in the links");
  if (total > kMaxBytes) return bad(Errc::bad_parameter, format, total, " bytes of tables");
  return links;
}

template class Chain<Link>;
template class Chain<LineLink>;

}  // namespace perhaps::redisbloom
