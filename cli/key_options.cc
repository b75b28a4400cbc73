#include "key_options.h"

#include <unistd.h>

#include <algorithm>

#include "command.h"
#include "doubts.h"
#include "options.h"
#include "print.h"

namespace perhaps::cli {
namespace {

bool is_number(const std::string& field) noexcept {
  return !field.empty() && std::all_of(field.begin(), field.end(), [](char c) { return c >= '0' && c <= '9'; });
}

// "1,3", "email", "user.id,day"
std::vector<std::string> parse_fields(const std::string& text) {
  std::vector<std::string> fields;
  for (std::size_t from = 0; from <= text.size();) {
    const std::size_t comma = std::min(text.find(',', from), text.size());
    std::string field = text.substr(from, comma - from);
    if (field.empty()) fail("--field {}: a field has no name", text);
    if (is_number(field) && (field.size() > 7 || field[0] == '0')) fail("--field {}: fields are counted from 1", text);
    fields.push_back(std::move(field));
    from = comma + 1;
  }
  return fields;
}

// --keys-as, -0: where a record ends.
void declare_frames(CLI::App& app, KeyOptions& options) {
  struct Frame {
    KeysAs as;
    bool hex;
  };
  app.add_option_function<std::string>(
         "--keys-as",
         [&options](const std::string& given) {
           static constexpr std::pair<std::string_view, Frame> kFrames[] = {{"lines", {KeysAs::lines, false}},
                                                                            {"nul", {KeysAs::nul, false}},
                                                                            {"hex", {KeysAs::lines, true}},
                                                                            {"len32", {KeysAs::len32, false}},
                                                                            {"u64", {KeysAs::u64, false}}};
           for (const auto& [name, frame] : kFrames) {
             if (given != name) continue;
             options.as = frame.as;
             options.hex = frame.hex;
             options.choice.kind = options.choice.records = true;
             return;
           }
           fail("--keys-as {}: must be one of lines|nul|hex|len32|u64", given);
         },
         "How keys are written: one per line (default; an empty line is the empty key, the last line needs no "
         "newline); ended by NUL; hex digits, one key per line; a 32-bit little-endian length and that many bytes; or "
         "64-bit little-endian numbers, hashed as numbers")
      ->type_name("lines|nul|hex|len32|u64")
      ->group("Keys");
  app.add_flag_callback(
         "-0,--null", [&] { options.as = KeysAs::nul, options.choice.records = true; }, "Short for --keys-as nul")
      ->group("Keys");
}

// --csv, --json-lines: what a record is. After declare_frames().
void declare_formats(CLI::App& app, KeyOptions& options) {
  auto* const csv = app.add_flag_callback(
                           "--csv", [&] { options.as = KeysAs::csv, options.choice.records = true; },
                           "Records are CSV (RFC 4180): fields may be in quotes, the first record of each file names "
                           "the columns. The key is the column --field NAME")
                        ->group("Keys")
                        ->excludes(app.get_option("--keys-as"))
                        ->excludes(app.get_option("--null"));
  app.add_flag_callback(
         "--no-header", [&] { options.header = false; }, "With --csv: the first record is one like the others")
      ->group("Keys")
      ->needs(csv);
  app.add_flag_callback(
         "--json-lines", [&] { options.as = KeysAs::json, options.choice.records = true; },
         "Records are JSON values, one per line. The key is the string, number or truth value at --field PATH, such as "
         "user.id or tags.0")
      ->group("Keys")
      ->excludes(csv)
      ->excludes(app.get_option("--keys-as"))
      ->excludes(app.get_option("--null"));
}

// --field, --delimiter, --missing: which part of a record is the key.
void declare_fields(CLI::App& app, KeyOptions& options) {
  app.add_option_function<std::string>(
         "--field",
         [&options](const std::string& text) {
           options.fields = parse_fields(text);
           options.choice.records = true;
         },
         "The key is field N of each record, counted from 1, or a column or path by its name. Several, as in 1,3, are "
         "joined by tabs. Quotes have a meaning only in --csv")
      ->type_name("N|NAME")
      ->group("Keys");
  app.add_option_function<std::string>(
         "--delimiter",
         [&](const std::string& text) {
           options.choice.records = true;
           if (text == "\\t" || text == "tab") {
             options.delimiter = '\t';
           } else if (text == "blanks") {
             options.blanks = true;
           } else if (text.size() == 1) {
             options.delimiter = text[0];
           } else {
             fail("--delimiter {}: one character is needed (or \\t, or blanks)", text);
           }
         },
         "What separates fields; default: a tab, in CSV a comma. blanks: any number of spaces and tabs")
      ->type_name("C")
      ->group("Keys");
  add_choice(app, "--missing", options.missing,
             {{"fail", Missing::fail}, {"skip", Missing::skip}, {"empty", Missing::empty}},
             "A record without the field: is an error (default), is skipped and counted, or has the empty key")
      ->group("Keys");
}

// --lower, --trim, --hash: what is done to the key.
void declare_changes(CLI::App& app, KeyOptions& options) {
  app.add_flag("--lower", options.lower, "Turn A-Z of each key into a-z")->group("Keys");
  app.add_flag("--trim", options.trim,
               "Strip spaces, tabs, carriage returns and a byte order mark from both ends of each key")
      ->group("Keys");
  add_choice(app, "--hash", options.hash,
             {{"md5", KeyHash::md5}, {"sha1", KeyHash::sha1}, {"sha256", KeyHash::sha256}, {"ntlm", KeyHash::ntlm}},
             "The key is this digest of what is read, in lower-case hex; of a filter of digests (--keys-as hex), their "
             "bytes")
      ->group("Keys");
}

}  // namespace

void KeyOptions::adopt(const std::optional<Recipe>& stored, const std::string& path) {
  if (!stored || choice.given) return;
  static_cast<Recipe&>(*this) = adopted(*this, choice, *stored, path);
  if (stored->hash != KeyHash::none) plain_advice = "--recipe given";
  say_doubts_of_literals(*this, stored->fields.size());
  if (!stored->trim) trim_advice = "--recipe given --trim strips it, or build the filter with --trim";
}

void check_key_format(const KeyOptions& options) {
  if (binary(options.as) && !options.fields.empty()) fail("--field: --keys-as {} has no fields", name_of(options.as));
  if (options.number() && (options.lower || options.trim)) fail("--lower, --trim: --keys-as u64 has no text");
  if (options.number() && options.hash != KeyHash::none) fail("--hash: --keys-as u64 has no text");
  if (options.as == KeysAs::json && options.fields.empty()) fail("--json-lines: --field PATH says which field");
  if (options.as == KeysAs::csv && options.fields.empty()) fail("--csv: --field NAME says which column");
  const bool named = std::any_of(options.fields.begin(), options.fields.end(), [](auto& f) { return !is_number(f); });
  if (named && options.as != KeysAs::json && !(options.as == KeysAs::csv && options.header)) {
    fail("--field {}: {}; otherwise fields have numbers", fmt::join(options.fields, ","),
         options.as == KeysAs::csv ? "--no-header leaves the columns without names"
                                   : "names need --csv or --json-lines");
  }
}

void check_stdin_once(const std::vector<std::string>& files, std::ptrdiff_t used) {
  if (used + std::count(files.begin(), files.end(), "-") > 1) fail("standard input (-) is named twice");
}

void read_stdin_if_none(KeyOptions& options) {
  check_key_format(options);
  check_stdin_once(options.files);
  if (!options.files.empty() || !options.literals.empty()) return;
  options.files = {"-"};
  if (is_terminal(STDIN_FILENO)) say("", "reading keys from the terminal; Ctrl-D ends them");
}

void declare_key_format(CLI::App& app, KeyOptions& options) {
  declare_frames(app, options);
  declare_formats(app, options);
  declare_fields(app, options);
  declare_changes(app, options);
}

void declare_record_files(CLI::App& app, KeyOptions& options) {
  app.add_option("files", options.files,
                 "Files to read one after the other; - is standard input, which is also read if there is no file; .gz, "
                 ".zst, .xz, .bz2 and .lz4 are read as they are")
      ->type_name("FILE");
}

void declare_keys(CLI::App& app, KeyOptions& options) {
  app.add_option(
         "keys", options.files,
         "Files of keys; - is standard input, which is also read if there is no file and no -e; .gz, .zst, .xz, .bz2 "
         "and .lz4 are read as they are")
      ->type_name("FILE");
  app.add_option("-e,--key", options.literals,
                 "This key, not a record: --field does not apply to it; may be repeated. With --keys-as u64 a number, "
                 "with hex its digits")
      ->type_name("KEY")
      ->allow_extra_args(false)
      ->group("Keys");
  options.has_literals = true;
  declare_key_format(app, options);
}

void declare_recipe(CLI::App& app, KeyOptions& options) {
  app.add_option_function<std::string>(
         "--recipe",
         [&options](const std::string& text) {
           if (text != "stored" && text != "given") fail("--recipe {}: must be one of stored|given", text);
           options.choice.given = text == "given";
         },
         "Make keys by the recipe that is stored in the filter (default), or only as the options of this command say")
      ->type_name("stored|given")
      ->group("Keys");
}

std::vector<std::string> options_of(const Recipe& recipe) {
  std::vector<std::string> words;
  const auto add = [&](std::initializer_list<std::string> more) { words.insert(words.end(), more); };
  if (recipe.as == KeysAs::csv || recipe.as == KeysAs::json) {
    add({"--" + std::string(name_of(recipe.as))});
    if (!recipe.header) add({"--no-header"});
  } else if (recipe.hex || recipe.as != KeysAs::lines) {
    add({"--keys-as", std::string(recipe.hex ? "hex" : name_of(recipe.as))});
  }
  if (!recipe.fields.empty()) add({"--field", fmt::format("{}", fmt::join(recipe.fields, ","))});
  if (recipe.blanks) add({"--delimiter", "blanks"});
  if (recipe.delimiter != 0) add({"--delimiter", recipe.delimiter == '\t' ? "tab" : std::string(1, recipe.delimiter)});
  if (recipe.lower) add({"--lower"});
  if (recipe.trim) add({"--trim"});
  if (recipe.hash != KeyHash::none) add({"--hash", std::string(name_of(recipe.hash))});
  return words;
}

}  // namespace perhaps::cli
