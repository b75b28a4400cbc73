// perhaps convert: the same filter in the bytes of another format, exactly, or the reason why that cannot be.
#include <algorithm>
#include <cstdlib>

#include "any_file.h"
#include "build_format.h"
#include "command.h"
#include "filter_file.h"
#include "json.h"
#include "options.h"
#include "print.h"

namespace perhaps::cli {
namespace convert {
namespace {

struct Options {
  std::string filter;
  std::string output;
  std::string to;
  std::vector<std::string> sets;
  FormatArgs format;
  std::string entry;
  bool json = false;
};

std::string shell_word(const std::string& text) {
  constexpr std::string_view kPlain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=./:,@%";
  if (!text.empty() && text.find_first_not_of(kPlain) == std::string::npos) return text;
  std::string out = "'";
  for (const char c : text) out += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return out + "'";
}

// The command that makes a filter like this one from the keys: its size as the target's own parameters.
std::string rebuilds(const Options& options, const format::Codec& to, const Description& d) {
  std::string command = fmt::format("perhaps build --format {}", to.name);
  const auto set = [&](const format::Param& param) {
    return std::ranges::any_of(options.sets, [&](const std::string& given) {
      return given.starts_with(param.name) && given.substr(param.name.size()).starts_with('=');
    });
  };
  using Means = format::Param::Means;
  for (const format::Param& param : to.params) {
    if (set(param)) continue;
    const double keys = d.keys ? static_cast<double>(*d.keys) : d.keys_estimated;
    if (param.means == Means::fpr && d.fpr > 0 && d.fpr < 1)
      command += " --fpr " + plain(std::strtod(fmt::format("{:.2g}", d.fpr).c_str(), nullptr));
    if (param.means == Means::bits_per_key && keys >= 1 && d.bits != 0)
      command += fmt::format(" --bits-per-key {:.0f}", std::max(1.0, static_cast<double>(d.bits) / keys));
    if (param.means == Means::keys && d.capacity) command += fmt::format(" --keys-expected {}", *d.capacity);
  }
  for (const std::string& given : options.sets) command += " --set " + shell_word(given);
  return command + " -o " + shell_word(options.output) + " KEYS";
}

// Leaves only the entry that was asked for, by name or number.
void choose(format::Opened& opened, const std::string& wanted, const std::string& path) {
  auto& entries = opened.entries;
  auto found = std::ranges::find(entries, wanted, &format::Entry::name);
  if (const auto number = parse_u64(wanted); found == entries.end() && number && *number < entries.size())
    found = entries.begin() + static_cast<std::ptrdiff_t>(*number);
  if (found == entries.end()) {
    fail("{}: no filter '{}' in it; there are {}, numbered from 0 (perhaps info lists them)", path, wanted,
         entries.size());
  }
  format::Entry chosen = *found;
  entries = {std::move(chosen)};
}

int run(const Options& options) {
  check_output(options.output);
  const format::Codec& to = find_codec(options.to);
  const format::Params params = params_of(to, options.sets);
  AnyFile file(options.filter, {}, options.format);
  if (!options.entry.empty()) choose(file.opened, options.entry, options.filter);
  const auto refuse = [&](const std::string& why) {
    fail("{}: {}{}", options.filter, why,
         to.build == nullptr ? ""
                             : fmt::format("\n  {}", rebuilds(options, to,
                                                              file.opened.entries.size() == 1
                                                                  ? file.opened.entries[0].filter->describe()
                                                                  : file.filter().describe())));
  };
  if (file.own)
    refuse(fmt::format("perhaps to {}: the two hash a key differently: build it anew from the keys", to.name));
  if (file.opened.entries.size() > 1 && file.opened.format != to.name) {
    fail("{}: {}: holds {} filters: say which one (--entry)", options.filter, file.opened.format,
         file.opened.entries.size());
  }
  auto converted = format::convert(file.source, file.opened, to, params);
  if (!converted) refuse(converted.error().detail);
  // Nothing is written that does not open again.
  take(to.open({.bytes = converted->bytes, .file_name = {}}, params));
  save_bytes(converted->bytes, options.output);
  Out out;
  if (options.json) {
    Json json;
    json.add("file", options.output).add("from", file.opened.format).add("to", to.name);
    json.add("bytes", std::uint64_t{converted->bytes.size()}).add("changed", converted->changed);
    out.write(json.text() + "\n");
  } else {
    out.write(fmt::format("{}: {} to {}, {} bytes; changed: {}\n", options.output, file.opened.format, to.name,
                          grouped(std::uint64_t{converted->bytes.size()}), converted->changed));
  }
  return kYes;
}

}  // namespace
}  // namespace convert

Command::Run convert_command(CLI::App& app) {
  auto options = std::make_shared<convert::Options>();
  app.add_option("filter", options->filter, "The filter file, of any format")->type_name("FILTER")->required();
  app.add_option("-o,--output", options->output, "The file to write")->type_name("FILE")->required();
  add_format_name(app, "--to", options->to, "The format to write (perhaps formats lists them)")->required();
  add_sets(app, "--set", options->sets, "A parameter of the format to write; may be repeated");
  app.add_option("--entry", options->entry, "Which filter of a file that holds many: its name, or its number from 0")
      ->type_name("NAME");
  auto* const format = add_format_name(app, "--format", options->format.format,
                                       "The format of the file, where its content and name do not tell");
  add_sets(app, "--format-set", options->format.sets, "A parameter that this format is read with; may be repeated")
      ->needs(format);
  declare_json(app, options->json);
  return [options] { return convert::run(*options); };
}

}  // namespace perhaps::cli
