// BF.*: Bloom filters with the replies of RedisBloom, and our own extensions: LAYOUT LINE, WINDOW, BF.MERGE.
#include "redis/bloom_kinds.h"
#include "redis/commands.h"

namespace perhaps::redis {

using namespace bloom;

namespace {

// ----------------------------------------------------------------------------------------------------------- adding

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

namespace {

// ---------------------------------------------------------------------------------------------------------- merging

template <class V>
int merge(const Call& call, OpenedKey& key) {
  V* into = key.get<V>();
  // All filters are compared before anything changes.
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
    Budget budget(call.context, 0);
    Owned<V> value(budget.reserve(tables_of(*like)) ? V::make() : nullptr);
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

// ------------------------------------------------------------------------------------------------------------ INFO

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
      if (++i == argc || !call.is(i, "LINE")) return call.error("ERR layout must be LINE");
      wish.line = true;
    } else if (call.is(i, "WINDOW")) {
      if (++i == argc || !call.integer(i, wish.window) || wish.window < 1 || wish.window > (1LL << 40))
        return call.error("ERR window must be in the range [1, 1099511627776]");
      wish.seconds = i + 1 < argc && call.is(i + 1, "SECONDS");
      i += wish.seconds;
    } else {
      unknown = true;  // RedisBloom ignores it; after WINDOW a misspelt SECONDS must not
    }
  }
  if (unknown && (wish.line || wish.window != 0)) return call.error("ERR syntax error");
  if (expands && wish.fixed && wish.expansion != 0) return call.error("Nonscaling filters cannot expand");
  if (!wish.expansion_fits(call)) return call.error("ERR expansion must be in the range [0, 32768]");
  if (wish.window != 0 && (expands || wish.fixed || wish.line))
    return call.error("ERR a window takes no EXPANSION, NONSCALING or LAYOUT");

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

namespace {
// RedisBloom replies 0 for a key of another type, valkey-bloom an error.
bool hides_type(bool known, const OpenedKey& key) noexcept { return known || key.missing() || !settings.valkey; }
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

int bf_scandump(Context* context, String** argv, int argc) noexcept {
  const Call call{context, argv, argc};
  if (argc != 3) return call.arity();
  const OpenedKey key(call, kReadKey);
  if (key.missing()) return call.error(kNotFound);
  const bool known = visit_chunked(key, [&](const auto& value) {
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
  return known ? kOk : call.error(kWrongType);
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
    Budget budget(context, 0);
    const auto install = [&]<class V>(Owned<V> value) {
      if (value == nullptr || !parse(value->chain, data, budget)) {
        error = budget.refused() ? kOverLimit : kBadData;
        return;
      }
      value->settle();
      key.set(value.release());
    };
    const std::string_view text(reinterpret_cast<const char*>(data.data()), data.size());
    constexpr std::size_t kOptions = 12;  // where they are in the header of a chain
    const auto options = data.size() > kOptions ? std::to_integer<unsigned>(data[kOptions]) : 0;
    if (text.starts_with(WindowFilter::kMagic1) || (options & BloomNumbers::kLine1) != 0) {
      error = kOldHash;
    } else if (text.starts_with(WindowFilter::kMagic)) {
      install(Owned<Window>(Window::make()));
    } else if ((options & BloomNumbers::kLine) != 0) {
      install(Owned<Line>(Line::make()));
    } else {
      install(Owned<Bloom>(Bloom::make()));
    }
  } else {
    const bool known = visit_chunked(key, [&](const auto& value) {
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
  if (error != nullptr) {
    refusals.bad_data += error != kOverLimit && error != kWrongType;
    return call.error(error);
  }
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

// BF.MERGE destination numkeys source [source ..]: the destination becomes the union of the sources and of itself, if
// it exists. Missing sources are empty sets.
int bf_merge(Context* context, String** argv, int argc) noexcept {
  const Call call{context, argv, argc};
  long long count = 0;
  if (argc < 4) return call.arity();
  const bool counted = call.integer(2, count) && count >= 1 && count <= argc - 3;
  // Redis 7.0 calls the command to find its keys; the key specs are only for clients.
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
