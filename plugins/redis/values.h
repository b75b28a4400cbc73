// The values of keys: a filter in the server's memory, and its share of the totals.
#pragma once
#include <algorithm>
#include <cmath>
#include <new>
#include <utility>

#include "redis/growing.h"
#include "redis/server.h"
#include "redis/valkey_bloom.h"
#include "redis/window.h"

namespace perhaps::redis {

// The size that INFO shows: numbers and tables, as RedisBloom counts them.
template <class L>
std::uint64_t size_of(const redisbloom::Chain<L>& chain) noexcept {
  return 32 + 64 * chain.links().size() + chain.table_bytes();
}
inline std::uint64_t size_of(const WindowFilter& filter) noexcept { return sizeof filter + filter.table_bytes(); }
inline std::uint64_t size_of(const GrowingFilter& filter) noexcept { return sizeof filter + filter.table_bytes(); }
inline std::uint64_t size_of(const ValkeyFilter& filter) noexcept { return filter.size(); }
inline std::uint64_t size_of(const redisbloom::CuckooChain& chain) noexcept {
  return 40 + 16 * chain.filters().size() + chain.table_bytes();
}
template <class L>
Share share_of(const redisbloom::Chain<L>& chain) noexcept {
  return {size_of(chain), chain.links().size(), chain.size, chain.capacity()};
}
inline Share share_of(const WindowFilter& filter) noexcept {
  return {size_of(filter), 1, filter.items(), filter.capacity};
}
inline Share share_of(const GrowingFilter& filter) noexcept {
  return {size_of(filter), 1, filter.items(), filter.shape.capacity()};
}
inline Share share_of(const ValkeyFilter& filter) noexcept {
  return {size_of(filter), filter.links().size(), filter.items(), filter.capacity()};
}
inline Share share_of(const redisbloom::CuckooChain& chain) noexcept {
  return {size_of(chain), chain.filters().size(), chain.items, chain.table_bytes()};
}

// The false-positive rate that follows from the number of items; the tables are not read.
inline double rate_of(const redisbloom::Link& link) noexcept {
  const double probes = link.hashes;
  const double positions = static_cast<double>(link.modulus.value);
  return std::pow(-std::expm1(-probes * static_cast<double>(link.size) / positions), probes);
}
inline double rate_of(const redisbloom::LineLink& link) noexcept {
  return link.shape.fpr(static_cast<double>(link.size));
}
template <class L>
double rate_of(const redisbloom::Chain<L>& chain) noexcept {
  double none = 1;  // no link answers
  for (const L& link : chain.links()) none *= 1 - rate_of(link);
  return 1 - none;
}
inline double rate_of(const WindowFilter& filter) { return filter.fpr(); }
inline double rate_of(const GrowingFilter& filter) { return filter.shape.fpr(static_cast<double>(filter.items())); }
inline double rate_of(const ValkeyFilter& filter) noexcept {
  double none = 1;
  for (const ValkeyFilter::Link& link : filter.links()) none *= 1 - link.rate();
  return 1 - none;
}
// An absent item is compared with the slots of two buckets in each sub-filter.
inline double rate_of(const redisbloom::CuckooChain& chain) noexcept {
  const double slots = 2.0 * chain.bucket_size * static_cast<double>(chain.filters().size());
  const double load = static_cast<double>(chain.items) / static_cast<double>(chain.table_bytes());
  return -std::expm1(slots * std::log1p(-std::min(load, 1.0) / 255));
}

// Changes when the rate should be estimated anew: when a 64th more of the newest link is full.
template <class L>
std::uint64_t fill_step(const redisbloom::Chain<L>& chain) noexcept {
  const L& newest = chain.newest();
  return 65 * chain.links().size() + newest.size / std::max<std::uint64_t>(1, newest.entries / 64);
}
inline std::uint64_t fill_step(const WindowFilter& filter) noexcept {
  const std::uint64_t expected = filter.capacity / WindowShape::kWindow / 64;
  return 65 * filter.generation() + filter.inserted() / std::max<std::uint64_t>(1, expected);
}
inline std::uint64_t fill_step(const GrowingFilter& filter) noexcept {
  return filter.items() / std::max<std::uint64_t>(1, filter.shape.capacity() / 64);
}
inline std::uint64_t fill_step(const ValkeyFilter& filter) noexcept {
  const ValkeyFilter::Link& newest = filter.newest();
  return 65 * filter.links().size() + newest.items / std::max<std::uint64_t>(1, newest.capacity / 64);
}
inline std::uint64_t fill_step(const redisbloom::CuckooChain& chain) noexcept {
  return 65 * chain.filters().size() + chain.items / std::max<std::uint64_t>(1, chain.table_bytes() / 64);
}

// The tables of a copy.
template <class L>
Need tables_of(const redisbloom::Chain<L>& chain) noexcept {
  Need need;
  for (const L& link : chain.links()) need.add(link.bytes());
  return need;
}
inline Need table_of(std::uint64_t bytes) noexcept {
  Need need;
  need.add(bytes);
  return need;
}
inline Need tables_of(const WindowFilter& filter) noexcept { return table_of(filter.table_bytes()); }
inline Need tables_of(const GrowingFilter& filter) noexcept { return table_of(filter.table_bytes()); }
inline Need tables_of(const ValkeyFilter& filter) noexcept {
  Need need;
  for (const ValkeyFilter::Link& link : filter.links()) need.add(link.block_bytes());
  return need;
}
inline Need tables_of(const redisbloom::CuckooChain& chain) noexcept {
  Need need;
  for (std::uint64_t i = 0; i < chain.filters().size(); ++i) need.add(chain.bytes_of(i));
  return need;
}

template <class Chain>
struct Value {
  Chain chain{kServer};
  Share share{};
  std::uint64_t estimated_at = 0;  // fill_step()

  static inline DataType* type = nullptr;
  static inline Totals totals{};

  // Null: no memory.
  static Value* make() noexcept {
    std::byte* const at = kServer.take(sizeof(Value));
    if (at == nullptr) return nullptr;
    ++totals.objects;
    return new (at) Value;
  }
  static void destroy(Value* value) noexcept {
    if (value == nullptr) return;
    totals.replace(value->share, {});
    --totals.objects;
    value->~Value();
    kServer.give(reinterpret_cast<std::byte*>(value));
  }
  // Call this after every change.
  void settle() noexcept {
    Share now = share_of(chain);
    const std::uint64_t step = fill_step(chain);
    now.rate = share.rate;
    if (step != std::exchange(estimated_at, step))
      now.rate = static_cast<std::uint64_t>(std::clamp(rate_of(chain), 0.0, 1.0) / Share::kRateUnit);
    totals.replace(share, now);
    share = now;
  }
};

struct Destroy {
  template <class Chain>
  void operator()(Value<Chain>* value) const noexcept {
    Value<Chain>::destroy(value);
  }
};
template <class V>
using Owned = std::unique_ptr<V, Destroy>;

using Bloom = Value<redisbloom::BloomChain>;
using Line = Value<redisbloom::LineChain>;
using Window = Value<WindowFilter>;
using Growing = Value<GrowingFilter>;
using Valkey = Value<ValkeyFilter>;
using Cuckoo = Value<redisbloom::CuckooChain>;

// Registers the types: persistence.cc.
bool create_types(Context* context) noexcept;

}  // namespace perhaps::redis
