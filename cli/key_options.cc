#include "key_options.h"

#include <unistd.h>

#include <algorithm>

#include "command.h"
#include "options.h"
#include "print.h"

namespace perhaps::cli {

void check_key_format(const KeyOptions& options) {
  if (separated(options.as)) return;
  const char* name = options.as == KeysAs::u64 ? "u64" : "len32";
  if (options.field != 0) fail("--field: --keys-as {} has no fields", name);
  if (options.as == KeysAs::u64 && (options.lower || options.trim)) fail("--lower, --trim: --keys-as u64 has no text");
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
  add_choice(
      app, "--keys-as", options.as,
      {{"lines", KeysAs::lines},
       {"nul", KeysAs::nul},
       {"hex", KeysAs::hex},
       {"len32", KeysAs::len32},
       {"u64", KeysAs::u64}},
      "How keys are written: one per line (default; an empty line is the empty key, the last line needs no newline); "
      "ended by NUL; hex digits, one key per line; a 32-bit little-endian length and that many bytes; or 64-bit "
      "little-endian numbers, hashed as numbers")
      ->group("Keys");
  app.add_flag_callback(
         "-0,--null", [&] { options.as = KeysAs::nul; }, "Short for --keys-as nul")
      ->group("Keys");
  add_count(app, "--field", options.field, "N",
            "The key is field N of each record, counted from 1; quotes have no meaning")
      ->group("Keys");
  app.add_option_function<std::string>(
         "--delimiter",
         [&](const std::string& text) {
           if (text == "\\t" || text == "tab") {
             options.delimiter = '\t';
           } else if (text.size() == 1) {
             options.delimiter = text[0];
           } else {
             fail("--delimiter {}: one character is needed (or \\t)", text);
           }
         },
         "What separates fields; default: a tab")
      ->type_name("C")
      ->group("Keys");
  app.add_flag("--lower", options.lower, "Turn A-Z of each key into a-z")->group("Keys");
  app.add_flag("--trim", options.trim, "Strip spaces, tabs and carriage returns from both ends of each key")
      ->group("Keys");
}

void declare_keys(CLI::App& app, KeyOptions& options) {
  app.add_option(
         "keys", options.files,
         "Files of keys; - is standard input, which is also read if there is no file and no -e; .gz and .zst are "
         "read as they are")
      ->type_name("FILE");
  app.add_option("-e,--key", options.literals,
                 "This key; may be repeated. With --keys-as u64 a number, with hex its digits")
      ->type_name("KEY")
      ->allow_extra_args(false)
      ->group("Keys");
  declare_key_format(app, options);
}

}  // namespace perhaps::cli
