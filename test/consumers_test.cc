// Promise: the headers support their consumers -- a foreign format, a filter policy of a storage engine, a type inside
// a server, a batched read over many levels -- without a cast, a copy or a change in the headers. Would notice: an API
// that needs alignment, owns memory it should borrow, hashes twice, or does not accept a foreign hash.
#include <gtest/gtest.h>

#include <bit>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "perhaps/any_filter.h"
#include "perhaps/block_bloom.h"
#include "perhaps/bloom.h"
#include "perhaps/line_bloom.h"

namespace {

using perhaps::Bytes;
using perhaps::bytes_of;

// "L", 3, 17 -> "L3/17"
std::string key_of(std::string_view name, std::size_t group, std::size_t i) {
  return std::string(name).append(std::to_string(group)).append("/").append(std::to_string(i));
}

std::vector<std::string> numbered(std::string_view name, std::size_t group, std::size_t count) {
  std::vector<std::string> keys;
  for (std::size_t i = 0; i < count; ++i) keys.push_back(key_of(name, group, i));
  return keys;
}

// ---- (a) A foreign codec: hash and plan of LevelDB 1.23, and the blob `bits | probes` around them.

// h = seed ^ n * m; each 4 bytes: h = (h + w) * m, h ^= h >> 16; the 1 to 3 bytes left: added, * m, h ^= h >> 24.
struct LevelDbHash {
  using word = std::uint32_t;
  static constexpr std::string_view name = "leveldb";

  perhaps::Digest<LevelDbHash> operator()(Bytes key) const noexcept {
    constexpr std::uint32_t m = 0xc6a4a793;
    std::uint32_t h = 0xbc9f1d34 ^ static_cast<std::uint32_t>(key.size()) * m;
    for (; key.size() >= 4; key = key.subspan(4)) {
      h = (h + perhaps::detail::load<std::uint32_t>(key.data())) * m;
      h ^= h >> 16;
    }
    if (!key.empty()) {
      for (std::size_t i = 0; i < key.size(); ++i) h += std::to_integer<std::uint32_t>(key[i]) << 8 * i;
      h *= m;
      h ^= h >> 24;
    }
    return perhaps::Digest<LevelDbHash>::made_by(*this, h);
  }
  std::uint64_t tag() const noexcept { return 0; }
  bool operator==(const LevelDbHash&) const = default;
};

// Position i = (h + i * rotl(h, 15)) mod bits, in 32 bits.
class RotateAdd {
 public:
  using word = std::uint32_t;
  RotateAdd(std::uint32_t digest, std::uint64_t bits) noexcept
      : bits_(bits), x_(digest), step_(std::rotl(digest, 15)) {}
  std::uint64_t next() noexcept { return std::exchange(x_, x_ + step_) % bits_; }

 private:
  std::uint64_t bits_;
  std::uint32_t x_;
  std::uint32_t step_;
};

using LevelDbBloom = perhaps::BasicBloom<RotateAdd, LevelDbHash>;
static_assert(perhaps::Hasher<LevelDbHash> && perhaps::ProbePlan<RotateAdd>);
static_assert(perhaps::FlatFilter<LevelDbBloom::View> && perhaps::MutableFilter<LevelDbBloom::Span>);
// Law 6: a digest of another scheme does not compile.
template <class View, class Digest>
concept CanAsk = requires(View view, Digest digest) {
  view.may_contain(digest);
};
static_assert(CanAsk<LevelDbBloom::View, perhaps::Digest<LevelDbHash>>);
static_assert(!CanAsk<LevelDbBloom::View, perhaps::Digest<perhaps::Hash>>);

perhaps::Result<LevelDbBloom::View> open_leveldb(Bytes blob) {
  if (blob.size() < 2) return perhaps::Error{perhaps::Errc::truncated, "leveldb: fewer than 2 bytes"};
  const auto probes = std::to_integer<std::uint32_t>(blob.back());
  if (probes > 30) return perhaps::Error{perhaps::Errc::unsupported, "leveldb: reserved encoding (probes > 30)"};
  return LevelDbBloom::View::over(blob.first(blob.size() - 1), {.bits = 8 * (blob.size() - 1), .probes = probes});
}

std::string read_golden(const std::string& name) {
  std::ifstream in(std::string(PERHAPS_TEST_DATA) + "/golden/leveldb/" + name, std::ios::binary);
  EXPECT_TRUE(in) << name;
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<std::string> read_keys(const std::string& name) {
  const std::string file = read_golden(name);
  const auto u32 = [&](std::size_t at) { return perhaps::detail::load<std::uint32_t>(bytes_of(file).data() + at); };
  std::vector<std::string> keys;
  for (std::size_t at = 4; at < file.size(); at += 4 + u32(at)) keys.push_back(file.substr(at + 4, u32(at)));
  EXPECT_EQ(keys.size(), u32(0));
  return keys;
}

TEST(ForeignCodec, AnswersAsLevelDbDid) {
  const std::string blob = read_golden("k100_b10.filter");
  const auto view = open_leveldb(bytes_of(blob));
  ASSERT_TRUE(view) << view.error().detail;
  for (const std::string& key : read_keys("k100.keys")) EXPECT_TRUE(view->may_contain(key)) << key;

  const std::vector<std::string> absent = read_keys("absent.keys");
  const std::string expected = read_golden("k100_b10.answers");
  ASSERT_EQ(expected.size() * 8, absent.size());
  const std::vector<std::string_view> column(absent.begin(), absent.end());
  std::vector<std::uint64_t> answers(absent.size() / 64 + 1);
  view->may_contain(std::span<const std::string_view>(column), answers);
  for (std::size_t i = 0; i < absent.size(); ++i) {
    const bool golden = std::to_integer<unsigned>(bytes_of(expected)[i / 8]) >> i % 8 & 1;
    EXPECT_EQ(view->may_contain(absent[i]), golden) << i;
    EXPECT_EQ((answers[i / 64] >> i % 64 & 1) != 0, golden) << i;
  }
}

TEST(ForeignCodec, WritesTheBytesThatLevelDbWrote) {
  const std::string golden = read_golden("k100_b10.filter");
  LevelDbBloom filter({.bits = 8 * ((100 * 10 + 7) / 8), .probes = 6});
  for (const std::string& key : read_keys("k100.keys")) filter.insert(key);
  const Bytes bits = filter.bytes();
  ASSERT_EQ(bits.size() + 1, golden.size());
  EXPECT_TRUE(std::equal(bits.begin(), bits.end(), bytes_of(golden).begin()));
}

TEST(ForeignCodec, RefusesWhatItCannotProbe) {
  EXPECT_FALSE(open_leveldb(bytes_of("x")));
  EXPECT_FALSE(open_leveldb(bytes_of(std::string(8, '\0') + '\x1f')));
  EXPECT_FALSE(open_leveldb(bytes_of(std::string(9, '\0'))));  // no probes: the codec always answers *perhaps*
}

// ---- (b) A filter policy over the bytes of a block: CreateFilter appends to a string, KeyMayMatch reads part of a
// block.

struct Slice {  // as in storage engines: neither a string_view nor a span
  const char* data;
  std::size_t size;
};
Bytes bytes_of_slice(Slice slice) { return bytes_of({slice.data, slice.size}); }

class LinePolicy {
 public:
  explicit LinePolicy(double bits_per_key) : bits_per_key_(bits_per_key) {}

  void create_filter(const Slice* keys, int count, std::string* out) const {
    const auto shape =
        perhaps::LineShape::for_keys({.keys = static_cast<std::uint64_t>(count), .bits_per_key = bits_per_key_});
    const std::size_t at = out->size();
    out->resize(at + shape.bytes());
    auto filter = perhaps::LineBloomSpan::over(std::as_writable_bytes(std::span(*out).subspan(at)), shape);
    for (int i = 0; i < count; ++i) filter->insert(bytes_of_slice(keys[i]));
    out->push_back(static_cast<char>(shape.probes));
  }

  // Fails open: a filter that cannot be probed costs a read, never a wrong answer.
  bool key_may_match(Slice key, Slice filter) const noexcept {
    const Bytes bytes = bytes_of_slice(filter);
    if (bytes.empty() || bytes.size() % perhaps::kLineBytes != 1) return true;
    const auto probes = std::to_integer<std::uint32_t>(bytes.back());
    const auto view = perhaps::LineBloomView::over(bytes, {bytes.size() / perhaps::kLineBytes, probes});
    return !view || view->may_contain(bytes_of_slice(key));
  }

 private:
  double bits_per_key_;
};

TEST(FilterPolicy, ProbesABlockAtAnyAddress) {
  const LinePolicy policy(10);
  std::string block = "odd";  // 3 bytes: nothing that follows is aligned
  std::vector<std::pair<std::size_t, std::size_t>> ranges;
  constexpr std::size_t kBlocks = 20;
  for (std::size_t b = 0; b < kBlocks; ++b) {
    const auto keys = numbered("block", b, 10 + 20 * b);
    std::vector<Slice> slices;
    for (const auto& key : keys) slices.push_back({key.data(), key.size()});
    const std::size_t at = block.size();
    policy.create_filter(slices.data(), static_cast<int>(slices.size()), &block);
    ranges.emplace_back(at, block.size() - at);
  }
  std::size_t wrong = 0, queries = 0;
  for (std::size_t b = 0; b < kBlocks; ++b) {
    const Slice filter{block.data() + ranges[b].first, ranges[b].second};
    for (const auto& key : numbered("block", b, 10 + 20 * b)) {
      EXPECT_TRUE(policy.key_may_match({key.data(), key.size()}, filter)) << key;
    }
    for (const auto& key : numbered("elsewhere", b, 1000)) {
      wrong += policy.key_may_match({key.data(), key.size()}, filter);
      ++queries;
    }
  }
  // 10 bits per key give 1 %; n = 20 000, z = 5 allow 1.35 %.
  EXPECT_LT(static_cast<double>(wrong), 0.0135 * static_cast<double>(queries));
}

TEST(FilterPolicy, FailsOpen) {
  const LinePolicy policy(10);
  const std::string key = "k";
  const auto may_match = [&](const std::string& filter) {
    return policy.key_may_match({key.data(), key.size()}, {filter.data(), filter.size()});
  };
  EXPECT_TRUE(may_match(""));
  EXPECT_TRUE(may_match(std::string(1, '\x08')));                      // a trailer without lines
  EXPECT_TRUE(may_match(std::string(64, '\0')));                       // truncated
  EXPECT_TRUE(may_match(std::string(64, '\0') + '\0'));                // no probes
  EXPECT_TRUE(may_match(std::string(64, '\0') + '\x11'));              // more probes than the layout allows
  EXPECT_FALSE(may_match(std::string(64, '\0') + '\x08')) << "empty";  // a valid, empty filter answers no
}

// ---- (c) A type inside a server: memory comes from the host, which may refuse or move it.

struct Host {
  std::uint64_t budget;
  std::byte* try_calloc(std::uint64_t bytes) {
    if (bytes > budget) return nullptr;
    budget -= bytes;
    return static_cast<std::byte*>(std::calloc(1, bytes));
  }
  void release(std::byte* memory, std::uint64_t bytes) {
    budget += bytes;
    std::free(memory);
  }
};

class ServerFilter {
 public:
  static std::unique_ptr<ServerFilter> reserve(Host& host, std::uint64_t capacity, double fpr) {
    const auto shape = perhaps::LineShape::for_keys({.keys = capacity, .fpr = fpr});
    if (!shape.valid()) return nullptr;
    std::byte* memory = host.try_calloc(shape.bytes());
    if (memory == nullptr) return nullptr;
    auto filter = perhaps::LineBloomSpan::over({memory, shape.bytes()}, shape);
    return filter ? std::unique_ptr<ServerFilter>(new ServerFilter(host, *filter)) : nullptr;
  }
  ~ServerFilter() { host_.release(filter_.writable_bytes().data(), filter_.byte_size()); }
  ServerFilter(const ServerFilter&) = delete;

  // BF.ADD replies 1 if the key was certainly absent before.
  bool add(std::string_view key) noexcept { return filter_.insert(key) == perhaps::Inserted::added; }
  bool exists(std::string_view key) const noexcept { return filter_.may_contain(key); }
  std::uint64_t memory() const noexcept { return filter_.byte_size(); }

  // As in defragmentation by an allocator: the same bytes at another address.
  bool move_memory() {
    std::byte* elsewhere = host_.try_calloc(filter_.byte_size());
    if (elsewhere == nullptr) return false;
    const auto old = filter_.writable_bytes();
    std::copy(old.begin(), old.end(), elsewhere);
    filter_ = *perhaps::LineBloomSpan::over({elsewhere, old.size()}, filter_.shape(), filter_.hasher());
    host_.release(old.data(), old.size());
    return true;
  }

 private:
  ServerFilter(Host& host, perhaps::LineBloomSpan filter) : host_(host), filter_(filter) {}
  Host& host_;
  perhaps::LineBloomSpan filter_;
};

TEST(ServerType, LivesInTheHostsMemory) {
  Host host{.budget = 10'000'000};
  {
    auto filter = ServerFilter::reserve(host, 100'000, 0.001);
    ASSERT_NE(filter, nullptr);
    EXPECT_EQ(host.budget, 10'000'000 - filter->memory());
    const auto keys = numbered("user", 1, 100'000);
    std::size_t added = 0;
    for (const auto& key : keys) added += filter->add(key);
    EXPECT_GT(added, 99'800u);
    for (const auto& key : keys) ASSERT_FALSE(filter->add(key)) << key;
    ASSERT_TRUE(filter->move_memory());
    for (const auto& key : keys) ASSERT_TRUE(filter->exists(key)) << key;
  }
  EXPECT_EQ(host.budget, 10'000'000u);
}

TEST(ServerType, RefusesWhatTheHostCannotHold) {
  Host host{.budget = 10'000'000};
  for (const std::uint64_t capacity : {std::uint64_t{100'000'000}, std::uint64_t{1} << 50, UINT64_MAX}) {
    EXPECT_EQ(ServerFilter::reserve(host, capacity, 0.001), nullptr) << capacity;
  }
  EXPECT_EQ(host.budget, 10'000'000u);
}

// ---- (d) MultiGet: 64 keys, hashed once, looked up in every level, newest first.

struct Level {
  perhaps::LineBloom filter;
  std::vector<std::string> keys;
};

std::vector<Level> four_levels() {
  std::vector<Level> levels;
  for (std::size_t l = 0; l < 4; ++l) {
    auto keys = numbered("L", l, 1000u << 2 * l);
    perhaps::LineBloom filter({.keys = keys.size(), .fpr = 0.01});
    for (const auto& key : keys) filter.insert(key);
    levels.push_back({std::move(filter), std::move(keys)});
  }
  return levels;
}

TEST(MultiGet, HashesOnceAndQueriesEveryLevelForItsMask) {
  const std::vector<Level> levels = four_levels();
  // Key i is in level i mod 5; level 4 does not exist.
  std::vector<std::string> wanted;
  for (std::size_t i = 0; i < perhaps::kBatch; ++i) wanted.push_back(key_of("L", i % 5, i));
  const std::vector<std::string_view> keys(wanted.begin(), wanted.end());

  std::array<perhaps::Digest<perhaps::Hash>, perhaps::kBatch> digests;
  perhaps::digests_of(levels[0].filter.hasher(), std::span(keys), digests);
  for (const Level& level : levels) {
    for (const auto digest : digests) level.filter.prefetch(digest);
  }
  std::uint64_t pending = ~std::uint64_t{0};
  int reads = 0;
  for (std::size_t l = 0; l < levels.size(); ++l) {
    const std::uint64_t perhaps_here = levels[l].filter.may_contain(digests) & pending;
    reads += std::popcount(perhaps_here);
    for (std::size_t i = 0; i < keys.size(); ++i) {
      if (i % 5 != l) continue;
      EXPECT_TRUE(perhaps_here >> i & 1) << keys[i];
      pending &= ~(std::uint64_t{1} << i);  // found
    }
  }
  EXPECT_EQ(std::popcount(pending), 12);  // i mod 5 = 4
  // 52 keys are found; the other reads are false positives, 1 % of about 140 lookups of absent keys.
  EXPECT_LT(reads, 52 + 8);
}

TEST(MultiGet, UnlikeFamiliesShareADigest) {
  const perhaps::AnyHasher hasher = perhaps::Hash(7);
  const auto owned = numbered("key", 0, perhaps::kBatch);
  std::vector<Bytes> keys;
  for (const auto& key : owned) keys.push_back(bytes_of(key));
  std::array<std::uint64_t, perhaps::kBatch> digests;
  perhaps::hash_many(hasher, keys, digests);

  std::uint64_t expected = 0;
  for (std::size_t i = 0; i < keys.size(); i += 3) expected |= std::uint64_t{1} << i;
  using perhaps::Kind;
  for (const Kind family : {Kind::line, Kind::block, Kind::classic}) {
    auto level = perhaps::make_any(family, {.keys = 1'000, .fpr = 1e-6}, hasher);
    ASSERT_TRUE(level);
    for (std::size_t i = 0; i < keys.size(); i += 3) {
      ASSERT_EQ((*level)->insert(std::span(&keys[i], 1)), 1u);
    }
    const perhaps::DigestProbe* probe = (*level)->digests();
    ASSERT_NE(probe, nullptr);
    ASSERT_TRUE(probe->hasher() == hasher);
    for (const auto digest : digests) probe->prefetch(digest);
    EXPECT_EQ(probe->may_contain(digests), expected) << perhaps::name_of(family);
  }
}

}  // namespace
