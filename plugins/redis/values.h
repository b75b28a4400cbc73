// What keys hold: a filter in the server's memory, and its share of the totals.
#pragma once
#include <new>

#include "redis/server.h"
#include "redis/window.h"

namespace perhaps::redis {

// What INFO calls size: numbers and tables, as RedisBloom counts them.
template <class L>
std::uint64_t size_of(const redisbloom::Chain<L>& chain) noexcept {
  return 32 + 64 * chain.links().size() + chain.table_bytes();
}
inline std::uint64_t size_of(const WindowFilter& filter) noexcept { return sizeof filter + filter.table_bytes(); }
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
inline Share share_of(const redisbloom::CuckooChain& chain) noexcept {
  return {size_of(chain), chain.filters().size(), chain.items, chain.table_bytes()};
}

template <class Chain>
struct Value {
  Chain chain{kServer};
  Share share{};

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
  // After every change.
  void settle() noexcept {
    const Share now = share_of(chain);
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
using Cuckoo = Value<redisbloom::CuckooChain>;

// Registers the types: persistence.cc.
bool create_types(Context* context) noexcept;

}  // namespace perhaps::redis
