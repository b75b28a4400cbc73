#include "redisbloom/redisbloom.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstdlib>
#include <new>

namespace perhaps::redisbloom {
namespace {

using format::bad;
using format::Reader;
using format::Writer;

constexpr std::uint64_t kBloomHeader = 20;
constexpr std::uint64_t kLinkHeader = 53;

double hashes_for(double bpe) noexcept { return std::ceil(0.693147180559945 * bpe); }

// Room for one more in a list that lives in a host's memory.
template <class T>
bool make_room(const Memory& memory, T*& list, std::uint64_t count, std::uint64_t& room) noexcept {
  if (count < room) return true;
  const std::uint64_t more = std::max<std::uint64_t>(1, 2 * room);
  std::byte* const fresh = memory.take(more * sizeof(T));
  if (fresh == nullptr) return false;
  if (count != 0) std::memcpy(fresh, list, count * sizeof(T));
  memory.give(reinterpret_cast<std::byte*>(list));
  list = reinterpret_cast<T*>(fresh);
  room = more;
  return true;
}

}  // namespace

const Memory kHeap{
    .take =
        [](std::uint64_t bytes) noexcept {
          return bytes > kMaxMemory ? nullptr : static_cast<std::byte*>(std::calloc(bytes, 1));
        },
    .give = [](std::byte* at) noexcept { std::free(at); },
};

// ---------------------------------------------------------------------------------------------------------- Bloom

bool Link::size_for(LinkNumbers& n, std::uint64_t items, double rate, std::uint32_t options) noexcept {
  if (items == 0 || !(rate > 0 && rate < 1)) return false;
  n.entries = items;
  n.error = rate;
  n.bpe = std::fabs(std::log(rate) / 0.480453013918201);
  n.size = 0;
  const double wanted = static_cast<double>(items) * n.bpe;
  if (!(wanted < 8 * static_cast<double>(kMostBytes))) return false;
  if ((options & BloomNumbers::kNoRound) != 0) {
    n.n2 = 0;
    n.bits = (std::max<std::uint64_t>(1, static_cast<std::uint64_t>(wanted)) + 63) / 64 * 64;
  } else {
    // Old data: the next power of two, and as many more items as it then has room for.
    n.n2 = static_cast<std::uint8_t>(std::max(0, std::ilogb(std::max(1.0, wanted))) + 1);
    n.bits = std::uint64_t{1} << n.n2;
    n.entries += static_cast<std::uint64_t>((static_cast<double>(n.bits) - wanted) / n.bpe);
    n.bits = std::max<std::uint64_t>(n.bits, 64);
  }
  n.hashes = static_cast<std::uint32_t>(hashes_for(n.bpe));
  return n.hashes >= 1 && n.hashes <= kMostHashes;
}

Result<void> Link::check(const LinkNumbers& n, std::string_view format) {
  if (!(n.error > 0 && n.error < 1)) return bad(Errc::bad_parameter, format, "an error rate of ", n.error);
  if (n.n2 > 63) return bad(Errc::bad_parameter, format, "2^", unsigned{n.n2}, " bits");
  if (n.bits == 0 || n.bits % 8 != 0 || n.bytes() > kMostBytes)
    return bad(Errc::bad_parameter, format, n.bits, " bits");
  if (n.n2 != 0 && n.bits < std::uint64_t{1} << n.n2)
    return bad(Errc::bad_parameter, format, "2^", unsigned{n.n2}, " positions in ", n.bits, " bits");
  if (!(n.bpe > 0) || n.hashes == 0 || n.hashes > kMostHashes || static_cast<double>(n.hashes) != hashes_for(n.bpe))
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

// Three looks: the first probe, which most strange items do not pass; three more, which nearly all others do not; then
// the rest, of items that are there. To touch all probes at once would read eight lines where one decides; after two
// looks a quarter of the strange items would have cost eight. In a look all lines are touched, then all are read,
// without a branch: as many pages are looked up at a time as the processor can.
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
  if (items == 0 || items >= kMostBytes || !(rate > 0 && rate < 1)) return false;
  const auto shape = LineShape::for_keys({.keys = items, .fpr = rate});
  n = {.entries = items,
       .bits = shape.bits(),
       .size = 0,
       .error = rate,
       .bpe = static_cast<double>(shape.bits()) / static_cast<double>(items),
       .hashes = shape.probes,
       .n2 = 0};
  return n.bytes() <= kMostBytes;
}

Result<void> LineLink::check(const LinkNumbers& n, std::string_view format) {
  if (!(n.error > 0 && n.error < 1)) return bad(Errc::bad_parameter, format, "an error rate of ", n.error);
  if (n.bits == 0 || n.bits % 512 != 0 || n.bytes() > kMostBytes)
    return bad(Errc::bad_parameter, format, n.bits, " bits, no lines");
  if (n.hashes == 0 || n.hashes > kMostHashes || n.n2 != 0 || !(n.bpe > 0))
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
bool Chain<L>::unite(const Chain& other) noexcept {
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
  if (count == 0 || count > kMostLinks) return bad(Errc::bad_parameter, format, count, " links");
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
    total += bytes;  // at most kMostLinks * kMostBytes
  }
  if (size != numbers.size)
    return bad(Errc::bad_parameter, format, numbers.size, " items in all, and ", size, " in the links");
  if (total > kMostBytes) return bad(Errc::bad_parameter, format, total, " bytes of tables");
  return links;
}

template class Chain<Link>;
template class Chain<LineLink>;

// --------------------------------------------------------------------------------------------------------- Cuckoo

void CuckooNumbers::size_for(std::uint64_t capacity) noexcept {
  buckets = std::bit_ceil(std::max<std::uint64_t>(1, capacity / bucket_size));
  if (expansion != 0) expansion = static_cast<std::uint16_t>(std::bit_ceil(std::uint32_t{expansion}));
}

std::uint64_t CuckooNumbers::buckets_of(std::uint64_t i) const noexcept {
  if (i == 0 || expansion == 1) return buckets;
  if (expansion == 0) return 0;
  // All are powers of two.
  const std::uint64_t shift = static_cast<std::uint64_t>(std::countr_zero(buckets)) +
                              i * static_cast<std::uint64_t>(std::countr_zero(std::uint64_t{expansion}));
  return shift < 46 ? std::uint64_t{1} << shift : 0;
}

Result<void> CuckooNumbers::check(std::string_view format, std::uint64_t filters) const {
  if (bucket_size == 0 || bucket_size > 255)
    return bad(Errc::bad_parameter, format, unsigned{bucket_size}, " slots in a bucket");
  if (max_iterations == 0) return bad(Errc::bad_parameter, format, "0 iterations");
  if (expansion != 0 && !std::has_single_bit(std::uint32_t{expansion}))
    return bad(Errc::bad_parameter, format, "expansion ", unsigned{expansion}, ", no power of two");
  if (!std::has_single_bit(buckets) || buckets > kMostBytes)
    return bad(Errc::bad_parameter, format, buckets, " buckets, no power of two");
  if (filters == 0 || filters > CuckooChain::kMostFilters)
    return bad(Errc::bad_parameter, format, filters, " sub-filters");
  std::uint64_t slots = 0;
  for (std::uint64_t i = 0; i < filters; ++i) {
    if (buckets_of(i) == 0 || (slots += bytes_of(i)) > kMostBytes)
      return bad(Errc::bad_parameter, format, filters, " sub-filters, each ", unsigned{expansion}, " times the last");
  }
  if (items > slots) return bad(Errc::bad_parameter, format, items, " items in ", slots, " slots");
  return {};
}

CuckooChain::~CuckooChain() {
  for (const SubFilter& filter : filters()) memory_->give(filter.table);
  memory_->give(reinterpret_cast<std::byte*>(filters_));
}

std::uint64_t CuckooChain::table_bytes() const noexcept {
  std::uint64_t bytes = 0;
  for (const SubFilter& filter : filters()) bytes += filter.buckets * bucket_size;
  return bytes;
}

bool CuckooChain::append() noexcept {
  if (count_ == kMostFilters || buckets_of(count_) == 0) return false;
  std::byte* const table = memory_->take(bytes_of(count_));
  return table != nullptr && append(table);
}

bool CuckooChain::append(std::byte* table) noexcept {
  if (!make_room(*memory_, filters_, count_, room_)) {
    memory_->give(table);
    return false;
  }
  new (filters_ + count_) SubFilter{buckets_of(count_), table};
  ++count_;
  return true;
}

bool CuckooChain::copy_to(CuckooChain& empty) const noexcept {
  static_cast<CuckooNumbers&>(empty) = *this;
  for (std::uint64_t i = 0; i < count_; ++i) {
    if (!empty.append()) return false;
    std::memcpy(empty.filters_[i].table, filters_[i].table, bytes_of(i));
  }
  return true;
}

std::span<std::byte> CuckooChain::from(std::uint64_t at) const noexcept {
  for (const SubFilter& filter : filters()) {
    const std::uint64_t bytes = filter.buckets * bucket_size;
    if (at < bytes) return std::span(filter.table + at, bytes - at);
    at -= bytes;
  }
  return {};
}

std::byte* CuckooChain::find(const SubFilter& filter, std::uint64_t h, std::uint8_t fingerprint) const noexcept {
  std::byte* const slots = bucket(filter, h);
  for (std::uint32_t i = 0; i < bucket_size; ++i)
    if (slots[i] == std::byte{fingerprint}) return slots + i;
  return nullptr;
}

bool CuckooChain::may_contain(CuckooHash h) const noexcept {
  for (std::uint64_t i = count_; i-- != 0;)
    if (find(filters_[i], h.h1, h.fingerprint) != nullptr || find(filters_[i], h.h2, h.fingerprint) != nullptr)
      return true;
  return false;
}

void CuckooChain::prefetch(CuckooHash h) const noexcept {
  for (const SubFilter& filter : filters()) {
    detail::prefetch_read(bucket(filter, h.h1));
    detail::prefetch_read(bucket(filter, h.h2));
  }
}

std::uint64_t CuckooChain::may_contain(std::span<const CuckooHash> many, bool ahead) const noexcept {
  assert(many.size() <= kBatch);
  if (ahead)
    for (const CuckooHash& h : many) prefetch(h);
  std::uint64_t found = 0;
  for (std::size_t i = 0; i < many.size(); ++i) found |= std::uint64_t{may_contain(many[i])} << i;
  return found;
}

std::uint64_t CuckooChain::count(CuckooHash h) const noexcept {
  std::uint64_t total = 0;
  for (const SubFilter& filter : filters())
    for (const std::uint64_t at : {h.h1, h.h2})
      total += static_cast<std::uint64_t>(
          std::count(bucket(filter, at), bucket(filter, at) + bucket_size, std::byte{h.fingerprint}));
  return total;
}

bool CuckooChain::place(const SubFilter& filter, std::uint64_t h1, std::uint64_t h2,
                        std::uint8_t fingerprint) noexcept {
  std::byte* slot = find(filter, h1, 0);
  if (slot == nullptr) slot = find(filter, h2, 0);
  if (slot == nullptr) return false;
  *slot = std::byte{fingerprint};
  return true;
}

// Walks from bucket to bucket, swapping; a walk that ends nowhere is taken back step by step.
bool CuckooChain::evict_into(const SubFilter& filter, CuckooHash h) noexcept {
  const std::uint64_t mask = filter.buckets - 1;
  std::uint64_t at = h.h1 & mask;
  std::uint32_t victim = 0;
  std::byte fingerprint{h.fingerprint};
  const auto other = [&](std::uint64_t b, std::byte f) { return alternate(b, static_cast<std::uint8_t>(f)) & mask; };
  for (std::uint32_t i = 0; i < max_iterations; ++i) {
    std::swap(bucket(filter, at)[victim], fingerprint);
    at = other(at, fingerprint);
    if (std::byte* const slot = find(filter, at, 0)) {
      *slot = fingerprint;
      return true;
    }
    victim = (victim + 1) % bucket_size;
  }
  for (std::uint32_t i = 0; i < max_iterations; ++i) {
    victim = (victim + bucket_size - 1) % bucket_size;
    at = other(at, fingerprint);
    std::swap(bucket(filter, at)[victim], fingerprint);
  }
  return false;
}

Added CuckooChain::add(CuckooHash h) noexcept {
  for (;;) {
    for (std::uint64_t i = count_; i-- != 0;) {
      if (place(filters_[i], h.h1, h.h2, h.fingerprint)) {
        ++items;
        return Added::added;
      }
    }
    if (evict_into(filters_[count_ - 1], h)) {
      ++items;
      return Added::added;
    }
    if (expansion == 0) return Added::full;
    if (!append()) return Added::no_memory;
  }
}

bool CuckooChain::erase(CuckooHash h) noexcept {
  for (std::uint64_t i = count_; i-- != 0;) {
    std::byte* slot = find(filters_[i], h.h1, h.fingerprint);
    if (slot == nullptr) slot = find(filters_[i], h.h2, h.fingerprint);
    if (slot == nullptr) continue;
    *slot = std::byte{0};
    items -= items != 0;  // a header may have lied
    ++deletes;
    if (count_ > 1 && static_cast<double>(deletes) > static_cast<double>(items) * 0.10) compact(false);
    return true;
  }
  return false;
}

bool CuckooChain::compact_one(std::uint64_t from, bool& changed) noexcept {
  const SubFilter& source = filters_[from];
  bool emptied = true;
  for (std::uint64_t b = 0; b < source.buckets; ++b) {
    std::byte* const slots = bucket(source, b);
    for (std::uint32_t s = 0; s < bucket_size; ++s) {
      const auto fingerprint = static_cast<std::uint8_t>(slots[s]);
      if (fingerprint == 0) continue;
      const std::uint64_t h2 = alternate(b, fingerprint);
      bool moved = false;
      for (std::uint64_t to = 0; !moved && to < from; ++to) moved = place(filters_[to], b, h2, fingerprint);
      if (moved) {
        slots[s] = std::byte{0};
        changed = true;
      } else {
        emptied = false;
      }
    }
  }
  if (emptied && from + 1 == count_) {
    memory_->give(filters_[from].table);
    --count_;
    changed = true;
  }
  return emptied;
}

bool CuckooChain::compact(bool on) noexcept {
  bool changed = deletes != 0;
  for (std::uint64_t i = count_; i-- > 1;)
    if (!compact_one(i, changed) && !on) break;
  deletes = 0;
  return changed;
}

Buffer CuckooChain::header() const {
  Writer out;
  out.le(items).le(buckets).le(deletes).le(count_).le(bucket_size).le(max_iterations).le(expansion);
  return std::move(out).done();
}

Result<std::uint64_t> CuckooChain::parse_header(Bytes header, std::string_view format, CuckooNumbers& numbers) {
  if (header.size() != kHeaderBytes)
    return bad(Errc::truncated, format, "a header of ", header.size(), " bytes, expected ", kHeaderBytes);
  Reader in(header);
  numbers.items = in.le<std::uint64_t>();
  numbers.buckets = in.le<std::uint64_t>();
  numbers.deletes = in.le<std::uint64_t>();
  const auto count = in.le<std::uint64_t>();
  numbers.bucket_size = in.le<std::uint16_t>();
  numbers.max_iterations = in.le<std::uint16_t>();
  numbers.expansion = in.le<std::uint16_t>();
  if (auto checked = numbers.check(format, count); !checked) return std::move(checked).error();
  return count;
}

}  // namespace perhaps::redisbloom
