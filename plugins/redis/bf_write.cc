// BF.RESERVE, BF.ADD, BF.MADD, BF.INSERT with the replies of RedisBloom, and our own LAYOUT and WINDOW.
#include "redis/bloom_kinds.h"
#include "redis/commands.h"

namespace perhaps::redis {

using namespace bloom;

namespace {

// With all numbers of the new filter, so that the settings of replicas do not matter.
template <class C>
void replicate_new(const Call& call, const C&, const Wish& wish, String** items, std::size_t count) {
  const std::string rate = text_of(wish.rate);
  if (wish.fixed) {
    api::Replicate(call.context, "BF.INSERT", "sclcbclccv", call.key(), "CAPACITY", wish.capacity, "ERROR", rate.data(),
                   rate.size(), "EXPANSION", wish.expansion, "NONSCALING", "ITEMS", items, count);
  } else {
    api::Replicate(call.context, "BF.INSERT", "sclcbclcv", call.key(), "CAPACITY", wish.capacity, "ERROR", rate.data(),
                   rate.size(), "EXPANSION", wish.expansion, "ITEMS", items, count);
  }
}

// The header describes an empty filter completely.
template <class C>
void replicate_header(const Call& call, const C& chain) {
  const redisbloom::Buffer header = chain.header();
  api::Replicate(call.context, "BF.LOADCHUNK", "slb", call.key(), 1LL, reinterpret_cast<const char*>(header.data()),
                 header.size());
}

// On a primary: begins the generations of a window that are due, and replicates that.
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
  // RedisBloom sends a command that failed half way as it came. The writer's client was told; an error here would be
  // logged as critical, or end the server (propagation-error-behavior).
  if (budget.obeys()) return call.truth(added == Added::added);
  if (added == Added::full) ++refusals.full;
  switch (added) {
    case Added::added:
    case Added::present:
      return call.truth(added == Added::added);
    case Added::full:
      return call.error(kFull);
    case Added::no_memory:
      break;
  }
  return call.error(budget.refused()  ? kOverLimit
                    : settings.valkey ? "ERR false positive degrades to 0 on scale out"
                                      : kNotInserted);
}

// One item into an existing filter: add_items() without what only many items need.
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
  const bool stops = may_stop(chain, count) || settings.valkey;
  if (many) api::ReplyWithArray(call.context, stops ? kLengthLater : static_cast<long>(count));
  const bool ahead = prefetch_ahead(chain);
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
      stopped = added == Added::full || (settings.valkey && added == Added::no_memory);
    }
  });
  if (many && stops) api::ReplySetArrayLength(call.context, static_cast<long>(replies));
  if (made_from != nullptr) {
    call.event("bloom.reserve");
    replicate_new(call, chain, *made_from, changed.items(), changed.size());
  } else if (changed.verbatim()) {
    api::ReplicateVerbatim(call.context);
  } else if (!changed.none()) {
    api::Replicate(call.context, "BF.MADD", "sv", call.key(), changed.items(), changed.size());
  }
  if (changed.none()) return;
  value.settle();
  call.event("bloom.add");
}

}  // namespace

int bloom::add(const Call& call, int first, const Wish& wish, Missing missing, bool many) {
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
  if (wish.scales_to != 0 && !wish.valkey && !call.obeyed() && !reaches(wish, budget))
    return call.error("ERR provided VALIDATESCALETO causes bloom object to exceed memory limit");
  const char* error = nullptr;
  const auto fill = [&](auto* value) {
    if (value != nullptr) add_items(call, first, *value, &wish, many, budget);
  };
  if (wish.valkey) {
    fill(create<Valkey>(wish, budget, key, error));
  } else {
    fill(create<Bloom>(wish, budget, key, error));
  }
  return error != nullptr ? call.error(error) : kOk;
}

int bf_reserve(Context* context, String** argv, int argc) noexcept {
  const Call call{context, argv, argc};
  if (settings.valkey && !call.obeyed()) return valkey_reserve(call);
  if (argc < 4) return call.arity();
  Wish wish;
  bool expands = false;
  bool unknown = false;
  int most = 7;
  // Only our own options make a command longer than RedisBloom allows.
  for (int i = 4; i < argc; ++i) most += call.is(i, "LAYOUT") || call.is(i, "WINDOW") ? 3 : 0;
  if (argc > most) return call.arity();
  if (!call.real(2, wish.rate)) return call.error("ERR bad error rate");
  if (!wish.rate_fits(call)) return call.error("ERR error rate must be in the range (0.000000, 1.000000)");
  if (!call.integer(3, wish.capacity)) return call.error("ERR bad capacity");
  if (!wish.capacity_fits(call)) return call.error("ERR capacity must be in the range [1, 1073741824]");
  for (int i = 4; i < argc; ++i) {
    if (call.is(i, "NONSCALING")) {
      wish.fixed = true;
    } else if (call.is(i, "EXPANSION") && !expands) {  // the first counts
      if (++i == argc) return call.error("ERR no expansion");
      if (!call.integer(i, wish.expansion)) return call.error("ERR bad expansion");
      expands = true;
    } else if (call.is(i, "LAYOUT")) {
      if (++i == argc || !(call.is(i, "LINE") || call.is(i, "GROWING")))
        return call.error("ERR layout must be LINE or GROWING");
      (call.is(i, "LINE") ? wish.line : wish.growing) = true;
    } else if (call.is(i, "WINDOW")) {
      if (++i == argc || !call.integer(i, wish.window) || wish.window < 1 || wish.window > (1LL << 40))
        return call.error("ERR window must be in the range [1, 1099511627776]");
      wish.seconds = i + 1 < argc && call.is(i + 1, "SECONDS");
      i += wish.seconds;
    } else {
      unknown = true;  // RedisBloom ignores it; after WINDOW a misspelt SECONDS must not
    }
  }
  if ((unknown && (wish.line || wish.growing || wish.window != 0)) || (wish.line && wish.growing))
    return call.error("ERR syntax error");
  if (expands && wish.fixed && wish.expansion != 0) return call.error("Nonscaling filters cannot expand");
  if (!wish.expansion_fits(call)) return call.error("ERR expansion must be in the range [0, 32768]");
  if (wish.window != 0 && (expands || wish.fixed || wish.line || wish.growing))
    return call.error("ERR a window takes no EXPANSION, NONSCALING or LAYOUT");
  if (wish.growing && (expands || wish.fixed))
    return call.error("ERR a growing filter takes no EXPANSION or NONSCALING");

  OpenedKey key(call, kReadKey | kWriteKey);
  if (!key.missing()) return call.error(visit(key, [](auto&) {}) ? kExists : kWrongType);
  const Budget budget(context, 0);
  const char* error = nullptr;
  if (wish.window != 0) {
    wish.time = now();  // read once: replicas must begin in the same generation
    if (const Window* const value = create<Window>(wish, budget, key, error)) {
      replicate_header(call, value->chain);
      if (wish.seconds) api::Replicate(context, "BF.ADVANCE", "sl", call.key(), static_cast<long long>(wish.time));
    }
  } else if (wish.growing) {
    if (const Growing* const value = create<Growing>(wish, budget, key, error)) replicate_header(call, value->chain);
  } else if (wish.line) {
    if (const Line* const value = create<Line>(wish, budget, key, error)) replicate_header(call, value->chain);
  } else if (const Bloom* const value = create<Bloom>(wish, budget, key, error)) {
    if (wish.fixed) {
      replicate_header(call, value->chain);  // BF.RESERVE takes no EXPANSION with NONSCALING, but dumps contain it
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

namespace {

enum class Word : std::uint8_t { unknown, items, nocreate, nonscaling, capacity, error, expansion, scales_to };

// RedisBloom tells the words of BF.INSERT apart by their letters, so its replicas and append-only files may have
// `I` for ITEMS. Clients must write words in full.
Word insert_word(const Call& call, int i, bool obeyed) noexcept {
  if (call.is(i, "VALIDATESCALETO")) return Word::scales_to;  // of valkey-bloom
  if (obeyed) {
    switch (call.letter(i, 0)) {
      case 'i':
        return Word::items;
      case 'c':
        return Word::capacity;
      case 'e':
        return call.letter(i, 1) == 'r' ? Word::error : Word::expansion;
      case 'n':
        return call.letter(i, 2) == 'c' ? Word::nocreate : Word::nonscaling;
      default:
        return Word::unknown;
    }
  }
  return call.is(i, "ITEMS")        ? Word::items
         : call.is(i, "NOCREATE")   ? Word::nocreate
         : call.is(i, "NONSCALING") ? Word::nonscaling
         : call.is(i, "CAPACITY")   ? Word::capacity
         : call.is(i, "ERROR")      ? Word::error
         : call.is(i, "EXPANSION")  ? Word::expansion
                                    : Word::unknown;
}

}  // namespace

int bf_insert(Context* context, String** argv, int argc) noexcept {
  const Call call{context, argv, argc};
  // Only valkey-bloom sends SEED, so such a stream has its grammar.
  const bool obeyed = call.obeyed();
  bool seeded = false;
  for (int i = 2; obeyed && i < argc && !seeded && !call.is(i, "ITEMS"); ++i) seeded = call.is(i, "SEED");
  if (seeded || (settings.valkey && !obeyed)) return valkey_insert(call);
  if (argc < 4) return call.arity();
  Wish wish;
  Missing missing = Missing::create;
  for (int i = 2; i < argc; ++i) {
    const Word word = insert_word(call, i, obeyed);
    if (word >= Word::capacity && ++i == argc) return call.arity();  // those have a value
    switch (word) {
      case Word::items:
        if (i + 1 == argc) return call.arity();
        if (wish.scales_to != 0 && (wish.fixed || wish.expansion == 0))
          return call.error("ERR cannot use NONSCALING and VALIDATESCALETO options together");
        return add(call, i + 1, wish, missing, true);
      case Word::nocreate:
        missing = Missing::error;
        break;
      case Word::nonscaling:
        wish.fixed = true;
        break;
      case Word::capacity:
        if (!call.integer(i, wish.capacity) || !wish.capacity_fits(call)) return call.error("Bad capacity");
        break;
      case Word::error:
        if (!call.real(i, wish.rate) || !wish.rate_fits(call)) return call.error("Bad error rate");
        break;
      case Word::expansion:
        if (!call.integer(i, wish.expansion) || !wish.expansion_fits(call)) return call.error("Bad expansion");
        break;
      case Word::scales_to:
        if (!call.integer(i, wish.scales_to) || wish.scales_to < 1) return call.error("Bad capacity");
        break;
      case Word::unknown:
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
  // A client must not move a primary's window into the future: all items would expire.
  if (!call.obeyed()) time = std::min(time, static_cast<long long>(now()));
  if (value->chain.by_time() && value->chain.advance(static_cast<std::uint64_t>(time))) {
    value->settle();
    api::Replicate(context, "BF.ADVANCE", "sl", call.key(), time);
  }
  return call.ok();
}

}  // namespace perhaps::redis
