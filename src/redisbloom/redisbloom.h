// RedisBloom's two filters as data: their numbers, their tables in memory that a host provides, and the rules by which
// they answer and change, bit for bit. The codecs and the Redis module stand on this; doc/formats/redisbloom-*.md say
// how the bytes look.
//
// Bloom: a chain of links. a = H(item, 0xc6a4a7935bd1e995), b = H(item, a), H = MurmurHash64A
//   bit i of k = ((a + i*b) mod 2^64) mod bits; an item is perhaps there if one link has all k
//   a link for n items at error e: bpe = -ln e / ln(2)^2; bits = floor(n * bpe), up to a multiple of 64; k = ceil(ln2 *
//   bpe); when the newest link holds its n items, the next takes n * growth at e / 2
//
// Cuckoo: sub-filters of buckets of one-byte fingerprints, 0 = empty. h = H(item, 0); f = h mod 255 + 1
//   buckets h mod N and (h xor f * 0x5bd1e995) mod N; N a power of two; sub-filter j has N * expansion^j buckets
//   eviction is deterministic, so two servers given the same commands hold the same bytes
#pragma once
#include <memory>

#include "format/codec.h"
#include "hash/murmur2.h"
#include "perhaps/detail/bits.h"
#include "perhaps/line_bloom.h"

namespace perhaps::redisbloom {

using format::Buffer;
// What the module needs besides: numbers in bytes, little-endian and at any address, and prefetching.
using detail::far_away;
using detail::load;
using detail::prefetch_read;
using detail::prefetch_write;
using detail::store;

// Where tables live: a server's allocator inside a module, malloc elsewhere. Without memory they return null.
struct Memory {
  std::byte* (*take)(std::uint64_t bytes) noexcept;  // zeroed, or null
  void (*give)(std::byte* at) noexcept;              // may be null
};
extern const Memory kHeap;

// The most that one chunk of a dump carries.
inline constexpr std::uint64_t kChunkBytes = std::uint64_t{16} << 20;
// Tables beyond this are damage: they could not be addressed.
inline constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 46;

// x mod d without a division: the quotient by the reciprocal is right or one too low.
struct Modulus {
  std::uint64_t value = 2;
  std::uint64_t reciprocal = 0;

  Modulus() = default;
  // The reciprocal is floor(2^64 / d).  REQUIRES: d >= 2
  explicit Modulus(std::uint64_t d) noexcept : value(d), reciprocal((0 - d) / d + 1) {}
  std::uint64_t of(std::uint64_t x) const noexcept {
    const std::uint64_t rest = x - detail::scale(x, reciprocal) * value;
    return rest >= value ? rest - value : rest;
  }
};

enum class Added : std::uint8_t {
  added,
  present,
  full,       // and it may not grow
  no_memory,  // or no next link can be: its error rate would be 0, or its table past all limits
};

// ---------------------------------------------------------------------------------------------------------- Bloom

struct BloomHash {
  std::uint64_t a;
  std::uint64_t b;
};

// As they travel in a header and in an RDB file.
struct LinkNumbers {
  std::uint64_t entries = 0;
  std::uint64_t bits = 0;
  std::uint64_t size = 0;
  double error = 0;
  double bpe = 0;
  std::uint32_t hashes = 0;
  std::uint8_t n2 = 0;  // not 0: positions are mod 2^n2 (old data)

  std::uint64_t bytes() const noexcept { return bits / 8; }
};

// How a link is sized, checked and probed. RedisBloom's own:
struct Link : LinkNumbers {
  using Hash = BloomHash;
  Modulus modulus;
  std::byte* table = nullptr;

  // A rate of 2^-1074, the least there is, takes 1075 probes; more are no filter.
  static constexpr std::uint32_t kMaxHashes = 1075;
  static constexpr bool options_fit(std::uint64_t options) noexcept { return options <= 15; }
  static constexpr int kOldest = 0;  // encodings of the RDB value that are read
  static constexpr int kEncoding = 4;
  // For `items` at `rate`; false if there is no such table.
  static bool size_for(LinkNumbers& numbers, std::uint64_t items, double rate, std::uint32_t options) noexcept;
  static Result<void> check(const LinkNumbers& numbers, std::string_view format);
  static Hash hash(Bytes item, std::uint32_t options) noexcept;
  void prepare() noexcept { modulus = Modulus(n2 != 0 ? std::uint64_t{1} << n2 : bits); }

  std::uint64_t position(Hash h, std::uint32_t i) const noexcept { return modulus.of(h.a + i * h.b); }
  bool has(std::uint64_t bit) const noexcept {
    return (std::to_integer<unsigned>(table[bit / 8]) >> (bit % 8) & 1u) != 0;
  }
  bool may_contain(Hash h, std::uint32_t from = 0) const noexcept {
    for (std::uint32_t i = from; i < hashes; ++i)
      if (!has(position(h, i))) return false;
    return true;
  }
  // Of those in `left`, the ones that are perhaps here.
  std::uint64_t may_contain(std::span<const Hash> many, std::uint64_t left, bool ahead) const noexcept;
  void prefetch_first(Hash h) const noexcept { detail::prefetch_read(table + position(h, 0) / 8); }
  void prefetch_all(Hash h) const noexcept {
    for (std::uint32_t i = 0; i < hashes; ++i) detail::prefetch_write(table + position(h, i) / 8);
  }
  void insert(Hash h) noexcept;
  double items_estimated() const noexcept;  // from the fill
  double fpr() const noexcept;              // of the bits as they are
};

// All probes of an item in one cache line (line_bloom.h): one miss where RedisBloom's has one per probe, for a few bits
// more. Same chain, same header; what tells the two apart is an option that RedisBloom refuses.
struct LineLink : LinkNumbers {
  using Hash = std::uint64_t;
  LineShape shape;
  std::byte* table = nullptr;

  static constexpr std::uint32_t kMaxHashes = LineShape::kMaxProbes;
  static constexpr bool options_fit(std::uint64_t options) noexcept { return options == 32 || options == 40; }
  // Encodings of the RDB value that are read. Those before had tables of another hash.
  static constexpr int kOldest = 5;
  static constexpr int kEncoding = 5;
  static bool size_for(LinkNumbers& numbers, std::uint64_t items, double rate, std::uint32_t options) noexcept;
  static Result<void> check(const LinkNumbers& numbers, std::string_view format);
  static Hash hash(Bytes item, std::uint32_t) noexcept { return perhaps::Hash{}(item).word(); }
  void prepare() noexcept { shape = {.lines = bits / 512, .probes = hashes}; }

  bool may_contain(Hash h) const noexcept { return LineLayout::may_contain<detail::isa::Portable>(shape, table, h); }
  std::uint64_t may_contain(std::span<const Hash> many, std::uint64_t left, bool ahead) const noexcept {
    std::uint64_t answers = 0;
    detail::query_batch<LineLayout>(shape, table, {.words = many.data(), .count = many.size(), .ahead = ahead},
                                    &answers);
    return answers & left;
  }
  void prefetch_first(Hash h) const noexcept { LineLayout::prefetch(shape, table, h); }
  void prefetch_all(Hash h) const noexcept { LineLayout::prefetch(shape, table, h); }
  void insert(Hash h) noexcept { LineLayout::insert(shape, table, h); }
  double items_estimated() const noexcept { return shape.keys_at(format::fill_of(Bytes(table, bytes()), bits)); }
  double fpr() const noexcept { return shape.fpr(items_estimated()); }
};

struct BloomNumbers {
  static constexpr std::uint32_t kNoRound = 1;  // any number of bits, not a power of two
  static constexpr std::uint32_t kWide = 4;     // the 64-bit hash
  static constexpr std::uint32_t kFixed = 8;    // never grows
  static constexpr std::uint32_t kLine = 32;    // ours: links of lines. 16 were those of version 1, of another hash.
  static constexpr std::uint32_t kLine1 = 16;

  std::uint64_t size = 0;  // items in all links
  std::uint32_t options = kNoRound | kWide;
  std::uint32_t growth = 2;
};

template <class L>
class Chain : public BloomNumbers {
 public:
  using Link = L;
  using Hash = typename L::Hash;
  static constexpr std::uint64_t kMaxLinks = 1100;  // each halves the rate
  static constexpr double kTightening = 0.5;

  explicit Chain(const Memory& memory) noexcept : memory_(&memory) {}
  ~Chain();
  Chain(const Chain&) = delete;
  Chain& operator=(const Chain&) = delete;

  std::span<const L> links() const noexcept { return std::span(links_, count_); }
  const L& newest() const noexcept { return links_[count_ - 1]; }  // REQUIRES: there is one
  bool fixed() const noexcept { return (options & kFixed) != 0; }
  std::uint64_t table_bytes() const noexcept;
  std::uint64_t capacity() const noexcept;

  // What the first and the next link would be, or false: for those who count bytes before they are taken.
  static bool first_numbers(std::uint64_t entries, double rate, std::uint32_t options, LinkNumbers& numbers) noexcept;
  bool next_numbers(LinkNumbers& numbers) const noexcept;

  // An empty link; false: no memory. The second takes over `table`, of numbers.bytes() bytes out of the same memory.
  bool append(const LinkNumbers& numbers) noexcept;
  bool append(const LinkNumbers& numbers, std::byte* table) noexcept;
  bool copy_to(Chain& empty) const noexcept;
  // Chunks of a dump: `at` counts over all tables. Empty if there is no such byte; never across links.
  std::span<std::byte> from(std::uint64_t at) const noexcept;

  Hash hash(Bytes item) const noexcept { return L::hash(item, options); }
  bool may_contain(Hash h) const noexcept {
    for (std::uint64_t i = count_; i-- != 0;)
      if (links_[i].may_contain(h)) return true;
    return false;
  }
  // Bit i belongs to many[i]. `ahead`: the tables are far away, so touch what will be read.  REQUIRES: <= kBatch
  std::uint64_t may_contain(std::span<const Hash> many, bool ahead) const noexcept;
  // Touches what add() will read and write, for tables that are far away.
  void prefetch(Hash h) const noexcept {
    for (std::uint64_t i = 0; i + 1 < count_; ++i) links_[i].prefetch_first(h);
    newest().prefetch_all(h);
  }
  Added add(Hash h) noexcept;
  // True if add(h) would begin a link. REQUIRES: !may_contain(h)
  bool must_grow() const noexcept { return newest().size >= newest().entries; }

  // Both have links of the same numbers, but for the sizes. Names the first that differs, or "".
  std::string_view differs_from(const Chain& other) const noexcept;
  // Bits become the union's; sizes become what the bits say, no less than either had. True if something changed.
  bool merge(const Chain& other) noexcept;

  // For defragmentation: `move(at)` gives the new address, or null to leave it. Table `i`, or the list of links.
  template <class Move>
  void move_table(std::uint64_t i, Move move) noexcept {
    if (std::byte* const now = move(links_[i].table)) links_[i].table = now;
  }
  template <class Move>
  void move_links(Move move) noexcept {
    if (std::byte* const now = move(reinterpret_cast<std::byte*>(links_))) links_ = reinterpret_cast<L*>(now);
  }

  Buffer header() const;
  // Links with zeroed tables.
  static Result<std::vector<LinkNumbers>> parse_header(Bytes header, std::string_view format, BloomNumbers& numbers);

 private:
  const Memory* memory_;
  L* links_ = nullptr;
  std::uint64_t count_ = 0;
  std::uint64_t room_ = 0;
};

using BloomChain = Chain<Link>;
using LineChain = Chain<LineLink>;
extern template class Chain<Link>;
extern template class Chain<LineLink>;

// --------------------------------------------------------------------------------------------------------- Cuckoo

struct CuckooHash {
  std::uint64_t h1;
  std::uint64_t h2;
  std::uint8_t fingerprint;
};

struct CuckooNumbers {
  std::uint64_t items = 0;
  std::uint64_t buckets = 1;  // of the first sub-filter
  std::uint64_t deletes = 0;  // since the last compaction
  std::uint16_t bucket_size = 2;
  std::uint16_t max_iterations = 20;
  std::uint16_t expansion = 1;  // 0: never grows

  static std::uint64_t alternate(std::uint64_t h, std::uint8_t f) noexcept { return h ^ f * std::uint64_t{0x5bd1e995}; }
  static CuckooHash hash(Bytes item) noexcept {
    const std::uint64_t h = murmur64a(item, 0);
    const auto f = static_cast<std::uint8_t>(h % 255 + 1);
    return {h, alternate(h, f), f};
  }

  // For a capacity; the expansion becomes a power of two.
  void size_for(std::uint64_t capacity) noexcept;
  // Buckets of sub-filter i; 0 if that is past all limits.
  std::uint64_t buckets_of(std::uint64_t i) const noexcept;
  std::uint64_t bytes_of(std::uint64_t i) const noexcept { return buckets_of(i) * bucket_size; }
  Result<void> check(std::string_view format, std::uint64_t filters) const;
};

struct SubFilter {
  std::uint64_t buckets = 0;  // a power of two
  std::byte* table = nullptr;
};

class CuckooChain : public CuckooNumbers {
 public:
  static constexpr std::uint64_t kHeaderBytes = 38;
  static constexpr std::uint64_t kMaxFilters = 65535;

  explicit CuckooChain(const Memory& memory) noexcept : memory_(&memory) {}
  ~CuckooChain();
  CuckooChain(const CuckooChain&) = delete;
  CuckooChain& operator=(const CuckooChain&) = delete;

  std::span<const SubFilter> filters() const noexcept { return std::span(filters_, count_); }
  std::uint64_t table_bytes() const noexcept;

  // The next sub-filter; false: no memory, or past all limits.
  bool append() noexcept;
  bool append(std::byte* table) noexcept;
  bool copy_to(CuckooChain& empty) const noexcept;
  std::span<std::byte> from(std::uint64_t at) const noexcept;

  bool may_contain(CuckooHash h) const noexcept;
  std::uint64_t may_contain(std::span<const CuckooHash> many, bool ahead) const noexcept;
  void prefetch(CuckooHash h) const noexcept;
  // How often it is perhaps there; twice as many where both buckets are one.
  std::uint64_t count(CuckooHash h) const noexcept;
  Added add(CuckooHash h) noexcept;
  Added add_new(CuckooHash h) noexcept { return may_contain(h) ? Added::present : add(h); }
  // True if one was removed. Compacts when a tenth was deleted.
  bool erase(CuckooHash h) noexcept;
  // Moves fingerprints to older sub-filters and drops the newest while it becomes empty; `on`: does not stop at the
  // first that cannot be emptied. True if something changed.
  bool compact(bool on) noexcept;

  template <class Move>
  void move_table(std::uint64_t i, Move move) noexcept {
    if (std::byte* const now = move(filters_[i].table)) filters_[i].table = now;
  }
  template <class Move>
  void move_filters(Move move) noexcept {
    if (std::byte* const now = move(reinterpret_cast<std::byte*>(filters_)))
      filters_ = reinterpret_cast<SubFilter*>(now);
  }

  Buffer header() const;
  static Result<std::uint64_t> parse_header(Bytes header, std::string_view format, CuckooNumbers& numbers);

 private:
  // RedisBloom keeps the offset of a bucket in 32 bits; what lies beyond 4 GiB is never used.
  std::byte* bucket(const SubFilter& filter, std::uint64_t h) const noexcept {
    return filter.table + static_cast<std::uint32_t>((h & (filter.buckets - 1)) * bucket_size);
  }
  std::byte* find(const SubFilter& filter, std::uint64_t h, std::uint8_t fingerprint) const noexcept;
  bool place(const SubFilter& filter, std::uint64_t h1, std::uint64_t h2, std::uint8_t fingerprint) noexcept;
  bool evict_into(const SubFilter& filter, CuckooHash h) noexcept;
  bool compact_one(std::uint64_t from, bool& changed) noexcept;

  const Memory* memory_;
  SubFilter* filters_ = nullptr;
  std::uint64_t count_ = 0;
  std::uint64_t room_ = 0;
};

// ------------------------------------------------------------------------------------------------------------ RDB
// The value as a module saves it, whatever carries it: `In` has number(), real(), block() (a table out of the chain's
// memory, or null) and failed(); `Out` has number(), real() and block().

struct Block {
  std::byte* at = nullptr;
  std::uint64_t size = 0;
};

inline constexpr int kEncoding = 4;

// The error of our own types for values that were written before their hash changed.
inline constexpr std::string_view kOldHash =
    "written by a version before 0.2, whose hash is no longer supported: delete the key and build it again";

template <class In, class L>
Result<void> load(In& in, std::string_view format, int encoding, Chain<L>& chain) {
  using format::bad;
  if (encoding < 0 || encoding > L::kEncoding)
    return bad(Errc::bad_version, format, "encoding ", encoding, ", and ", L::kEncoding, " is the newest known");
  if (encoding < L::kOldest) return bad(Errc::bad_version, format, "encoding ", encoding, ": ", kOldHash);
  chain.size = in.number();
  const std::uint64_t count = in.number();
  const std::uint64_t options = encoding >= 2 ? in.number() : 0;
  const std::uint64_t growth = encoding >= 4 ? in.number() : 2;
  if (in.failed()) return bad(Errc::truncated, format, "ends in its first numbers");
  if (count == 0 || count > Chain<L>::kMaxLinks) return bad(Errc::bad_parameter, format, count, " links");
  if (!L::options_fit(options)) return bad(Errc::bad_parameter, format, "unknown options ", options);
  if (growth > UINT32_MAX) return bad(Errc::bad_parameter, format, "growth ", growth);
  chain.options = static_cast<std::uint32_t>(options);
  chain.growth = static_cast<std::uint32_t>(growth);
  std::uint64_t size = 0;
  for (std::uint64_t i = 0; i < count; ++i) {
    LinkNumbers link;
    link.entries = in.number();
    link.error = in.real();
    const std::uint64_t hashes = in.number();
    link.bpe = in.real();
    const double bits = static_cast<double>(link.entries) * link.bpe;
    link.bits = encoding >= 1 ? in.number() : bits >= 0 && bits < 0x1p63 ? static_cast<std::uint64_t>(bits) : 0;
    const std::uint64_t n2 = encoding >= 1 ? in.number() : 0;
    if (in.failed()) return bad(Errc::truncated, format, "ends in the numbers of link ", i);
    if (hashes > L::kMaxHashes) return bad(Errc::bad_parameter, format, hashes, " probes in link ", i);
    if (n2 > 63) return bad(Errc::bad_parameter, format, "2^", n2, " bits in link ", i);
    link.hashes = static_cast<std::uint32_t>(hashes);
    link.n2 = static_cast<std::uint8_t>(n2);
    if (auto checked = L::check(link, format); !checked) return checked;
    const Block block = in.block();
    if (block.at == nullptr) return bad(Errc::truncated, format, "no table for link ", i);
    // Taken over before it is checked, so that it is given back in every case.
    if (block.size != link.bytes()) {
      in.give(block);
      return bad(Errc::bad_parameter, format, "link ", i, " has ", link.bytes(), " bytes, and there are ", block.size);
    }
    link.size = in.number();
    if (!chain.append(link, block.at)) return bad(Errc::full, format, "no memory for ", i + 1, " links");
    if (in.failed()) return bad(Errc::truncated, format, "ends after the table of link ", i);
    if (__builtin_add_overflow(size, link.size, &size)) return bad(Errc::bad_parameter, format, "sizes past 2^64");
  }
  if (size != chain.size)
    return bad(Errc::bad_parameter, format, chain.size, " items in all, and ", size, " in the links");
  return {};
}

template <class Out, class L>
void save(Out& out, const Chain<L>& chain) {
  out.number(chain.size);
  out.number(chain.links().size());
  out.number(chain.options);
  out.number(chain.growth);
  for (const L& link : chain.links()) {
    out.number(link.entries);
    out.real(link.error);
    out.number(link.hashes);
    out.real(link.bpe);
    out.number(link.bits);
    out.number(link.n2);
    out.block({link.table, link.bytes()});
    out.number(link.size);
  }
}

template <class In>
Result<void> load(In& in, std::string_view format, int encoding, CuckooChain& chain) {
  using format::bad;
  if (encoding < 0 || encoding > kEncoding)
    return bad(Errc::bad_version, format, "encoding ", encoding, ", and ", kEncoding, " is the newest known");
  const std::uint64_t count = in.number();
  chain.buckets = in.number();
  chain.items = in.number();
  std::uint64_t small[3] = {chain.bucket_size, chain.max_iterations, chain.expansion};
  if (encoding >= 4) {
    chain.deletes = in.number();
    for (std::uint64_t& number : small) {
      number = in.number();
      if (number > UINT16_MAX) return bad(Errc::bad_parameter, format, "a number of ", number, " where 65535 is most");
    }
  }
  if (in.failed()) return bad(Errc::truncated, format, "ends in its first numbers");
  chain.bucket_size = static_cast<std::uint16_t>(small[0]);
  chain.max_iterations = static_cast<std::uint16_t>(small[1]);
  chain.expansion = static_cast<std::uint16_t>(small[2]);
  if (auto checked = chain.check(format, count); !checked) return checked;
  for (std::uint64_t i = 0; i < count; ++i) {
    const std::uint64_t buckets = encoding >= 4 ? in.number() : chain.buckets;
    const Block block = in.block();
    if (block.at == nullptr) return bad(Errc::truncated, format, "no table for sub-filter ", i);
    if (buckets != chain.buckets_of(i) || block.size != chain.bytes_of(i)) {
      in.give(block);
      return bad(Errc::bad_parameter, format, "sub-filter ", i, " has ", buckets, " buckets and ", block.size,
                 " bytes, expected ", chain.buckets_of(i), " and ", chain.bytes_of(i));
    }
    if (!chain.append(block.at)) return bad(Errc::full, format, "no memory for ", i + 1, " sub-filters");
  }
  return {};
}

template <class Out>
void save(Out& out, const CuckooChain& chain) {
  out.number(chain.filters().size());
  out.number(chain.buckets);
  out.number(chain.items);
  out.number(chain.deletes);
  out.number(chain.bucket_size);
  out.number(chain.max_iterations);
  out.number(chain.expansion);
  for (const SubFilter& filter : chain.filters()) {
    out.number(filter.buckets);
    out.block({filter.table, filter.buckets * chain.bucket_size});
  }
}

}  // namespace perhaps::redisbloom
