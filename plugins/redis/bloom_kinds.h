// What the BF.* commands have in common: the numbers of a new filter, and what differs between the types that they work
// on. One overload for each: RedisBloom's chain and the chain of lines, the window, the growing filter, valkey-bloom's
// filter.
#pragma once
#include <cmath>
#include <cstdio>
#include <optional>

#include "redis/batch.h"

namespace perhaps::redis::bloom {

using redisbloom::Added;
using redisbloom::BloomNumbers;
using redisbloom::Chain;
using redisbloom::LinkNumbers;

inline constexpr const char* kFull = "ERR non scaling filter is full";
inline constexpr const char* kNotInserted = "ERR problem inserting into filter";
inline constexpr const char* kNotCreated = "ERR could not create filter";
inline constexpr const char* kBadData = "ERR received bad data";
inline constexpr const char* kOldHash =
    "ERR written by a version before 0.2, whose hash is no longer supported: build the filter again";

// The numbers of a new filter.
struct Wish {
  bool valkey = settings.valkey;  // of valkey-bloom's type
  double rate = valkey ? settings.bloom_fp_rate : settings.bf_error_rate;
  long long capacity = valkey ? settings.bloom_capacity : settings.bf_initial_size;
  long long expansion = valkey ? settings.bloom_expansion : settings.bf_expansion_factor;
  double tightening = settings.bloom_tightening_ratio;
  std::optional<ValkeyFilter::Seed> seed{};
  bool fixed = false;
  bool line = false;
  bool growing = false;
  long long window = 0;  // items, or seconds
  bool seconds = false;
  std::uint64_t time = 0;   // when the window begins
  long long scales_to = 0;  // not 0: refuse a filter that could not grow so far

  bool rate_fits(const Call& call) noexcept {
    if (!(rate > 0 && rate < 1)) return false;
    constexpr int kCaps = 8;  // the first RedisBloom that does
    if (rate > kMaxRate && !valkey && !(call.obeyed() && settings.bf_replay_version < kCaps)) {
      if (!call.obeyed()) api::Log(call.context, "notice", "error rate %g is capped to %g", rate, kMaxRate);
      rate = kMaxRate;
    }
    return true;
  }
  bool capacity_fits(const Call& call) const noexcept {
    return capacity >= 1 && (capacity <= kMaxCapacity || call.obeyed());
  }
  bool expansion_fits(const Call& call) const noexcept {
    return (expansion >= 0 && expansion <= kMaxExpansion) || call.obeyed();
  }
};

inline std::uint64_t now() noexcept { return static_cast<std::uint64_t>(api::Milliseconds()); }

// ------------------------------------------------------------------------------------ what differs between the types

// Null, or why it cannot be made.
template <class L>
const char* make(Chain<L>& chain, const Wish& wish) noexcept {
  if constexpr (std::is_same_v<L, redisbloom::LineLink>) chain.options = BloomNumbers::kLine;
  chain.growth = static_cast<std::uint32_t>(wish.expansion);
  if (wish.fixed || wish.expansion == 0) chain.options |= BloomNumbers::kFixed;
  LinkNumbers first;
  if (!Chain<L>::first_numbers(static_cast<std::uint64_t>(wish.capacity), wish.rate, chain.options, first))
    return kNotCreated;
  return chain.append(first) ? nullptr : kNoMemoryToCreate;
}
inline const char* make(WindowFilter& filter, const Wish& wish) noexcept {
  filter.capacity = static_cast<std::uint64_t>(wish.capacity);
  filter.rate = wish.rate;
  const std::uint64_t ticks = static_cast<std::uint64_t>(wish.window) * (wish.seconds ? 1000 : 1);
  filter.shape = WindowShape::for_ticks(ticks, {.keys = filter.capacity, .fpr = wish.rate});
  filter.shape.by_time = wish.seconds;
  if (!filter.make_table()) return kNoMemoryToCreate;
  if (wish.seconds) filter.advance(wish.time);
  return nullptr;
}

inline const char* make(GrowingFilter& filter, const Wish& wish) noexcept {
  const auto keys = static_cast<std::uint64_t>(wish.capacity);
  if (wish.rate < GrowingFilter::kLeastRate) return "ERR error rate of a growing filter must be at least 1e-12";
  filter.rate = wish.rate;
  filter.shape = GrowingShape::for_keys({.keys = keys <= GrowingFilter::kUnknown ? 0 : keys, .fpr = wish.rate});
  return filter.make_table() ? nullptr : kNoMemoryToCreate;
}

inline const char* make(ValkeyFilter& filter, const Wish& wish) {
  filter.expansion = wish.fixed ? 0 : static_cast<std::uint32_t>(wish.expansion);
  filter.rate = wish.rate;
  filter.tightening = wish.tightening;
  ValkeyFilter::Seed seed = wish.seed.value_or(ValkeyFilter::kFixedSeed);
  if (!wish.seed && settings.bloom_use_random_seed)
    for (std::size_t half : {0, 16}) std::ranges::copy(KeyedHash::new_secret(), seed.begin() + half);
  filter.random_seed = seed != ValkeyFilter::kFixedSeed;
  filter.set_seed(seed);
  ValkeyFilter::Link first;
  if (!filter.numbers_of(static_cast<std::uint64_t>(wish.capacity), 0, first)) return kNotCreated;
  return filter.append(first) ? nullptr : kNoMemoryToCreate;
}

template <class L>
bool parse(Chain<L>& chain, Bytes header, Budget& budget) {
  const auto links = Chain<L>::parse_header(header, "header", chain);
  if (!links) return false;
  Need need;
  for (const LinkNumbers& link : *links) need.add(link.bytes());
  return budget.reserve(need) &&
         std::ranges::all_of(*links, [&](const LinkNumbers& link) { return chain.append(link); });
}
inline bool parse(WindowFilter& filter, Bytes header, Budget&) {
  return filter.parse_header(header) && filter.make_table();
}
inline bool parse(GrowingFilter& filter, Bytes header, Budget&) {
  return filter.parse_header(header) && filter.make_table();
}

// May a chunk be written at this offset of the tables?
template <class C>
bool accepts(const C&, std::uint64_t, Bytes) noexcept {
  return true;
}
inline bool accepts(const GrowingFilter& filter, std::uint64_t at, Bytes data) noexcept {
  return filter.accepts(at, data);
}

// Might one of `items` find the filter full? Then the array of replies ends there.
template <class L>
bool may_stop(const Chain<L>& chain, std::uint64_t items) noexcept {
  const L& newest = chain.newest();
  return chain.fixed() && newest.entries - std::min(newest.entries, newest.size) < items;
}
inline bool may_stop(const WindowFilter&, std::uint64_t) noexcept { return false; }
inline bool may_stop(const GrowingFilter&, std::uint64_t) noexcept { return false; }
inline bool may_stop(const ValkeyFilter& filter, std::uint64_t items) noexcept {
  return filter.fixed() && filter.newest().capacity - filter.newest().items < items;
}

// Did adding change the filter? In a window a present item changes it, too: its lifetime starts again.
template <class L>
bool changes(const Chain<L>&, Added added) noexcept {
  return added == Added::added;
}
inline bool changes(const WindowFilter&, Added) noexcept { return true; }
inline bool changes(const GrowingFilter&, Added added) noexcept { return added == Added::added; }
inline bool changes(const ValkeyFilter&, Added added) noexcept { return added == Added::added; }

template <class L>
std::uint64_t filters(const Chain<L>& chain) noexcept {
  return chain.links().size();
}
inline std::uint64_t filters(const WindowFilter&) noexcept { return 1; }
inline std::uint64_t filters(const GrowingFilter&) noexcept { return 1; }
inline std::uint64_t filters(const ValkeyFilter& filter) noexcept { return filter.links().size(); }
template <class L>
std::uint64_t items(const Chain<L>& chain) noexcept {
  return chain.size;
}
inline std::uint64_t items(const WindowFilter& filter) noexcept { return filter.items(); }
inline std::uint64_t items(const GrowingFilter& filter) noexcept { return filter.items(); }
inline std::uint64_t items(const ValkeyFilter& filter) noexcept { return filter.items(); }
template <class L>
std::uint64_t capacity(const Chain<L>& chain) noexcept {
  return chain.capacity();
}
inline std::uint64_t capacity(const WindowFilter& filter) noexcept { return filter.capacity; }
inline std::uint64_t capacity(const GrowingFilter& filter) noexcept { return filter.shape.capacity(); }
inline std::uint64_t capacity(const ValkeyFilter& filter) noexcept { return filter.capacity(); }
template <class L>
int reply_expansion(const Call& call, const Chain<L>& chain) noexcept {
  return chain.fixed() ? call.null() : call.number(chain.growth);
}
inline int reply_expansion(const Call& call, const WindowFilter&) noexcept { return call.null(); }
// It has no links, and the next step is a few percent larger, not so many times.
inline int reply_expansion(const Call& call, const GrowingFilter&) noexcept { return call.null(); }
inline int reply_expansion(const Call& call, const ValkeyFilter& filter) noexcept {
  return filter.fixed() ? call.null() : call.number(filter.expansion);
}
template <class L>
double tightening(const Chain<L>&) noexcept {
  return Chain<L>::kTightening;
}
inline double tightening(const WindowFilter&) noexcept { return redisbloom::BloomChain::kTightening; }
inline double tightening(const GrowingFilter&) noexcept { return 1; }
inline double tightening(const ValkeyFilter& filter) noexcept { return filter.tightening; }
template <class L>
bool grows(const Chain<L>& chain) noexcept {
  return !chain.fixed();
}
inline bool grows(const WindowFilter&) noexcept { return false; }
inline bool grows(const GrowingFilter&) noexcept { return true; }
inline bool grows(const ValkeyFilter& filter) noexcept { return !filter.fixed(); }
template <class L>
double rate_asked(const Chain<L>& chain) noexcept {
  return chain.links()[0].error * (chain.fixed() ? 1 : 2);
}
inline double rate_asked(const WindowFilter& filter) noexcept { return filter.rate; }
inline double rate_asked(const GrowingFilter& filter) noexcept { return filter.rate; }
inline double rate_asked(const ValkeyFilter& filter) noexcept { return filter.rate; }
template <class L>
double rate_now(const Chain<L>& chain) noexcept {
  double pass = 1;
  for (const L& link : chain.links()) pass *= 1 - link.fpr();
  return 1 - pass;
}
inline double rate_now(const WindowFilter& filter) { return filter.fpr(); }
inline double rate_now(const GrowingFilter& filter) { return filter.fpr(); }
inline double rate_now(const ValkeyFilter& filter) noexcept {
  double none = 1;
  for (const ValkeyFilter::Link& link : filter.links())
    none *= 1 - std::pow(format::fill_of({link.bits(), link.bytes}, link.modulus.value), link.hashes);
  return 1 - none;
}
template <class L>
std::uint64_t headroom(const Chain<L>& chain) noexcept {
  return chain.newest().entries - std::min(chain.newest().entries, chain.newest().size);
}
inline std::uint64_t headroom(const ValkeyFilter& filter) noexcept {
  return filter.newest().capacity - std::min(filter.newest().capacity, filter.newest().items);
}
inline std::uint64_t headroom(const GrowingFilter& filter) noexcept { return filter.headroom(); }
inline std::uint64_t headroom(const WindowFilter& filter) noexcept {
  return filter.capacity - std::min(filter.capacity, filter.items());
}
// What the links after the newest could hold if `need` and they fit in `room`.
template <class L>
std::uint64_t further_capacity(const BloomNumbers& chain, LinkNumbers last, std::uint64_t links, const Room& room,
                               Need need = {}) noexcept {
  std::uint64_t total = 0;
  for (; links < Chain<L>::kMaxLinks; ++links) {
    std::uint64_t entries = 0;
    LinkNumbers next;
    if (__builtin_mul_overflow(last.entries, std::uint64_t{chain.growth}, &entries) ||
        !L::size_for(next, entries, last.error * Chain<L>::kTightening, chain.options)) {
      break;
    }
    need.add(next.bytes());
    if (!room.holds(need)) break;
    total += next.entries;
    last = next;
  }
  return total;
}
// Before it is made: could the filter grow to `scales_to` items?
inline bool reaches(const Wish& wish, const Budget& budget) noexcept {
  using redisbloom::BloomChain;
  BloomNumbers chain;
  chain.growth = static_cast<std::uint32_t>(wish.expansion);
  const auto capacity = static_cast<std::uint64_t>(wish.capacity);
  const Room room = budget.room();
  LinkNumbers first;
  if (!BloomChain::first_numbers(capacity, wish.rate, chain.options, first)) return false;
  Need need;
  need.add(first.bytes());
  return room.holds(need) && capacity + further_capacity<redisbloom::Link>(chain, first, 1, room, need) >=
                                 static_cast<std::uint64_t>(wish.scales_to);
}
// The capacity it can grow to in the memory that is free now.
template <class L>
std::uint64_t max_capacity(const Call& call, const Chain<L>& chain) noexcept {
  if (chain.fixed()) return chain.capacity();
  const Budget budget(call.context, size_of(chain));
  return chain.capacity() + further_capacity<L>(chain, chain.newest(), chain.links().size(), budget.room());
}
inline std::uint64_t max_capacity(const Call&, const WindowFilter& filter) noexcept { return filter.capacity; }
inline std::uint64_t max_capacity(const Call& call, const GrowingFilter& filter) noexcept {
  const Budget budget(call.context, size_of(filter));
  const Room room = budget.room();
  // The last table is made while the one before it is still there. That is in use already only if it is this one.
  GrowingShape shape = filter.shape;
  for (auto next = shape.next(); next; next = shape.next()) {
    Need need;
    need.add(next->bytes());
    need.bytes -= std::min(need.bytes, filter.shape.bytes());
    if (shape.step != filter.shape.step)
      need.footprint += shape.bytes() - std::min(shape.bytes(), filter.shape.bytes());
    if (!room.holds(need)) break;
    shape = *next;
  }
  return shape.capacity();
}

inline std::uint64_t max_capacity(const Call& call, const ValkeyFilter& filter) noexcept {
  if (filter.fixed()) return filter.capacity();
  const Budget budget(call.context, size_of(filter));
  const Room room = budget.room();
  std::uint64_t total = filter.capacity();
  Need need;
  ValkeyFilter::Link next;
  for (std::uint64_t j = filter.links().size(); filter.numbers_of(filter.links()[0].capacity, j, next); ++j) {
    need.add(next.block_bytes());
    if (!room.holds(need)) break;
    total += next.capacity;
  }
  return total;
}

template <class L>
void debug(const Call& call, const Chain<L>& chain) {
  call.array(1 + chain.links().size());
  call.bulk("size:" + std::to_string(chain.size));
  for (const L& link : chain.links()) {
    std::array<char, 32> ratio;
    std::snprintf(ratio.data(), ratio.size(), "%g", link.error);
    call.bulk("bytes:" + std::to_string(link.bytes()) + " bits:" + std::to_string(link.bits) +
              " hashes:" + std::to_string(link.hashes) + " hashwidth:64 capacity:" + std::to_string(link.entries) +
              " size:" + std::to_string(link.size) + " ratio:" + ratio.data());
  }
}
inline void debug(const Call& call, const ValkeyFilter& filter) {
  call.array(1 + filter.links().size());
  call.bulk("size:" + std::to_string(filter.items()));
  for (const ValkeyFilter::Link& link : filter.links()) {
    call.bulk("bytes:" + std::to_string(link.bytes) + " bits:" + std::to_string(8 * link.bytes) +
              " hashes:" + std::to_string(link.hashes) + " capacity:" + std::to_string(link.capacity) +
              " size:" + std::to_string(link.items));
  }
}
inline void debug(const Call& call, const GrowingFilter& filter) {
  const auto grid = filter.shape.grid();
  call.array(1);
  call.bulk("items:" + std::to_string(filter.items()) + " bytes:" + std::to_string(filter.table_bytes()) +
            " step:" + std::to_string(filter.shape.step) + " parts:" + std::to_string(grid.parts) +
            " waiting:" + std::to_string(filter.waiting()) + " slotwidth:" + std::to_string(grid.width));
}
inline void debug(const Call& call, const WindowFilter& filter) {
  call.array(1);
  call.bulk("items:" + std::to_string(filter.items()) + " bytes:" + std::to_string(filter.table_bytes()) +
            " rows:" + std::to_string(filter.shape.rows) + " probes:" + std::to_string(filter.shape.probes) +
            " step:" + std::to_string(filter.shape.step) + (filter.by_time() ? " milliseconds" : " items"));
}

// ---------------------------------------------------------------------------------------------------------- opening

// Calls use(value) with the value of the key, whichever type it has; false if the type is none of ours.
template <class Use>
bool visit(const OpenedKey& key, Use use) {
  if (auto* const bloom = key.get<Bloom>()) return use(*bloom), true;
  if (auto* const line = key.get<Line>()) return use(*line), true;
  if (auto* const window = key.get<Window>()) return use(*window), true;
  if (auto* const growing = key.get<Growing>()) return use(*growing), true;
  if (auto* const valkey = key.get<Valkey>()) return use(*valkey), true;
  return false;
}
// The same for the types that are dumped in chunks, which valkey-bloom's is not.
template <class Use>
bool visit_chunked(const OpenedKey& key, Use use) {
  return visit(key,
               [&]<class V>(V& value) {
                 if constexpr (!std::is_same_v<V, Valkey>) use(value);
               }) &&
         key.get<Valkey>() == nullptr;
}

// The same, with an error reply if the key is missing or of another type.
template <class Use>
int with_filter(const Call& call, const OpenedKey& key, Use use) {
  if (key.missing()) return call.error(kNotFound);
  return visit(key, use) ? kOk : call.error(kWrongType);
}

// Null: `error` says why.
template <class V>
V* create(const Wish& wish, const Budget& budget, OpenedKey& key, const char*& error) noexcept {
  Owned<V> value(V::make());
  error = value == nullptr ? kNoMemoryToCreate : make(value->chain, wish);
  if (error == nullptr) {
    value->settle();
    key.set(value.get());
    return value.release();
  }
  if (budget.refused()) error = kOverLimit;
  return nullptr;
}

// ------------------------------------------------------------------------------------------------- shared commands

enum class Missing : bool { error, create };

// Adds the words from `first` on, and makes the filter if it is missing and may be made: bf_write.cc.
int add(const Call& call, int first, const Wish& wish, Missing missing, bool many);

// The grammar of valkey-bloom, and how it replicates a new filter: valkey_commands.cc.
int valkey_reserve(const Call& call);
int valkey_insert(const Call& call);
void replicate_new(const Call& call, const ValkeyFilter& filter, const Wish& wish, String** items, std::size_t count);

}  // namespace perhaps::redis::bloom
