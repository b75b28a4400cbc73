// The same tests for every codec of the registry.
//
// Promises: a codec opens what it builds, without a false negative, with the same answers in single lookups and
// batches; its files are recognised as its own or not at all, never as those of another codec. A file that is damaged
// anywhere is refused by name and fact or opens, and is never read out of range; inside an engine, detected damage
// never becomes a *no*. Each codec has a page whose example is rebuilt byte for byte, and files named after their
// defect. Would notice: a codec that trusts a length, that does not fail open inside an engine, whose sniff is too
// permissive, or whose page is out of date.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <random>
#include <set>

#include "conformance/rebuild.h"
#include "perhaps/format/format.h"
#include "support/sanitized.h"

namespace perhaps::format {

// The name that gtest gives to a parameter.
inline void PrintTo(const Codec* codec, std::ostream* out) { *out << codec->name; }

namespace {

using Buffer = std::vector<std::byte>;
namespace fs = std::filesystem;

Buffer buffer_of(std::string_view text) {
  const Bytes bytes = bytes_of(text);
  return {bytes.begin(), bytes.end()};
}

Buffer read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in) << path;
  const std::vector<char> text((std::istreambuf_iterator<char>(in)), {});
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

std::vector<Buffer> text_keys(std::size_t count) {
  std::vector<Buffer> keys;
  for (std::size_t i = 0; i < count; ++i) keys.push_back(buffer_of("key " + std::to_string(i * i)));
  return keys;
}

std::vector<Buffer> binary_keys(std::size_t count) {
  std::mt19937_64 random(7);
  std::vector<Buffer> keys;
  for (std::size_t i = 0; i < count; ++i) {
    Buffer key(1 + i % 40);
    for (std::byte& b : key) b = static_cast<std::byte>(random());
    keys.push_back(std::move(key));
  }
  return keys;
}

// A file in the format of the codec, and keys that it holds.
struct Sample {
  std::string name;
  Params params;
  std::vector<Buffer> keys;
  Buffer bytes;
};

// Keys that a system itself leaves out: its filters answer *no* for them.
bool left_out(const Codec& codec, const Buffer& key) { return codec.name == "datasketches" && key.empty(); }
// Key sets that a system itself refuses.
bool refuses(const Codec& codec, const std::vector<Buffer>& keys) {
  if (codec.name == "xor8" || codec.name == "xor16") return keys.empty();
  return codec.name == "hadoop" && std::ranges::any_of(keys, [](const Buffer& key) { return key.empty(); });
}

// A Ribbon policy of RocksDB writes Bloom filters for few keys, and its readers go by the trailer only.
bool is_blob_of_rocksdb(std::string_view name) { return name.starts_with("rocksdb-") && name != "rocksdb-table"; }
bool alike(std::string_view a, std::string_view b) {
  return a == b || (is_blob_of_rocksdb(a) && is_blob_of_rocksdb(b));
}

// The initial parameters, and each word and flag changed one at a time.
std::vector<std::pair<std::string, Params>> variants(const Codec& codec) {
  std::vector<std::pair<std::string, Params>> result;
  result.emplace_back("", Params(codec));
  for (const Param& param : codec.params) {
    std::string words(param.words);
    if (param.type == Param::Type::flag) words = "true|false";
    for (std::size_t from = 0; from < words.size();) {
      const std::size_t to = std::min(words.find('|', from), words.size());
      const std::string word = words.substr(from, to - from);
      from = to + 1;
      if (word == param.initial) continue;
      Params params(codec);
      EXPECT_TRUE(params.set(param.name, word)) << param.name << "=" << word;
      result.emplace_back(std::string(param.name) + "=" + word, std::move(params));
    }
  }
  return result;
}

std::vector<std::pair<std::string, std::vector<Buffer>>> key_sets() {
  std::vector<Buffer> twice = text_keys(50);
  for (const Buffer& key : text_keys(50)) twice.push_back(key);
  return {{"no keys", {}},
          {"one key", text_keys(1)},
          {"seven keys", text_keys(7)},
          {"a thousand keys", text_keys(1000)},
          {"duplicates", twice},
          {"binary keys", binary_keys(300)},
          {"the empty key", {buffer_of("a"), buffer_of(""), buffer_of("b")}}};
}

std::vector<Sample> built_samples(const Codec& codec) {
  std::vector<Sample> samples;
  if (codec.build == nullptr) return samples;
  for (const auto& [variant, params] : variants(codec)) {
    for (const auto& [set, keys] : key_sets()) {
      const std::vector<Bytes> views(keys.begin(), keys.end());
      auto built = codec.build(views, params);
      if (refuses(codec, keys)) {
        EXPECT_FALSE(built) << codec.name << ": " << set;
        continue;
      }
      EXPECT_TRUE(built) << codec.name << " " << variant << ": " << set << ": " << built.error().detail;
      if (!built) continue;
      Sample sample{std::string(codec.name) + " " + variant + ": " + set, params, {}, *std::move(built)};
      std::ranges::copy_if(keys, std::back_inserter(sample.keys), [&](const Buffer& k) { return !left_out(codec, k); });
      samples.push_back(std::move(sample));
    }
  }
  return samples;
}

// The two smallest files that other systems wrote, for codecs that only read.
std::vector<Sample> golden_samples(const Codec& codec) {
  std::vector<Sample> samples;
  const fs::path folder = fs::path(PERHAPS_TEST_DATA) / "golden/formats";
  if (codec.build != nullptr || !fs::exists(folder / "manifest.json")) return samples;
  std::ifstream in(folder / "manifest.json");
  const nlohmann::json manifest = nlohmann::json::parse(in);
  std::multimap<std::uint64_t, const nlohmann::json*> by_size;
  for (const auto& one : manifest.at("cases")) {
    if (one.at("params").at("kind").get<std::string>().ends_with("_mangled")) continue;
    if (one.contains("keys_gen") || one.value("keys_not_matched", 1) != 0) continue;
    if (conformance::codec_of(one) == &codec) by_size.emplace(one.at("filter_bytes").get<std::uint64_t>(), &one);
  }
  for (const auto& [size, one] : by_size) {
    if (samples.size() == 2) break;
    Sample sample{one->at("filter"), Params(codec), {}, read_file(folder / one->at("filter"))};
    const Buffer file = read_file(folder / one->at("keys"));
    const auto number = [&](std::size_t at) {
      std::uint32_t value = 0;
      std::memcpy(&value, file.data() + at, 4);
      return value;
    };
    for (std::size_t at = 4; at < file.size(); at += 4 + number(at)) {
      const auto* const key = file.data() + at + 4;
      sample.keys.emplace_back(key, key + number(at));
    }
    sample.keys = conformance::keys_inside(*one, sample.keys);
    samples.push_back(std::move(sample));
  }
  return samples;
}

std::vector<Sample> samples_of(const Codec& codec) {
  std::vector<Sample> samples = built_samples(codec);
  for (Sample& sample : golden_samples(codec)) samples.push_back(std::move(sample));
  return samples;
}

// For the tests of damage: every variant once with few keys, and one with more.
std::vector<Sample> samples_to_damage(const Codec& codec) {
  std::vector<Sample> samples = samples_of(codec);
  std::erase_if(samples, [&](const Sample& s) {
    const bool first = s.name.starts_with(std::string(codec.name) + " :");
    return codec.build != nullptr && !s.name.ends_with("seven keys") && !(first && s.name.ends_with("a thousand keys"));
  });
  return samples;
}

std::vector<std::uint64_t> query(const AnyFilter& filter, std::span<const Buffer> keys) {
  const std::vector<Bytes> views(keys.begin(), keys.end());
  std::vector<std::uint64_t> answers(keys.size() / kBatch + 1);
  filter.may_contain(std::span(views), std::span(answers));
  return answers;
}

std::size_t missing_in(const AnyFilter& filter, std::span<const Buffer> keys) {
  const std::vector<std::uint64_t> answers = query(filter, keys);
  std::size_t missing = 0;
  for (std::size_t i = 0; i < keys.size(); ++i) missing += (answers[i / kBatch] >> (i % kBatch) & 1) == 0;
  return missing;
}

void expect_sane(const Description& d, const std::string& name) {
  EXPECT_FALSE(d.format.empty()) << name;
  EXPECT_FALSE(d.family.empty()) << name;
  EXPECT_GE(d.fill, 0) << name;
  EXPECT_LE(d.fill, 1) << name;
  EXPECT_GE(d.fpr, 0) << name;
  EXPECT_LE(d.fpr, 1) << name;
  EXPECT_GE(d.keys_estimated, 0) << name;
}

void expect_named(const Error& error, const Codec& codec, const std::string& name) {
  EXPECT_TRUE(error.detail.starts_with(std::string(codec.name) + ": ")) << name << ": " << error.detail;
}

// Opens bytes that may be damaged, as a tool and as an engine would. Returns whether damage was detected.
bool survive(const Codec& codec, const Sample& sample, const Buffer& bytes, const std::string& what) {
  // No spare capacity, so that AddressSanitizer detects any access past the end.
  const Buffer exact(bytes.begin(), bytes.end());
  const std::string name = sample.name + ", " + what;
  const auto strict = codec.open({.bytes = exact, .file_name = {}, .on_damage = OnDamage::error}, sample.params);
  const auto lenient = codec.open({.bytes = exact, .file_name = {}, .on_damage = OnDamage::perhaps}, sample.params);
  EXPECT_TRUE(lenient) << name << ": " << (lenient ? "" : lenient.error().detail);
  if (!lenient) return true;
  if (!strict) {
    expect_named(strict.error(), codec, name);
    EXPECT_EQ(missing_in(*lenient->whole, sample.keys), 0u)
        << name << ": damage was detected, yet a key is answered no";
    return true;
  }
  EXPECT_EQ(query(*strict->whole, sample.keys), query(*lenient->whole, sample.keys)) << name;
  for (const Entry& entry : strict->entries) {
    EXPECT_LE(entry.offset, bytes.size()) << name;
    EXPECT_LE(entry.size, bytes.size() - entry.offset) << name;
  }
  if (strict->seek != nullptr) query(*strict->seek, sample.keys);
  return false;
}

class EveryCodec : public testing::TestWithParam<const Codec*> {
 protected:
  const Codec& codec() const { return *GetParam(); }
};

TEST_P(EveryCodec, OpensWhatItBuilds) {
  for (const Sample& sample : samples_of(codec())) {
    const auto opened = codec().open({.bytes = sample.bytes}, sample.params);
    ASSERT_TRUE(opened) << sample.name << ": " << opened.error().detail;
    EXPECT_EQ(opened->format, codec().name);
    ASSERT_NE(opened->whole, nullptr);
    EXPECT_EQ(missing_in(*opened->whole, sample.keys), 0u) << sample.name;
    for (const Entry& entry : opened->entries) {
      ASSERT_NE(entry.filter, nullptr);
      EXPECT_LE(entry.offset + entry.size, sample.bytes.size()) << sample.name;
      if (!entry.format.empty()) {
        const Codec* const inner = find(entry.format);
        ASSERT_NE(inner, nullptr) << entry.format;
        const Bytes part = Bytes(sample.bytes).subspan(entry.offset, entry.size);
        EXPECT_TRUE(inner->open({.bytes = part}, inner == &codec() ? sample.params : Params(*inner))) << sample.name;
      }
    }
  }
}

TEST_P(EveryCodec, AnswersAlikeAloneAndInBatches) {
  std::vector<Buffer> keys = text_keys(200);
  for (const Buffer& key : binary_keys(137)) keys.push_back(key);
  for (const Sample& sample : samples_of(codec())) {
    const auto opened = codec().open({.bytes = sample.bytes}, sample.params);
    ASSERT_TRUE(opened) << sample.name;
    for (const AnyFilter* filter : {opened->whole.get(), opened->seek.get()}) {
      if (filter == nullptr) continue;
      const std::vector<std::uint64_t> column = query(*filter, keys);
      for (std::size_t i = 0; i < keys.size(); ++i) {
        ASSERT_EQ(filter->may_contain(Bytes(keys[i])), (column[i / kBatch] >> (i % kBatch) & 1) != 0)
            << sample.name << ", key " << i;
      }
      for (std::size_t from = 0; from < keys.size(); from += kBatch) {
        const auto part = std::span(keys).subspan(from, std::min(kBatch, keys.size() - from));
        const std::vector<Bytes> views(part.begin(), part.end());
        ASSERT_EQ(filter->may_contain(std::span(views)), column[from / kBatch]) << sample.name;
      }
      EXPECT_EQ(filter->may_contain(std::span<const Bytes>()), 0u);
    }
  }
}

TEST_P(EveryCodec, IsNotMistakenForAnother) {
  for (const Sample& sample : samples_of(codec())) {
    const auto found = detect({.bytes = sample.bytes});
    if (found) {
      EXPECT_TRUE(alike((*found)->name, codec().name)) << sample.name << " is mistaken for " << (*found)->name;
      continue;
    }
    const std::string& why = found.error().detail;
    EXPECT_TRUE(why.find("no known") != std::string::npos || why.find(codec().name) != std::string::npos)
        << sample.name << ": " << why;
  }
}

TEST_P(EveryCodec, DescribesItself) {
  for (const Sample& sample : samples_to_damage(codec())) {
    const auto opened = codec().open({.bytes = sample.bytes}, sample.params);
    ASSERT_TRUE(opened);
    const Description d = opened->whole->describe();
    expect_sane(d, sample.name);
    EXPECT_TRUE(alike(d.format, codec().name)) << sample.name << " describes itself as " << d.format;
    // The files are sized for their keys, by default to a few percent at most; but without an index, a lookup in a
    // filter block queries all of its windows.
    if (sample.keys.size() == 1000) {
      EXPECT_LT(d.fpr, codec().name == "leveldb-filterblock" ? 0.5 : 0.2) << sample.name;
    }
    if (d.keys) {
      EXPECT_LE(*d.keys, 2 * sample.keys.size()) << sample.name;
    }
  }
}

TEST_P(EveryCodec, SurvivesTruncation) {
  for (const Sample& sample : samples_to_damage(codec())) {
    const std::size_t size = sample.bytes.size();
    const std::size_t step = std::max<std::size_t>(1, size / 400);
    for (std::size_t cut = 0; cut < size; ++cut) {
      if (size > 2048 && cut > 256 && cut + 256 < size && cut % step != 0) continue;
      survive(codec(), sample, {sample.bytes.begin(), sample.bytes.begin() + static_cast<std::ptrdiff_t>(cut)},
              "cut to " + std::to_string(cut) + " of " + std::to_string(size));
      if (HasFailure()) return;
    }
  }
}

TEST_P(EveryCodec, SurvivesFlippedBits) {
  for (const Sample& sample : samples_to_damage(codec())) {
    const std::size_t size = sample.bytes.size();
    for (std::size_t at = 0; at < size; ++at) {
      if (at >= 64 && at + 64 < size) continue;
      for (unsigned bit = 0; bit < 8; ++bit) {
        if (test::kSanitized && bit != at % 8) continue;
        Buffer flipped = sample.bytes;
        flipped[at] ^= std::byte{1} << bit;
        survive(codec(), sample, flipped, "bit " + std::to_string(bit) + " of byte " + std::to_string(at));
        if (HasFailure()) return;
      }
    }
  }
}

TEST_P(EveryCodec, SurvivesAnything) {
  std::mt19937_64 random(20260101);
  const Sample nothing{"random bytes", Params(codec()), text_keys(20), {}};
  for (int round = 0; round < 3000; ++round) {
    Buffer bytes(random() % (round % 2 == 0 ? 40 : 400));
    for (std::byte& b : bytes) b = static_cast<std::byte>(random());
    // Small numbers look like lengths and counts.
    if (round % 3 == 0) {
      for (std::byte& b : bytes) b &= random() % 4 == 0 ? std::byte{0x0f} : std::byte{0};
    }
    survive(codec(), nothing, bytes, "seed 20260101, round " + std::to_string(round));
    if (HasFailure()) return;
  }
  // A real beginning and end with something else between them.
  for (const Sample& sample : samples_to_damage(codec())) {
    for (int round = 0; round < 200; ++round) {
      Buffer bytes = sample.bytes;
      if (bytes.empty()) break;
      for (std::uint64_t i = random() % 4 + 1; i != 0; --i) {
        const std::size_t at = random() % std::min<std::size_t>(bytes.size(), 64);
        bytes[random() % 2 == 0 ? at : bytes.size() - 1 - at] =
            static_cast<std::byte>(random() % 3 == 0 ? 0xff : random());
      }
      survive(codec(), sample, bytes, "seed 20260101, round " + std::to_string(round));
      if (HasFailure()) return;
    }
  }
}

TEST_P(EveryCodec, HasSaneParameters) {
  std::set<std::string_view> names;
  std::set<Param::Means> meanings;
  for (const Param& param : codec().params) {
    EXPECT_TRUE(names.insert(param.name).second) << param.name << " appears twice";
    EXPECT_FALSE(param.summary.empty()) << param.name;
    EXPECT_TRUE(param.type == Param::Type::word || param.words.empty()) << param.name;
    if (param.means != Param::Means::itself) {
      EXPECT_TRUE(meanings.insert(param.means).second) << param.name;
    }
    if (!param.initial.empty()) {
      EXPECT_TRUE(Params(codec()).set(param.name, param.initial)) << param.name;
    }
  }
  EXPECT_FALSE(codec().summary.empty());
}

// --- test/corrupt/<codec>/<defect>.refused and .invisible

TEST_P(EveryCodec, RefusesTheFilesNamedAfterTheirDefect) {
  const fs::path folder = fs::path(PERHAPS_TEST_DATA) / "corrupt" / codec().name;
  ASSERT_TRUE(fs::is_directory(folder)) << "no files named after their defect: " << folder;
  const std::vector<Buffer> keys = text_keys(100);
  std::size_t count = 0;
  for (const auto& file : fs::directory_iterator(folder)) {
    const std::string name = file.path().filename();
    if (name == "SOURCE.md") continue;
    const bool refused = name.ends_with(".refused");
    ASSERT_TRUE(refused || name.ends_with(".invisible")) << file.path();
    const Sample sample{name, Params(codec()), keys, {}};
    EXPECT_EQ(survive(codec(), sample, read_file(file.path()), "as it is"), refused) << file.path();
    ++count;
  }
  EXPECT_NE(count, 0u);
}

// --- doc/formats/<codec>.md

struct Example {
  std::string codec;
  std::vector<std::pair<std::string, std::string>> sets;
  std::vector<Buffer> keys;
  Buffer bytes;
};

std::vector<Example> examples_of(const fs::path& page) {
  std::ifstream in(page);
  std::vector<Example> examples;
  bool inside = false;
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("```")) {
      inside = line == "```example";
      if (inside) examples.emplace_back();
      continue;
    }
    if (!inside) continue;
    const std::size_t colon = line.find(':');
    const std::string name = line.substr(0, colon);
    std::string value = colon == std::string::npos ? "" : line.substr(colon + 1);
    if (value.starts_with(' ')) value.erase(0, 1);
    Example& example = examples.back();
    if (name == "codec") {
      example.codec = value;
    } else if (name == "set") {
      example.sets.emplace_back(value.substr(0, value.find('=')), value.substr(value.find('=') + 1));
    } else if (name == "key") {
      example.keys.push_back(buffer_of(value));
    } else if (name == "hex") {
      std::erase(value, ' ');
      EXPECT_EQ(value.size() % 2, 0u) << page << ": " << line;
      for (std::size_t i = 0; i + 1 < value.size(); i += 2)
        example.bytes.push_back(static_cast<std::byte>(std::stoul(value.substr(i, 2), nullptr, 16)));
    } else {
      ADD_FAILURE() << page << ": " << line;
    }
  }
  return examples;
}

TEST_P(EveryCodec, IsDescribedWithAnExample) {
  const fs::path page = fs::path(PERHAPS_TEST_DATA).parent_path() / "doc/formats" / (std::string(codec().name) + ".md");
  ASSERT_TRUE(fs::exists(page)) << "no page: " << page;
  const std::vector<Example> examples = examples_of(page);
  if (codec().build != nullptr) {
    EXPECT_FALSE(examples.empty()) << page << ": no ```example";
  }
  for (const Example& example : examples) {
    const Codec* const writes = find(example.codec);
    ASSERT_NE(writes, nullptr) << page << ": " << example.codec;
    Params params(*writes);
    for (const auto& [name, value] : example.sets) {
      const auto set = params.set(name, value);
      ASSERT_TRUE(set) << page << ": " << set.error().detail;
    }
    const std::vector<Bytes> views(example.keys.begin(), example.keys.end());
    const auto built = writes->build(views, params);
    ASSERT_TRUE(built) << page << ": " << built.error().detail;
    EXPECT_EQ(*built, example.bytes) << page;
  }
}

INSTANTIATE_TEST_SUITE_P(Formats, EveryCodec, testing::ValuesIn(codecs().begin(), codecs().end()), [](const auto& one) {
  std::string name(one.param->name);
  std::ranges::replace(name, '-', '_');
  return name;
});

TEST(Registry, IsSortedAndFound) {
  EXPECT_TRUE(std::ranges::is_sorted(codecs(), {}, &Codec::name));
  for (const Codec* codec : codecs()) EXPECT_EQ(find(codec->name), codec);
  EXPECT_EQ(find("no such format"), nullptr);
  EXPECT_EQ(find(""), nullptr);
}

TEST(Registry, NamesEveryPage) {
  const fs::path folder = fs::path(PERHAPS_TEST_DATA).parent_path() / "doc/formats";
  const Buffer raw = read_file(folder / "README.md");
  const std::string index(reinterpret_cast<const char*>(raw.data()), raw.size());
  for (const Codec* codec : codecs()) {
    const std::string link = "(" + std::string(codec->name) + ".md)";
    EXPECT_NE(index.find(link), std::string::npos) << "doc/formats/README.md does not link " << link;
  }
  for (const auto& page : fs::directory_iterator(folder)) {
    const std::string name = page.path().stem();
    if (name != "README") {
      EXPECT_NE(find(name), nullptr) << page.path() << " is the page of no codec";
    }
  }
}

}  // namespace
}  // namespace perhaps::format
