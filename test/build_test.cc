// Promise: the input of a static filter -- the digests of each shard, ascending and distinct, and the place of the
// shard in the table -- depends only on the set of digests: not on their order, on repetitions, on the number of
// threads, or on whether they went through a file. Would notice: a lost, doubled or misplaced digest, with a family
// that stores the digests themselves; a file that cannot be written, by an error that names it.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <atomic>
#include <csignal>
#include <filesystem>
#include <numeric>
#include <thread>

#include "build/lane.h"
#include "build/sort.h"
#include "perhaps/static.h"
#include "support/keys.h"

namespace perhaps::test {
namespace {

using detail::StaticPipeline;
using Digests = std::vector<std::uint64_t>;

// Stores the digests themselves, on average `each` of them per shard.
class Verbatim final : public detail::StaticFamily {
 public:
  explicit Verbatim(std::uint64_t each, bool forgets = false) : each_(each), forgets_(forgets) {}
  std::string_view name() const noexcept override { return "verbatim"; }
  unsigned fix_shape(std::uint64_t keys) override {
    keys_ = keys;
    while (shard_bits_ < kMaxShardBits && keys >> shard_bits_ > each_) ++shard_bits_;
    return shard_bits_;
  }
  std::uint64_t shard_bytes(std::uint64_t keys) const noexcept override { return keys * 8; }
  void fix_size(std::uint64_t bytes) override { bytes_ = bytes; }
  void build_shard(std::span<const std::uint64_t> digests, std::span<std::byte> out, StaticScratch&) const override {
    EXPECT_EQ(out.size(), digests.size_bytes());
    std::ranges::copy(std::as_bytes(digests), out.begin());
  }
  std::uint64_t missing(const std::byte*, std::span<const std::uint64_t> digests) const noexcept override {
    return forgets_ && !digests.empty();
  }

  std::uint64_t keys_ = 0;
  std::uint64_t bytes_ = 0;
  unsigned shard_bits_ = 0;

 private:
  std::uint64_t each_;
  bool forgets_;
};

Digests random_words(std::uint64_t seed, std::uint64_t count) {
  Digests words(count);
  for (std::uint64_t i = 0; i < count; ++i) words[i] = Stream{seed}.at(i);
  return words;
}

void feed(StaticPipeline& pipeline, const Digests& digests) {
  pipeline.share_out(digests.size(), [&](StaticPipeline::Lane& lane, std::uint64_t from, std::uint64_t size) {
    StaticPipeline::add(lane, digests.data() + from, size);
  });
}

// The expected table, built the slow way.
Digests expected(Digests digests, unsigned shard_bits) {
  std::ranges::sort(digests);
  digests.erase(std::unique(digests.begin(), digests.end()), digests.end());
  Digests table((std::size_t{1} << shard_bits) + 1, 0);
  for (std::size_t shard = 0; shard < table.size(); ++shard) {
    const auto before = std::ranges::partition_point(
        digests, [&](std::uint64_t h) { return shard_bits == 0 ? shard > 0 : h >> (64 - shard_bits) < shard; });
    table[shard] = (table.size() + static_cast<std::size_t>(before - digests.begin())) * 8;
  }
  table.insert(table.end(), digests.begin(), digests.end());
  return table;
}

void expect_exact(const Digests& digests, const BuildOptions& options, std::uint64_t each, bool spills) {
  SCOPED_TRACE(std::to_string(digests.size()) + " digests, " + std::to_string(options.threads) + " threads, memory " +
               std::to_string(options.memory) + ", " + std::to_string(each) + " a shard");
  StaticPipeline pipeline(options);
  feed(pipeline, digests);
  Verbatim family(each);
  const auto table = pipeline.finish(family);
  ASSERT_TRUE(table) << table.error().detail;
  EXPECT_EQ(pipeline.spilled_bytes() != 0, spills);
  const Digests wanted = expected(digests, family.shard_bits_);
  EXPECT_EQ(family.keys_ + (std::size_t{1} << family.shard_bits_) + 1, wanted.size());
  EXPECT_EQ(family.bytes_, table->size());
  EXPECT_EQ(wanted.size() * 8, table->size());
  EXPECT_EQ(0, std::memcmp(wanted.data(), table->data(), std::min<std::size_t>(table->size(), wanted.size() * 8)));
}

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

TEST(Build, FewDigests) {
  for (const std::uint64_t count : {0, 1, 2, 3, 10, 1000, 65'536, 65'537, 300'000}) {
    for (const unsigned threads : {1u, 3u}) {
      expect_exact(random_words(count, count), {.threads = threads}, 1000, false);
      expect_exact(random_words(count, count), {.threads = threads, .memory = 64 * kMiB}, 1 << 20, false);
    }
  }
}

TEST(Build, ManyDigestsInMemoryAndThroughAFile) {
  const Digests digests = random_words(1, 1'100'000);
  for (const unsigned threads : {1u, 2u}) {
    for (const std::uint64_t each : {std::uint64_t{100}, std::uint64_t{100'000}, std::uint64_t{1} << 30}) {
      expect_exact(digests, {.threads = threads}, each, false);
      expect_exact(digests, {.threads = threads, .memory = 1}, each, true);
    }
    expect_exact(digests, {.threads = threads, .memory = 5 * kMiB}, 10'000, true);
  }
}

TEST(Build, OrderAndRepetitionsDoNotMatter) {
  Digests once = random_words(2, 1000);
  Digests often;
  for (int i = 0; i < 1000; ++i) often.insert(often.end(), once.begin(), once.end());
  std::ranges::reverse(once);
  for (const std::uint64_t memory : {std::uint64_t{0}, std::uint64_t{1}}) {
    StaticPipeline one({}), many({.threads = 2, .memory = memory});
    feed(one, once);
    feed(many, often);
    Verbatim family(100), other(100);
    const auto a = one.finish(family);
    const auto b = many.finish(other);
    ASSERT_TRUE(a && b);
    EXPECT_EQ(family.keys_, 1000u);
    EXPECT_EQ(other.keys_, 1000u);
    EXPECT_TRUE(std::ranges::equal(a->bytes(), b->bytes()));
  }
}

// Digests of a poor hash: all in one bucket, ascending, descending, equal, at the ends.
TEST(Build, DigestsThatAreNotSpread) {
  const std::uint64_t n = 700'000;
  Digests digests(n);
  std::iota(digests.begin(), digests.end(), 0);
  expect_exact(digests, {.threads = 2}, 10'000, false);
  expect_exact(digests, {.threads = 2, .memory = 1}, 10'000, true);
  for (std::uint64_t& h : digests) h = ~h;
  expect_exact(digests, {}, 10'000, false);
  for (std::uint64_t i = 0; i < n; ++i) digests[i] = i << 44;
  expect_exact(digests, {}, 10'000, false);
  expect_exact(Digests(n, 5), {}, 10'000, false);
  expect_exact(Digests(n, UINT64_MAX), {.memory = 1}, 10'000, true);
}

// More than 2^32 digests spilled at once, as a lane of 64 GiB does: where each bucket begins does not wrap.
TEST(Build, ARunOfMoreThan32BitsOfDigests) {
  std::vector<std::uint64_t> sizes(build::kBuckets);
  std::uint64_t sum = 0;
  for (std::size_t b = 0; b < sizes.size(); ++b) {
    sizes[b] = (b == 5 ? std::uint64_t{1} << 33 : std::uint64_t{1} << 21) + b * 1001;
    sum += sizes[b];
  }
  build::SpilledRun run(sizes);
  run.put_at(4096);
  EXPECT_EQ(run.digests(), sum);
  std::uint64_t at = 4096;
  for (std::size_t b = 0; b < sizes.size(); at += sizes[b++] * 8) {
    ASSERT_EQ(run.at(b), at);
    ASSERT_EQ(run.size(b), sizes[b]);
  }
  EXPECT_GT(at, std::uint64_t{1} << 36);
}

TEST(Build, SortsWhateverItIsGiven) {
  for (const std::uint64_t n : {0, 1, 2, 5, 6, 100, 65'536, 65'537, 200'000}) {
    for (const unsigned common : {0u, 12u, 60u, 64u}) {
      Digests digests = random_words(n, n);
      for (std::uint64_t& h : digests) h = common == 64 ? 9 : common == 0 ? h : h >> common;
      Digests wanted = digests;
      std::ranges::sort(wanted);
      wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
      Digests other(n);
      const auto sorted = build::sort_distinct(digests, other, common);
      EXPECT_TRUE(std::ranges::equal(sorted, wanted)) << n << ", common " << common;
    }
  }
}

// Lanes in the caller's own threads, fed in uneven pieces.
TEST(Build, Lanes) {
  const Digests digests = random_words(3, 1'200'000);
  StaticPipeline pipeline({.threads = 3});
  {
    std::vector<std::jthread> threads;
    for (std::size_t t = 0; t < 3; ++t) {
      threads.emplace_back([&, t] {
        StaticPipeline::Lane& lane = pipeline.add_lane();
        for (std::size_t i = t; i < digests.size(); i += 3) EXPECT_TRUE(StaticPipeline::add(lane, &digests[i], 1));
      });
    }
  }
  Verbatim family(5000);
  const auto table = pipeline.finish(family);
  ASSERT_TRUE(table);
  const Digests wanted = expected(digests, family.shard_bits_);
  ASSERT_EQ(wanted.size() * 8, table->size());
  EXPECT_EQ(0, std::memcmp(wanted.data(), table->data(), table->size()));
}

TEST(Build, ProgressRisesAndEnds) {
  std::vector<BuildProgress> seen;
  BuildOptions options{.threads = 2, .progress = [&](const BuildProgress& p) { seen.push_back(p); }};
  StaticPipeline pipeline(options);
  feed(pipeline, random_words(4, 2'500'000));
  Verbatim family(100'000);
  ASSERT_TRUE(pipeline.finish(family));
  ASSERT_FALSE(seen.empty());
  for (std::size_t i = 1; i < seen.size(); ++i) {
    if (seen[i].phase == seen[i - 1].phase) {
      EXPECT_GT(seen[i].done, seen[i - 1].done);
    } else {
      EXPECT_GT(seen[i].phase, seen[i - 1].phase);
    }
  }
  EXPECT_EQ(seen.front().phase, BuildPhase::collecting);
  EXPECT_EQ(seen.back().phase, BuildPhase::building);
  EXPECT_EQ(seen.back().done, 2'500'000u);
  EXPECT_EQ(seen.back().total, 2'500'000u);
}

TEST(Build, AMissingKeyIsAnError) {
  for (const bool verify : {true, false}) {
    StaticPipeline pipeline({.verify = verify});
    feed(pipeline, random_words(5, 100));
    Verbatim family(10, true);
    const auto table = pipeline.finish(family);
    EXPECT_EQ(bool(table), !verify);
    if (table) continue;
    EXPECT_NE(table.error().detail.find("verbatim: 1 of the"), std::string::npos) << table.error().detail;
  }
}

class Folder {
 public:
  Folder() : path_(std::filesystem::temp_directory_path() / ("build_test." + std::to_string(getpid()))) {
    std::filesystem::create_directory(path_);
  }
  ~Folder() { std::filesystem::remove_all(path_); }
  std::string path() const { return path_; }
  bool is_empty() const { return std::filesystem::is_empty(path_); }

 private:
  std::filesystem::path path_;
};

TEST(Build, AFolderThatIsNotThere) {
  const Digests digests = random_words(6, 600'000);
  StaticPipeline pipeline({.threads = 2, .memory = 1, .spill_folder = "/no/such/folder"});
  feed(pipeline, digests);
  Verbatim family(1000);
  const auto table = pipeline.finish(family);
  ASSERT_FALSE(table);
  EXPECT_EQ(table.error().code, Errc::io);
  EXPECT_NE(table.error().detail.find("/no/such/folder"), std::string::npos) << table.error().detail;
}

// A limit on the file size acts like a full disk: the write fails half-way.
TEST(Build, ADiskThatIsFull) {
  const Folder folder;
  const Digests digests = random_words(7, 1'500'000);
  const auto before = std::signal(SIGXFSZ, SIG_IGN);
  rlimit old{};
  ASSERT_EQ(0, getrlimit(RLIMIT_FSIZE, &old));
  for (const std::uint64_t most : {std::uint64_t{1} << 20, std::uint64_t{16} << 20}) {  // while collecting, sorting
    rlimit limit = old;
    limit.rlim_cur = most;
    ASSERT_EQ(0, setrlimit(RLIMIT_FSIZE, &limit));
    StaticPipeline pipeline({.threads = 2, .memory = 4 * kMiB, .spill_folder = folder.path()});
    feed(pipeline, digests);
    Verbatim family(1000);
    const auto table = pipeline.finish(family);
    ASSERT_EQ(0, setrlimit(RLIMIT_FSIZE, &old));
    ASSERT_FALSE(table) << most;
    EXPECT_EQ(table.error().code, Errc::io);
    EXPECT_NE(table.error().detail.find(folder.path() + " cannot be written"), std::string::npos)
        << table.error().detail;
    EXPECT_TRUE(folder.is_empty());
  }
  std::signal(SIGXFSZ, before);
}

TEST(Build, NothingIsLeftBehind) {
  const Folder folder;
  StaticPipeline pipeline({.memory = 1, .spill_folder = folder.path()});
  feed(pipeline, random_words(8, 700'000));
  EXPECT_GT(pipeline.spilled_bytes(), 0u);
  EXPECT_TRUE(folder.is_empty());
}

}  // namespace
}  // namespace perhaps::test
