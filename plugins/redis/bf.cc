// BF.*: Bloom filters, as RedisBloom answers.
#include <cmath>
#include <cstdio>

#include "redis/batch.h"
#include "redis/commands.h"

namespace perhaps::redis {
namespace {

using redisbloom::Added;
using redisbloom::BloomChain;
using redisbloom::Link;
using redisbloom::LinkNumbers;

constexpr const char* kFull = "ERR non scaling filter is full";
constexpr const char* kNotInserted = "ERR problem inserting into filter";
constexpr const char* kBadData = "ERR received bad data";

// What a new filter is made of.
struct Wish {
  double rate = settings.bf_error_rate;
  long long capacity = settings.bf_initial_size;
  long long expansion = settings.bf_expansion_factor;
  bool fixed = false;

  bool rate_fits() noexcept {
    if (!(rate > 0 && rate < 1)) return false;
    rate = std::min(rate, kMostRate);
    return true;
  }
  bool capacity_fits() const noexcept { return capacity >= 1 && capacity <= kMostCapacity; }
  bool expansion_fits() const noexcept { return expansion >= 0 && expansion <= kMostExpansion; }
};

// Null: `error` says why.
Bloom* create(const Wish& wish, const Budget& budget, OpenedKey& key, const char*& error) noexcept {
  Owned<Bloom> value(Bloom::make());
  LinkNumbers first;
  error = "ERR could not create filter";
  if (value != nullptr) {
    BloomChain& chain = value->chain;
    chain.growth = static_cast<std::uint32_t>(wish.expansion);
    if (wish.fixed || wish.expansion == 0) chain.options |= BloomChain::kFixed;
    if (!BloomChain::first_numbers(static_cast<std::uint64_t>(wish.capacity), wish.rate, chain.options, first))
      return nullptr;
    if (chain.append(first)) {
      value->settle();
      key.set(value.get());
      return value.release();
    }
  }
  error = budget.refused() ? kOverLimit : kNoMemoryToCreate;
  return nullptr;
}

// Replicas and the log are told everything that made it, whatever their own settings are.
void replicate_new(const Call& call, const Wish& wish, Changed& items) {
  const std::string rate = text_of(wish.rate);
  if (wish.fixed) {
    api::Replicate(call.context, "BF.INSERT", "sclcbclccv", call.key(), "CAPACITY", wish.capacity, "ERROR", rate.data(),
                   rate.size(), "EXPANSION", wish.expansion, "NONSCALING", "ITEMS", items.items(), items.size());
  } else {
    api::Replicate(call.context, "BF.INSERT", "sclcbclcv", call.key(), "CAPACITY", wish.capacity, "ERROR", rate.data(),
                   rate.size(), "EXPANSION", wish.expansion, "ITEMS", items.items(), items.size());
  }
}

enum class Missing : bool { error, create };

int add(const Call& call, int first, const Wish& wish, Missing missing, bool many) {
  OpenedKey key(call, kReadKey | kWriteKey);
  Bloom* value = key.get<Bloom>();
  if (value == nullptr && !key.missing()) return call.error(kWrongType);
  const bool fresh = value == nullptr;
  if (fresh && missing == Missing::error) return call.error(kNotFound);
  Budget budget(call.context, fresh ? 0 : size_of(value->chain));
  if (fresh) {
    const char* error = nullptr;
    value = create(wish, budget, key, error);
    if (value == nullptr) return call.error(error);
  }
  BloomChain& chain = value->chain;
  const auto items = static_cast<std::uint64_t>(call.argc - first);
  // A filter that cannot grow stops at the first item that has no room; only then is the length not known.
  const bool may_stop =
      chain.fixed() && chain.newest().entries - std::min(chain.newest().entries, chain.newest().size) < items;
  if (many) api::ReplyWithArray(call.context, may_stop ? kLengthLater : static_cast<long>(items));
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
      changed.note(from + static_cast<int>(i), added == Added::added);
      ++replies;
      switch (added) {
        case Added::added:
        case Added::present:
          call.truth(added == Added::added);
          break;
        case Added::full:
          call.error(kFull);
          stopped = true;
          break;
        case Added::no_memory:
          call.error(budget.refused() ? kOverLimit : kNotInserted);
          break;
      }
    }
  });
  if (many && may_stop) api::ReplySetArrayLength(call.context, static_cast<long>(replies));
  if (fresh) call.event("bloom.reserve");
  if (fresh) {
    replicate_new(call, wish, changed);
  } else if (changed.verbatim()) {
    api::ReplicateVerbatim(call.context);
  } else if (!changed.none()) {
    api::Replicate(call.context, "BF.MADD", "sv", call.key(), changed.items(), changed.size());
  }
  if (changed.none()) return kOk;
  value->settle();
  call.event("bloom.add");
  return kOk;
}

// Null and an error told unless the key holds a filter.
Bloom* open_or_tell(const Call& call, const OpenedKey& key) noexcept {
  if (key.missing()) {
    call.error(kNotFound);
    return nullptr;
  }
  Bloom* const value = key.get<Bloom>();
  if (value == nullptr) call.error(kWrongType);
  return value;
}

// The rate at which strange items are answered for, by the bits as they are.
double rate_now(const BloomChain& chain) noexcept {
  double pass = 1;
  for (const Link& link : chain.links())
    pass *= 1 - std::pow(format::fill_of({link.table, link.bytes()}, link.modulus.value), link.hashes);
  return 1 - pass;
}

// The capacity it can grow to under the limit on bytes.
std::uint64_t most_capacity(const BloomChain& chain) noexcept {
  if (chain.fixed()) return chain.capacity();
  const auto limit = static_cast<std::uint64_t>(settings.bf_max_bytes_per_key);
  const std::uint64_t room = limit == 0 ? redisbloom::kMostBytes : limit;
  std::uint64_t bytes = size_of(chain);
  std::uint64_t capacity = chain.capacity();
  LinkNumbers last = chain.newest();
  for (;;) {
    std::uint64_t entries = 0;
    LinkNumbers next;
    if (__builtin_mul_overflow(last.entries, std::uint64_t{chain.growth}, &entries) ||
        !next.size_for(entries, last.error * BloomChain::kTightening, chain.options) ||
        (bytes += next.bytes()) > room) {
      return capacity;
    }
    capacity += next.entries;
    last = next;
  }
}

}  // namespace

int bf_reserve(Context* context, String** argv, int argc) noexcept {
  const Call call{context, argv, argc};
  if (argc < 4 || argc > 7) return call.arity();
  Wish wish;
  if (!call.real(2, wish.rate)) return call.error("ERR bad error rate");
  if (!wish.rate_fits()) return call.error("ERR error rate must be in the range (0.000000, 1.000000)");
  if (!call.integer(3, wish.capacity)) return call.error("ERR bad capacity");
  if (!wish.capacity_fits()) return call.error("ERR capacity must be in the range [1, 1073741824]");
  bool expands = false;
  for (int i = 4; i < argc; ++i) {
    if (call.is(i, "NONSCALING")) wish.fixed = true;
    if (!call.is(i, "EXPANSION")) continue;
    if (++i == argc) return call.error("ERR no expansion");
    if (!call.integer(i, wish.expansion)) return call.error("ERR bad expansion");
    expands = true;
  }
  if (expands && wish.fixed && wish.expansion != 0) return call.error("Nonscaling filters cannot expand");
  if (!wish.expansion_fits()) return call.error("ERR expansion must be in the range [0, 32768]");

  OpenedKey key(call, kReadKey | kWriteKey);
  if (!key.missing()) return call.error(key.get<Bloom>() != nullptr ? kExists : kWrongType);
  Budget budget(context, 0);
  const char* error = nullptr;
  const Bloom* const value = create(wish, budget, key, error);
  if (value == nullptr) return call.error(error);
  if (wish.fixed) {
    // BF.RESERVE takes no expansion with NONSCALING, yet the filter records one: its header says all.
    const redisbloom::Buffer header = value->chain.header();
    api::Replicate(context, "BF.LOADCHUNK", "slb", call.key(), 1LL, reinterpret_cast<const char*>(header.data()),
                   header.size());
  } else {
    const std::string rate = text_of(wish.rate);
    api::Replicate(context, "BF.RESERVE", "sblcl", call.key(), rate.data(), rate.size(), wish.capacity, "EXPANSION",
                   wish.expansion);
  }
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
    if (call.is(i, "ITEMS")) return i + 1 == argc ? call.arity() : add(call, i + 1, wish, missing, true);
    if (call.is(i, "NOCREATE")) {
      missing = Missing::error;
    } else if (call.is(i, "NONSCALING")) {
      wish.fixed = true;
    } else if (call.is(i, "CAPACITY")) {
      if (++i == argc) return call.arity();
      if (!call.integer(i, wish.capacity) || !wish.capacity_fits()) return call.error("Bad capacity");
    } else if (call.is(i, "ERROR")) {
      if (++i == argc) return call.arity();
      if (!call.real(i, wish.rate) || !wish.rate_fits()) return call.error("Bad error rate");
    } else if (call.is(i, "EXPANSION")) {
      if (++i == argc) return call.arity();
      if (!call.integer(i, wish.expansion) || !wish.expansion_fits()) return call.error("Bad expansion");
    } else {
      return call.error("Unknown argument received");
    }
  }
  return call.arity();
}

int bf_exists(Context* context, String** argv, int argc) noexcept {
  const Call call{context, argv, argc};
  if (argc != 3) return call.arity();
  const OpenedKey key(call, kReadKey);
  const Bloom* const value = key.get<Bloom>();
  return call.truth(value != nullptr && value->chain.may_contain(value->chain.hash(call.bytes(2))));
}

int bf_mexists(Context* context, String** argv, int argc) noexcept {
  const Call call{context, argv, argc};
  if (argc < 3) return call.arity();
  const OpenedKey key(call, kReadKey);
  const Bloom* const value = key.get<Bloom>();
  return reply_exists(call, 2, value == nullptr ? nullptr : &value->chain);
}

int bf_card(Context* context, String** argv, int argc) noexcept {
  const Call call{context, argv, argc};
  if (argc != 2) return call.arity();
  const OpenedKey key(call, kReadKey);
  if (key.missing()) return call.number(0);
  const Bloom* const value = open_or_tell(call, key);
  return value == nullptr ? kOk : call.number(value->chain.size);
}

int bf_info(Context* context, String** argv, int argc) noexcept {
  const Call call{context, argv, argc};
  if (argc != 2 && argc != 3) return call.arity();
  const OpenedKey key(call, kReadKey);
  const Bloom* const value = open_or_tell(call, key);
  if (value == nullptr) return kOk;
  const BloomChain& chain = value->chain;
  const auto expansion = [&] { return chain.fixed() ? call.null() : call.number(chain.growth); };
  if (argc == 2) {
    call.map(5);
    call.field("Capacity", chain.capacity());
    call.field("Size", size_of(chain));
    call.field("Number of filters", chain.links().size());
    call.field("Number of items inserted", chain.size);
    call.word("Expansion rate");
    return expansion();
  }
  // One field: alone in an array, or in RESP3 under its name in a map.
  const auto one = [&](const char* name) {
    if (!call.resp3()) return call.array(1);
    call.map(1);
    return call.word(name);
  };
  if (call.is(2, "CAPACITY")) return one("Capacity"), call.number(chain.capacity());
  if (call.is(2, "SIZE")) return one("Size"), call.number(size_of(chain));
  if (call.is(2, "FILTERS")) return one("Number of filters"), call.number(chain.links().size());
  if (call.is(2, "ITEMS")) return one("Number of items inserted"), call.number(chain.size);
  if (call.is(2, "EXPANSION")) return one("Expansion rate"), expansion();
  // What RedisBloom does not tell.
  const auto asked = chain.links()[0].error * (chain.fixed() ? 1 : 2);
  if (call.is(2, "ERROR")) return one("Error rate"), api::ReplyWithDouble(context, asked);
  if (call.is(2, "TIGHTENING")) return one("Tightening ratio"), api::ReplyWithDouble(context, BloomChain::kTightening);
  if (call.is(2, "MAXSCALEDCAPACITY")) return one("Max scaled capacity"), call.number(most_capacity(chain));
  if (call.is(2, "FPR")) return one("False positive rate now"), api::ReplyWithDouble(context, rate_now(chain));
  if (call.is(2, "HEADROOM")) {
    const Link& newest = chain.newest();
    return one("Items before it grows"), call.number(newest.entries - std::min(newest.entries, newest.size));
  }
  return call.error("Invalid information value");
}

int bf_scandump(Context* context, String** argv, int argc) noexcept {
  const Call call{context, argv, argc};
  if (argc != 3) return call.arity();
  const OpenedKey key(call, kReadKey);
  const Bloom* const value = open_or_tell(call, key);
  if (value == nullptr) return kOk;
  long long iterator = 0;
  if (!call.integer(2, iterator)) return call.error("Second argument must be numeric");
  call.array(2);
  if (iterator == 0) {
    call.number(1);
    return call.bulk(Bytes(value->chain.header()));
  }
  const auto table =
      iterator < 0 ? std::span<std::byte>() : value->chain.from(static_cast<std::uint64_t>(iterator - 1));
  const auto chunk = table.first(std::min<std::uint64_t>(table.size(), redisbloom::kChunkBytes));
  call.number(chunk.empty() ? 0 : static_cast<std::uint64_t>(iterator) + chunk.size());
  return call.bulk(Bytes(chunk));
}

int bf_loadchunk(Context* context, String** argv, int argc) noexcept {
  const Call call{context, argv, argc};
  if (argc != 4) return call.arity();
  long long iterator = 0;
  if (!call.integer(2, iterator)) return call.error("ERR Second argument must be numeric");
  const Bytes data = call.bytes(3);
  OpenedKey key(call, kReadKey | kWriteKey);
  if (key.missing()) {
    if (iterator != 1) return call.error(kNotFound);
    Budget budget(context, 0);
    Owned<Bloom> value(Bloom::make());
    if (value == nullptr) return call.error(kNoMemoryToCreate);
    const auto links = BloomChain::parse_header(data, "header", value->chain);
    if (!links) return call.error(kBadData);
    for (const LinkNumbers& link : *links)
      if (!value->chain.append(link)) return call.error(budget.refused() ? kOverLimit : kBadData);
    value->settle();
    key.set(value.release());
  } else {
    const Bloom* const value = open_or_tell(call, key);
    if (value == nullptr) return kOk;
    if (iterator <= 0 || static_cast<std::uint64_t>(iterator) < data.size()) return call.error(kBadData);
    const std::uint64_t at = static_cast<std::uint64_t>(iterator) - data.size() - 1;
    const auto table = value->chain.from(at);
    if (table.empty()) return call.error("ERR invalid offset - no link found");
    if (data.size() > table.size()) return call.error("ERR invalid chunk - Too big for current filter");
    std::copy(data.begin(), data.end(), table.begin());
  }
  api::ReplicateVerbatim(context);
  call.event("bloom.loadchunk");
  return call.ok();
}

int bf_debug(Context* context, String** argv, int argc) noexcept {
  const Call call{context, argv, argc};
  if (argc != 2) return call.arity();
  const OpenedKey key(call, kReadKey);
  const Bloom* const value = open_or_tell(call, key);
  if (value == nullptr) return kOk;
  call.array(1 + value->chain.links().size());
  call.bulk("size:" + std::to_string(value->chain.size));
  for (const Link& link : value->chain.links()) {
    std::array<char, 32> ratio;
    std::snprintf(ratio.data(), ratio.size(), "%g", link.error);
    call.bulk("bytes:" + std::to_string(link.bytes()) + " bits:" + std::to_string(link.bits) +
              " hashes:" + std::to_string(link.hashes) + " hashwidth:64 capacity:" + std::to_string(link.entries) +
              " size:" + std::to_string(link.size) + " ratio:" + ratio.data());
  }
  return kOk;
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
  Bloom* into = key.get<Bloom>();
  if (into == nullptr && !key.missing()) return call.error(kWrongType);
  // All are looked at before anything changes.
  const BloomChain* like = into == nullptr ? nullptr : &into->chain;
  for (int i = 3; i < argc; ++i) {
    const OpenedKey source(context, argv[i], kReadKey);
    if (source.missing()) continue;
    const Bloom* const value = source.get<Bloom>();
    if (value == nullptr) return call.error(kWrongType);
    if (like == nullptr) like = &value->chain;
    if (const std::string_view field = like->differs_from(value->chain); !field.empty())
      return call.error(("ERR filters differ in " + std::string(field)).c_str());
  }
  if (like == nullptr) return call.error(kNotFound);
  if (into == nullptr) {
    Budget budget(context, 0);
    Owned<Bloom> value(Bloom::make());
    if (value == nullptr || !like->copy_to(value->chain))
      return call.error(budget.refused() ? kOverLimit : kNoMemoryToCreate);
    into = value.get();
    key.set(value.release());
  }
  for (int i = 3; i < argc; ++i) {
    const OpenedKey source(context, argv[i], kReadKey);
    const Bloom* const value = source.get<Bloom>();
    if (value != nullptr && value != into && &value->chain != like) into->chain.unite(value->chain);
  }
  into->settle();
  api::ReplicateVerbatim(context);
  call.event("bloom.merge");
  return call.ok();
}

}  // namespace perhaps::redis
