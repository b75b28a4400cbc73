// From the arguments to an exit code: the same for the tool and for the programs beside it.
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <algorithm>
#include <new>

#include "command.h"
#include "interrupt.h"
#include "print.h"

namespace perhaps::cli {
namespace {

// Insertions, deletions, changes and exchanges of neighbours that turn a into b.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::vector<std::size_t>> d(a.size() + 1, std::vector<std::size_t>(b.size() + 1));
  for (std::size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (std::size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
    }
  }
  return d[a.size()][b.size()];
}

// "--output": every long option of the command.
std::vector<std::string> options_in(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* const option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

// What is left after parsing: an option that there is not, if there is one.
std::string left_over(const CLI::App& app) {
  std::string word;
  for (const std::string& left : app.remaining()) {
    if (word.empty() || (left.starts_with('-') && !word.starts_with('-'))) word = left.substr(0, left.find('='));
  }
  return word;
}

[[noreturn]] void fail_left_over(const CLI::App& app, const Command& command, std::string_view word) {
  const std::vector<std::string> options = options_in(app);
  const std::string_view meant = word.starts_with("--") ? nearest(word, options) : std::string_view();
  fail("{}: {}{} (see perhaps {} --help)", word,
       word.starts_with('-') ? "there is no such option" : "is one argument too many",
       meant.empty() ? "" : fmt::format("; did you mean {}?", meant), command.name);
}

// Errors of the parser, reworded.
[[noreturn]] void fail_parsing(const CLI::App& app, const Command& command, const CLI::ParseError& error) {
  const std::string_view text = error.what();
  const bool extra = dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr;
  const bool missing = dynamic_cast<const CLI::RequiredError*>(&error) != nullptr;
  // A misspelt option may also be the reason why a required one is missing.
  const std::string word = left_over(app);
  if (extra || (missing && word.starts_with('-'))) fail_left_over(app, command, word);
  if (missing) {  // "filter is required"; help has another name for it
    const CLI::Option* const option = app.get_option_no_throw(std::string(text.substr(0, text.find(' '))));
    if (option != nullptr && option->get_positional())
      fail("{} is required (see perhaps {} --help)", option->get_type_name(), command.name);
  }
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) != nullptr) {
    const std::string name(text.substr(0, text.find(':')));
    const std::size_t times = app.get_option_no_throw(name) == nullptr ? 0 : app.count(name);
    if (times > 1) fail("{}: given {} times, but takes one value (see perhaps {} --help)", name, times, command.name);
    fail("{}: needs a value (see perhaps {} --help)", name, command.name);
  }
  if (dynamic_cast<const CLI::ConversionError*>(&error) != nullptr) {  // "Could not convert: --only = abc"
    const std::string_view rest = text.substr(text.find(": ") + 2);
    const std::string name(rest.substr(0, rest.find(' ')));
    const CLI::Option* const option = app.get_option_no_throw(name);
    const bool flag = option != nullptr && option->get_items_expected_max() == 0;
    fail("{}: {} (see perhaps {} --help)", name, flag ? "takes no value" : "its value is not a number", command.name);
  }
  fail("{} (see perhaps {} --help)", text, command.name);
}

}  // namespace

std::string_view nearest(std::string_view given, std::span<const std::string> words) {
  std::string_view best;
  std::size_t least = given.size() < 6 ? 2 : 3;  // at most one or two slips
  for (const std::string& word : words) {
    const std::size_t d = distance(given, word);
    if (d < least) least = d, best = word;
  }
  return best;
}

int run_command(const Command& command, int argc, char** argv) {
  set_command_name(command.name);
  if (argc == 2 && std::string_view(argv[1]) == "--describe") {  // for packagers: `perhaps man --with`
    Out().write(description_of(command));
    return kYes;
  }
  CLI::App app("", "perhaps " + std::string(command.name));
  const Command::Run work = command.declare(app);
  try {
    app.parse(argc, argv);
  } catch (const CLI::CallForHelp&) {
    Out().write(help_of(command));
    return kYes;
  } catch (const CLI::ParseError& error) {
    fail_parsing(app, command, error);
  } catch (const Failure&) {  // its value was refused, but the value of a misspelt option may have been taken for it
    if (const std::string word = left_over(app); word.starts_with('-')) fail_left_over(app, command, word);
    throw;
  }
  return work();
}

int run_program(int (*run)(int argc, char** argv), int argc, char** argv) noexcept {
  try {
    return run(argc, argv);
  } catch (const Interrupted& interrupted) {
    return 128 + interrupted.signal;
  } catch (const std::bad_alloc&) {
    say("", "out of memory");
  } catch (const std::exception& error) {  // a Failure says what it is
    say("", error.what());
  }
  return kError;
}

}  // namespace perhaps::cli
