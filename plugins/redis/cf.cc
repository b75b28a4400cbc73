// CF.*: cuckoo filters with the replies of RedisBloom.
#include "redis/batch.h"
#include "redis/commands.h"

namespace perhaps::redis {
namespace {

using redisbloom::Added;
using redisbloom::CuckooChain;

// The numbers of a new filter.
struct Wish {
  long long capacity = settings.cf_initial_size;
  long long bucket_size = settings.cf_bucket_size;
  long long max_iterations = settings.cf_max_iterations;
  long long expansion = settings.cf_expansion_factor;
};

// Null: `error` says why.
Cuckoo* create(const Wish& wish, const Budget& budget, OpenedKey& key, const char*& error) noexcept {
  Owned<Cuckoo> value(Cuckoo::make());
  error = kNoMemoryToCreate;
  if (value != nullptr) {
    CuckooChain& chain = value->chain;
    chain.bucket_size = static_cast<std::uint16_t>(wish.bucket_size);
    chain.max_iterations = static_cast<std::uint16_t>(wish.max_iterations);
    chain.expansion = static_cast<std::uint16_t>(wish.expansion);
    chain.size_for(static_cast<std::uint64_t>(wish.capacity));
    if (chain.append()) {
      value->settle();
      key.set(value.get());
      return value.release();
    }
  }
  if (budget.refused()) error = kOverLimit;
  return nullptr;
}

// With all numbers, so that the settings of replicas do not matter.
void replicate_new(const Call& call, const Wish& wish) {
  api::Replicate(call.context, "CF.RESERVE", "slclclcl", call.key(), wish.capacity, "BUCKETSIZE", wish.bucket_size,
                 "MAXITERATIONS", wish.max_iterations, "EXPANSION", wish.expansion);
  call.event("cuckoo.reserve");
}

struct Adding {
  bool only_new = false;
  bool many = false;
  bool create = true;
};

int add(const Call& call, int first, const Wish& wish, Adding how) {
  OpenedKey key(call, kReadKey | kWriteKey);
  Cuckoo* value = key.get<Cuckoo>();
  if (value == nullptr && !key.missing()) return call.error(kWrongType);
  const bool fresh = value == nullptr;
  if (fresh && !how.create) return call.error(kNotFound);
  Budget budget(call.context, fresh ? 0 : value->share.bytes);
  if (fresh) {
    const char* error = nullptr;
    value = create(wish, budget, key, error);
    if (value == nullptr) return call.error(error);
    replicate_new(call, wish);
  }
  CuckooChain& chain = value->chain;
  if (chain.filters().size() >= static_cast<std::uint64_t>(settings.cf_max_expansions) && !call.obeyed()) {
    refusals.full += static_cast<std::uint64_t>(call.argc - first);
    return call.error("Maximum expansions reached");
  }
  if (how.many) call.array(static_cast<std::uint64_t>(call.argc - first));
  const bool ahead = prefetch_ahead(chain);
  Changed changed(call, first);
  in_batches(call, first, chain, [&](int from, auto hashes) {
    if (ahead && hashes.size() > 1)
      for (const auto& h : hashes) chain.prefetch(h);
    for (std::size_t i = 0; i < hashes.size(); ++i) {
      const Added added = how.only_new ? chain.add_new(hashes[i]) : chain.add(hashes[i]);
      changed.note(from + static_cast<int>(i), added == Added::added);
      const bool failed = added == Added::full || added == Added::no_memory;
      if (added == Added::full) ++refusals.full;
      if (budget.obeys()) {
        call.truth(added == Added::added);  // what failed here failed on the primary, and its client was told
      } else if (!how.many && added == Added::full) {
        call.error("Filter is full");
      } else if (failed && budget.refused()) {
        call.error(kOverLimit);
      } else if (!how.many && added == Added::no_memory) {
        call.error("ERR Insufficient memory");
      } else if (how.many && how.only_new) {
        call.signed_number(failed ? -1 : added == Added::added);
      } else if (how.many && failed && !call.resp3()) {
        call.signed_number(-1);
      } else {
        call.truth(added == Added::added);
      }
    }
  });
  if (changed.none()) return kOk;
  value->settle();
  if (changed.verbatim() && !fresh) {
    api::ReplicateVerbatim(call.context);
  } else if (how.many) {
    api::Replicate(call.context, "CF.INSERT", "sccv", call.key(), "NOCREATE", "ITEMS", changed.items(), changed.size());
  } else {
    api::Replicate(call.context, "CF.ADD", "ss", call.key(), changed.items()[0]);
  }
  call.event("cuckoo.add");
  return kOk;
}

// No upper limit for what a primary or an append-only file says: RedisBloom 2 has none.
bool capacity_fits(const Call& call, long long capacity, long long bucket_size) noexcept {
  return capacity >= 2 * bucket_size && (capacity <= kMaxCapacity || call.obeyed());
}

int insert(const Call& call, Adding how) {
  if (call.argc < 4) return call.arity();
  Wish wish;
  // RedisBloom reads no more than the first letter of a word. Clients must write words in full.
  const bool by_letter = call.obeyed();
  const auto is = [&](int i, std::string_view word) {
    return by_letter ? call.letter(i, 0) == (word[0] | 32) : call.is(i, word);
  };
  for (int i = 2; i < call.argc; ++i) {
    if (is(i, "ITEMS")) return i + 1 == call.argc ? call.arity() : add(call, i + 1, wish, how);
    if (is(i, "NOCREATE")) {
      how.create = false;
    } else if (is(i, "CAPACITY")) {
      if (++i == call.argc) return call.arity();
      if (!call.integer(i, wish.capacity)) return call.error("Bad capacity");
      if (!capacity_fits(call, wish.capacity, settings.cf_bucket_size))
        return call.error("Capacity must be in the range [cf-bucket-size * 2, 1073741824]");
    } else {
      return call.error("Unknown argument received");
    }
  }
  return call.arity();
}

// Null, after an error reply, unless the key holds a cuckoo filter.
Cuckoo* open_or_tell(const Call& call, const OpenedKey& key) noexcept {
  Cuckoo* const value = key.get<Cuckoo>();
  if (value == nullptr) call.error(key.missing() ? kNotFound : kWrongType);
  return value;
}

int bad_data(const Call& call, const char* text) noexcept {
  ++refusals.bad_data;
  return call.error(text);
}

}  // namespace

int cf_reserve(Context* context, String** argv, int argc) noexcept {
  const Call call{context, argv, argc};
  if (argc < 3 || argc % 2 == 0) return call.arity();
  Wish wish;
  if (!call.integer(2, wish.capacity)) return call.error("Bad capacity");
  struct Option {
    std::string_view name;
    long long* value;
    long long least;
    long long most;
    const char* not_a_number;
    const char* out_of_range;
  };
  // Checked in this order, whatever their order in the command. An option may stand anywhere after the capacity; the
  // first one counts.
  const Option options[] = {
      {"MAXITERATIONS", &wish.max_iterations, 1, 65535, "Couldn't parse MAXITERATIONS",
       "MAXITERATIONS: value must be in the range [1, 65535]"},
      {"BUCKETSIZE", &wish.bucket_size, 1, 255, "Couldn't parse BUCKETSIZE",
       "BUCKETSIZE: value must be in the range [1, 255]"},
      {"EXPANSION", &wish.expansion, 0, kMaxExpansion, "Couldn't parse EXPANSION",
       "EXPANSION: value must be in the range [0, 32768]"},
  };
  for (const Option& option : options) {
    int i = 3;
    while (i < argc && !call.is(i, option.name)) ++i;
    if (i == argc) continue;
    if (i + 1 == argc || !call.integer(i + 1, *option.value)) return call.error(option.not_a_number);
    if (*option.value < option.least || *option.value > option.most) return call.error(option.out_of_range);
  }
  if (!capacity_fits(call, wish.capacity, wish.bucket_size))
    return call.error("Capacity must be in the range [2 * BUCKETSIZE, 1073741824]");

  OpenedKey key(call, kReadKey | kWriteKey);
  if (!key.missing()) return call.error(key.get<Cuckoo>() != nullptr ? kExists : kWrongType);
  Budget budget(context, 0);
  const char* error = nullptr;
  if (create(wish, budget, key, error) == nullptr) return call.error(error);
  replicate_new(call, wish);
  return call.ok();
}

int cf_add(Context* context, String** argv, int argc) noexcept {
  const Call call{context, argv, argc};
  return argc != 3 ? call.arity() : add(call, 2, {}, {});
}

int cf_addnx(Context* context, String** argv, int argc) noexcept {
  const Call call{context, argv, argc};
  return argc != 3 ? call.arity() : add(call, 2, {}, {.only_new = true});
}

int cf_insert(Context* context, String** argv, int argc) noexcept {
  return insert({context, argv, argc}, {.many = true});
}

int cf_insertnx(Context* context, String** argv, int argc) noexcept {
  return insert({context, argv, argc}, {.only_new = true, .many = true});
}

int cf_exists(Context* context, String** argv, int argc) noexcept {
  const Call call{context, argv, argc};
  if (argc != 3) return call.arity();
  const OpenedKey key(call, kReadKey);
  const Cuckoo* const value = key.get<Cuckoo>();
  return call.truth(value != nullptr && value->chain.may_contain(CuckooChain::hash(call.bytes(2))));
}

int cf_mexists(Context* context, String** argv, int argc) noexcept {
  const Call call{context, argv, argc};
  if (argc < 3) return call.arity();
  const OpenedKey key(call, kReadKey);
  const Cuckoo* const value = key.get<Cuckoo>();
  return reply_exists(call, 2, value == nullptr ? nullptr : &value->chain);
}

int cf_count(Context* context, String** argv, int argc) noexcept {
  const Call call{context, argv, argc};
  if (argc != 3) return call.arity();
  const OpenedKey key(call, kReadKey);
  const Cuckoo* const value = key.get<Cuckoo>();
  return call.number(value == nullptr ? 0 : value->chain.count(CuckooChain::hash(call.bytes(2))));
}

int cf_del(Context* context, String** argv, int argc) noexcept {
  const Call call{context, argv, argc};
  if (argc != 3) return call.arity();
  const OpenedKey key(call, kReadKey | kWriteKey);
  Cuckoo* const value = key.get<Cuckoo>();
  if (value == nullptr) return call.error("Not found");
  const bool erased = value->chain.erase(CuckooChain::hash(call.bytes(2)));
  if (erased) {
    value->settle();
    api::ReplicateVerbatim(context);
    call.event("cuckoo.del");
  }
  return call.truth(erased);
}

int cf_compact(Context* context, String** argv, int argc) noexcept {
  const Call call{context, argv, argc};
  if (argc != 2) return call.arity();
  const OpenedKey key(call, kReadKey | kWriteKey);
  Cuckoo* const value = key.get<Cuckoo>();
  if (value == nullptr) return call.error("Cuckoo filter was not found");
  if (value->chain.compact(true)) {
    value->settle();
    api::ReplicateVerbatim(context);
    call.event("cuckoo.compact");
  }
  return call.ok();
}

int cf_info(Context* context, String** argv, int argc) noexcept {
  const Call call{context, argv, argc};
  if (argc != 2) return call.arity();
  const OpenedKey key(call, kReadKey);
  const Cuckoo* const value = open_or_tell(call, key);
  if (value == nullptr) return kOk;
  const CuckooChain& chain = value->chain;
  call.map(8);
  call.field("Size", size_of(chain));
  call.field("Number of buckets", chain.buckets);
  call.field("Number of filters", chain.filters().size());
  call.field("Number of items inserted", chain.items);
  call.field("Number of items deleted", chain.deletes);
  call.field("Bucket size", chain.bucket_size);
  call.field("Expansion rate", chain.expansion);
  call.field("Max iterations", chain.max_iterations);
  return kOk;
}

int cf_scandump(Context* context, String** argv, int argc) noexcept {
  const Call call{context, argv, argc};
  if (argc != 3) return call.arity();
  long long iterator = 0;
  if (!call.integer(2, iterator) || iterator < 0) return call.error("Invalid position");
  const OpenedKey key(call, kReadKey);
  const Cuckoo* const value = open_or_tell(call, key);
  if (value == nullptr) return kOk;
  const CuckooChain& chain = value->chain;
  call.array(2);
  if (iterator == 0 && chain.items != 0) {
    call.number(1);
    return call.bulk(Bytes(chain.header()));
  }
  const auto table = chain.items == 0 ? std::span<std::byte>() : chain.from(static_cast<std::uint64_t>(iterator - 1));
  const auto chunk = table.first(std::min<std::uint64_t>(table.size(), redisbloom::kChunkBytes));
  call.number(chunk.empty() ? 0 : static_cast<std::uint64_t>(iterator) + chunk.size());
  return chunk.empty() ? call.null() : call.bulk(Bytes(chunk));
}

int cf_loadchunk(Context* context, String** argv, int argc) noexcept {
  const Call call{context, argv, argc};
  if (argc != 4) return call.arity();
  long long iterator = 0;
  if (!call.integer(2, iterator) || iterator == 0) return call.error("Invalid position");
  const Bytes data = call.bytes(3);
  OpenedKey key(call, kReadKey | kWriteKey);
  if (iterator == 1) {
    if (!key.missing()) return call.error(key.get<Cuckoo>() != nullptr ? kExists : kWrongType);
    if (data.size() != CuckooChain::kHeaderBytes) return bad_data(call, "Invalid header");
    Budget budget(context, 0);
    Owned<Cuckoo> value(Cuckoo::make());
    if (value == nullptr) return call.error(kNoMemoryToCreate);
    const auto filters = CuckooChain::parse_header(data, "header", value->chain);
    if (!filters) return bad_data(call, "Couldn't create filter!");
    Need need;
    for (std::uint64_t i = 0; i < *filters; ++i) need.add(value->chain.bytes_of(i));
    if (!budget.reserve(need)) return call.error(kOverLimit);
    for (std::uint64_t i = 0; i < *filters; ++i)
      if (!value->chain.append()) return call.error(budget.refused() ? kOverLimit : "Couldn't create filter!");
    value->settle();
    key.set(value.release());
  } else {
    const Cuckoo* const value = open_or_tell(call, key);
    if (value == nullptr) return kOk;
    const auto end = static_cast<std::uint64_t>(iterator) - 1;
    const auto table = iterator < 0 || data.empty() || data.size() > end ? std::span<std::byte>()
                                                                         : value->chain.from(end - data.size());
    if (table.empty() || data.size() > table.size()) return bad_data(call, "Couldn't load chunk!");
    std::copy(data.begin(), data.end(), table.begin());
  }
  api::ReplicateVerbatim(context);
  call.event("cuckoo.loadchunk");
  return call.ok();
}

int cf_debug(Context* context, String** argv, int argc) noexcept {
  const Call call{context, argv, argc};
  if (argc != 2) return call.arity();
  const OpenedKey key(call, kReadKey);
  const Cuckoo* const value = open_or_tell(call, key);
  if (value == nullptr) return kOk;
  const CuckooChain& chain = value->chain;
  return call.bulk("bktsize:" + std::to_string(chain.bucket_size) + " buckets:" + std::to_string(chain.buckets) +
                   " items:" + std::to_string(chain.items) + " deletes:" + std::to_string(chain.deletes) + " filters:" +
                   std::to_string(chain.filters().size()) + " max_iterations:" + std::to_string(chain.max_iterations) +
                   " expansion:" + std::to_string(chain.expansion));
}

}  // namespace perhaps::redis
