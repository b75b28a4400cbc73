// BF.*: Bloom filters, as RedisBloom answers; and of our own the ones that lie in cache lines and the ones that forget.
#include <cmath>
#include <cstdio>

#include "redis/batch.h"
#include "redis/commands.h"

namespace perhaps::redis {
namespace {

using redisbloom::Added;
using redisbloom::BloomNumbers;
using redisbloom::Chain;
using redisbloom::LinkNumbers;

constexpr const char* kFull = "ERR non scaling filter is full";
constexpr const char* kNotInserted = "ERR problem inserting into filter";
constexpr const char* kNotCreated = "ERR could not create filter";
constexpr const char* kBadData = "ERR received bad data";

// What a new filter is made of.
struct Wish {
  double rate = settings.bf_error_rate;
  long long capacity = settings.bf_initial_size;
  long long expansion = settings.bf_expansion_factor;
  bool fixed = false;
  bool line = false;
  long long window = 0;  // items, or seconds
  bool seconds = false;
  std::uint64_t time = 0;   // when that begins
  long long scales_to = 0;  // not 0: refuse what could not grow so far

  bool rate_fits(Context* context) noexcept {
    if (!(rate > 0 && rate < 1)) return false;
    if (rate > kMostRate) {
      api::Log(context, "notice", "error rate %g is taken for %g", rate, kMostRate);
      rate = kMostRate;
    }
    return true;
  }
  bool capacity_fits() const noexcept { return capacity >= 1 && capacity <= kMostCapacity; }
  bool expansion_fits() const noexcept { return expansion >= 0 && expansion <= kMostExpansion; }
};

std::uint64_t now() noexcept {
  return static_cast<std::uint64_t>(settings.bf_clock != 0 ? settings.bf_clock : api::Milliseconds());
}

// ------------------------------------------------------------------------------------ what differs between the types

// Null, or why it cannot be.
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
const char* make(WindowFilter& filter, const Wish& wish) noexcept {
  filter.capacity = static_cast<std::uint64_t>(wish.capacity);
  filter.rate = wish.rate;
  const std::uint64_t ticks = static_cast<std::uint64_t>(wish.window) * (wish.seconds ? 1000 : 1);
  filter.shape = WindowShape::for_ticks(ticks, {.keys = filter.capacity, .fpr = wish.rate});
  filter.shape.by_time = wish.seconds;
  if (!filter.make_table()) return kNoMemoryToCreate;
  if (wish.seconds) filter.advance(wish.time);
  return nullptr;
}

template <class L>
bool parse(Chain<L>& chain, Bytes header) {
  const auto links = Chain<L>::parse_header(header, "header", chain);
  return links && std::ranges::all_of(*links, [&](const LinkNumbers& link) { return chain.append(link); });
}
bool parse(WindowFilter& filter, Bytes header) { return filter.parse_header(header) && filter.make_table(); }

// Could an item have no room? Then the answers to many stop there.
template <class L>
bool may_stop(const Chain<L>& chain, std::uint64_t items) noexcept {
  const L& newest = chain.newest();
  return chain.fixed() && newest.entries - std::min(newest.entries, newest.size) < items;
}
bool may_stop(const WindowFilter&, std::uint64_t) noexcept { return false; }

// Does an item that was perhaps there change something all the same? In a window it lives on.
template <class L>
bool changes(const Chain<L>&, Added added) noexcept {
  return added == Added::added;
}
bool changes(const WindowFilter&, Added) noexcept { return true; }

template <class L>
std::uint64_t filters(const Chain<L>& chain) noexcept {
  return chain.links().size();
}
std::uint64_t filters(const WindowFilter&) noexcept { return 1; }
template <class L>
std::uint64_t items(const Chain<L>& chain) noexcept {
  return chain.size;
}
std::uint64_t items(const WindowFilter& filter) noexcept { return filter.items(); }
template <class L>
std::uint64_t capacity(const Chain<L>& chain) noexcept {
  return chain.capacity();
}
std::uint64_t capacity(const WindowFilter& filter) noexcept { return filter.capacity; }
template <class L>
int reply_expansion(const Call& call, const Chain<L>& chain) noexcept {
  return chain.fixed() ? call.null() : call.number(chain.growth);
}
int reply_expansion(const Call& call, const WindowFilter&) noexcept { return call.null(); }
template <class L>
double rate_asked(const Chain<L>& chain) noexcept {
  return chain.links()[0].error * (chain.fixed() ? 1 : 2);
}
double rate_asked(const WindowFilter& filter) noexcept { return filter.rate; }
template <class L>
double rate_now(const Chain<L>& chain) noexcept {
  double pass = 1;
  for (const L& link : chain.links()) pass *= 1 - link.fpr();
  return 1 - pass;
}
double rate_now(const WindowFilter& filter) { return filter.fpr(); }
template <class L>
std::uint64_t headroom(const Chain<L>& chain) noexcept {
  return chain.newest().entries - std::min(chain.newest().entries, chain.newest().size);
}
std::uint64_t headroom(const WindowFilter& filter) noexcept {
  return filter.capacity - std::min(filter.capacity, filter.items());
}
// What the links after the newest could hold, in `room` bytes.
template <class L>
std::uint64_t further_capacity(const BloomNumbers& chain, LinkNumbers last, std::uint64_t links,
                               std::uint64_t room) noexcept {
  std::uint64_t total = 0;
  for (; links < Chain<L>::kMostLinks; ++links) {
    std::uint64_t entries = 0;
    LinkNumbers next;
    if (__builtin_mul_overflow(last.entries, std::uint64_t{chain.growth}, &entries) ||
        !L::size_for(next, entries, last.error * Chain<L>::kTightening, chain.options) || next.bytes() > room) {
      break;
    }
    room -= next.bytes();
    total += next.entries;
    last = next;
  }
  return total;
}
// Before it is made: could a filter grow as far as was wished?
bool reaches(const Wish& wish, const Budget& budget) noexcept {
  using redisbloom::BloomChain;
  BloomNumbers chain;
  chain.growth = static_cast<std::uint32_t>(wish.expansion);
  const auto capacity = static_cast<std::uint64_t>(wish.capacity);
  const std::uint64_t room = budget.left();
  LinkNumbers first;
  return BloomChain::first_numbers(capacity, wish.rate, chain.options, first) && first.bytes() <= room &&
         capacity + further_capacity<redisbloom::Link>(chain, first, 1, room - first.bytes()) >=
             static_cast<std::uint64_t>(wish.scales_to);
}
// The capacity it can grow to under the limit on bytes.
template <class L>
std::uint64_t most_capacity(const Chain<L>& chain) noexcept {
  if (chain.fixed()) return chain.capacity();
  const auto limit = static_cast<std::uint64_t>(settings.bf_max_bytes_per_key);
  const std::uint64_t room = limit == 0 ? redisbloom::kMostBytes : limit;
  return chain.capacity() +
         further_capacity<L>(chain, chain.newest(), chain.links().size(), room - std::min(room, size_of(chain)));
}
std::uint64_t most_capacity(const WindowFilter& filter) noexcept { return filter.capacity; }

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
void debug(const Call& call, const WindowFilter& filter) {
  call.array(1);
  call.bulk("items:" + std::to_string(filter.items()) + " bytes:" + std::to_string(filter.table_bytes()) +
            " rows:" + std::to_string(filter.shape.rows) + " probes:" + std::to_string(filter.shape.probes) +
            " step:" + std::to_string(filter.shape.step) + (filter.by_time() ? " milliseconds" : " items"));
}

// ---------------------------------------------------------------------------------------------------------- opening

// Calls use(value) with what the key holds, whichever of the types; false if it is none of them.
template <class Use>
bool visit(const OpenedKey& key, Use use) {
  if (auto* const bloom = key.get<Bloom>()) return use(*bloom), true;
  if (auto* const line = key.get<Line>()) return use(*line), true;
  if (auto* const window = key.get<Window>()) return use(*window), true;
  return false;
}

// Likewise, and tells if it cannot.
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

// ----------------------------------------------------------------------------------------------------------- adding

// Replicas and the log are told everything that made it, whatever their own settings are.
void replicate_new(const Call& call, const Wish& wish, Changed& changed) {
  const std::string rate = text_of(wish.rate);
  if (wish.fixed) {
    api::Replicate(call.context, "BF.INSERT", "sclcbclccv", call.key(), "CAPACITY", wish.capacity, "ERROR", rate.data(),
                   rate.size(), "EXPANSION", wish.expansion, "NONSCALING", "ITEMS", changed.items(), changed.size());
  } else {
    api::Replicate(call.context, "BF.INSERT", "sclcbclcv", call.key(), "CAPACITY", wish.capacity, "ERROR", rate.data(),
                   rate.size(), "EXPANSION", wish.expansion, "ITEMS", changed.items(), changed.size());
  }
}

// Its header says all there is to say of an empty filter.
template <class C>
void replicate_header(const Call& call, const C& chain) {
  const redisbloom::Buffer header = chain.header();
  api::Replicate(call.context, "BF.LOADCHUNK", "slb", call.key(), 1LL, reinterpret_cast<const char*>(header.data()),
                 header.size());
}

// A primary tells a window what time it is, and the others that it did.
template <class C>
void keep_time(const Call& call, C& chain) noexcept {
  if constexpr (std::is_same_v<C, WindowFilter>) {
    if (!chain.by_time() || call.obeyed()) return;
    const std::uint64_t time = now();
    if (chain.advance(time)) {
      api::Replicate(call.context, "BF.ADVANCE", "sl", call.key(), static_cast<long long>(time));
    }
  }
}

int reply_added(const Call& call, Added added, const Budget& budget) noexcept {
  switch (added) {
    case Added::added:
    case Added::present:
      return call.truth(added == Added::added);
    case Added::full:
      return call.error(kFull);
    case Added::no_memory:
      break;
  }
  return call.error(budget.refused() ? kOverLimit : kNotInserted);
}

// One item into a filter that is there: what add_items() does for many, without what only many need.
template <class V>
void add_item(const Call& call, int item, V& value, const Budget& budget) {
  auto& chain = value.chain;
  keep_time(call, chain);
  const Added added = chain.add(chain.hash(call.bytes(item)));
  reply_added(call, added, budget);
  if (!changes(chain, added)) return;
  api::ReplicateVerbatim(call.context);
  value.settle();
  call.event("bloom.add");
}

template <class V>
void add_items(const Call& call, int first, V& value, const Wish* made_from, bool many, const Budget& budget) {
  auto& chain = value.chain;
  keep_time(call, chain);
  const auto count = static_cast<std::uint64_t>(call.argc - first);
  const bool stops = may_stop(chain, count);
  if (many) api::ReplyWithArray(call.context, stops ? kLengthLater : static_cast<long>(count));
  const bool ahead = touch_ahead(chain);
  Changed changed(call, first);
  std::uint64_t replies = 0;
  bool stopped = false;
  in_batches(call, first, chain, [&](int from, auto hashes) {
    if (stopped) return;
    if (ahead && hashes.size() > 1)
      for (const auto& h : hashes) chain.prefetch(h);
    for (std::size_t i = 0; i < hashes.size() && !stopped; ++i) {
      const Added added = chain.add(hashes[i]);
      changed.note(from + static_cast<int>(i), changes(chain, added));
      ++replies;
      reply_added(call, added, budget);
      stopped = added == Added::full;
    }
  });
  if (many && stops) api::ReplySetArrayLength(call.context, static_cast<long>(replies));
  if (made_from != nullptr) {
    call.event("bloom.reserve");
    replicate_new(call, *made_from, changed);
  } else if (changed.verbatim()) {
    api::ReplicateVerbatim(call.context);
  } else if (!changed.none()) {
    api::Replicate(call.context, "BF.MADD", "sv", call.key(), changed.items(), changed.size());
  }
  if (changed.none()) return;
  value.settle();
  call.event("bloom.add");
}

// What is asked: a chain itself, or a window as it stands now, by the clock of a primary.
struct WindowNow {
  const WindowFilter& filter;
  std::uint64_t late;

  std::uint64_t hash(Bytes item) const noexcept { return filter.hash(item); }
  bool may_contain(std::uint64_t h) const noexcept { return filter.may_contain(h, late); }
  std::uint64_t may_contain(std::span<const std::uint64_t> many, bool ahead) const noexcept {
    if (ahead)
      for (const std::uint64_t h : many) filter.prefetch(h);
    std::uint64_t found = 0;
    for (std::size_t i = 0; i < many.size(); ++i) found |= std::uint64_t{may_contain(many[i])} << i;
    return found;
  }
  std::uint64_t table_bytes() const noexcept { return filter.table_bytes(); }
};
template <class L>
const Chain<L>& as_of_now(const Call&, const Chain<L>& chain) noexcept {
  return chain;
}
WindowNow as_of_now(const Call& call, const WindowFilter& filter) noexcept {
  const bool clock = filter.by_time() && (api::GetContextFlags(call.context) & kReplica) == 0;
  return {filter, clock ? filter.late(now()) : 0};
}

enum class Missing : bool { error, create };

int add(const Call& call, int first, const Wish& wish, Missing missing, bool many) {
  OpenedKey key(call, kReadKey | kWriteKey);
  const bool there = visit(key, [&](auto& value) {
    const Budget budget(call.context, value.share.bytes);
    if (many) {
      add_items(call, first, value, nullptr, true, budget);
    } else {
      add_item(call, first, value, budget);
    }
  });
  if (there) return kOk;
  if (!key.missing()) return call.error(kWrongType);
  if (missing == Missing::error) return call.error(kNotFound);
  const Budget budget(call.context, 0);
  if (wish.scales_to != 0 && !reaches(wish, budget))
    return call.error("ERR provided VALIDATESCALETO causes bloom object to exceed memory limit");
  const char* error = nullptr;
  Bloom* const value = create<Bloom>(wish, budget, key, error);
  if (value == nullptr) return call.error(error);
  add_items(call, first, *value, &wish, many, budget);
  return kOk;
}

// ---------------------------------------------------------------------------------------------------------- merging

template <class V>
int merge(const Call& call, OpenedKey& key) {
  V* into = key.get<V>();
  // All are looked at before anything changes.
  const auto* like = into == nullptr ? nullptr : &into->chain;
  for (int i = 3; i < call.argc; ++i) {
    const OpenedKey source(call.context, call.argv[i], kReadKey);
    if (source.missing()) continue;
    const V* const value = source.get<V>();
    if (value == nullptr) return call.error(kWrongType);
    if (like == nullptr) like = &value->chain;
    if (const std::string_view field = like->differs_from(value->chain); !field.empty())
      return call.error(("ERR filters differ in " + std::string(field)).c_str());
  }
  if (like == nullptr) return call.error(kNotFound);
  bool changed = into == nullptr;
  if (into == nullptr) {
    const Budget budget(call.context, 0);
    Owned<V> value(V::make());
    if (value == nullptr || !like->copy_to(value->chain))
      return call.error(budget.refused() ? kOverLimit : kNoMemoryToCreate);
    into = value.get();
    key.set(value.release());
  }
  for (int i = 3; i < call.argc; ++i) {
    const OpenedKey source(call.context, call.argv[i], kReadKey);
    const V* const value = source.get<V>();
    if (value != nullptr && value != into && &value->chain != like) changed |= into->chain.unite(value->chain);
  }
  if (!changed) return call.ok();
  into->settle();
  api::ReplicateVerbatim(call.context);
  call.event("bloom.merge");
  return call.ok();
}

}  // namespace

int bf_reserve(Context* context, String** argv, int argc) noexcept {
  const Call call{context, argv, argc};
  if (argc < 4) return call.arity();
  Wish wish;
  bool expands = false;
  bool unknown = false;
  int most = 7;
  // Only with our own words are there more than RedisBloom takes.
  for (int i = 4; i < argc; ++i) most += call.is(i, "LAYOUT") || call.is(i, "WINDOW") ? 3 : 0;
  if (argc > most) return call.arity();
  if (!call.real(2, wish.rate)) return call.error("ERR bad error rate");
  if (!wish.rate_fits(call.context)) return call.error("ERR error rate must be in the range (0.000000, 1.000000)");
  if (!call.integer(3, wish.capacity)) return call.error("ERR bad capacity");
  if (!wish.capacity_fits()) return call.error("ERR capacity must be in the range [1, 1073741824]");
  for (int i = 4; i < argc; ++i) {
    if (call.is(i, "NONSCALING")) {
      wish.fixed = true;
    } else if (call.is(i, "EXPANSION")) {
      if (++i == argc) return call.error("ERR no expansion");
      if (!call.integer(i, wish.expansion)) return call.error("ERR bad expansion");
      expands = true;
    } else if (call.is(i, "LAYOUT")) {
      if (++i == argc || !call.is(i, "LINE")) return call.error("ERR layout must be LINE");
      wish.line = true;
    } else if (call.is(i, "WINDOW")) {
      if (++i == argc || !call.integer(i, wish.window) || wish.window < 1 || wish.window > (1LL << 40))
        return call.error("ERR window must be in the range [1, 1099511627776]");
      wish.seconds = i + 1 < argc && call.is(i + 1, "SECONDS");
      i += wish.seconds;
    } else {
      unknown = true;  // RedisBloom takes no notice; of a window of SECOND it would make one of items
    }
  }
  if (unknown && (wish.line || wish.window != 0)) return call.error("ERR syntax error");
  if (expands && wish.fixed && wish.expansion != 0) return call.error("Nonscaling filters cannot expand");
  if (!wish.expansion_fits()) return call.error("ERR expansion must be in the range [0, 32768]");
  if (wish.window != 0 && (expands || wish.fixed || wish.line))
    return call.error("ERR a window takes no EXPANSION, NONSCALING or LAYOUT");

  OpenedKey key(call, kReadKey | kWriteKey);
  if (!key.missing()) return call.error(visit(key, [](auto&) {}) ? kExists : kWrongType);
  const Budget budget(context, 0);
  const char* error = nullptr;
  if (wish.window != 0) {
    wish.time = now();  // once: replicas must begin in the same generation
    if (const Window* const value = create<Window>(wish, budget, key, error)) {
      replicate_header(call, value->chain);
      if (wish.seconds) api::Replicate(context, "BF.ADVANCE", "sl", call.key(), static_cast<long long>(wish.time));
    }
  } else if (wish.line) {
    if (const Line* const value = create<Line>(wish, budget, key, error)) replicate_header(call, value->chain);
  } else if (const Bloom* const value = create<Bloom>(wish, budget, key, error)) {
    if (wish.fixed) {
      replicate_header(call, value->chain);  // BF.RESERVE takes no expansion with NONSCALING, yet it is recorded
    } else {
      const std::string rate = text_of(wish.rate);
      api::Replicate(context, "BF.RESERVE", "sblcl", call.key(), rate.data(), rate.size(), wish.capacity, "EXPANSION",
                     wish.expansion);
    }
  }
  if (error != nullptr) return call.error(error);
  call.event("bloom.reserve");
  return call.ok();
}

int bf_add(Context* context, String** argv, int argc) noexcept {
  const Call call{context, argv, argc};
  return argc != 3 ? call.arity() : add(call, 2, {}, Missing::create, false);
}

int bf_madd(Context* context, String** argv, int argc) noexcept {
  const Call call{context, argv, argc};
  return argc < 3 ? call.arity() : add(call, 2, {}, Missing::create, true);
}

int bf_insert(Context* context, String** argv, int argc) noexcept {
  const Call call{context, argv, argc};
  if (argc < 4) return call.arity();
  Wish wish;
  Missing missing = Missing::create;
  for (int i = 2; i < argc; ++i) {
    if (call.is(i, "ITEMS")) {
      if (i + 1 == argc) return call.arity();
      if (wish.scales_to != 0 && (wish.fixed || wish.expansion == 0))
        return call.error("ERR cannot use NONSCALING and VALIDATESCALETO options together");
      return add(call, i + 1, wish, missing, true);
    }
    if (call.is(i, "NOCREATE")) {
      missing = Missing::error;
    } else if (call.is(i, "VALIDATESCALETO")) {  // of valkey-bloom
      if (++i == argc) return call.arity();
      if (!call.integer(i, wish.scales_to) || wish.scales_to < 1) return call.error("Bad capacity");
    } else if (call.is(i, "NONSCALING")) {
      wish.fixed = true;
    } else if (call.is(i, "CAPACITY")) {
      if (++i == argc) return call.arity();
      if (!call.integer(i, wish.capacity) || !wish.capacity_fits()) return call.error("Bad capacity");
    } else if (call.is(i, "ERROR")) {
      if (++i == argc) return call.arity();
      if (!call.real(i, wish.rate) || !wish.rate_fits(call.context)) return call.error("Bad error rate");
    } else if (call.is(i, "EXPANSION")) {
      if (++i == argc) return call.arity();
      if (!call.integer(i, wish.expansion) || !wish.expansion_fits()) return call.error("Bad expansion");
    } else {
      return call.error("Unknown argument received");
    }
  }
  return call.arity();
}

int bf_advance(Context* context, String** argv, int argc) noexcept {
  const Call call{context, argv, argc};
  if (argc != 3) return call.arity();
  const OpenedKey key(call, kReadKey | kWriteKey);
  if (key.missing()) return call.error(kNotFound);
  Window* const value = key.get<Window>();
  if (value == nullptr) return call.error(kWrongType);
  long long time = 0;
  if (!call.integer(2, time) || time < 0) return call.error("ERR bad time");
  // Nobody may send a primary's windows into the future: all items would be gone.
  if (!call.obeyed()) time = std::min(time, static_cast<long long>(now()));
  if (value->chain.by_time() && value->chain.advance(static_cast<std::uint64_t>(time))) {
    value->settle();
    api::Replicate(context, "BF.ADVANCE", "sl", call.key(), time);
  }
  return call.ok();
}

int bf_exists(Context* context, String** argv, int argc) noexcept {
  const Call call{context, argv, argc};
  if (argc != 3) return call.arity();
  const OpenedKey key(call, kReadKey);
  bool found = false;
  visit(key, [&](const auto& value) {
    const auto& asked = as_of_now(call, value.chain);
    found = asked.may_contain(asked.hash(call.bytes(2)));
  });
  return call.truth(found);
}

int bf_mexists(Context* context, String** argv, int argc) noexcept {
  const Call call{context, argv, argc};
  if (argc < 3) return call.arity();
  const OpenedKey key(call, kReadKey);
  const auto reply = [&](const auto& value) {
    const auto& asked = as_of_now(call, value.chain);
    reply_exists(call, 2, &asked);
  };
  return visit(key, reply) ? kOk : reply_exists<redisbloom::BloomChain>(call, 2, nullptr);
}

int bf_card(Context* context, String** argv, int argc) noexcept {
  const Call call{context, argv, argc};
  if (argc != 2) return call.arity();
  const OpenedKey key(call, kReadKey);
  if (key.missing()) return call.number(0);
  return with_filter(call, key, [&](const auto& value) { call.number(items(value.chain)); });
}

int bf_info(Context* context, String** argv, int argc) noexcept {
  const Call call{context, argv, argc};
  if (argc != 2 && argc != 3) return call.arity();
  const OpenedKey key(call, kReadKey);
  return with_filter(call, key, [&](const auto& value) {
    const auto& chain = value.chain;
    if (argc == 2) {
      call.map(5);
      call.field("Capacity", capacity(chain));
      call.field("Size", size_of(chain));
      call.field("Number of filters", filters(chain));
      call.field("Number of items inserted", items(chain));
      call.word("Expansion rate");
      return reply_expansion(call, chain);
    }
    // One field: alone in an array, or in RESP3 under its name in a map.
    const auto one = [&](const char* name) {
      if (!call.resp3()) return call.array(1);
      call.map(1);
      return call.word(name);
    };
    if (call.is(2, "CAPACITY")) return one("Capacity"), call.number(capacity(chain));
    if (call.is(2, "SIZE")) return one("Size"), call.number(size_of(chain));
    if (call.is(2, "FILTERS")) return one("Number of filters"), call.number(filters(chain));
    if (call.is(2, "ITEMS")) return one("Number of items inserted"), call.number(items(chain));
    if (call.is(2, "EXPANSION")) return one("Expansion rate"), reply_expansion(call, chain);
    // What RedisBloom does not tell.
    if (call.is(2, "ERROR")) return one("Error rate"), call.real(rate_asked(chain));
    if (call.is(2, "TIGHTENING")) return one("Tightening ratio"), call.real(redisbloom::BloomChain::kTightening);
    if (call.is(2, "MAXSCALEDCAPACITY")) return one("Max scaled capacity"), call.number(most_capacity(chain));
    if (call.is(2, "FPR")) return one("False positive rate now"), call.real(rate_now(chain));
    if (call.is(2, "HEADROOM")) return one("Items before it grows"), call.number(headroom(chain));
    return call.error("Invalid information value");
  });
}

int bf_scandump(Context* context, String** argv, int argc) noexcept {
  const Call call{context, argv, argc};
  if (argc != 3) return call.arity();
  const OpenedKey key(call, kReadKey);
  return with_filter(call, key, [&](const auto& value) {
    long long iterator = 0;
    if (!call.integer(2, iterator)) return call.error("Second argument must be numeric");
    call.array(2);
    if (iterator == 0) {
      call.number(1);
      return call.bulk(Bytes(value.chain.header()));
    }
    const auto at = static_cast<std::uint64_t>(iterator) - 1;
    const auto table = iterator < 0 ? std::span<std::byte>() : value.chain.from(at);
    const auto chunk = table.first(std::min<std::uint64_t>(table.size(), redisbloom::kChunkBytes));
    call.number(chunk.empty() ? 0 : 1 + at + chunk.size());
    return call.bulk(Bytes(chunk));
  });
}

int bf_loadchunk(Context* context, String** argv, int argc) noexcept {
  const Call call{context, argv, argc};
  if (argc != 4) return call.arity();
  long long iterator = 0;
  if (!call.integer(2, iterator)) return call.error("ERR Second argument must be numeric");
  const Bytes data = call.bytes(3);
  OpenedKey key(call, kReadKey | kWriteKey);
  const char* error = nullptr;
  if (key.missing()) {
    if (iterator != 1) return call.error(kNotFound);
    const Budget budget(context, 0);
    const auto install = [&]<class V>(Owned<V> value) {
      if (value == nullptr || !parse(value->chain, data)) {
        error = budget.refused() ? kOverLimit : kBadData;
        return;
      }
      value->settle();
      key.set(value.release());
    };
    const std::string_view text(reinterpret_cast<const char*>(data.data()), data.size());
    constexpr std::size_t kOptions = 12;  // where they are in the header of a chain
    if (text.starts_with(WindowFilter::kMagic)) {
      install(Owned<Window>(Window::make()));
    } else if (data.size() > kOptions && (std::to_integer<unsigned>(data[kOptions]) & BloomNumbers::kLine) != 0) {
      install(Owned<Line>(Line::make()));
    } else {
      install(Owned<Bloom>(Bloom::make()));
    }
  } else {
    const bool known = visit(key, [&](const auto& value) {
      if (iterator <= 0 || static_cast<std::uint64_t>(iterator) < data.size()) {
        error = kBadData;
        return;
      }
      const auto table = value.chain.from(static_cast<std::uint64_t>(iterator) - data.size() - 1);
      if (table.empty()) {
        error = "ERR invalid offset - no link found";
      } else if (data.size() > table.size()) {
        error = "ERR invalid chunk - Too big for current filter";
      } else {
        std::copy(data.begin(), data.end(), table.begin());
      }
    });
    if (!known) error = kWrongType;
  }
  if (error != nullptr) return call.error(error);
  api::ReplicateVerbatim(context);
  call.event("bloom.loadchunk");
  return call.ok();
}

int bf_debug(Context* context, String** argv, int argc) noexcept {
  const Call call{context, argv, argc};
  if (argc != 2) return call.arity();
  const OpenedKey key(call, kReadKey);
  return with_filter(call, key, [&](const auto& value) { debug(call, value.chain); });
}

// BF.MERGE destination numkeys source [source ..]: the destination becomes the union of itself, if it is there, and of
// the sources. Missing sources are empty sets.
int bf_merge(Context* context, String** argv, int argc) noexcept {
  const Call call{context, argv, argc};
  long long count = 0;
  if (argc < 4) return call.arity();
  const bool counted = call.integer(2, count) && count >= 1 && count <= argc - 3;
  // Redis 7.0 routes by asking the command where its keys are; its key specs are for clients.
  if (api::IsKeysPositionRequest(context) != 0) {
    api::KeyAtPos(context, 1);
    for (int i = 3; counted && i < 3 + count; ++i) api::KeyAtPos(context, i);
    return kOk;
  }
  if (!counted) return call.error("ERR bad number of keys");
  if (count != argc - 3) return call.error("ERR syntax error");
  OpenedKey key(call, kReadKey | kWriteKey);
  bool lines = key.get<Line>() != nullptr;
  for (int i = 3; i < argc && key.missing(); ++i) lines |= OpenedKey(context, argv[i], kReadKey).get<Line>() != nullptr;
  if (!key.missing() && !lines && key.get<Bloom>() == nullptr) return call.error(kWrongType);
  return lines ? merge<Line>(call, key) : merge<Bloom>(call, key);
}

}  // namespace perhaps::redis
