// BF.EXISTS, BF.MEXISTS, BF.CARD, BF.INFO, BF.DEBUG: what does not change a filter.
#include "redis/bloom_kinds.h"
#include "redis/commands.h"

namespace perhaps::redis {

using namespace bloom;

namespace {

// What a query reads: the filter itself, or a window without the items that expired by the clock of a primary.
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
template <class C>
const C& as_of_now(const Call&, const C& chain) noexcept {
  return chain;
}
WindowNow as_of_now(const Call& call, const WindowFilter& filter) noexcept {
  const bool clock = filter.by_time() && (api::GetContextFlags(call.context) & kReplica) == 0;
  return {filter, clock ? filter.late(now()) : 0};
}

// RedisBloom replies 0 for a key of another type, valkey-bloom an error.
bool hides_type(bool known, const OpenedKey& key) noexcept { return known || key.missing() || !settings.valkey; }

// An array in both protocols; one field is a bare value.
template <class C>
int valkey_info(const Call& call, const C& chain) {
  if (call.argc == 2) {
    call.array(grows(chain) ? 16 : 12);
    call.field("Capacity", capacity(chain));
    call.field("Size", size_of(chain));
    call.field("Number of filters", filters(chain));
    call.field("Number of items inserted", items(chain));
    call.word("Error rate");
    call.real(rate_asked(chain));
    call.word("Expansion rate");
    reply_expansion(call, chain);
    if (!grows(chain)) return kOk;
    call.word("Tightening ratio");
    call.real(tightening(chain));
    call.field("Max scaled capacity", max_capacity(call, chain));
    return kOk;
  }
  if (call.is(2, "CAPACITY")) return call.number(capacity(chain));
  if (call.is(2, "SIZE")) return call.number(size_of(chain));
  if (call.is(2, "FILTERS")) return call.number(filters(chain));
  if (call.is(2, "ITEMS")) return call.number(items(chain));
  if (call.is(2, "ERROR")) return call.real(rate_asked(chain));
  if (call.is(2, "EXPANSION")) return reply_expansion(call, chain);
  if (call.is(2, "TIGHTENING") && grows(chain)) return call.real(tightening(chain));
  if (call.is(2, "MAXSCALEDCAPACITY") && grows(chain)) return call.number(max_capacity(call, chain));
  return call.error("ERR invalid information value");
}

}  // namespace

int bf_exists(Context* context, String** argv, int argc) noexcept {
  const Call call{context, argv, argc};
  if (argc != 3) return call.arity();
  const OpenedKey key(call, kReadKey);
  bool found = false;
  const bool known = visit(key, [&](const auto& value) {
    const auto& asked = as_of_now(call, value.chain);
    found = asked.may_contain(asked.hash(call.bytes(2)));
  });
  return hides_type(known, key) ? call.truth(found) : call.error(kWrongType);
}

int bf_mexists(Context* context, String** argv, int argc) noexcept {
  const Call call{context, argv, argc};
  if (argc < 3) return call.arity();
  const OpenedKey key(call, kReadKey);
  const auto reply = [&](const auto& value) {
    const auto& asked = as_of_now(call, value.chain);
    reply_exists(call, 2, &asked);
  };
  if (visit(key, reply)) return kOk;
  return hides_type(false, key) ? reply_exists<redisbloom::BloomChain>(call, 2, nullptr) : call.error(kWrongType);
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
    if (settings.valkey) return valkey_info(call, chain);
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
    // Fields that RedisBloom does not have.
    if (call.is(2, "ERROR")) return one("Error rate"), call.real(rate_asked(chain));
    if (call.is(2, "TIGHTENING")) return one("Tightening ratio"), call.real(tightening(chain));
    if (call.is(2, "MAXSCALEDCAPACITY")) return one("Max scaled capacity"), call.number(max_capacity(call, chain));
    if (call.is(2, "FPR")) return one("False positive rate now"), call.real(rate_now(chain));
    if (call.is(2, "HEADROOM")) return one("Items before it grows"), call.number(headroom(chain));
    return call.error("Invalid information value");
  });
}

int bf_debug(Context* context, String** argv, int argc) noexcept {
  const Call call{context, argv, argc};
  if (argc != 2) return call.arity();
  const OpenedKey key(call, kReadKey);
  return with_filter(call, key, [&](const auto& value) { debug(call, value.chain); });
}

}  // namespace perhaps::redis
