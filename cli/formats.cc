// perhaps formats: the file formats of other systems, and their parameters.
#include "any_file.h"
#include "build_format.h"
#include "command.h"
#include "json.h"
#include "options.h"
#include "print.h"

namespace perhaps::cli {
namespace formats {
namespace {

struct Options {
  std::vector<std::string> names;
  bool json = false;
};

using Type = format::Param::Type;

// "0 to 1000", "new|old", "true|false"
std::string range_of(const format::Param& param) {
  switch (param.type) {
    case Type::word:
      return std::string(param.words);
    case Type::flag:
      return "true|false";
    case Type::count:
    case Type::real:
      break;
  }
  return param.most == 0 ? fmt::format("from {}", param.least) : fmt::format("{} to {}", param.least, param.most);
}

std::string json_of(const format::Codec& codec) {
  std::vector<std::string> params;
  for (const format::Param& param : codec.params) {
    const std::string_view option = option_for(param.means);
    Json json;
    json.add("name", param.name).add("summary", param.summary).add("values", range_of(param));
    json.add("default", param.initial).add("option", option.empty() ? std::nullopt : std::optional(option));
    params.push_back(json.text());
  }
  Json json;
  json.add("name", codec.name).add("summary", codec.summary).add("writes", codec.build != nullptr);
  json.add("converts", codec.convert != nullptr).raw("params", Json::array(params));
  return json.text();
}

std::string parameters_of(const format::Codec& codec) {
  std::vector<std::vector<std::string>> rows = {{"  --set", "values", "default", "", ""}};
  for (const format::Param& param : codec.params) {
    rows.push_back({"  " + std::string(param.name), range_of(param),
                    param.initial.empty() ? "by the keys" : std::string(param.initial),
                    std::string(option_for(param.means)), std::string(param.summary)});
  }
  return codec.params.empty() ? "  no parameters\n" : table(rows, "lllll");
}

int run(const Options& options) {
  std::vector<const format::Codec*> chosen;
  for (const std::string& name : options.names) chosen.push_back(&find_codec(name));
  if (chosen.empty()) chosen.assign(format::codecs().begin(), format::codecs().end());
  Out out;
  if (options.json) {
    std::vector<std::string> objects;
    for (const format::Codec* codec : chosen) objects.push_back(json_of(*codec));
    out.write(Json::array(objects) + "\n");
    return kYes;
  }
  if (options.names.empty()) {
    std::vector<std::vector<std::string>> rows = {{"format", "", "what it is", "--set"}};
    for (const format::Codec* codec : chosen) {
      std::vector<std::string_view> params;
      for (const format::Param& param : codec->params) params.push_back(param.name);
      rows.push_back({std::string(codec->name), codec->build == nullptr ? "read" : "read, write",
                      std::string(codec->summary), fmt::format("{}", fmt::join(params, ", "))});
    }
    out.write(table(rows, "llll"));
    return kYes;
  }
  for (const format::Codec* codec : chosen) {
    out.write(fmt::format("{}{}: {}{}\n", codec == chosen.front() ? "" : "\n", bold(codec->name), codec->summary,
                          codec->build == nullptr ? " (read, but not written)" : ""));
    out.write(parameters_of(*codec));
  }
  return kYes;
}

}  // namespace
}  // namespace formats

Command::Run formats_command(CLI::App& app) {
  auto options = std::make_shared<formats::Options>();
  app.add_option("formats", options->names, "The formats whose parameters to show")->type_name("NAME");
  declare_json(app, options->json);
  return [options] { return formats::run(*options); };
}

}  // namespace perhaps::cli
