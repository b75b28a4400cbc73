// Promise: flipped bits never crash a reader, never make it allocate more than the bytes justify, and, wherever there
// is a checksum, never become a *no*: the file is refused, or all its keys still answer *perhaps*. Formats of other
// systems without a checksum lose keys to a flipped bit by their nature, as they do in the system itself: how many
// flips did is printed, and each such file gives a tool and an engine the same answers. Would notice: a crash, a lost
// key under a checksum, an allocation of more than 2 GiB (RLIMIT_AS).
//
// PERHAPS_FLIPS: damaged copies of each of the four groups (default: a million). Each has one, two or three flipped
// bits.
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <memory>
#include <set>

#include "conformance/rebuild.h"
#include "perhaps/perhaps.h"
#include "support/keys.h"

namespace perhaps {
namespace {

namespace fs = std::filesystem;
using test::Stream;
using Buffer = std::vector<std::byte>;

constexpr std::uint64_t kSeed = 15;
constexpr std::size_t kKeys = 300;

std::uint64_t flips_wanted() {
  const char* const text = std::getenv("PERHAPS_FLIPS");
  return text == nullptr ? 1'000'000 : std::strtoull(text, nullptr, 10);
}

struct Keys {
  explicit Keys(std::vector<Buffer> all) : owned(std::move(all)), bytes(owned.begin(), owned.end()) {}
  explicit Keys(std::size_t count) : Keys(made(count)) {}
  Keys(const Keys&) = delete;
  static std::vector<Buffer> made(std::size_t count) {
    std::vector<Buffer> all;
    for (std::size_t i = 0; i < count; ++i) {
      char text[32];
      std::snprintf(text, sizeof text, "key%06zu", i);  // in order, for the tables
      const Bytes key = bytes_of(std::string_view(text));
      all.emplace_back(key.begin(), key.end());
    }
    return all;
  }
  std::vector<Buffer> owned;
  std::vector<Bytes> bytes;
};

Buffer read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in) << path;
  const std::vector<char> text((std::istreambuf_iterator<char>(in)), {});
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

std::size_t missing_in(const AnyFilter& filter, std::span<const Bytes> keys) {
  std::vector<std::uint64_t> answers(keys.size() / kBatch + 1);
  filter.may_contain(keys, answers);
  std::size_t missing = 0;
  for (std::size_t i = 0; i < keys.size(); ++i) missing += (answers[i / kBatch] >> (i % kBatch) & 1) == 0;
  return missing;
}

// Damages copies of `good`: calls use(damaged) `count` times.
template <class Use>
void damage(const Buffer& good, std::uint64_t count, std::uint64_t seed, Use use) {
  if (good.empty()) return;
  const Stream random{seed};
  Buffer bytes = good;
  for (std::uint64_t i = 0; i < count && !testing::Test::HasFailure(); ++i) {
    std::uint64_t bits[3];
    for (std::uint64_t j = 0; j <= i % 3; ++j) {
      bits[j] = random.at(3 * i + j) % (good.size() * 8);
      // Half of the flips hit the first bytes, where the numbers are.
      if (i % 2 == 0) bits[j] %= std::min<std::size_t>(good.size(), 256) * 8;
      bytes[bits[j] / 8] ^= std::byte{1} << bits[j] % 8;
    }
    if (bytes != good) use(std::as_const(bytes));  // two flips of one bit are none
    bytes = good;
  }
}

struct Count {
  std::uint64_t tried = 0;
  std::uint64_t refused = 0;
  std::uint64_t lost = 0;  // opened, and denied a key
  void print(const std::string& name) const {
    std::printf("%-44s %9llu tried %9llu refused %9llu lost a key\n", name.c_str(),
                static_cast<unsigned long long>(tried), static_cast<unsigned long long>(refused),
                static_cast<unsigned long long>(lost));
    std::fflush(stdout);
  }
};

class Flips : public testing::Test {
 protected:
  void SetUp() override {
    const rlimit limit{std::uint64_t{2} << 30, RLIM_INFINITY};
    ASSERT_EQ(setrlimit(RLIMIT_AS, &limit), 0);
    folder_ = fs::temp_directory_path() / ("perhaps-flips-" + std::to_string(getpid()));
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }
  fs::path folder_;
};

KeyedHash secret() {
  KeyedHash::Secret key;
  for (unsigned i = 0; i < key.size(); ++i) key[i] = std::byte(i);
  return KeyedHash(key);
}

TEST_F(Flips, Containers) {
  const Keys keys(kKeys);
  Count all;
  for (const Family& family : families()) {
    for (const bool keyed : {false, true}) {
      const AnyHasher hasher = keyed ? AnyHasher(secret()) : AnyHasher(Hash());
      auto builder = make_builder(family.kind, {.keys = family.sized_first ? kKeys : 0, .fpr = 0.001}, hasher);
      ASSERT_TRUE(builder) << family.name;
      ASSERT_TRUE((*builder)->lanes(1)[0]->insert(keys.bytes));
      const auto built = (*builder)->finish();
      ASSERT_TRUE(built);
      ASSERT_TRUE((*built)->save(folder_ / "f", (*built)->record()));
      OpenOptions options;
      if (keyed) options.secret = secret();
      Count verified;
      Count unverified;
      damage(read(folder_ / "f"), flips_wanted() / (2 * families().size()), kSeed, [&](const Buffer& bytes) {
        options.verify = true;
        ++verified.tried;
        const auto file = File::over(bytes, options);
        verified.refused += !file;
        if (file) verified.lost += missing_in(*file->any(), keys.bytes) != 0;
        options.verify = false;
        ++unverified.tried;
        const auto unchecked = File::over(bytes, options);
        unverified.refused += !unchecked;
        if (unchecked) unverified.lost += missing_in(*unchecked->any(), std::span(keys.bytes).first(64)) != 0;
      });
      const std::string name = std::string(family.name) + (keyed ? " keyed" : "");
      verified.print("container " + name);
      unverified.print("container " + name + ", not verified");
      EXPECT_EQ(verified.lost, 0u) << name;
      EXPECT_GT(unverified.refused, 0u) << name;  // the header is always checked
      all.tried += verified.tried, all.refused += verified.refused, all.lost += verified.lost;
    }
  }
  all.print("containers");
  EXPECT_GE(all.tried, flips_wanted() * 9 / 10);
}

struct Subject {
  std::string name;
  const format::Codec* codec;
  format::Params params;
  std::shared_ptr<const Keys> keys;
  Buffer bytes;
  bool asked = true;  // every key answers *perhaps* while the file is whole
};

// The manifest's lists of keys: 4 bytes that say how many, then each after 4 bytes that say how long.
std::vector<Buffer> keys_in(const Buffer& file) {
  std::vector<Buffer> keys;
  std::uint32_t size = 0;
  for (std::size_t at = 4; at + 4 <= file.size(); at += 4 + size) {
    std::memcpy(&size, file.data() + at, 4);
    keys.emplace_back(file.data() + at + 4, file.data() + at + 4 + size);
  }
  return keys;
}

// What each codec builds, in each form that a checksum depends on, and files that the systems themselves wrote.
std::vector<Subject> subjects() {
  std::vector<Subject> all;
  const auto keys = std::make_shared<const Keys>(kKeys);
  for (const format::Codec* const codec : format::codecs()) {
    if (codec->build == nullptr) continue;
    for (const char* const form : {"stream", "dump"}) {
      format::Params params(*codec);
      const bool has_forms = static_cast<bool>(params.set("form", form));
      if (!has_forms && std::string_view(form) == "dump") continue;
      auto built = codec->build(keys->bytes, params);
      EXPECT_TRUE(built) << codec->name;
      std::string name = std::string(codec->name) + (has_forms ? std::string(" ") + form : "");
      if (built) all.push_back({std::move(name), codec, params, keys, *std::move(built)});
    }
  }
  const fs::path folder = fs::path(PERHAPS_TEST_DATA) / "golden/formats";
  std::ifstream in(folder / "manifest.json");
  const nlohmann::json manifest = nlohmann::json::parse(in);
  for (const auto& one : manifest.at("cases")) {
    if (one.at("params").at("kind").get<std::string>().ends_with("_mangled")) continue;
    if (one.contains("keys_gen") || one.value("keys_not_matched", 1) != 0) continue;
    if (one.at("filter_bytes").get<std::uint64_t>() > 64 << 10) continue;
    const format::Codec* const codec = conformance::codec_of(one);
    if (codec == nullptr) continue;
    Subject subject{std::string(codec->name) + ", golden files", codec, format::Params(*codec), nullptr,
                    read(folder / one.at("filter"))};
    std::vector<Buffer> inside = conformance::keys_inside(one, keys_in(read(folder / one.at("keys"))));
    if (inside.size() > kKeys) inside.resize(kKeys);
    subject.keys = std::make_shared<const Keys>(std::move(inside));
    // Parameters that a reader has to be told may differ from the initial ones: such a file is only to be survived.
    const auto opened = codec->open({.bytes = subject.bytes}, subject.params);
    if (!opened || missing_in(*opened->whole, subject.keys->bytes) != 0) {
      subject.name += ", keys unknown";
      subject.asked = false;
    }
    all.push_back(std::move(subject));
  }
  return all;
}

TEST_F(Flips, ForeignFiles) {
  // Formats with a checksum over everything that an answer depends on.
  const std::set<std::string> checked = {
      "redisbloom-bf dump",     "redisbloom-cf dump",          "mini_lsm",
      "mini_lsm, golden files", "leveldb-table, golden files", "rocksdb-table, golden files"};
  const std::vector<Subject> all = subjects();
  std::map<std::string, Count> counts;
  for (const Subject& subject : all) {
    Count& count = counts[subject.name];
    damage(subject.bytes, flips_wanted() / all.size() + 1, kSeed, [&](const Buffer& bytes) {
      ++count.tried;
      const auto strict = subject.codec->open({.bytes = bytes}, subject.params);
      const auto engine = subject.codec->open({.bytes = bytes, .file_name = {}, .on_damage = format::OnDamage::perhaps},
                                              subject.params);
      ASSERT_TRUE(engine) << subject.name;
      const std::size_t missing = missing_in(*engine->whole, subject.keys->bytes);
      if (!strict) {
        ++count.refused;
        ASSERT_EQ(missing, 0u) << subject.name << ": refused, yet an engine is told no";
      } else {
        ASSERT_EQ(missing_in(*strict->whole, subject.keys->bytes), missing) << subject.name;
        count.lost += subject.asked && missing != 0;
      }
    });
  }
  Count sum;
  for (const auto& [name, count] : counts) {
    count.print(name);
    if (checked.contains(name)) {
      EXPECT_EQ(count.lost, 0u) << name;
    }
    sum.tried += count.tried, sum.refused += count.refused, sum.lost += count.lost;
  }
  sum.print("foreign files");
  for (const std::string& name : checked) EXPECT_EQ(counts.count(name), 1u) << name;
  EXPECT_GE(sum.tried, flips_wanted() * 9 / 10);
}

// A packed piece has no checksum of its own: who stores it adds one (the filter block below).
TEST_F(Flips, PackedPieces) {
  std::vector<std::uint64_t> digests(kKeys);
  for (std::size_t i = 0; i < kKeys; ++i) digests[i] = Hash()(Stream{kSeed}.at(i)).value;
  Count sum;
  const auto one = [&](Kind kind, std::string_view name, std::uint64_t share) {
    Count count;
    damage(pack(kind, digests, 12), share, kSeed, [&](const Buffer& bytes) {
      ++count.tried;
      const PackedView view = PackedView::over(bytes);
      count.refused += !view.usable();
      bool lost = false;
      for (const std::uint64_t digest : digests) lost |= !view.may_contain(digest);
      count.lost += lost;
      ASSERT_TRUE(view.usable() || !lost) << name << ": unusable, yet a key is denied";
    });
    count.print("packed " + std::string(name));
    sum.tried += count.tried, sum.refused += count.refused, sum.lost += count.lost;
  };
  const std::uint64_t share = flips_wanted() / (families().size() + 1) + 1;
  one(Kind::dense, "dense", share);
  for (const Family& family : families()) {
    one(can_pack(family.kind) ? family.kind : Kind::dense, family.name, share);
  }
  sum.print("packed pieces");
  EXPECT_GE(sum.tried, flips_wanted() * 9 / 10);
}

TEST_F(Flips, FilterBlocks) {
  const Keys keys(kKeys);
  Count sum;
  for (const FilterMode mode : {FilterMode::full, FilterMode::partitioned, FilterMode::per_block}) {
    for (const Kind kind : {Kind::line, Kind::dense, Kind::ribbon, Kind::cuckoo}) {
      if (mode == FilterMode::per_block && !can_pack_few(kind)) continue;
      FilterBlockBuilder builder(
          {.mode = mode, .family = kind, .prefix = PrefixExtractor::fixed(5), .piece_bytes = 128});
      for (std::size_t i = 0; i < kKeys; ++i) {
        builder.add(keys.bytes[i]);
        if (mode == FilterMode::per_block && i % 50 == 49) builder.next_block();
      }
      Count count;
      damage(builder.finish(), flips_wanted() / 12 + 1, kSeed, [&](const Buffer& bytes) {
        ++count.tried;
        const FilterBlock block = FilterBlock::over(bytes);
        bool lost = false;
        for (std::size_t i = 0; i < kKeys; ++i) {
          lost |= mode == FilterMode::per_block ? !block.may_contain(i / 50, keys.bytes[i])
                                                : !block.may_contain(keys.bytes[i]);
        }
        count.refused += !block.damage().empty();
        count.lost += lost;
      });
      EXPECT_EQ(count.lost, 0u) << name_of(kind);
      EXPECT_GT(count.refused, 0u) << name_of(kind);
      sum.tried += count.tried, sum.refused += count.refused, sum.lost += count.lost;
    }
  }
  sum.print("filter blocks");
  EXPECT_GE(sum.tried, flips_wanted() * 9 / 10);
}

}  // namespace
}  // namespace perhaps
