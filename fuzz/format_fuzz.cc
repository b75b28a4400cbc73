// Opens arbitrary bytes as the file of another system. They never cause a crash, never take more memory than their
// size justifies, and give a tool and an engine the same answers. The list of formats is the registry, so a new format
// is fuzzed as soon as it is added.
//   byte 0    which codec (codec_of)
//   byte 1    the values of its word and flag parameters
//   byte 2    which codec the file is converted to
//   byte 3    what the rest is (the low two bits: What) and what the file is called (the others)
//   the rest  the file, or keys, each after a byte that says how long it is
// A file that opens is queried, described and converted. One that is built of keys opens and has them. One codec per
// input, because all of them at once were slow.
// Seeds: the files that the systems themselves wrote (fuzz/seed.py).
#include <algorithm>
#include <array>
#include <cstdlib>
#include <string>
#include <vector>

#include "perhaps/format/format.h"
#include "perhaps/hash.h"

namespace {

using perhaps::Bytes;
namespace format = perhaps::format;

void demand(bool truth) {
  if (!truth) std::abort();
}

enum class What : std::uint8_t { file, keys, file_to_describe };  // other values: a file

// Sets flags and words to one of their values, chosen by the bits of `choice`; numbers too, if a file is to be built.
format::Params params_of(const format::Codec& codec, unsigned choice, What what = What::file) {
  format::Params params(codec);
  for (const format::Param& param : codec.params) {
    const bool number = param.type == format::Param::Type::count || param.type == format::Param::Type::real;
    std::string_view words = param.type == format::Param::Type::flag ? "true|false" : param.words;
    if (number && what == What::keys)
      words = param.type == format::Param::Type::count ? "3|64|1|1000" : "0.3|12|1e-6|0.01";
    if (words.empty() || choice % 2 == 0) {
      choice /= 2;
      continue;
    }
    choice /= 2;
    const auto count = static_cast<unsigned>(std::ranges::count(words, '|')) + 1;
    for (unsigned skip = choice % count; skip != 0; --skip) words.remove_prefix(words.find('|') + 1);
    const auto done = params.set(param.name, words.substr(0, words.find('|')));
    demand(done || (number && !done.error().detail.empty()));
  }
  return params;
}

std::array<std::uint64_t, 2> query(const perhaps::AnyFilter& filter) {
  static const std::vector<std::string> text = [] {
    std::vector<std::string> made;
    for (std::size_t i = 0; i < 100; ++i) made.push_back(std::string(i % 7, 'x') + std::to_string(i * i));
    made[0].clear();
    return made;
  }();
  std::vector<Bytes> keys;
  for (const std::string& key : text) keys.push_back(perhaps::bytes_of(key));
  std::array<std::uint64_t, 2> answers{};
  filter.may_contain(std::span<const Bytes>(keys), std::span(answers));
  demand(filter.may_contain(std::span<const Bytes>(keys).first(64)) == answers[0]);
  demand(filter.may_contain(keys[70]) == ((answers[1] >> 6 & 1) != 0));
  return answers;
}

void describe(const perhaps::AnyFilter& filter) {
  const perhaps::Description d = filter.describe();
  demand(d.fill >= 0 && d.fill <= 1 && d.fpr >= 0 && d.fpr <= 1);
}

void build(const format::Codec& codec, Bytes bytes, unsigned choice) {
  std::vector<Bytes> keys;
  while (!bytes.empty() && keys.size() < 1000) {
    const std::size_t size = std::min(bytes.size() - 1, std::to_integer<std::size_t>(bytes[0]));
    keys.push_back(bytes.subspan(1, size));
    bytes = bytes.subspan(1 + size);
  }
  const format::Params params = params_of(codec, choice, What::keys);
  if (codec.build == nullptr) return;
  const auto built = codec.build(keys, params);
  if (!built) {
    demand(!built.error().detail.empty());
    return;
  }
  const auto opened = codec.open({.bytes = *built}, params);
  demand(static_cast<bool>(opened));
  // RedisBloom's filters leave out what is asked of them: keys beyond the capacity, or some that are deleted again.
  if (codec.name == "redisbloom-bf" && params.flag("nonscaling")) return;
  if (codec.name == "redisbloom-cf" && params.count("delete_every") != 0) return;
  for (const Bytes key : keys) demand(opened->whole->may_contain(key));
}

// What only a tool does.
void ask_registry(const format::Codec& codec, const format::Source& source) {
  demand(format::find(codec.name) == &codec && format::find("none") == nullptr);
  if (const auto opened = format::open(source)) query(*opened->whole);
  format::Params params(codec);
  demand(!params.set("none", "1"));
  for (const format::Param& param : codec.params) {
    for (const char* const text : {"", "1.5", "-1", "1e3", "x", "1e999"}) (void)params.set(param.name, text);
  }
}

void open(const format::Codec& codec, const format::Codec& to, const format::Source& tool, unsigned choice, What what) {
  const Bytes bytes = tool.bytes;
  const format::Params params = params_of(codec, choice);
  const auto strict = codec.open(tool, params);
  const auto lenient =
      codec.open({.bytes = bytes, .file_name = tool.file_name, .on_damage = format::OnDamage::perhaps}, params);
  demand(static_cast<bool>(lenient));
  const auto answers = query(*lenient->whole);
  if (!strict) {
    demand(strict.error().detail.starts_with(std::string(codec.name) + ": "));
    return;
  }
  demand(query(*strict->whole) == answers);
  if (strict->seek != nullptr) query(*strict->seek);
  // A description queries a quarter of a million keys: only if asked for, or the fuzzer would do little else.
  if (what == What::file_to_describe) {
    describe(*strict->whole);
    ask_registry(codec, tool);
  }
  std::size_t left = 16;
  for (const format::Entry& entry : strict->entries) {
    demand(entry.offset <= bytes.size() && entry.size <= bytes.size() - entry.offset);
    if (left-- == 0) break;
    query(*entry.filter);
  }
  // What the name told, nothing tells of the converted bytes.
  if (to.convert == nullptr || !tool.file_name.empty()) return;
  const format::Params wanted = params_of(to, choice);
  const auto converted = format::convert(tool, *strict, to, wanted);
  if (!converted) {
    demand(!converted.error().detail.empty());
    return;
  }
  // Unless convert() refused, the answers must be the same.
  const auto again = to.open({.bytes = converted->bytes}, wanted);
  demand(static_cast<bool>(again));
  demand(query(*again->whole) == answers);
}

// The codec that a byte stands for: the one whose name gives the largest FNV-1a hash together with the byte, so that a
// new codec takes a few bytes from the others and the rest of the corpus keeps its meaning. fuzz/seed.py does the same.
const format::Codec& codec_of(std::uint8_t byte) {
  const auto weight = [&](const format::Codec* codec) {
    std::uint32_t hash = 2166136261u;
    for (const char c : std::string(codec->name) + static_cast<char>(byte))
      hash = (hash ^ static_cast<std::uint8_t>(c)) * 16777619u;
    return hash ^ hash >> 15;
  };
  return **std::ranges::max_element(format::codecs(), {}, weight);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 4) return 0;
  // A copy of exactly this size, so that AddressSanitizer detects an access past its end.
  const auto* start = reinterpret_cast<const std::byte*>(data);
  const std::vector<std::byte> file(start + 4, start + size);
  const auto what = static_cast<What>(data[3] % 4);
  if (what == What::keys) {
    build(codec_of(data[0]), file, data[1] + 256u * data[2]);
    return 0;
  }
  constexpr std::string_view kNames[] = {"",      "na-1-big-Filter.db", "ma-1-big-Filter.db", "da-1-bti-Filter.db",
                                         "x.sst", "b-Filter.db"};
  const format::Source source{.bytes = file, .file_name = std::string(kNames[data[3] / 4 % std::size(kNames)])};
  (void)format::detect(source);
  open(codec_of(data[0]), codec_of(data[2]), source, data[1], what);
  return 0;
}
