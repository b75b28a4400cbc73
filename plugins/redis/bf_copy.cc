// BF.SCANDUMP, BF.LOADCHUNK and our own BF.MERGE: whole filters at once.
#include "redis/bloom_kinds.h"
#include "redis/commands.h"

namespace perhaps::redis {

using namespace bloom;

namespace {

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
    if (value != nullptr && value != into && &value->chain != like) changed |= into->chain.merge(value->chain);
  }
  if (!changed) return call.ok();
  into->settle();
  api::ReplicateVerbatim(call.context);
  call.event("bloom.merge");
  return call.ok();
}

// The union is made beside the destination, which it replaces once nothing more can fail.
int merge_growing(const Call& call, OpenedKey& key) {
  Growing* const into = key.get<Growing>();
  Budget budget(call.context, 0);
  GrowingFilter merged(kServer);
  const auto failed = [&](const char* otherwise) { return call.error(budget.refused() ? kOverLimit : otherwise); };
  for (int i = 3; i < call.argc; ++i) {
    const OpenedKey source(call.context, call.argv[i], kReadKey);
    if (!source.missing() && source.get<Growing>() == nullptr) return call.error(kWrongType);
  }
  bool changed = false;
  for (int i = 2; i < call.argc; ++i) {
    const OpenedKey source(call.context, call.argv[i == 2 ? 1 : i], kReadKey);
    const Growing* const value = source.get<Growing>();
    if (value == nullptr || (i != 2 && value == into)) continue;
    if (!merged.has_table()) {
      if (!budget.reserve(tables_of(value->chain)) || !value->chain.copy_to(merged)) return failed(kNoMemoryToCreate);
    } else if (const auto done = merged.merge(value->chain); !done) {
      return failed(("ERR " + done.error().detail).c_str());
    }
    changed |= value != into;
  }
  if (!merged.has_table()) return call.error(kNotFound);
  if (!changed) return call.ok();
  if (into != nullptr) {
    into->chain.swap(merged);
    into->settle();
  } else {
    Owned<Growing> value(Growing::make());
    if (value == nullptr) return failed(kNoMemoryToCreate);
    value->chain.swap(merged);
    value->settle();
    key.set(value.release());
  }
  api::ReplicateVerbatim(call.context);
  call.event("bloom.merge");
  return call.ok();
}

}  // namespace

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
    const auto options = format::Reader(data.subspan(std::min(data.size(), kOptions))).le<std::uint32_t>();
    if (text.starts_with(WindowFilter::kMagic1) || (options & ~BloomNumbers::kFixed) == BloomNumbers::kLine1) {
      error = kOldHash;
    } else if (text.starts_with(WindowFilter::kMagic)) {
      install(Owned<Window>(Window::make()));
    } else if (text.starts_with(GrowingFilter::kMagic)) {
      install(Owned<Growing>(Growing::make()));
    } else if (redisbloom::LineLink::options_fit(options)) {
      install(Owned<Line>(Line::make()));
    } else {
      install(Owned<Bloom>(Bloom::make()));
    }
  } else {
    const bool known = visit_chunked(key, [&](auto& value) {
      if (iterator <= 0 || static_cast<std::uint64_t>(iterator) < data.size()) {
        error = kBadData;
        return;
      }
      const std::uint64_t at = static_cast<std::uint64_t>(iterator) - data.size() - 1;
      const auto table = value.chain.from(at);
      if (table.empty()) {
        error = "ERR invalid offset - no link found";
      } else if (data.size() > table.size()) {
        error = "ERR invalid chunk - Too big for current filter";
      } else if (!accepts(value.chain, at, data)) {
        error = kBadData;
      } else {
        std::copy(data.begin(), data.end(), table.begin());
        value.settle();
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
  bool growing = key.get<Growing>() != nullptr;
  for (int i = 3; i < argc && key.missing(); ++i) {
    const OpenedKey source(context, argv[i], kReadKey);
    lines |= source.get<Line>() != nullptr;
    growing |= source.get<Growing>() != nullptr;
  }
  if (growing) return merge_growing(call, key);
  if (!key.missing() && !lines && key.get<Bloom>() == nullptr) return call.error(kWrongType);
  return lines ? merge<Line>(call, key) : merge<Bloom>(call, key);
}

}  // namespace perhaps::redis
