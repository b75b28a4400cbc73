// Promise: the codecs of other systems' formats read, write and convert as the library does when memory runs out: an
// Error or std::bad_alloc, nothing lost, nothing leaked (allocation_test.cc). Every codec: its own bytes, or if it only
// reads, files that the other system wrote, whole and cut short.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "conformance/rebuild.h"
#include "perhaps/format/format.h"
#include "support/failing_memory.h"

namespace perhaps::test {
namespace {

using format::Codec;
using format::Params;
using Buffer = std::vector<std::byte>;
namespace fs = std::filesystem;

struct Nothing {};

Buffer read_file(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  EXPECT_TRUE(in) << path;
  const std::vector<char> text((std::istreambuf_iterator<char>(in)), {});
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

// The smallest file of the format that the other system wrote; if there is none, a damaged one.
std::optional<std::pair<std::string, Buffer>> golden_of(const Codec& codec) {
  const fs::path folder = fs::path(PERHAPS_TEST_DATA) / "golden/formats";
  std::ifstream in(folder / "manifest.json");
  const nlohmann::json manifest = nlohmann::json::parse(in);
  const nlohmann::json* best = nullptr;
  for (const auto& one : manifest.at("cases")) {
    if (one.at("params").at("kind").get<std::string>().ends_with("_mangled")) continue;
    if (conformance::codec_of(one) != &codec) continue;
    if (best == nullptr || one.at("filter_bytes") < best->at("filter_bytes")) best = &one;
  }
  if (best == nullptr) {
    fs::path largest;
    for (const auto& file : fs::directory_iterator(fs::path(PERHAPS_TEST_DATA) / "corrupt" / codec.name)) {
      if (largest.empty() || fs::file_size(largest) < file.file_size()) largest = file.path();
    }
    if (!largest.empty()) return std::pair(largest.string(), read_file(largest));
    return std::nullopt;
  }
  const std::string name = best->at("filter");
  return std::pair(name, read_file(folder / name));
}

void open_with_failures(const Codec& codec, const std::string& name, Bytes bytes) {
  for (const auto on_damage : {format::OnDamage::error, format::OnDamage::perhaps}) {
    const format::Source source{bytes, fs::path(name).filename().string(), on_damage};
    const bool opens = bool(codec.open(source, Params(codec)));
    for_every_failure(
        name + ": open", [] { return Nothing(); },
        [&](Nothing) {
          const auto opened = codec.open(source, Params(codec));
          if (!opened) return !opens;
          const std::array<Bytes, 2> keys = {bytes_of("a"), bytes_of("another key")};
          static_cast<void>(opened->whole->may_contain(std::span<const Bytes>(keys)));
          return !opened->whole->describe().format.empty();
        },
        [](Nothing, End) {});
    for_every_failure(
        name + ": detect", [] { return Nothing(); },
        [&](Nothing) {
          static_cast<void>(format::detect(source));
          return true;
        },
        [](Nothing, End) {});
  }
}

TEST(FormatAllocation, EveryCodec) {
  std::vector<std::string> texts;
  for (int i = 0; i < 60; ++i) texts.push_back("key " + std::to_string(i * i));
  const std::vector<Bytes> keys = [&] {
    std::vector<Bytes> views;
    for (const std::string& text : texts) views.push_back(bytes_of(text));
    return views;
  }();
  for (const Codec* codec : format::codecs()) {
    const std::string name(codec->name);
    Buffer bytes;
    if (codec->build != nullptr) {
      const Params params(*codec);
      struct State {
        std::optional<Buffer> bytes;
      };
      bytes = *codec->build(keys, params);
      for_every_failure(
          name + ": build", [] { return State(); },
          [&](State& state) {
            auto made = codec->build(keys, params);
            if (made) state.bytes = *std::move(made);
            return bool(made);  // NOLINT(bugprone-use-after-move)
          },
          [&](const State& state, End end) {
            EXPECT_EQ(state.bytes.has_value(), end == End::done);
            if (state.bytes) {
              EXPECT_EQ(*state.bytes, bytes);
            }
          });
      open_with_failures(*codec, name, bytes);
    }
    const auto golden = golden_of(*codec);
    if (golden) open_with_failures(*codec, golden->first, golden->second);
    EXPECT_TRUE(golden || codec->build != nullptr) << name;
    const Bytes any = golden ? Bytes(golden->second) : Bytes(bytes);
    open_with_failures(*codec, name + ", cut short", any.first(any.size() / 2));
    // Into every other format: refused, as a rule, and the reason takes memory.
    const format::Source source{any, golden ? fs::path(golden->first).filename().string() : std::string()};
    const auto opened = codec->open(source, Params(*codec));
    if (!opened) continue;
    for (const Codec* to : format::codecs()) {
      const Params params(*to);
      const bool converts = bool(format::convert(source, *opened, *to, params));
      for_every_failure(
          name + " to " + std::string(to->name), [] { return Nothing(); },
          [&](Nothing) { return bool(format::convert(source, *opened, *to, params)) == converts; },
          [](Nothing, End) {});
    }
  }
}

}  // namespace
}  // namespace perhaps::test
