// What a command of `perhaps` is: one row of the table in main.cc. Help, man page and completions are made from the
// rows and from the options that each row declares, so they cannot disagree with the parser.
#pragma once
#include <fmt/format.h>

#include <CLI/App.hpp>
#include <functional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "perhaps/result.h"

namespace perhaps::cli {

// Exit codes, as grep's.
inline constexpr int kYes = 0;
inline constexpr int kNo = 1;
inline constexpr int kError = 2;

// Ends the command with exit code 2 and a message that names the thing and the fact.
struct Failure : std::runtime_error {
  using std::runtime_error::runtime_error;
};
template <class... Args>
[[noreturn]] void fail(fmt::format_string<Args...> text, Args&&... args) {
  throw Failure(fmt::format(text, std::forward<Args>(args)...));
}
template <class T>
T take(Result<T> result) {
  if (!result) throw Failure(result.error().detail);
  if constexpr (!std::is_void_v<T>) return *std::move(result);
}

// What --json prints: the contract with programs, for the man page. A test compares it with what the commands print.
struct JsonField {
  std::string_view name;  // "levels[].keys": of each object of a list; "about.recipe": of an object
  // string, integer, number, boolean, object, strings (an object of them), array; "or null"; "?" at the end: it may be
  // missing
  std::string_view type;
  std::string_view text;  // what it is, where the name does not say it
};
struct JsonShape {
  enum Form : std::uint8_t { object, array, lines };

  std::string_view when;  // with which option; empty: without the others
  Form form;
  std::span<const JsonField> fields;
};

struct Command {
  using Run = std::function<int()>;

  std::string_view name;
  std::string_view summary;                    // one line
  std::string_view detail;                     // paragraphs for --help and the man page
  std::span<const std::string_view> examples;  // shell lines that run as they stand
  Run (*declare)(CLI::App&);                   // adds the options; what it returns runs the command
  std::span<const JsonShape> json{};           // of --json
  bool hidden = false;                         // for packagers: works, but is not advertised
};

std::span<const Command> commands() noexcept;
const Command* find_command(std::string_view name) noexcept;
// The word of `words` that `given` was probably meant to be; empty if none is near.
std::string_view nearest(std::string_view given, std::span<const std::string> words);
// NAME of every program perhaps-NAME that would be found as a command, by name.
std::vector<std::string> other_commands();

// One function for each row.
Command::Run build_command(CLI::App&);
Command::Run query_command(CLI::App&);
Command::Run add_command(CLI::App&);
Command::Run remove_command(CLI::App&);
Command::Run info_command(CLI::App&);
Command::Run explain_command(CLI::App&);
Command::Run exact_command(CLI::App&);
Command::Run convert_command(CLI::App&);
Command::Run formats_command(CLI::App&);
Command::Run merge_command(CLI::App&);
Command::Run fold_command(CLI::App&);
Command::Run split_command(CLI::App&);
Command::Run verify_command(CLI::App&);
Command::Run dedup_command(CLI::App&);
Command::Run size_command(CLI::App&);
Command::Run bench_command(CLI::App&);
Command::Run advise_command(CLI::App&);
Command::Run allocate_command(CLI::App&);
Command::Run map_command(CLI::App&);
Command::Run route_command(CLI::App&);
Command::Run push_command(CLI::App&);
Command::Run pull_command(CLI::App&);
Command::Run man_command(CLI::App&);
Command::Run completion_command(CLI::App&);

// What every program of ours does (program.cc): reads the arguments of one command, argv[0] aside, and runs it; and
// turns whatever is thrown into a message and an exit code.
int run_command(const Command& command, int argc, char** argv);
int run_program(int (*run)(int argc, char** argv), int argc, char** argv) noexcept;

// Texts made from the table.
std::string help_of_all();
std::string help_of(const Command& command);
// The command in lines that `perhaps man --with FILE` and `perhaps completion --with FILE` read.
std::string description_of(const Command& command);

}  // namespace perhaps::cli
