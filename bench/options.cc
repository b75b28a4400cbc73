#include "options.h"

#include <CLI/App.hpp>
#include <CLI/Config.hpp>
#include <CLI/Formatter.hpp>
#include <charconv>

namespace perhaps::bench {
namespace {

// 1e8 as well as 100000000.
std::uint64_t number(const std::string& text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !(value >= 0 && value < 0x1p63))
    throw CLI::ValidationError("not a number: " + text);
  return static_cast<std::uint64_t>(value);
}

template <class Int>
CLI::Option* add_number(CLI::App& app, const std::string& name, Int& value, const std::string& text) {
  return app
      .add_option_function<std::string>(
          name, [&value](const std::string& given) { value = static_cast<Int>(number(given)); }, text)
      ->type_name("N");
}

}  // namespace

Parsed parse(int argc, char** argv) {
  Parsed parsed;
  Options& options = parsed.options;
  CLI::App app("Speeds, as ratios to the best contender of each table", "perhaps-bench");
  std::vector<std::string> sizes;
  auto* const keys = app.add_option("--keys", sizes, "Sizes; default: 1e4,1e5,1e6,1e7,1e8")
                         ->delimiter(',')
                         ->allow_extra_args(false)
                         ->type_name("LIST");
  add_number(app, "--rounds", options.rounds, "Rounds; default: 15; 7 at 1e8, and 3 for builds there");
  app.add_flag("--quick", options.quick,
               "A few minutes: up to 1e7 keys (static, mutable, grow, maps, merge: 1e6), 5 rounds, absent keys only");
  app.add_option("--only", options.only,
                 "Only tables whose title matches: ^lookup, \"^static build\", ^mutable, ^grow, ^maps, ^route, ^ranges")
      ->type_name("REGEX");
  app.add_option("--contenders", options.contenders, "Only contenders whose name matches")->type_name("REGEX");
  app.add_option("--isa", options.isa, "Kernels to use: portable, sse4, avx2 ...")->type_name("NAME");
  add_number(app, "--cpu", options.cpu, "The CPU to stay on; default: the last");
  app.add_option("--load", options.modules, "A module of further contenders; may be repeated")
      ->type_name("FILE")
      ->allow_extra_args(false);
  app.add_option("--json", options.json, "Write the figures there")->type_name("FILE");
  app.add_option("--svg", options.svg, "Draw the speeds of lookups there, beside the sizes of all families")
      ->type_name("FILE");
  app.add_flag("--list", options.list, "List tables, contenders and kernels");
  add_number(app, "--seed", options.seed, "Of the rates that fpr measures; default: 1");
  app.add_subcommand("fpr", "False-positive rates, theory beside measurement")->fallthrough();
  try {
    app.parse(argc, argv);
    if (*keys) {
      options.keys_given = true;
      options.keys.clear();
      for (const std::string& size : sizes) options.keys.push_back(number(size));
    }
  } catch (const CLI::ParseError& error) {
    parsed.exit_code = app.exit(error) == 0 ? 0 : 2;
    return parsed;
  }
  options.fpr = app.got_subcommand("fpr");
  if (options.quick && !options.keys_given) options.keys.pop_back();
  return parsed;
}

}  // namespace perhaps::bench
