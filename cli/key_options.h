// Which keys, and how they are read: files, standard input, literals; and the recipe (recipe.h).
//
// A *record* is what the input holds and what `query` prints again; its *key* is what is hashed: the record itself, or
// what the recipe makes of it.
#pragma once
#include <CLI/App.hpp>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "recipe.h"

namespace perhaps::cli {

// Only the keys of one shard of many (perhaps/file/shards.h). Of a number, its eight bytes decide.
struct ShardChoice {
  std::uint64_t index = 0;
  std::uint64_t count = 0;  // 0: all keys
};

// Which of the fields make the key: all, or where the last one is a value, those before it, or that one.
enum class Part : std::uint8_t { all, key, value };
// A record that lacks the field: an error, left out and counted, or the empty key.
enum class Missing : std::uint8_t { fail, skip, empty };

struct KeyOptions : Recipe {
  std::vector<std::string> files{};     // "-" is standard input
  std::vector<std::string> literals{};  // of -e: keys, not records
  Missing missing = Missing::fail;
  Part part = Part::all;
  RecipeChoice choice{};
  ShardChoice shard{};
  bool frugal = false;        // gives back the pages of mapped files once they are read: they count as our memory
  bool goes_on = false;       // a file that cannot be opened is reported and left out (Keys::failed)
  bool has_literals = false;  // the command has -e
  bool for_filter = true;     // keys are made for a filter, which others may query in another form
  // The advice in the warning about byte order marks and CR in keys.
  std::string trim_advice = "--trim strips it";
  // What takes a digest as it is, in the warning about digests that are hashed again.
  std::string plain_advice = "a command without --hash";

  // Reads by the recipe of the filter `path`, unless the command line forbids it; none: as the command line says.
  void adopt(const std::optional<Recipe>& stored, const std::string& path);
};

// --keys-as, -0, --csv, --json-lines, --field, --delimiter, --missing, --lower, --trim, --hash
void declare_key_format(CLI::App& app, KeyOptions& options);
// The positional files of a command that takes records only, without -e.
void declare_record_files(CLI::App& app, KeyOptions& options);
// declare_key_format, -e, and the positional files.
void declare_keys(CLI::App& app, KeyOptions& options);
// --recipe, of commands that read a filter which may have one.
void declare_recipe(CLI::App& app, KeyOptions& options);

// Standard input if nothing was named; refuses options that do not go together.
void read_stdin_if_none(KeyOptions& options);
void check_key_format(const KeyOptions& options);
// `used`: how many options name it elsewhere. It can be read once.
void check_stdin_once(const std::vector<std::string>& files, std::ptrdiff_t used = 0);

// The options that say the recipe again, for a command line.
std::vector<std::string> options_of(const Recipe& recipe);

}  // namespace perhaps::cli
