#include "recipe.h"

#include <algorithm>
#include <array>
#include <utility>

#include "command.h"

namespace perhaps::cli {
namespace {

constexpr std::array<std::pair<KeysAs, std::string_view>, 6> kFrames = {{{KeysAs::lines, "lines"},
                                                                         {KeysAs::nul, "nul"},
                                                                         {KeysAs::len32, "len32"},
                                                                         {KeysAs::u64, "u64"},
                                                                         {KeysAs::csv, "csv"},
                                                                         {KeysAs::json, "json-lines"}}};
constexpr std::array<std::string_view, 5> kHashes = {"none", "md5", "sha1", "sha256", "ntlm"};

// Words are separated by spaces, fields by commas.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte <= ' ' || byte == 0x7f || c == '%' || c == ',') {
      out += fmt::format("%{:02x}", byte);
    } else {
      out += c;
    }
  }
  return out;
}

std::string unescaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%' || i + 2 >= text.size() + 0) {
      out += text[i];
      continue;
    }
    const auto digit = [](char c) { return c <= '9' ? c - '0' : (c | 0x20) - 'a' + 10; };
    out += static_cast<char>(digit(text[i + 1]) << 4 | digit(text[i + 2]));
    i += 2;
  }
  return out;
}

// The parts of `text` between the separators.
std::vector<std::string_view> parts_of(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  while (!text.empty()) {
    const std::size_t at = std::min(text.find(separator), text.size());
    if (at != 0) parts.push_back(text.substr(0, at));
    text.remove_prefix(std::min(at + 1, text.size()));
  }
  return parts;
}

}  // namespace

std::string_view name_of(KeysAs as) noexcept {
  for (const auto& [frame, name] : kFrames) {
    if (frame == as) return name;
  }
  return "";
}
std::string_view name_of(KeyHash hash) noexcept { return kHashes[static_cast<std::size_t>(hash)]; }

std::string Recipe::text() const {
  std::string out(name_of(as));
  if (!fields.empty()) {
    std::vector<std::string> names;
    for (const std::string& field : fields) names.push_back(escaped(field));
    out += fmt::format(" field={}", fmt::join(names, ","));
  }
  if (blanks) out += " delimiter=blanks";
  if (delimiter != 0) out += fmt::format(" delimiter={}", delimiter == ',' ? "," : escaped({&delimiter, 1}));
  if (as == KeysAs::csv && !header) out += " no-header";
  if (hex) out += " hex";
  if (trim) out += " trim";
  if (lower) out += " lower";
  if (hash != KeyHash::none) out += fmt::format(" hash={}", name_of(hash));
  return out;
}

Recipe Recipe::parse(std::string_view text) {
  Recipe recipe;
  for (const std::string_view word : parts_of(text, ' ')) {
    const auto frame = std::ranges::find(kFrames, word, &std::pair<KeysAs, std::string_view>::second);
    if (frame != kFrames.end()) {
      recipe.as = frame->first;
    } else if (word.starts_with("field=")) {
      for (const std::string_view field : parts_of(word.substr(6), ',')) recipe.fields.push_back(unescaped(field));
    } else if (word == "delimiter=blanks") {
      recipe.blanks = true;
    } else if (word.starts_with("delimiter=") && unescaped(word.substr(10)).size() == 1) {
      recipe.delimiter = unescaped(word.substr(10))[0];
    } else if (word == "no-header") {
      recipe.header = false;
    } else if (word == "hex") {
      recipe.hex = true;
    } else if (word == "trim") {
      recipe.trim = true;
    } else if (word == "lower") {
      recipe.lower = true;
    } else if (const auto hash = std::ranges::find(kHashes, word.substr(std::min<std::size_t>(5, word.size())));
               word.starts_with("hash=") && hash != kHashes.end()) {
      recipe.hash = static_cast<KeyHash>(hash - kHashes.begin());
    } else {
      fail("its recipe, '{}', has the word '{}', which this version does not know (--recipe given does without it)",
           text, word);
    }
  }
  return recipe;
}

bool Recipe::same_key(const Recipe& other) const noexcept {
  return number() == other.number() && hex == other.hex && trim == other.trim && lower == other.lower &&
         hash == other.hash;
}

Recipe adopted(const Recipe& wanted, const RecipeChoice& choice, const Recipe& stored, const std::string& path) {
  if (choice.given) return wanted;
  Recipe recipe = stored;
  if (choice.records) {
    recipe.as = choice.kind || wanted.as != KeysAs::lines || !stored.number() ? wanted.as : stored.as;
    recipe.fields = wanted.fields;
    recipe.delimiter = wanted.delimiter;
    recipe.blanks = wanted.blanks;
    recipe.header = wanted.header;
  }
  const bool digests = choice.asks_digests && stored.hex && stored.hash == KeyHash::none;
  if (digests) recipe.hash = wanted.hash;
  const bool contradict = recipe.number() != stored.number() || (choice.kind && wanted.hex != stored.hex) ||
                          (wanted.lower && !stored.lower) || (wanted.trim && !stored.trim) ||
                          (wanted.hash != KeyHash::none && wanted.hash != stored.hash && !digests);
  if (contradict) {
    fail(
        "{}: its keys were made by the recipe '{}', which '{}' contradicts: keys would be missed. Leave these options "
        "out, or add --recipe given to go on regardless{}",
        path, stored.text(), wanted.text(),
        wanted.hash != KeyHash::none ? "; --hash also queries a filter of digests, one built with --keys-as hex" : "");
  }
  return recipe;
}

}  // namespace perhaps::cli
