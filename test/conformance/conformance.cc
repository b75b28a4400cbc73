// conformance DIR: rebuilds and queries filters that the systems themselves wrote.
//
// Promises: from the same keys and parameters every codec writes the bytes that the system wrote, and answers every
// probe as the system did. DIR has a manifest.json as described in doc/formats/README.md; a case that fails is named
// with the first difference. Exit code 1 if any case fails, 2 if DIR cannot be read.
#include <array>
#include <bit>
#include <charconv>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <nlohmann/json.hpp>
#include <stdexcept>

#include "conformance/rebuild.h"
#include "perhaps/format/format.h"

namespace {

using perhaps::Bytes;
using perhaps::conformance::Buffer;
using perhaps::conformance::Keys;
using Json = nlohmann::json;
namespace format = perhaps::format;

struct Broken : std::runtime_error {
  using std::runtime_error::runtime_error;
};

Buffer read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw Broken("cannot read " + path.string());
  Buffer bytes(std::filesystem::file_size(path));
  in.read(reinterpret_cast<char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  if (!in) throw Broken("cannot read all of " + path.string());
  return bytes;
}

// u32 LE count; then for each key u32 LE length and the bytes.
Keys read_keys(const std::filesystem::path& path) {
  const Buffer file = read_file(path);
  std::size_t at = 0;
  const auto number = [&] {
    if (file.size() - at < 4) throw Broken(path.string() + ": ends inside a number");
    at += 4;
    return perhaps::detail::load<std::uint32_t>(file.data() + at - 4);
  };
  Keys keys;
  for (std::uint32_t left = number(); left != 0; --left) {
    const std::uint32_t size = number();
    if (file.size() - at < size) throw Broken(path.string() + ": ends inside a key");
    keys.emplace_back(file.begin() + static_cast<std::ptrdiff_t>(at),
                      file.begin() + static_cast<std::ptrdiff_t>(at + size));
    at += size;
  }
  return keys;
}

Keys made_keys(const Json& recipe) {
  Keys keys;
  const std::string pattern = recipe.at("printf");
  // Supports only what a key pattern needs: text, one %d, %u or %x with a width, text.
  const std::size_t percent = pattern.find('%');
  const std::size_t end = pattern.find_first_of("dux", percent);
  if (percent == std::string::npos || end == std::string::npos) throw Broken("keys_gen: " + pattern);
  std::string digits = pattern.substr(percent + 1, end - percent - 1);
  digits.erase(std::remove(digits.begin(), digits.end(), 'l'), digits.end());
  const bool zeros = digits.starts_with('0');
  const std::size_t width = digits.empty() ? 0 : std::stoul(digits);
  const int base = pattern[end] == 'x' ? 16 : 10;
  for (auto i = recipe.at("from").get<std::uint64_t>(); i < recipe.at("to").get<std::uint64_t>(); ++i) {
    char text[24];
    const auto stop = std::to_chars(text, text + sizeof text, i, base).ptr;
    std::string number(text, stop);
    if (number.size() < width) number.insert(0, width - number.size(), zeros ? '0' : ' ');
    const std::string key = pattern.substr(0, percent) + number + pattern.substr(end + 1);
    const Bytes bytes = perhaps::bytes_of(key);
    keys.emplace_back(bytes.begin(), bytes.end());
  }
  return keys;
}

std::vector<Bytes> views_of(const Keys& keys) { return {keys.begin(), keys.end()}; }

std::string text_of(const Json& value) { return value.is_string() ? value.get<std::string>() : value.dump(); }

std::vector<bool> answers_of(const perhaps::AnyFilter& filter, const std::vector<Bytes>& keys) {
  std::vector<std::uint64_t> words(keys.size() / 64 + 1);
  filter.may_contain(std::span(keys), std::span(words));
  std::vector<bool> answers(keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    answers[i] = (words[i / 64] >> (i % 64) & 1) != 0;
    if (filter.may_contain(keys[i]) != answers[i]) throw Broken("alone and in a batch it answers differently");
  }
  return answers;
}

class Runner {
 public:
  explicit Runner(std::filesystem::path folder) : folder_(std::move(folder)) {}

  int run() {
    const Buffer text = read_file(folder_ / "manifest.json");
    const auto* const begin = reinterpret_cast<const char*>(text.data());
    const Json manifest = Json::parse(begin, begin + text.size());
    for (const Json& one : manifest.at("cases")) take(one);
    std::printf("%-18s %14s %14s %8s\n", "system", "rebuilt equal", "answers equal", "cases");
    std::size_t passed = 0;
    for (const auto& [system, tally] : tallies_) {
      std::printf("%-18s %8zu / %-4zu %7zu / %-4zu %8zu\n", system.c_str(), tally.rebuilt, tally.to_rebuild,
                  tally.answered, tally.to_answer, tally.cases);
      passed += tally.passed;
    }
    std::printf("%zu passed, %zu failed\n", passed, failed_);
    return failed_ == 0 && passed != 0 ? 0 : 1;
  }

 private:
  struct Tally {
    std::size_t cases = 0, passed = 0, rebuilt = 0, to_rebuild = 0, answered = 0, to_answer = 0;
  };

  void take(const Json& one) {
    const std::string system = one.at("system");
    const std::string name = system + "/" + one.at("name").get<std::string>();
    Tally& tally = tallies_[system];
    ++tally.cases;
    try {
      check(one, tally);
      ++tally.passed;
    } catch (const std::exception& why) {
      ++failed_;
      std::printf("FAILED %s: %s\n", name.c_str(), why.what());
    }
  }

  void check(const Json& one, Tally& tally) {
    const std::string file_name = one.at("filter");
    const Buffer file = read_file(folder_ / file_name);
    const Json& given = one.at("params");
    const format::Codec* const codec = perhaps::conformance::codec_of(one);
    if (codec == nullptr) throw Broken("no codec for it");
    format::Params params(*codec);
    for (const format::Param& param : codec->params) {
      const std::string key(param.name);
      if (!given.contains(key)) continue;
      if (auto set = params.set(key, text_of(given.at(key))); !set) throw Broken(set.error().detail);
    }
    perhaps::conformance::set_more(one, params);
    const Keys keys = one.contains("keys_gen") ? made_keys(one.at("keys_gen")) : read_keys(folder_ / one.at("keys"));

    perhaps::conformance::rebuild(one, *codec, params, keys, file, [&](bool equal, const std::string& why) {
      ++tally.to_rebuild;
      tally.rebuilt += equal;
      if (!equal) throw Broken("rebuilt bytes differ: " + why);
    });

    auto opened = codec->open({.bytes = file, .file_name = file_name, .on_damage = format::OnDamage::perhaps}, params);
    if (!opened) throw Broken("does not open: " + opened.error().detail);
    const bool closed = perhaps::conformance::fails_closed(one, file);
    compare(one, "probes", "answers", *opened->whole, closed, tally);
    compare(one, "probes2", "answers2", *opened->whole, closed, tally);
    if (one.contains("seek_answers") && opened->seek == nullptr) throw Broken("it has no prefix filter for seeks");
    if (opened->seek != nullptr) {
      compare(one, "probes", "seek_answers", *opened->seek, closed, tally);
      compare(one, "probes2", "seek_answers2", *opened->seek, closed, tally);
    }
    if (one.contains("keys_not_matched") && !closed) {
      const Keys inside = perhaps::conformance::keys_inside(one, keys);
      const auto answers = answers_of(*opened->whole, views_of(inside));
      const auto missing = static_cast<std::uint64_t>(std::count(answers.begin(), answers.end(), false));
      const auto expected = one.at("keys_not_matched").get<std::uint64_t>();
      if (missing != expected) {
        throw Broken(std::to_string(missing) + " keys are answered no, expected " + std::to_string(expected));
      }
    }
  }

  void compare(const Json& one, const char* probes_name, const char* answers_name, const perhaps::AnyFilter& filter,
               bool closed, Tally& tally) {
    if (!one.contains(probes_name) || !one.contains(answers_name)) return;
    if (one.at(answers_name).get<std::string>().empty()) return;
    ++tally.to_answer;
    const Keys& probes = probes_of(one, one.at(probes_name));
    const Buffer expected = read_file(folder_ / one.at(answers_name));
    const std::vector<bool> answers = answers_of(filter, views_of(probes));
    if (expected.size() < (probes.size() + 7) / 8) throw Broken(std::string(answers_name) + ": too short");
    for (std::size_t i = 0; i < probes.size(); ++i) {
      const bool theirs = closed || (std::to_integer<unsigned>(expected[i / 8]) >> (i % 8) & 1u) != 0;
      if (theirs != answers[i]) {
        throw Broken(std::string(answers_name) + ": probe " + std::to_string(i) + " is answered " +
                     (answers[i] ? "perhaps" : "no") + ", expected " + (theirs ? "perhaps" : "no"));
      }
    }
    ++tally.answered;
  }

  // Most cases probe with the same list, which is read once.
  const Keys& probes_of(const Json& one, const std::string& file) {
    using perhaps::conformance::param;
    const std::array id = {file, param(one, "kind"), param(one, "type")};
    auto at = probes_.find(id);
    if (at == probes_.end()) {
      at = probes_.emplace(id, perhaps::conformance::probes_of(one, read_keys(folder_ / file))).first;
    }
    return at->second;
  }

  std::filesystem::path folder_;
  std::map<std::array<std::string, 3>, Keys> probes_;
  std::map<std::string, Tally> tallies_;
  std::size_t failed_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: conformance DIR\n";
    return 2;
  }
  try {
    return Runner(argv[1]).run();
  } catch (const std::exception& why) {
    std::cerr << "conformance: " << why.what() << "\n";
    return 2;
  }
}
