// The callbacks of the types: RDB files, append-only files, COPY, DEBUG DIGEST, MEMORY USAGE, lazy freeing and
// defragmentation. One template over the types; redisbloom/redisbloom.h and valkey_bloom.h describe the bytes.
#include <algorithm>

#include "redis/values.h"

namespace perhaps::redis {
namespace {

using redisbloom::Block;
using redisbloom::BloomChain;
using redisbloom::CuckooChain;
using redisbloom::LineChain;

// The server's stream, as load() reads it. Strings arrive in memory of the server's allocator and become the tables.
class Loader {
 public:
  Loader(Io* io, Budget& budget) noexcept : io_(io), budget_(budget) {}
  std::uint64_t number() noexcept { return failed() ? 0 : api::LoadUnsigned(io_); }
  double real() noexcept { return failed() ? 0 : api::LoadDouble(io_); }
  Block block() noexcept {
    if (failed()) return {};
    std::size_t size = 0;
    char* const at = api::LoadStringBuffer(io_, &size);
    if (at != nullptr && size == 0) api::Free(at);
    if (at == nullptr || size == 0) return {};
    const Block block{reinterpret_cast<std::byte*>(at), size};
    if (budget_.accepts(size)) return block;
    give(block);
    return {};
  }
  void give(Block block) noexcept { kServer.give(block.at); }
  bool failed() const noexcept { return api::IsIOError(io_) != 0; }

 private:
  Io* io_;
  Budget& budget_;
};

class Saver {
 public:
  explicit Saver(Io* io) noexcept : io_(io) {}
  void number(std::uint64_t value) noexcept { api::SaveUnsigned(io_, value); }
  void real(double value) noexcept { api::SaveDouble(io_, value); }
  void block(Block block) noexcept { api::SaveStringBuffer(io_, reinterpret_cast<const char*>(block.at), block.size); }

 private:
  Io* io_;
};

// What differs from type to type.
template <class Chain>
struct Names;
template <>
struct Names<BloomChain> {
  static constexpr const char* type = "MBbloom--";
  static constexpr int encoding = redisbloom::Link::kEncoding;
  static constexpr const char* load_chunk = "BF.LOADCHUNK";
};
template <>
struct Names<CuckooChain> {
  static constexpr const char* type = "MBbloomCF";
  static constexpr int encoding = redisbloom::kEncoding;
  static constexpr const char* load_chunk = "CF.LOADCHUNK";
};
template <>
struct Names<LineChain> {
  static constexpr const char* type = "perhapsLB";
  static constexpr int encoding = redisbloom::LineLink::kEncoding;
  static constexpr const char* load_chunk = "BF.LOADCHUNK";
};
template <>
struct Names<WindowFilter> {
  static constexpr const char* type = "perhapsWF";
  static constexpr int encoding = WindowFilter::kEncoding;
  static constexpr const char* load_chunk = "BF.LOADCHUNK";
};

template <>
struct Names<GrowingFilter> {
  static constexpr const char* type = "perhapsGF";
  static constexpr int encoding = GrowingFilter::kEncoding;
  static constexpr const char* load_chunk = "BF.LOADCHUNK";
};
template <>
struct Names<ValkeyFilter> {
  static constexpr const char* type = "bloomfltr";
  static constexpr int encoding = ValkeyFilter::kEncoding;
};

// valkey-bloom's, see valkey_bloom.h.
Result<void> load(Loader& in, std::string_view format, int encoding, ValkeyFilter& filter) {
  using format::bad;
  if (encoding != ValkeyFilter::kEncoding) return bad(Errc::bad_version, format, "encoding ", encoding);
  const std::uint64_t count = in.number();
  const std::uint64_t expansion = in.number();
  filter.rate = in.real();
  filter.tightening = in.real();
  filter.random_seed = in.number() == 1;
  if (in.failed()) return bad(Errc::truncated, format, "ends in its first numbers");
  if (count == 0 || count > ValkeyFilter::kMaxLinks) return bad(Errc::bad_parameter, format, count, " links");
  if (expansion > UINT32_MAX) return bad(Errc::bad_parameter, format, "expansion ", expansion);
  if (const char* const wrong = filter.check_numbers()) return bad(Errc::bad_parameter, format, wrong);
  filter.expansion = static_cast<std::uint32_t>(expansion);
  for (std::uint64_t i = 0; i < count; ++i) {
    ValkeyFilter::Link link;
    link.capacity = in.number();
    link.items = i + 1 == count ? in.number() : link.capacity;
    const Block block = in.block();
    if (block.at == nullptr) return bad(Errc::truncated, format, "no block for link ", i);
    if (!filter.parse_block({block.at, block.size}, link)) {
      in.give(block);
      return bad(Errc::bad_parameter, format, "the block of link ", i);
    }
    if (!filter.append(link, block.at)) return bad(Errc::full, format, "no memory for ", i + 1, " links");
  }
  return {};
}
void save(Saver& out, const ValkeyFilter& filter) {
  out.number(filter.links().size());
  out.number(filter.expansion);
  out.real(filter.rate);
  out.real(filter.tightening);
  out.number(filter.random_seed ? 1 : 0);
  for (const ValkeyFilter::Link& link : filter.links()) {
    out.number(link.capacity);
    if (&link == &filter.newest()) out.number(link.items);
    out.block({link.block, link.block_bytes()});
  }
}

// Of one table: its header and the table.
template <class Filter>
Result<void> load_table(Loader& in, std::string_view format, Filter& filter) {
  using format::bad;
  const Block header = in.block();
  const bool parsed = header.at != nullptr && filter.parse_header({header.at, header.size});
  in.give(header);
  if (!parsed) return bad(Errc::bad_parameter, format, "no header");
  const Block table = in.block();
  if (table.at == nullptr || table.size != filter.table_bytes()) {
    in.give(table);
    return bad(Errc::bad_parameter, format, filter.table_bytes(), " bytes promised, and there are ", table.size);
  }
  if (filter.take_table(table.at)) return {};
  in.give(table);
  return bad(Errc::bad_parameter, format, "the table contradicts its header");
}
Result<void> load(Loader& in, std::string_view format, int encoding, WindowFilter& filter) {
  using format::bad;
  if (encoding > WindowFilter::kEncoding) return bad(Errc::bad_version, format, "encoding ", encoding);
  if (encoding < WindowFilter::kEncoding)
    return bad(Errc::bad_version, format, "encoding ", encoding, ": ", redisbloom::kOldHash);
  return load_table(in, format, filter);
}
Result<void> load(Loader& in, std::string_view format, int encoding, GrowingFilter& filter) {
  if (encoding != GrowingFilter::kEncoding) return format::bad(Errc::bad_version, format, "encoding ", encoding);
  return load_table(in, format, filter);
}
template <class Filter>
void save_table(Saver& out, const Filter& filter) {
  redisbloom::Buffer header = filter.header();
  out.block({header.data(), header.size()});
  const auto table = filter.from(0);
  out.block({table.data(), table.size()});
}
void save(Saver& out, const WindowFilter& filter) { save_table(out, filter); }
void save(Saver& out, const GrowingFilter& filter) { save_table(out, filter); }

template <class L>
std::uint64_t tables(const redisbloom::Chain<L>& chain) noexcept {
  return chain.links().size();
}
std::uint64_t tables(const CuckooChain& chain) noexcept { return chain.filters().size(); }
std::uint64_t tables(const WindowFilter&) noexcept { return 1; }
std::uint64_t tables(const GrowingFilter&) noexcept { return 1; }
std::uint64_t tables(const ValkeyFilter& filter) noexcept { return filter.links().size(); }
template <class L, class Move>
void move_list(redisbloom::Chain<L>& chain, Move move) noexcept {
  chain.move_links(move);
}
template <class Move>
void move_list(WindowFilter&, Move) noexcept {}
template <class Move>
void move_list(GrowingFilter&, Move) noexcept {}
template <class Move>
void move_list(ValkeyFilter& filter, Move move) noexcept {
  filter.move_links(move);
}
template <class Move>
void move_list(CuckooChain& chain, Move move) noexcept {
  chain.move_filters(move);
}

template <class Chain>
void* rdb_load(Io* io, int encoding) noexcept {
  using V = Value<Chain>;
  Budget budget(nullptr, 0);  // RESTORE is limited; RDB files and what a primary sends are not
  Owned<V> value(V::make());
  if (value == nullptr) return nullptr;
  Loader in(io, budget);
  using redisbloom::load;
  if (const auto loaded = load(in, Names<Chain>::type, encoding, value->chain); !loaded) {
    refusals.bad_data += !budget.refused();
    api::Log(nullptr, "warning", "%s", budget.refused() ? kOverLimit : loaded.error().detail.c_str());
    return nullptr;
  }
  value->settle();
  return value.release();
}

template <class Chain>
void rdb_save(Io* io, void* at) noexcept {
  Saver out(io);
  using redisbloom::save;
  save(out, static_cast<Value<Chain>*>(at)->chain);
}

// The tables of a new filter are zero, so chunks of zeros are left out.
template <class Chain>
void aof_rewrite(Io* io, String* key, void* at) noexcept {
  const Chain& chain = static_cast<Value<Chain>*>(at)->chain;
  const char* const command = Names<Chain>::load_chunk;
  const redisbloom::Buffer header = chain.header();
  api::EmitAOF(io, command, "slb", key, 1LL, reinterpret_cast<const char*>(header.data()), header.size());
  const std::uint64_t size = chain.table_bytes();
  for (std::uint64_t from = 0; from < size;) {
    const auto table = chain.from(from);
    const auto chunk = table.first(std::min<std::uint64_t>(table.size(), redisbloom::kChunkBytes));
    from += chunk.size();
    if (std::ranges::all_of(chunk, [](std::byte b) { return b == std::byte{0}; })) continue;
    api::EmitAOF(io, command, "slb", key, static_cast<long long>(1 + from), reinterpret_cast<const char*>(chunk.data()),
                 chunk.size());
  }
}

template <>
void aof_rewrite<ValkeyFilter>(Io* io, String* key, void* at) noexcept {
  const redisbloom::Buffer data = static_cast<Valkey*>(at)->chain.encode();
  api::EmitAOF(io, "BF.LOAD", "sb", key, reinterpret_cast<const char*>(data.data()), data.size());
}

template <class Chain>
std::size_t mem_usage(const void* at) noexcept {
  return size_of(static_cast<const Value<Chain>*>(at)->chain);
}

template <class Chain>
void digest(DigestSink* sink, void* at) noexcept {
  const Chain& chain = static_cast<Value<Chain>*>(at)->chain;
  const redisbloom::Buffer header = chain.header();
  api::DigestAddStringBuffer(sink, reinterpret_cast<const char*>(header.data()), header.size());
  const std::uint64_t size = chain.table_bytes();
  for (std::uint64_t from = 0; from < size;) {
    const auto table = chain.from(from);
    api::DigestAddStringBuffer(sink, reinterpret_cast<const char*>(table.data()), table.size());
    from += table.size();
  }
  api::DigestEndSequence(sink);
}

template <class Chain>
void free_value(void* at) noexcept {
  Value<Chain>::destroy(static_cast<Value<Chain>*>(at));
}

// Above 64 the server frees in another thread: count pages.
template <class Chain>
std::size_t free_effort(String*, const void* at) noexcept {
  const Chain& chain = static_cast<const Value<Chain>*>(at)->chain;
  return tables(chain) + chain.table_bytes() / 4096;
}

template <class Chain>
void* copy(String*, String*, const void* at) noexcept {
  using V = Value<Chain>;
  const Chain& chain = static_cast<const V*>(at)->chain;
  Budget budget(nullptr, 0);
  Owned<V> twin(budget.reserve(tables_of(chain)) ? V::make() : nullptr);
  if (twin == nullptr || !chain.copy_to(twin->chain)) return nullptr;
  twin->settle();
  return twin.release();
}

// The cursor counts tables. A call moves one at least, so that it comes to an end, and stops when its time is up.
template <class Chain>
int defrag(DefragContext* context, String*, void** at) noexcept {
  using V = Value<Chain>;
  if (std::is_same_v<Chain, ValkeyFilter> && !settings.bloom_defrag_enabled) return 0;
  const auto move = [&](std::byte* block) {
    auto* const now = static_cast<std::byte*>(api::DefragAlloc(context, block));
    V::totals.moved += now != nullptr;
    return now;
  };
  unsigned long next = 0;
  if (api::DefragCursorGet(context, &next) != kOk) next = 0;
  if (next == 0) {
    if (std::byte* const now = move(static_cast<std::byte*>(*at))) *at = now;
    move_list(static_cast<V*>(*at)->chain, move);
  }
  Chain& chain = static_cast<V*>(*at)->chain;
  for (const unsigned long first = next; next < tables(chain); ++next) {
    if (next != first && api::DefragShouldStop(context) != 0) {
      api::DefragCursorSet(context, next);
      return 1;
    }
    chain.move_table(next, move);
  }
  return 0;
}

template <class Chain>
bool create(Context* context) noexcept {
  TypeMethods methods{.rdb_load = rdb_load<Chain>,
                      .rdb_save = rdb_save<Chain>,
                      .aof_rewrite = aof_rewrite<Chain>,
                      .mem_usage = mem_usage<Chain>,
                      .digest = digest<Chain>,
                      .free = free_value<Chain>,
                      .free_effort = free_effort<Chain>,
                      .copy = copy<Chain>,
                      .defrag = defrag<Chain>};
  Value<Chain>::type = api::CreateDataType(context, Names<Chain>::type, Names<Chain>::encoding, &methods);
  return Value<Chain>::type != nullptr;
}

}  // namespace

bool create_types(Context* context) noexcept {
  return create<BloomChain>(context) && create<CuckooChain>(context) && create<LineChain>(context) &&
         create<WindowFilter>(context) && create<GrowingFilter>(context) && create<ValkeyFilter>(context);
}

}  // namespace perhaps::redis
