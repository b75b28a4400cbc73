// RedisBloom's cuckoo filter: a chain of sub-filters.
#include <algorithm>
#include <bit>
#include <new>

#include "redisbloom/redisbloom.h"
#include "redisbloom/room.h"

namespace perhaps::redisbloom {

using format::bad;
using format::Reader;
using format::Writer;

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
  if (!std::has_single_bit(buckets) || buckets > kMaxBytes)
    return bad(Errc::bad_parameter, format, buckets, " buckets, no power of two");
  if (filters == 0 || filters > CuckooChain::kMaxFilters)
    return bad(Errc::bad_parameter, format, filters, " sub-filters");
  std::uint64_t slots = 0;
  for (std::uint64_t i = 0; i < filters; ++i) {
    if (buckets_of(i) == 0 || (slots += bytes_of(i)) > kMaxBytes)
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
  if (count_ == kMaxFilters || buckets_of(count_) == 0) return false;
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

// Walks from bucket to bucket, swapping; a walk that finds no empty slot is undone step by step.
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
