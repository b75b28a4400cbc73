// redisbloom-bf, redisbloom-cf: the filters of RedisBloom, as in the replies of its dump commands and in RDB values.
//
//   stream  the replies of SCANDUMP, one frame per call: u64 LE iterator | u64 LE length | bytes
//           the first frame is the header and has iterator 1; the others are the tables in order, at most 16 MiB per
//           frame, never across two tables, with iterator 1 + bytes of tables so far
//   dump    the reply of DUMP, or the value alone, as in an .rdb file (redis_rdb.h)
//   redisbloom.h has the rules of the filters themselves
#include <cmath>

#include "format/classic.h"
#include "format/redis_rdb.h"
#include "format/registry.h"
#include "redisbloom/redisbloom.h"

namespace perhaps::format {
namespace {

using redisbloom::BloomChain;
using redisbloom::BloomHash;
using redisbloom::CuckooChain;
using redisbloom::CuckooHash;
using redisbloom::kHeap;
using redisbloom::Link;
using redisbloom::LinkNumbers;
using redisbloom::SubFilter;

constexpr double kMaxRate = 0.25;  // higher rates are capped to this

template <class Chain>
struct About;

template <>
struct About<BloomChain> {
  static constexpr std::string_view name = "redisbloom-bf";
  static constexpr std::string_view type = "MBbloom--";
  using Hash = BloomHash;

  static Result<void> lay_out(Bytes header, std::uint64_t room, BloomChain& chain) {
    auto links = BloomChain::parse_header(header, name, chain);
    if (!links) return std::move(links).error();
    std::uint64_t bytes = 0;
    for (const LinkNumbers& link : *links) bytes += link.bytes();
    if (bytes != room) return bad(Errc::truncated, name, "promises ", bytes, " bytes of tables, has ", room);
    for (const LinkNumbers& link : *links)
      if (!chain.append(link)) throw std::bad_alloc();
    return {};
  }
  static bool empty(const BloomChain&) noexcept { return false; }

  static Description describe(const BloomChain& chain) {
    Description d;
    d.family = "scalable";
    d.hash = "murmur64a";
    d.keys = chain.size;
    d.capacity = chain.capacity();
    d.probes = chain.newest().hashes;
    double set = 0;
    double pass = 1;
    double pass_full = 1;
    for (const Link& link : chain.links()) {
      const auto bits = static_cast<double>(link.modulus.value);
      const double fill = fill_of(Bytes(link.table, link.bytes()), link.modulus.value);
      set += fill * static_cast<double>(link.bits);
      d.bits += link.bits;
      if (fill < 1) d.keys_estimated += -std::log1p(-fill) * bits / link.hashes;
      pass *= 1 - std::pow(fill, link.hashes);
      const double full = -std::expm1(-static_cast<double>(link.hashes) * static_cast<double>(link.entries) / bits);
      pass_full *= 1 - std::pow(full, link.hashes);
    }
    d.fill = set / static_cast<double>(d.bits);
    d.fpr = 1 - pass;
    d.fpr_at_capacity = 1 - pass_full;
    d.more.emplace_back("links", std::to_string(chain.links().size()));
    d.more.emplace_back("expansion", chain.fixed() ? "none" : std::to_string(chain.growth));
    return d;
  }
};

template <>
struct About<CuckooChain> {
  static constexpr std::string_view name = "redisbloom-cf";
  static constexpr std::string_view type = "MBbloomCF";
  using Hash = CuckooHash;

  static Result<void> lay_out(Bytes header, std::uint64_t room, CuckooChain& chain) {
    const auto count = CuckooChain::parse_header(header, name, chain);
    if (!count) return count.error();
    std::uint64_t bytes = 0;
    for (std::uint64_t i = 0; i < *count; ++i) bytes += chain.bytes_of(i);
    if (bytes != room) return bad(Errc::truncated, name, "promises ", bytes, " bytes of tables, has ", room);
    for (std::uint64_t i = 0; i < *count; ++i)
      if (!chain.append()) throw std::bad_alloc();
    return {};
  }
  // For a filter without items, SCANDUMP returns no data at all.
  static bool empty(const CuckooChain& chain) noexcept { return chain.items == 0; }

  static Description describe(const CuckooChain& chain) {
    Description d;
    d.family = "cuckoo";
    d.hash = "murmur64a";
    d.keys = chain.items;
    d.probes = 2;
    double pass = 1;
    for (std::uint64_t i = 0; i < chain.filters().size(); ++i) {
      const SubFilter& filter = chain.filters()[i];
      const std::uint64_t slots = chain.bytes_of(i);
      const auto used = static_cast<double>(
          slots - static_cast<std::uint64_t>(std::count(filter.table, filter.table + slots, std::byte{0})));
      d.keys_estimated += used;
      pass *= std::pow(1 - 1.0 / 255, 2 * used / static_cast<double>(filter.buckets));
    }
    d.capacity = chain.table_bytes();
    d.bits = 8 * chain.table_bytes();
    d.fill = d.keys_estimated / static_cast<double>(chain.table_bytes());
    d.fpr = 1 - pass;
    d.fpr_at_capacity =
        1 - std::pow(1 - 1.0 / 255, 2.0 * chain.bucket_size * static_cast<double>(chain.filters().size()));
    d.more.emplace_back("sub-filters", std::to_string(chain.filters().size()));
    d.more.emplace_back("bucket size", std::to_string(chain.bucket_size));
    d.more.emplace_back("expansion", chain.expansion == 0 ? "none" : std::to_string(chain.expansion));
    d.more.emplace_back("deleted", std::to_string(chain.deletes));
    return d;
  }
};

template <class Chain>
class ChainFilter final : public AnyFilter {
 public:
  using Kind = About<Chain>;
  explicit ChainFilter(std::shared_ptr<const Chain> chain) : chain_(std::move(chain)) {}

  using AnyFilter::may_contain;
  std::uint64_t may_contain(std::span<const Bytes> keys) const noexcept override {
    assert(keys.size() <= kBatch);
    std::array<typename Kind::Hash, kBatch> hashes;
    for (std::size_t i = 0; i < keys.size(); ++i) hashes[i] = chain_->hash(keys[i]);
    return chain_->may_contain(std::span(hashes).first(keys.size()), detail::far_away(byte_size()));
  }
  std::uint64_t byte_size() const noexcept override { return chain_->table_bytes(); }
  Description describe() const override {
    Description d = Kind::describe(*chain_);
    d.format = Kind::name;
    d.bytes = chain_->table_bytes();
    d.fpr = predicted_fpr(*this, d.fpr);
    return d;
  }

 private:
  std::shared_ptr<const Chain> chain_;
};

// Checks all frames of a stream before memory is allocated for the tables, then copies the tables.
template <class Chain>
Result<void> parse_stream(Bytes bytes, Chain& chain) {
  constexpr std::string_view name = About<Chain>::name;
  const auto frame = [](Reader& in, std::uint64_t& iterator) {
    iterator = in.le<std::uint64_t>();
    return in.take(in.le<std::uint64_t>());
  };
  std::uint64_t iterator = 0;
  std::uint64_t room = 0;
  Reader in(bytes);
  const Bytes header = frame(in, iterator);
  if (in.is_short()) return bad(Errc::truncated, name, "ends inside its header");
  if (iterator != 1) return bad(Errc::bad_magic, name, "begins with iterator ", iterator, ", not 1");
  const Reader tables = in;
  while (!in.rest().empty()) {
    const Bytes data = frame(in, iterator);
    if (in.is_short()) return bad(Errc::truncated, name, "ends inside a chunk after ", room, " bytes of tables");
    if (iterator == 0 && data.empty() && in.rest().empty()) break;  // the last reply of SCANDUMP
    room += data.size();
    if (data.empty() || iterator != 1 + room)
      return bad(Errc::bad_parameter, name, "a chunk has iterator ", iterator, ", expected ", 1 + room);
  }
  if (auto laid_out = About<Chain>::lay_out(header, room, chain); !laid_out) return laid_out;
  in = tables;
  for (std::uint64_t at = 0; at < room;) {
    const Bytes data = frame(in, iterator);
    const std::span<std::byte> to = chain.from(at);
    if (data.size() > to.size()) return bad(Errc::bad_parameter, name, "a chunk spans two tables");
    std::memcpy(to.data(), data.data(), data.size());
    at += data.size();
  }
  return {};
}

template <class Chain>
Result<void> parse_rdb(Bytes bytes, Chain& chain) {
  constexpr std::string_view name = About<Chain>::name;
  const auto value = redisbloom::value_of(bytes, name);
  if (!value) return value.error();
  redisbloom::RdbReader in(*value, kHeap);
  const std::uint64_t id = in.length();
  if (in.failed() || id >> 10 != redisbloom::type_id(About<Chain>::type, 0) >> 10)
    return bad(Errc::bad_magic, name, "the value has another type");
  if (auto loaded = redisbloom::load(in, name, static_cast<int>(id & 1023), chain); !loaded) return loaded;
  if (!in.ends() || !in.rest().empty()) return bad(Errc::bad_parameter, name, "the value does not end where it should");
  return {};
}

bool is_stream(Bytes bytes) noexcept { return !bytes.empty() && bytes.front() == std::byte{1}; }

template <class Chain>
Result<std::shared_ptr<Chain>> parse(Bytes bytes) {
  auto chain = std::make_shared<Chain>(kHeap);
  const auto parsed = is_stream(bytes) ? parse_stream(bytes, *chain) : parse_rdb(bytes, *chain);
  if (!parsed) return parsed.error();
  return chain;
}

template <class Chain>
Sniffed sniff(const Source& source) {
  Reader in(source.bytes);
  if (is_stream(source.bytes)) {
    const auto iterator = in.le<std::uint64_t>();
    const Bytes header = in.take(in.le<std::uint64_t>());
    if (in.is_short() || iterator != 1 || header.size() > 20 + 53 * BloomChain::kMaxLinks) return Sniffed::no;
    Chain numbers(kHeap);
    return Chain::parse_header(header, About<Chain>::name, numbers) ? Sniffed::certain : Sniffed::no;
  }
  if (!source.bytes.empty() && source.bytes.front() == redisbloom::kModuleValue) in.take(1);
  const bool agrees =
      in.le<std::uint8_t>() == 0x81 && in.be<std::uint64_t>() >> 10 == redisbloom::type_id(About<Chain>::type, 0) >> 10;
  return agrees ? Sniffed::certain : Sniffed::no;
}

template <class Chain>
Result<Opened> open(const Source& source, const Params&) {
  constexpr std::string_view name = About<Chain>::name;
  if (source.bytes.empty() && std::is_same_v<Chain, CuckooChain>) {
    Opened opened = one_filter(source, name, always(false, name, "empty"));
    opened.notes.emplace_back("no bytes: the SCANDUMP of a filter without items");
    return opened;
  }
  auto chain = parse<Chain>(source.bytes);
  if (!chain) return damaged(source, name, std::move(chain).error());
  return one_filter(source, name, std::make_shared<ChainFilter<Chain>>(*std::move(chain)));
}

template <class Chain>
Buffer write(const Chain& chain, std::string_view form) {
  if (form == "dump") {
    redisbloom::RdbWriter out(redisbloom::type_id(About<Chain>::type, redisbloom::kEncoding));
    redisbloom::save(out, chain);
    return std::move(out).done();
  }
  Writer out;
  if (About<Chain>::empty(chain)) return {};
  const Buffer header = chain.header();
  out.le(std::uint64_t{1}).le(std::uint64_t{header.size()}).add(header);
  for (std::uint64_t at = 0; at < chain.table_bytes();) {
    const auto table = chain.from(at);
    const auto chunk = table.first(std::min<std::uint64_t>(table.size(), redisbloom::kChunkBytes));
    at += chunk.size();
    out.le(1 + at).le(std::uint64_t{chunk.size()}).add(chunk);
  }
  return std::move(out).done();
}

template <class Chain>
Result<Converted> convert(const Source& source, const Opened& from, const Params& params) {
  constexpr std::string_view name = About<Chain>::name;
  if (from.format != name) {
    return bad(Errc::unsupported, from.format, "to ", name,
               ": the two place the bits of a key differently, and a filter does not store its keys: rebuild it from "
               "the keys");
  }
  auto chain = parse<Chain>(source.bytes);
  if (!chain) return std::move(chain).error();
  const std::string_view other = is_stream(source.bytes) ? "dump" : "stream";
  const std::string_view form = params.given("form") ? params.word("form") : other;
  return Converted{write(**chain, form), "the numbers and frames around the tables; the tables are unchanged"};
}

constexpr Param kBloomParams[] = {
    {"capacity", "keys the first link is sized for", Param::Type::count, "", 1, 1e12, {}, Param::Means::keys},
    {"error_rate",
     "false-positive rate, as for BF.RESERVE",
     Param::Type::real,
     "0.01",
     1e-300,
     0.999999,
     {},
     Param::Means::fpr},
    {"expansion", "growth factor from one link to the next", Param::Type::count, "2", 0, 32768},
    {"nonscaling", "never grows: keys beyond the capacity are left out", Param::Type::flag, "false"},
    {"form", "as SCANDUMP (stream) or as DUMP (dump) returns it", Param::Type::word, "stream", 0, 0, "stream|dump"},
};

Result<Buffer> build_bloom(std::span<const Bytes> keys, const Params& params) {
  constexpr std::string_view name = About<BloomChain>::name;
  BloomChain chain(kHeap);
  chain.growth = static_cast<std::uint32_t>(params.count("expansion"));
  if (params.flag("nonscaling") || chain.growth == 0) chain.options |= BloomChain::kFixed;
  const std::uint64_t capacity = params.count_or("capacity", std::max<std::uint64_t>(keys.size(), 1));
  LinkNumbers first;
  if (!BloomChain::first_numbers(capacity, std::min(params.real("error_rate"), kMaxRate), chain.options, first))
    return bad(Errc::bad_parameter, name, "no table for ", capacity, " keys at that rate");
  if (!chain.append(first)) throw std::bad_alloc();
  for (const Bytes key : keys)
    if (chain.add(chain.hash(key)) == redisbloom::Added::no_memory) return bad(Errc::full, name, "cannot grow further");
  return write(chain, params.word("form"));
}

constexpr Param kCuckooParams[] = {
    {"capacity", "keys the first sub-filter is sized for", Param::Type::count, "", 2, 1e12, {}, Param::Means::keys},
    {"bucket_size", "slots in a bucket", Param::Type::count, "2", 1, 255},
    {"max_iterations", "evictions before it grows", Param::Type::count, "20", 1, 65535},
    {"expansion", "growth factor from one sub-filter to the next; 0: never grows", Param::Type::count, "1", 0, 32768},
    {"insert", "ADDNX leaves out keys that are perhaps present", Param::Type::word, "ADD", 0, 0, "ADD|ADDNX"},
    {"delete_every", "after all inserts, delete keys 0, n, 2n ..; 0: none", Param::Type::count, "0"},
    {"form", "as SCANDUMP (stream) or as DUMP (dump) returns it", Param::Type::word, "stream", 0, 0, "stream|dump"},
};

Result<Buffer> build_cuckoo(std::span<const Bytes> keys, const Params& params) {
  constexpr std::string_view name = About<CuckooChain>::name;
  CuckooChain chain(kHeap);
  chain.bucket_size = static_cast<std::uint16_t>(params.count("bucket_size"));
  chain.max_iterations = static_cast<std::uint16_t>(params.count("max_iterations"));
  chain.expansion = static_cast<std::uint16_t>(params.count("expansion"));
  chain.size_for(params.count_or("capacity", keys.size()));
  if (!chain.append()) return bad(Errc::bad_parameter, name, "no table for ", chain.buckets, " buckets");
  const bool only_new = params.word("insert") == "ADDNX";
  for (const Bytes key : keys) {
    const CuckooHash h = CuckooChain::hash(key);
    if ((only_new ? chain.add_new(h) : chain.add(h)) == redisbloom::Added::no_memory)
      return bad(Errc::full, name, "cannot grow further");
  }
  if (const std::uint64_t step = params.count("delete_every"); step != 0)
    for (std::uint64_t i = 0; i < keys.size(); i += step) chain.erase(CuckooChain::hash(keys[i]));
  return write(chain, params.word("form"));
}

}  // namespace

constinit const Codec kRedisBloomBf{About<BloomChain>::name,
                                    "Bloom filter of RedisBloom: SCANDUMP, DUMP",
                                    kBloomParams,
                                    sniff<BloomChain>,
                                    open<BloomChain>,
                                    build_bloom,
                                    convert<BloomChain>};
constinit const Codec kRedisBloomCf{About<CuckooChain>::name,
                                    "cuckoo filter of RedisBloom: SCANDUMP, DUMP",
                                    kCuckooParams,
                                    sniff<CuckooChain>,
                                    open<CuckooChain>,
                                    build_cuckoo,
                                    convert<CuckooChain>};

}  // namespace perhaps::format
