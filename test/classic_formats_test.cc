// Promises that the golden files of classic filters do not cover: Cassandra's sizes follow its table of rates at each
// entry and just below it, its file names decide how it is read, its two byte orders convert into each other; Guava's
// probes follow its version; Go's little-endian bitsets can be read; the key that DataSketches ignores is never found;
// the filters in tables of mini-lsm and nori are opened. Would notice: another size, a bit in another place, an answer
// that changes.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "hash/crc32.h"
#include "perhaps/format/format.h"

namespace perhaps::test {
namespace {

using Buffer = std::vector<std::byte>;
using Set = std::vector<std::pair<std::string, std::string>>;

std::string text_of(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", value);
  return text;
}

format::Params params_of(const format::Codec& codec, const Set& set) {
  format::Params params(codec);
  for (const auto& [name, value] : set) EXPECT_TRUE(params.set(name, value)) << name << "=" << value;
  return params;
}

const std::vector<std::string>& keys() {
  static const std::vector<std::string> all = [] {
    std::vector<std::string> made;
    for (int i = 0; i < 500; ++i) made.push_back("key " + std::to_string(i) + (i % 2 == 0 ? "\xe4\xff" : ""));
    return made;
  }();
  return all;
}

Buffer built(const std::string& name, const Set& set, const std::vector<std::string>& from = keys()) {
  const format::Codec& codec = *format::find(name);
  std::vector<Bytes> views;
  for (const auto& key : from) views.push_back(bytes_of(key));
  auto bytes = codec.build(views, params_of(codec, set));
  EXPECT_TRUE(bytes);
  return bytes ? *bytes : Buffer{};
}

// `bytes` must outlive what is opened.
Result<format::Opened> opened(const std::string& name, const Buffer& bytes, const std::string& file_name = {}) {
  const format::Codec& codec = *format::find(name);
  return codec.open({.bytes = bytes, .file_name = file_name}, format::Params(codec));
}
void opened(const std::string&, Buffer&&, const std::string& = {}) = delete;

std::size_t found_in(const format::Opened& file) {
  return static_cast<std::size_t>(
      std::ranges::count_if(keys(), [&](const auto& key) { return file.whole->may_contain(bytes_of(key)); }));
}

std::uint32_t be32(const Buffer& bytes, std::size_t at) {
  std::uint32_t value = 0;
  for (std::size_t i = 0; i < 4; ++i) value = value << 8 | std::to_integer<std::uint32_t>(bytes.at(at + i));
  return value;
}

// As printed by Cassandra: row b from 2, column k from 0.
const std::vector<std::vector<double>> kRates = {
    {1, .393, .4},
    {1, .283, .237, .253},
    {1, .221, .155, .147, .160},
    {1, .181, .109, .092, .092, .101},
    {1, .154, .0804, .0609, .0561, .0578, .0638},
    {1, .133, .0618, .0423, .0359, .0347, .0364},
    {1, .118, .0489, .0306, .024, .0217, .0216, .0229},
    {1, .105, .0397, .0228, .0166, .0141, .0133, .0135, .0145},
    {1, .0952, .0329, .0174, .0118, .00943, .00844, .00819, .00846},
    {1, .0869, .0276, .0136, .00864, .0065, .00552, .00513, .00509},
    {1, .08, .0236, .0108, .00646, .00459, .00371, .00329, .00314},
    {1, .074, .0203, .00875, .00492, .00332, .00255, .00217, .00199, .00194},
    {1, .0689, .0177, .00718, .00381, .00244, .00179, .00146, .00129, .00121, .0012},
    {1, .0645, .0156, .00596, .003, .00183, .00128, .001, .000852, .000775, .000744},
    {1, .0606, .0138, .005, .00239, .00139, .000935, .000702, .000574, .000505, .00047, .000459},
    {1, .0571, .0123, .00423, .00193, .00107, .000692, .000499, .000394, .000335, .000302, .000287, .000284},
    {1, .054, .0111, .00362, .00158, .000839, .000519, .00036, .000275, .000226, .000198, .000183, .000176},
    {1, .0513, .00998, .00312, .0013, .000663, .000394, .000264, .000194, .000155, .000132, .000118, .000111, .000109},
    {1, .0488, .00906, .0027, .00108, .00053, .000303, .000196, .00014, .000108, 8.89e-5, 7.77e-5, 7.12e-5, 6.79e-5,
     6.71e-5}};

TEST(Cassandra, SizesFollowTheTable) {
  const auto best = [](const std::vector<double>& row) {
    return static_cast<std::size_t>(std::ranges::min_element(row) - row.begin());
  };
  for (const auto& any : kRates) {
    for (const double entry : any) {
      for (const double fp : {entry, std::nextafter(entry, 0.0)}) {
        if (fp >= .393 || fp < 6.71e-5) continue;
        std::size_t b = 2;
        while (kRates[b - 2][best(kRates[b - 2])] > fp) ++b;
        std::size_t k = best(kRates[b - 2]);
        while (kRates[b - 2][k - 1] <= fp) --k;
        const Buffer file = built("cassandra", {{"fp_chance", text_of(fp)}, {"sized_for", "1000"}}, {});
        EXPECT_EQ(be32(file, 0), k) << fp;
        EXPECT_EQ(be32(file, 4), (1000 * b + 20 + 63) / 64) << fp;
      }
    }
  }
}

TEST(Cassandra, TheNameSaysHowToRead) {
  const Set old_words = {{"format", "old"}};
  const Set old_all = {{"format", "old"}, {"hash_order", "old"}};
  const std::vector<std::pair<std::string, Set>> names = {
      {"na-1-big-Filter.db", {}},         {"a/b/nb-3g9b_0yzn_1mlts2ghvrpzh8ibbb-big-Filter.db", {}},
      {"oa-77-big-Filter.db", {}},        {"da-1-bti-Filter.db", {}},
      {"mc-12-big-Filter.db", old_words}, {"/data/ks/t-1/ma-1-big-Filter.db", old_words},
      {"la-5-big-Filter.db", old_all},    {"keyspace-table-ka-5-Filter.db", old_all},
  };
  for (const auto& [name, set] : names) {
    const Buffer bytes = built("cassandra", set);
    const auto file = opened("cassandra", bytes, name);
    ASSERT_TRUE(file) << name;
    EXPECT_EQ(found_in(*file), keys().size()) << name;
    EXPECT_TRUE(file->notes.empty()) << name;
  }
  // Read in the wrong way it loses keys, which is why the name matters.
  const Buffer bytes = built("cassandra", old_words);
  const auto wrong = opened("cassandra", bytes, "na-1-big-Filter.db");
  EXPECT_LT(found_in(*wrong), keys().size() / 2);
  const auto nameless = opened("cassandra", bytes, "some.bin");
  EXPECT_EQ(nameless->notes.size(), 1u);
}

TEST(Cassandra, ByteOrdersConvertIntoEachOther) {
  const format::Codec& codec = *format::find("cassandra");
  const Buffer new_words = built("cassandra", {});
  const Buffer old_words = built("cassandra", {{"format", "old"}});
  const auto to = [&](const Buffer& bytes, const std::string& name, const Set& set) {
    const format::Source source{.bytes = bytes, .file_name = name};
    const auto file = codec.open(source, format::Params(codec));
    return format::convert(source, *file, codec, params_of(codec, set));
  };
  EXPECT_EQ((*to(new_words, "na-1-big-Filter.db", {{"format", "old"}})).bytes, old_words);
  EXPECT_EQ((*to(old_words, "mc-1-big-Filter.db", {{"format", "new"}})).bytes, new_words);
  EXPECT_EQ((*to(old_words, "mc-1-big-Filter.db", {{"format", "old"}})).bytes, old_words);
  EXPECT_FALSE(to(new_words, "na-1-big-Filter.db", {{"hash_order", "old"}}));
}

TEST(Guava, ProbesFollowTheVersion) {
  const auto probes = [](const std::string& version) {
    const Buffer file = built("guava", {{"expected_insertions", "1"}, {"fpp", "0.01"}, {"guava", version}});
    return std::to_integer<int>(file.at(1));
  };
  for (const char* version : {"31.1", "33.3.1-jre", "9"}) EXPECT_EQ(probes(version), 6) << version;
  for (const char* version : {"33.4.0-jre", "33.4", "33.10", "34"}) EXPECT_EQ(probes(version), 7) << version;
}

TEST(GoBloom, ReadsLittleEndianBitsets) {
  Buffer file = built("go_bloom", {});
  for (std::size_t at = 16; at < file.size(); at += 8) std::reverse(file.data() + at, file.data() + at + 8);
  EXPECT_EQ(format::find("go_bloom")->sniff({.bytes = file}), format::Sniffed::certain);
  const auto opened_file = opened("go_bloom", file);
  ASSERT_TRUE(opened_file);
  EXPECT_EQ(found_in(*opened_file), keys().size());
  EXPECT_LT(opened_file->whole->describe().fpr, 0.02);
}

TEST(DataSketches, TheEmptyKeyIsNeverFound) {
  const Buffer with = built("datasketches", {}, {"a", "", "b"});
  EXPECT_EQ(with, built("datasketches", {{"n", "3"}}, {"a", "b"}));
  EXPECT_FALSE((*opened("datasketches", with)).whole->may_contain(Bytes{}));
  const Buffer full = built("datasketches", {{"num_bits_requested", "64"}, {"num_hashes", "1"}});
  EXPECT_TRUE((*opened("datasketches", full)).whole->may_contain(bytes_of("anything at all")));
  EXPECT_FALSE((*opened("datasketches", full)).whole->may_contain(Bytes{}));
}

template <class Word>
void append_le(Buffer& to, Word word) {
  const auto bytes = std::as_bytes(std::span(&word, 1));
  to.insert(to.end(), bytes.begin(), bytes.end());
}

TEST(Tables, OpenTheirFilter) {
  const Buffer mini = built("mini_lsm", {});
  Buffer table(40, std::byte{7});
  table.insert(table.end(), mini.begin(), mini.end());
  append_le(table, __builtin_bswap32(40));

  const Buffer nori = built("nori", {});
  Buffer nori_table(40, std::byte{7});
  nori_table.insert(nori_table.end(), nori.begin(), nori.end());
  Buffer footer;
  for (const std::uint64_t word : {std::uint64_t{0}, std::uint64_t{40}, std::uint64_t{40}, std::uint64_t{nori.size()}})
    append_le(footer, word);
  footer.resize(52);
  for (const std::byte b : bytes_of("NORISSTL")) footer.push_back(b);
  append_le(footer, crc32c(footer));
  nori_table.insert(nori_table.end(), footer.begin(), footer.end());

  for (const auto& [bytes, format_name, part] :
       {std::tuple(table, "mini_lsm-sst", mini), {nori_table, "nori-sst", nori}}) {
    const format::Source source{.bytes = bytes};
    const auto file = format::open(source);
    ASSERT_TRUE(file) << format_name << ": " << file.error().detail;
    EXPECT_EQ(file->format, format_name);
    EXPECT_EQ(found_in(*file), keys().size());
    const format::Codec& alone = *format::find(file->entries.front().format);
    EXPECT_EQ((*format::convert(source, *file, alone, format::Params(alone))).bytes, part);
  }
}

}  // namespace
}  // namespace perhaps::test
