// How a record becomes a key: which part of it, and what is done to that part before it is hashed. It is stored in the
// filter file, because a *no* is only certain if a key is queried in the form in which it was added.
//
//   records      where a key is found: the frame, the fields. Another input may have other frames and fields.
//   the key      what is done to it: number or text, hex, trimmed, lower-cased, hashed. This must be the same for all.
//
// In a file and in messages a recipe is one line of words: `csv field=email trim lower`; `lines` alone is a key per
// line, as given.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "records.h"

namespace perhaps::cli {

enum class KeyHash : std::uint8_t { none, md5, sha1, sha256, ntlm };

struct Recipe {
  // Records.
  KeysAs as = KeysAs::lines;
  std::vector<std::string> fields{};  // numbers from 1, names of CSV columns, JSON paths; none: the whole record
  char delimiter = 0;                 // 0: a tab, and a comma in CSV
  bool blanks = false;                // fields are separated by runs of spaces and tabs
  bool header = true;                 // CSV: the first record has the names of the columns
  // The key.
  bool hex = false;  // decoded from hex digits
  bool trim = false;
  bool lower = false;
  KeyHash hash = KeyHash::none;

  bool number() const noexcept { return as == KeysAs::u64; }
  bool key_is_record() const noexcept {
    return fields.empty() && as != KeysAs::csv && !hex && !lower && !trim && hash == KeyHash::none;
  }
  char separator() const noexcept { return delimiter != 0 ? delimiter : as == KeysAs::csv ? ',' : '\t'; }

  std::string text() const;
  // Throws Failure if it has a word that this version does not know.
  static Recipe parse(std::string_view text);
  // Do both make the same key of a text? Frames and fields aside.
  bool same_key(const Recipe& other) const noexcept;
};

// What the command line says of the recipe, if a filter has one of its own.
struct RecipeChoice {
  bool given = false;         // --recipe given: the one of the filter does not count
  bool records = false;       // an option that says where keys are found was given
  bool kind = false;          // --keys-as was given, which also says whether they are numbers or hex
  bool asks_digests = false;  // --hash may turn queried text into the digests that the filter holds
};
// The recipe to read keys by: that of the filter `path`, for records that may lie as the command line says. Throws
// Failure, with both recipes, if they contradict each other.
Recipe adopted(const Recipe& wanted, const RecipeChoice& choice, const Recipe& stored, const std::string& path);

std::string_view name_of(KeysAs as) noexcept;
std::string_view name_of(KeyHash hash) noexcept;

}  // namespace perhaps::cli
